"""Sixteen runs of real rankers on TREC Deep Learning 2019: how even are they, and what do they risk against BM25?

make evidence PAGE=dl19-runs        (a minute on two cores)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evidence import DATA as SHARED
from evidence import Guard, Page, Rows, need_data, prose, read_number, table
from shaketable.core.results import ScoreTable
from shaketable.datasets.trec import read_qrels, read_run
from shaketable.measures.effectiveness import score_tables, tie_rate
from shaketable.measures.risk import rank_systems, reward_risk, risk_table
from shaketable.measures.significance import (
    adjust_p_values,
    bootstrap_interval,
    compare_all_pairs,
    effect_size,
    randomisation_test,
)
from shaketable.measures.variance import GMAP, VAP, VNAP, WorstArea, count_relevant_lost, mean_variance_correlation

Values = NDArray[np.float64]

DATA = SHARED / "runs" / "dl19"
BASELINE, ALPHAS, LEVEL = "bm25", (0.0, 1.0, 5.0), 0.05
MEASURES = ("nDCG@10", "AP(rel=2)", "Success(rel=2)@10", "P(rel=2)@10", "Judged@10")
TRAINED_ON = {
    "adversarial-plain-retriever": (
        "adversarial-random-1.0-retriever",
        "adversarial-random-1.1-retriever",
        "adversarial-targeted-1.0-retriever",
    ),
    "minilm_reranker_model_listwise": (
        "minilm_reranker_model_listwise_adversarial",
        "minilm_reranker_model_listwise_adversarial_targetted",
    ),
}
"""A ranker, and the same trained also against injected text."""


def evenness(tables: dict[str, ScoreTable], ties: dict[str, float]) -> list[list[str]]:
    ndcg, ap, success, precision, judged = (tables[name] for name in MEASURES)
    low, high = bootstrap_interval(ndcg.values, 1)
    area, floor, vnap, vap = (of.over(ap.values) for of in (WorstArea(), GMAP(), VNAP(), VAP()))
    base = precision.row(BASELINE)
    rows = []
    for i in np.argsort(-ndcg.values.mean(axis=1)):
        rows.append(
            [
                ndcg.systems[i],
                f"{ndcg.values[i].mean():.3f} [{low[i]:.3f}, {high[i]:.3f}]",
                f"{ap.values[i].mean():.3f}",
                f"{vnap[i]:.3f}",
                f"{vap[i]:.4f}",
                f"{floor[i]:.3f}",
                f"{area[i]:.3f}",
                f"{100 * (1 - success.values[i].mean()):.1f}",
                f"{count_relevant_lost(base, precision.values[i]).mean():.2f}",
                f"{100 * judged.values[i].mean():.0f} %",
                f"{100 * ties[ndcg.systems[i]]:.1f} %",
            ]
        )
    return rows


def against_baseline(ndcg: ScoreTable) -> list[list[str]]:
    """Each run beside BM25."""
    others = [i for i, name in enumerate(ndcg.systems) if name != BASELINE]
    x, base = ndcg.values[others], ndcg.row(BASELINE)
    flat = np.broadcast_to(base, x.shape)
    found, whole = reward_risk(x, base), risk_table(ndcg.values, base, ALPHAS)
    low, high = bootstrap_interval(x - base, 1)
    p = adjust_p_values(randomisation_test(flat, x))
    effect = effect_size(flat, x)
    risk_p = np.stack([adjust_p_values(whole.p[others, a]) for a in range(len(ALPHAS))], axis=1)
    rows = []
    for row in np.argsort(-x.mean(axis=1)):
        name, t = ndcg.systems[others[row]], whole.t[others[row], -1]
        rows.append(
            [
                name,
                f"{(x[row] - base).mean():+.3f} [{low[row]:+.3f}, {high[row]:+.3f}]",
                _p(p[row]),
                f"{effect[row]:.2f}",
                f"{found.reward[row]:.3f}",
                f"{found.risk[row]:.3f}",
                f"{found.ratio[row]:.1f}",
                f"{found.wins[row]:.0f}/{found.losses[row]:.0f}/{found.ties[row]:.0f}",
                f"{found.heavy_losses[row]:.0f}",
                f"{whole.u[others[row], 1]:+.3f}",
                f"{whole.u[others[row], 2]:+.3f}",
                f"{t:+.2f}",
                _p(risk_p[row, -1]),
            ]
        )
    return rows


def call_sides(compared: Sequence[Sequence[str]]) -> dict[str, list[str]]:
    """Which runs are riskier or safer than chance, by the printed p of TRisk.

    What chance leads to expect is below 0 at a large α, so the side is that of the difference of nDCG@10.
    """
    called: dict[str, list[str]] = {"riskier": [], "safer": [], "neither": []}
    for name, difference, *_, p in compared:
        side = "safer" if read_number(difference) > 0 else "riskier"
        called[side if p.startswith("<") or float(p) < LEVEL else "neither"].append(name)
    return called


def among_all(ndcg: ScoreTable) -> list[list[str]]:
    found, letters = risk_table(ndcg.values, ndcg.row(BASELINE), ALPHAS), compare_all_pairs(ndcg.values).letters
    places = {name: rank_systems(values) for name, values in (("T*", found.t_star), ("Z", found.z), ("Geo", found.geo))}
    by_mean = rank_systems(found.mean)
    rows = []
    for i in np.argsort(by_mean, kind="stable"):
        cells = [ndcg.systems[i], f"{found.mean[i]:.3f} ({by_mean[i]})"]
        for a in (0, 2):
            cells += [
                f"{found.t_star[i, a]:+.2f} ({places['T*'][i, a]})",
                f"{found.z[i, a]:+.2f} ({places['Z'][i, a]})",
            ]
            cells.append(f"{found.geo[i, a]:.3f} ({places['Geo'][i, a]})")
        rows.append([*cells, letters[i]])
    return rows


def price_of_training(ndcg: ScoreTable) -> list[list[str]]:
    pairs = [(base, name) for base, names in TRAINED_ON.items() for name in names]
    before, after = (np.stack([ndcg.row(pair[side]) for pair in pairs]) for side in (0, 1))
    low, high = bootstrap_interval(after - before, 1)
    p = adjust_p_values(randomisation_test(before, after))
    rows = []
    for i, (base, name) in enumerate(pairs):
        found = reward_risk(after[i : i + 1], before[i])
        rows.append(
            [
                name,
                base,
                f"{(after[i] - before[i]).mean():+.3f} [{low[i]:+.3f}, {high[i]:+.3f}]",
                _p(p[i]),
                f"{found.reward.item():.3f}",
                f"{found.risk.item():.3f}",
                f"{found.wins.item():.0f}/{found.losses.item():.0f}/{found.ties.item():.0f}",
                f"{found.heavy_losses.item():.0f}",
            ]
        )
    return rows


EVEN = ("run", "nDCG@10", "AP", "VNAP", "VAP", "gMAP", "worst 25 %", "%no", "R-Loss@10", "judged@10", "ties")
AGAINST = ("run", "nDCG@10 - BM25's", "p", "effect", "reward", "risk", "ratio", "W/L/T", "L > 20 %",
           "URisk 1", "URisk 5", "TRisk 5", "p of TRisk 5")  # fmt: skip
ALL = ("run", "nDCG@10",
       *(f"{name} {alpha:g}" for alpha in (0, 5) for name in ("T*Risk", "ZRisk", "GeoRisk")), "letters")  # fmt: skip
PRICE = ("run", "against", "nDCG@10", "p", "reward", "risk", "W/L/T", "L > 20 %")
SIDES = {
    "riskier": "Riskier than chance against BM25",
    "safer": "Safer than chance",
    "neither": "Neither can be said",
}


def measure() -> Rows:
    need_data("runs", "dl19")
    tables, ties = read("*")
    ndcg, ap = tables["nDCG@10"], tables["AP(rel=2)"]
    r = mean_variance_correlation(ap.values.mean(axis=1), VNAP().over(ap.values))
    return {
        "queries": len(ndcg.topics),
        "evenness": evenness(tables, ties),
        "correlation of mean AP and VNAP": f"{r:.3f}",
        "against bm25": against_baseline(ndcg),
        "among all": among_all(ndcg),
        "price of training": price_of_training(ndcg),
    }


def compose(found: Rows) -> list[str]:
    runs = len(found["evenness"])
    called = call_sides(found["against bm25"])
    return [
        prose(f"""{found["queries"]} queries of the passage task; BM25, ColBERTv2, eight dense retrievers (the first 500
        or 1000 of all passages) and six re-rankers of BM25's first 100. Binary measures count grades from 2 up. Average
        precision of a re-ranker ends at rank 100, so it is lower than a retriever's for that reason alone."""),
        "## How even they are",
        prose("""Brackets are 95 % bootstrap intervals; gMAP, VNAP, VAP and the worst quarter are of AP; R-Loss is
        against BM25; ties are neighbours with one score."""),
        table(EVEN, found["evenness"]),
        prose(f"""Pearson correlation of mean AP and VNAP over the {runs} runs:
        {found["correlation of mean AP and VNAP"]} (paper 000 has -.987 over its rankers)."""),
        "## What they risk against BM25",
        prose(f"""p of the difference by randomisation and p of TRisk at α = 5 by randomisation at that α, both
        corrected by Holm over the {runs - 1} runs. TRisk of equal systems is below 0 at α = 5: only its p says whether
        a run is riskier than chance."""),
        table(AGAINST, found["against bm25"]),
        "\n".join(f"- {what}: {', '.join(called[side]) or 'none'}." for side, what in SIDES.items()),
        "## Among all sixteen",
        prose(f"""Places in brackets. Runs that share a letter do not differ significantly (paired t-test, Holm over all
        {runs * (runs - 1) // 2} pairs, .05)."""),
        table(ALL, found["among all"]),
        "## What training against injected text costs",
        table(PRICE, found["price of training"]),
        f"p by randomisation, corrected by Holm over the {len(found['price of training'])} rows.",
    ]


def _p(value: float) -> str:
    return "< .001" if value < 0.001 else f"{value:.3f}"


def read(names: str) -> tuple[dict[str, ScoreTable], dict[str, float]]:
    """The measures of the runs whose names match, and their ties."""
    runs = {path.name.removesuffix(".run.gz"): read_run(path) for path in sorted(DATA.glob(f"{names}.run.gz"))}
    found = score_tables(MEASURES, read_qrels(DATA / "qrels.txt"), runs)
    return dict(zip(MEASURES, found, strict=True)), {name: tie_rate(run).neighbours for name, run in runs.items()}


PAGE = Page(
    __file__,
    "Sixteen runs on TREC Deep Learning 2019",
    measure,
    compose,
    (
        Guard("evenness", "the row of bm25", lambda: evenness(*read(BASELINE))[0]),
        Guard("among all", "all of the comparison of sixteen runs", lambda: among_all(read("*")[0]["nDCG@10"])),
    ),
)

if __name__ == "__main__":
    PAGE.main()

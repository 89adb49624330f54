"""Sixteen runs of real rankers on TREC Deep Learning 2019: how even are they, and what do they risk against BM25?

make evidence PAGE=dl19-runs        (a minute on two cores)
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evidence import DATA as SHARED
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

ROOT = Path(__file__).resolve().parents[1]
DATA, PAGE = SHARED / "runs" / "dl19", ROOT / "docs" / "evidence" / "dl19-runs.md"
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


def evenness(tables: dict[str, ScoreTable], ties: dict[str, float]) -> str:
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
    head = ["run", "nDCG@10", "AP", "VNAP", "VAP", "gMAP", "worst 25 %", "%no", "R-Loss@10", "judged@10", "ties"]
    return table(head, rows)


def against_baseline(ndcg: ScoreTable) -> tuple[str, dict[str, list[str]]]:
    """Each run beside BM25, and which of them are called what."""
    others = [i for i, name in enumerate(ndcg.systems) if name != BASELINE]
    x, base = ndcg.values[others], ndcg.row(BASELINE)
    flat = np.broadcast_to(base, x.shape)
    found, whole = reward_risk(x, base), risk_table(ndcg.values, base, ALPHAS)
    low, high = bootstrap_interval(x - base, 1)
    p = adjust_p_values(randomisation_test(flat, x))
    effect = effect_size(flat, x)
    risk_p = np.stack([adjust_p_values(whole.p[others, a]) for a in range(len(ALPHAS))], axis=1)
    called: dict[str, list[str]] = {"safer": [], "riskier": [], "neither": []}
    rows = []
    for row in np.argsort(-x.mean(axis=1)):
        name, t = ndcg.systems[others[row]], whole.t[others[row], -1]
        # what chance leads to expect is below 0 at a large α, so p's side is that of the difference at α = 0
        side = "neither" if risk_p[row, -1] >= LEVEL else "safer" if whole.u[others[row], 0] > 0 else "riskier"
        called[side].append(name)
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
    head = ["run", "nDCG@10 - BM25's", "p", "effect", "reward", "risk", "ratio", "W/L/T", "L > 20 %"]
    return table([*head, "URisk 1", "URisk 5", "TRisk 5", "p of TRisk 5"], rows), called


def among_all(ndcg: ScoreTable) -> str:
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
    head = [f"{name} {alpha:g}" for alpha in (0, 5) for name in ("T*Risk", "ZRisk", "GeoRisk")]
    return table(["run", "nDCG@10", *head, "letters"], rows)


def price_of_training(ndcg: ScoreTable) -> str:
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
    return table(["run", "against", "nDCG@10", "p", "reward", "risk", "W/L/T", "L > 20 %"], rows)


def page(tables: dict[str, ScoreTable], ties: dict[str, float]) -> str:
    ndcg, ap = tables["nDCG@10"], tables["AP(rel=2)"]
    compared, called = against_baseline(ndcg)
    r = mean_variance_correlation(ap.values.mean(axis=1), VNAP().over(ap.values))
    verdict = "\n".join(
        f"- {what}: {', '.join(called[side]) or 'none'}."
        for side, what in (
            ("riskier", "Riskier than chance against BM25"),
            ("safer", "Safer than chance"),
            ("neither", "Neither can be said"),
        )
    )
    return f"""# Sixteen runs on TREC Deep Learning 2019

Made by `evidence/dl19_runs.py`; nothing here was edited by hand.

{len(ndcg.topics)} queries of the passage task; BM25, ColBERTv2, eight dense retrievers (the first 500 or 1000 of all
passages) and six re-rankers of BM25's first 100. Binary measures count grades from 2 up. Average precision of a
re-ranker ends at rank 100, so it is lower than a retriever's for that reason alone.

## How even they are

Brackets are 95 % bootstrap intervals; gMAP, VNAP, VAP and the worst quarter are of AP; R-Loss is against BM25; ties are
neighbours with one score.

{evenness(tables, ties)}

Pearson correlation of mean AP and VNAP over the {len(ap.systems)} runs: {r:.3f} (paper 000 has -.987 over its rankers).

## What they risk against BM25

p of the difference by randomisation and p of TRisk at α = 5 by randomisation at that α, both corrected by Holm over
the {len(ndcg.systems) - 1} runs. TRisk of equal systems is below 0 at α = 5: only its p says whether a run is riskier
than chance.

{compared}

{verdict}

## Among all sixteen

Places in brackets. Runs that share a letter do not differ significantly (paired t-test, Holm over all
{len(ndcg.systems) * (len(ndcg.systems) - 1) // 2} pairs, .05).

{among_all(ndcg)}

## What training against injected text costs

{price_of_training(ndcg)}

p by randomisation, corrected by Holm over the {sum(map(len, TRAINED_ON.values()))} rows.
"""


def _p(value: float) -> str:
    return "< .001" if value < 0.001 else f"{value:.3f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def read(names: str) -> tuple[dict[str, ScoreTable], dict[str, float]]:
    """The measures of the runs whose names match, and their ties."""
    runs = {path.name.removesuffix(".run.gz"): read_run(path) for path in sorted(DATA.glob(f"{names}.run.gz"))}
    found = score_tables(MEASURES, read_qrels(DATA / "qrels.txt"), runs)
    return dict(zip(MEASURES, found, strict=True)), {name: tie_rate(run).neighbours for name, run in runs.items()}


def main() -> int:
    if not DATA.is_dir():
        print(f"skipped: there are no runs at {DATA}")
        return 0
    text = page(*read("*"))
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")
    print(text)
    return 0


def cheap_row() -> str:
    return evenness(*read(BASELINE)).splitlines()[-1]


if __name__ == "__main__":
    sys.exit(main())

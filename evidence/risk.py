"""Risk measures on runs of TREC tracks (paper 002, sections 2 and 5).

make evidence PAGE=risk        (one minute on one core)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

from evidence import DATA as SHARED
from evidence import Guard, Page, Rows, fold, need_data, prose, table
from evidence._claims import MEASUREMENTS
from evidence._intervals import bound, draw_topics, measure_share
from evidence._published_runs import BASELINE, read_published_runs
from evidence._verdicts import Measurement
from evidence.summary import tabulate_claims
from shaketable.core.results import ScoreTable
from shaketable.datasets.scores import read_scores
from shaketable.measures.risk import (
    geo_risk,
    rank_systems,
    reward_risk,
    risk_table,
    t_risk,
    t_risk_p,
    t_star_risk,
    z_risk,
)
from shaketable.measures.significance import adjust_p_values, bootstrap_interval

Values = NDArray[np.float64]

DATA = SHARED / "scores"
TRACKS = ("robust2004_ap", "web2010_err20", "web2011_err20", "web2013_err20", "web2014_err20")
FALL_TRACKS = ("robust2004_ap", "adhoc8_ap", "web2010_err20")
ALPHAS = (0.0, 1.0, 5.0)
ORDERS: dict[str, tuple[str, Callable[[Values], Values]]] = {
    "002-t-star": ("T*Risk, α = 5", lambda x: t_star_risk(x, 5.0)),
    "002-geo-mean": ("GeoRisk, α = 0", lambda x: geo_risk(x, 0.0)),
    "002-z-mean": ("ZRisk, α = 5", lambda x: z_risk(x, 5.0)),
}
"""claim -> a risk measure whose order of the runs is compared with that by the mean"""
LEVEL, LARGE_T = 0.05, 2
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
"""A published run -> the runs of the same ranker, trained also against injected text."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """The scores of all runs of a track, [runs, topics]."""

    name: str
    x: Values

    @cached_property
    def baseline(self) -> int:
        """The run with the median mean, which is the single baseline of TRisk."""
        return int(np.argsort(self.x.mean(axis=1), kind="stable")[len(self.x) // 2])


def read_matrices(names: Iterable[str]) -> list[Matrix]:
    """Return matrices by name."""
    return [Matrix(name, read_scores(DATA / f"{name}.csv").values) for name in names]


def compare_orders(claim: str, matrix: Matrix) -> Measurement:
    """Return Kendall's τ of the orders by the mean and by a risk measure, both computed again in each resample."""
    measure = ORDERS[claim][1]

    def tau(x: Values) -> float:
        return float(kendalltau(x.mean(axis=1), measure(x)).statistic)

    value, topics = tau(matrix.x), matrix.x.shape[1]
    low, high = bound(value, np.array([tau(matrix.x[:, drawn]) for drawn in draw_topics(topics)]))
    return Measurement(claim, "all runs", matrix.name, value, low, high, topics)


def count_falls(matrix: Matrix) -> Measurement:
    """Return the share of runs whose GeoRisk falls at every step of α from 0 to 20."""
    falls = (np.diff([geo_risk(matrix.x, alpha) for alpha in range(21)], axis=0) < 0).all(axis=0)
    return measure_share("002-geo-falls", "all runs", matrix.name, int(falls.sum()), len(falls))


def count_false_alarms(matrix: Matrix, alpha: float) -> tuple[int, int, int]:
    """Return how many runs have |TRisk| above 2, how many of them chance explains, and how many runs there are."""
    others = np.arange(len(matrix.x)) != matrix.baseline
    base = matrix.x[matrix.baseline]
    large = np.abs(t_risk(matrix.x[others], base, alpha)) > LARGE_T
    by_chance = t_risk_p(matrix.x[others], base, [alpha])[:, 0] >= LEVEL
    return int(large.sum()), int((large & by_chance).sum()), len(large)


def measure_false_alarms(matrix: Matrix) -> Measurement:
    """Return the share of runs beyond |TRisk| = 2 at α = 5 that differ from the baseline no more than by chance."""
    large, extra, _ = count_false_alarms(matrix, 5.0)
    return measure_share("002-t-two", "all runs", matrix.name, extra, large)


def list_alarms(matrix: Matrix) -> list[str]:
    """Return the row of a track: false alarms of |TRisk| > 2 by α."""
    counts = [count_false_alarms(matrix, alpha) for alpha in ALPHAS]
    return [matrix.name, str(counts[0][2]), *(f"{extra} of {large}" for large, extra, _ in counts)]


def list_moves(matrix: Matrix) -> list[str]:
    """Return the row of a track: how many runs change their rank between the mean and T*Risk, and by how much."""
    by_mean, cells = rank_systems(matrix.x.mean(axis=1)), []
    for alpha in (0, 5, 20):
        moved = np.abs(rank_systems(t_star_risk(matrix.x, alpha)) - by_mean)
        cells.append(f"{int((moved > 0).sum())} of {len(moved)}, by up to {int(moved.max())}")
    return [matrix.name, *cells]


def compare_with_bm25(ndcg: ScoreTable) -> list[list[str]]:
    """Return a row for each published run on TREC DL 2019: what it gains and risks against BM25."""
    others = [i for i, name in enumerate(ndcg.systems) if name != BASELINE]
    x, base = ndcg.values[others], ndcg.row(BASELINE)
    found, whole = reward_risk(x, base), risk_table(ndcg.values, base, ALPHAS)
    low, high = bootstrap_interval(x - base)
    p = adjust_p_values(whole.p[others, -1])
    rows = []
    for row in np.argsort(-x.mean(axis=1)):
        outcome = f"{found.wins[row]:.0f}/{found.losses[row]:.0f}/{found.ties[row]:.0f}"
        rows.append([
            ndcg.systems[others[row]],
            f"{(x[row] - base).mean():+.3f} [{low[row]:+.3f}, {high[row]:+.3f}]",
            f"{found.reward[row]:.3f}", f"{found.risk[row]:.3f}", outcome, f"{found.heavy_losses[row]:.0f}",
            f"{whole.t[others[row], -1]:+.2f}", "< .001" if p[row] < 0.001 else f"{p[row]:.3f}",
        ])  # fmt: skip
    return rows


def price_training(ndcg: ScoreTable) -> list[list[str]]:
    """Return a row for each run that was also trained against injected text: its difference from the run without."""
    rows = []
    for base, names in TRAINED_ON.items():
        for name in names:
            difference = ndcg.row(name) - ndcg.row(base)
            low, high = bootstrap_interval(difference)
            rows.append([name, base, f"{difference.mean():+.3f} [{low:+.3f}, {high:+.3f}]"])
    return rows


def measure() -> Rows:
    need_data("scores")
    tracks = read_matrices(TRACKS)
    found = [compare_orders(claim, one) for claim in ORDERS for one in tracks]
    found += [count_falls(one) for one in read_matrices(FALL_TRACKS)]
    found += [measure_false_alarms(one) for one in tracks]
    ndcg = read_published_runs(("nDCG@10",))["nDCG@10"]
    return {
        MEASUREMENTS: [one.to_row() for one in found],
        "false alarms": [list_alarms(one) for one in tracks],
        "moved runs": [list_moves(one) for one in tracks],
        "queries": len(ndcg.topics),
        "published runs": compare_with_bm25(ndcg),
        "price of training": price_training(ndcg),
    }


def tabulate_orders(found: Sequence[Measurement]) -> list[list[str]]:
    """Return a row for each track: τ of three orders, falling runs and false alarms."""
    known = {(one.claim, one.collection): one for one in found}
    rows = []
    for name in (*TRACKS, "adhoc8_ap"):
        cells = [known.get((claim, name)) for claim in (*ORDERS, "002-geo-falls", "002-t-two")]
        rows.append([name, *("" if one is None else str(one) for one in cells)])
    return rows


def compose(found: Rows) -> list[str]:
    measured = [Measurement(**row) for row in found[MEASUREMENTS]]
    taus = {claim: [one.value for one in measured if one.claim == claim] for claim in ORDERS}
    falls = [one.value for one in measured if one.claim == "002-geo-falls"]
    every = "every run" if min(falls) == 100 else f"{min(falls):.0f} % or more of the runs"
    alarms = [[int(number) for number in row[-1].split(" of ")] for row in found["false alarms"]]
    extra, large = (sum(some) for some in zip(*alarms, strict=True))
    safer = sum(float(row[-1].removeprefix("< ")) < LEVEL for row in found["published runs"])
    ranges = {claim: f"{min(some):.2f} to {max(some):.2f}" for claim, some in taus.items()}
    return [
        prose(f"""GeoRisk at α = 0 orders the runs of a track almost as their mean does (τ {ranges["002-geo-mean"]}),
        T*Risk at α = 5 does less so (τ {ranges["002-t-star"]}), and ZRisk at α = 5 gives another order (τ
        {ranges["002-z-mean"]}). GeoRisk falls at every step of α for {every} of three tracks.
        Of {large} runs with |TRisk| above 2 at α = 5, {extra} differ from their baseline no more than by chance, so
        this threshold says nothing about significance there."""),
        table(
            (
                "track",
                *(f"τ of the mean and {said}" for said, _ in ORDERS.values()),
                "runs whose GeoRisk falls, %",
                "beyond ±2 of TRisk by chance, %",
            ),
            tabulate_orders(measured),
        ),
        "## Verdicts",
        tabulate_claims("risk", found),
        "## How it was made",
        prose("""Data: all runs of six TREC tracks on their topics (Urbano and others), without names; the end of a
        matrix's name is its measure, average precision or ERR@20. The paper compares runs of the Web track 2012, which
        is not public as a matrix. Intervals of τ are percentiles of 1,000 resamples of topics; both orders are computed
        again from each. τ of a resample, which repeats topics, is on average below τ of all topics; if τ lies outside
        the percentiles, the interval is widened to it. The baseline of TRisk is the run with the median mean;
        chance is a randomisation test at the same α (p ≥ .05). No model is used. One minute, seed 0."""),
        prose(f"""Shares have exact intervals over runs; runs of one group are alike, so these intervals are rather too
        narrow. An undecided row says how many topics would decide it. On TREC DL 2019 ({found["queries"]} queries),
        {safer} of {len(found["published runs"])} published runs are significantly less risky than BM25 at α = 5
        (Holm)."""),
        fold(
            "Published runs on TREC DL 2019 against BM25",
            table(
                ("run", "nDCG@10 - BM25's", "reward", "risk", "W/L/T", "losses > 20 %", "TRisk, α = 5", "p (Holm)"),
                found["published runs"],
            ),
        ),
        fold(
            "What training against injected text costs on TREC DL 2019",
            table(("run", "against", "difference in nDCG@10"), found["price of training"]),
        ),
        fold(
            "Runs beyond |TRisk| = 2 that chance explains, by α",
            table(("track", "runs", *(f"α = {alpha:g}" for alpha in ALPHAS)), found["false alarms"]),
        ),
        fold(
            "Runs whose rank by T*Risk is not that by the mean",
            table(("track", "α = 0", "α = 5", "α = 20"), found["moved runs"]),
        ),
    ]


PAGE = Page(
    __file__,
    "Risk measures on runs of TREC tracks",
    measure,
    compose,
    (
        Guard(
            MEASUREMENTS,
            "τ of the mean and GeoRisk on web2014_err20 with its interval",
            lambda: compare_orders("002-geo-mean", *read_matrices(["web2014_err20"])).to_row(),
        ),
        Guard("moved runs", "the moved runs on web2013_err20", lambda: list_moves(*read_matrices(["web2013_err20"]))),
        Guard(
            "false alarms", "the false alarms on web2013_err20", lambda: list_alarms(*read_matrices(["web2013_err20"]))
        ),
        Guard(
            "published runs",
            "all published runs on TREC DL 2019",
            lambda: compare_with_bm25(read_published_runs(("nDCG@10",))["nDCG@10"]),
        ),
    ),
)

if __name__ == "__main__":
    PAGE.main()

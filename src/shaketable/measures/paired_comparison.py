"""Paired comparison of values and rankings before and after a change, query by query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from shaketable.measures.rank_distance import RBO, Kendall, Overlap, TopChange, count_ranks_lost, drop_rate
from shaketable.measures.significance import (
    CORRECTION_TITLES,
    adjust_p_values,
    bootstrap_interval,
    correct_intervals,
    effect_size,
    format_star,
    t_test,
    weighted_t_test,
)

if TYPE_CHECKING:
    import pandas as pd

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Comparison:
    """Means over the queries with both values, with a 95 % interval of their difference; p is not corrected."""

    n: int
    before: float
    after: float
    change: float
    low: float
    high: float
    p: float
    effect: float

    @property
    def drop(self) -> float:
        """The change in per cent of the value before; NaN if that is 0."""
        return 100 * drop_rate(self.before, self.after)


EMPTY_COMPARISON = Comparison(0, *(float("nan"),) * 7)


CORRECTED_INTERVAL_NOTE = "corrected like p, so that it excludes 0 where p is below 0.05"
"""What tables say of the 95 % intervals beside a corrected p; the bootstrap may differ slightly from the t-test."""
Weights = Mapping[str, float]
"""qid -> weight of the query in a mean; if empty, all queries have equal weight."""


def compare_paired(
    before: Mapping[str, float], after: Mapping[str, float], seed: int = 0, weights: Weights | None = None
) -> Comparison:
    """Compare the two values of each query that has both.

    >>> compare_paired({"a": 0.5, "b": 0.25, "c": 1.0}, {"a": 0.25, "b": 0.25}).change
    -0.125
    >>> compare_paired({"a": 0.5, "b": 0.25}, {"a": 0.25, "b": 0.25}, weights={"a": 3, "b": 1}).change
    -0.1875
    """
    common = [qid for qid in before if qid in after]
    if not common:
        return EMPTY_COMPARISON
    left, right = np.array([before[q] for q in common]), np.array([after[q] for q in common])
    heavy = [weights[q] for q in common] if weights else None
    low, high = bootstrap_interval(right - left, seed, weights=heavy)
    start, end = float(np.average(left, weights=heavy)), float(np.average(right, weights=heavy))
    if heavy is None:
        p, effect = float(t_test(left, right)), float(effect_size(left, right))
    else:
        p, effect = map(float, weighted_t_test(left, right, heavy))
    return Comparison(len(common), start, end, end - start, float(low), float(high), p, effect)


def query_means(qids: Sequence[str], values: Sequence[float] | Values) -> dict[str, float]:
    """Return the mean of each query's values, in the order of first occurrence.

    >>> query_means(["a", "b", "a"], [0.25, 1.0, 0.75])
    {'a': 0.5, 'b': 1.0}
    """
    sums: dict[str, list[float]] = {}
    for qid, value in zip(qids, values, strict=True):
        sums.setdefault(qid, []).append(float(value))
    return {qid: float(np.mean(several)) for qid, several in sums.items()}


def add_significance_stars(
    frame: pd.DataFrame,
    p_column: str = "p",
    queries_column: str = "queries",
    method: str = "holm",
    interval: tuple[str, str, str] | None = None,
) -> pd.DataFrame:
    """Return the frame with a column of p-values corrected for their number, and a star where they are significant.

    `interval` names the columns of the difference and of the ends of its 95 % interval, which are corrected like p
    (`correct_intervals`). NaN does not count as a test. A frame without the column is returned unchanged.
    """
    if p_column not in frame:
        return frame
    frame = frame.copy()
    at = list(frame.columns).index(p_column)
    p = frame.pop(p_column).to_numpy(dtype=np.float64)
    corrected = adjust_p_values(p, method)
    if interval is not None:
        value, low, high = (frame[name].to_numpy(dtype=np.float64) for name in interval)
        ends = correct_intervals(value, low, high, p, corrected, frame[queries_column].to_numpy())
        frame[interval[1]], frame[interval[2]] = ends
    frame.insert(at, f"{p_column} ({CORRECTION_TITLES[method]})", corrected)
    stars = [format_star(p, n) for p, n in zip(corrected, frame[queries_column], strict=True)]
    frame.insert(at + 1, _find_unused_heading(frame), stars)
    return frame.reset_index(drop=True)


def _find_unused_heading(frame: pd.DataFrame) -> str:
    """Return a heading of blanks that no column has, for the stars."""
    name = ""
    while name in frame:
        name += " "
    return name


@dataclass(frozen=True)
class Movement:
    """The distance between two rankings, which needs no relevance judgements.

    `top` is 1 if another document is first, `overlap` the share of the first ten that stayed, `rbo` rank-biased
    overlap, `kendall` the share of pairs that changed order, `fall` how many ranks the former first document lost.
    """

    top: float
    overlap: float
    rbo: float
    kendall: float
    fall: float


def measure_movement(before: Sequence[str], after: Sequence[str]) -> Movement:
    """Return the distance between two rankings of one query.

    >>> measure_movement(["a", "b", "c"], ["b", "a", "c"]).fall
    1.0
    """
    return Movement(
        TopChange().between(before, after),
        Overlap(10).between(before, after),
        RBO(0.9).between(before, after),
        Kendall().between(before, after),
        float(count_ranks_lost(before, after)),
    )


MOVEMENT_HEADINGS = {
    "top": "new first %",
    "overlap": "overlap@10",
    "rbo": "RBO",
    "kendall": "Kendall distance",
    "fall": "fall of first",
}
MOVEMENT_EXPLANATION = (
    "These need no judgements: 'new first %' is the percentage of lists with another document at rank 1; "
    "'overlap@10' is the share of the first ten documents that stay among the first ten; 'RBO' is rank-biased overlap, "
    "in which the first ranks weigh most, and 1 for the same list; 'Kendall distance' is the share of pairs of "
    "documents that change their order; 'fall of first' is the number of ranks that the former first document loses."
)


MOVEMENT_BETTER_DIRECTION: Mapping[str, Literal["higher", "lower"]] = {
    "new first %": "lower",
    "overlap@10": "higher",
    "RBO": "higher",
    "Kendall distance": "lower",
    "fall of first": "lower",
}
"""Whether a stable ranking has a high or a low value, for each column."""


@dataclass(frozen=True)
class MeanInterval:
    """A mean over queries, with its 95 % interval; NaN if there is no query."""

    value: float
    low: float
    high: float
    n: int


def weighted_mean(values: Mapping[str, float], seed: int = 0, weights: Weights | None = None) -> MeanInterval:
    """Return the weighted mean of the queries' values; NaN values are excluded.

    >>> weighted_mean({"a": 1.0, "b": 0.0, "c": float("nan")}, weights={"a": 3, "b": 1, "c": 9}).value
    0.75
    """
    known = {qid: value for qid, value in values.items() if not np.isnan(value)}
    if not known:
        return MeanInterval(*(float("nan"),) * 3, 0)
    heavy = [weights[qid] for qid in known] if weights else None
    numbers = list(known.values())
    low, high = bootstrap_interval(numbers, seed, weights=heavy)
    return MeanInterval(float(np.average(numbers, weights=heavy)), float(low), float(high), len(known))


def mean_movement(
    qids: Sequence[str], movements: Sequence[Movement], weights: Weights | None = None
) -> dict[str, float]:
    """Return means over queries, each averaged over its cases first, by the headings of `MOVEMENT_HEADINGS`."""
    row = {}
    for heading, means in _group_by_heading(qids, movements).items():
        heavy = [weights[qid] for qid in means] if weights else None
        row[heading] = float(np.average(list(means.values()), weights=heavy)) if means else float("nan")
    return row


def mean_movement_intervals(
    qids: Sequence[str], movements: Sequence[Movement], seed: int = 0, weights: Weights | None = None
) -> dict[str, MeanInterval]:
    """Return the means of `mean_movement` with intervals over queries."""
    return {h: weighted_mean(means, seed, weights) for h, means in _group_by_heading(qids, movements).items()}


def _group_by_heading(qids: Sequence[str], movements: Sequence[Movement]) -> dict[str, dict[str, float]]:
    """Return heading -> query -> mean over its cases that have a value."""
    found = {}
    for name, heading in MOVEMENT_HEADINGS.items():
        values = np.array([getattr(one, name) for one in movements]) * (100 if name == "top" else 1)
        known = ~np.isnan(values)
        found[heading] = query_means([q for q, k in zip(qids, known, strict=True) if k], values[known])
    return found

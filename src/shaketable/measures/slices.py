"""Slices of queries, and the effectiveness of a ranker on each part.

A slice divides the queries (by length, say); a part is one class of it (1 to 2 words). The mean over all queries may
hide a part with low effectiveness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shaketable.measures.significance import adjust_p_values, bootstrap_interval, correct_intervals, t_test

Slices: TypeAlias = Mapping[str, Mapping[str, tuple[str, ...]]]
"""slice -> part -> ids of its queries."""

LENGTH_BINS_WORDS = (
    (1, 2, "1 to 2 words"),
    (3, 4, "3 to 4 words"),
    (5, 7, "5 to 7 words"),
    (8, 10**9, "8 or more words"),
)
MIN_QUERIES_PER_PART = 10
"""The minimum number of queries for the worst part."""


def group_by_length(texts: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the queries grouped by their number of words.

    >>> group_by_length({"q1": "tea", "q2": "how to brew green tea"})
    {'1 to 2 words': ('q1',), '5 to 7 words': ('q2',)}
    """
    sizes = {qid: len(text.split()) for qid, text in texts.items()}
    parts = {name: tuple(q for q, n in sizes.items() if low <= n <= high) for low, high, name in LENGTH_BINS_WORDS}
    return {name: qids for name, qids in parts.items() if qids}


def group_by_label(labels: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the queries grouped by a label, such as the query type."""
    known = sorted(set(labels.values()) - {""})
    return {label: tuple(qid for qid, own in labels.items() if own == label) for label in known}


def group_by_half(values: Mapping[str, float], names: tuple[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the queries up to the median of a number, and those above it.

    >>> group_by_half({"a": 1, "b": 2, "c": 5}, ("shorter", "longer"))
    {'shorter': ('a', 'b'), 'longer': ('c',)}
    """
    middle = float(np.median(list(values.values()))) if values else 0.0
    parts = (tuple(q for q, v in values.items() if v <= middle), tuple(q for q, v in values.items() if v > middle))
    return {name: qids for name, qids in zip(names, parts, strict=True) if qids}


def group_by_quarter(values: Mapping[str, float], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the queries in four parts of equal size by a number, lowest first; equal numbers stay in one part.

    >>> group_by_quarter({"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.9}, ("hardest", "hard", "easy", "easiest"))["hardest"]
    ('a',)
    """
    ordered = np.sort(np.fromiter(values.values(), np.float64, len(values)))
    edges = ordered[[min(len(ordered) - 1, len(ordered) * i // 4) for i in (1, 2, 3)]] if len(ordered) else ordered
    part_of = {qid: int(np.searchsorted(edges, value, side="right")) for qid, value in values.items()}
    parts = {name: tuple(q for q, part in part_of.items() if part == i) for i, name in enumerate(names)}
    return {name: qids for name, qids in parts.items() if qids}


@dataclass(frozen=True)
class SlicePart:
    """The effectiveness on one part of a slice, compared with all other queries."""

    slice: str
    part: str
    mean: float
    low: float
    high: float
    rest_mean: float
    """The mean over all other queries."""
    n: int
    p: float
    """The p of the difference from the others (Welch's t-test), corrected for the number of parts by Holm."""


def compare_parts(values: Mapping[str, float], slices: Slices, seed: int = 0) -> list[SlicePart]:
    """Return a row for each part, if both the part and its complement have queries with values."""
    rows = []
    for name, classes in slices.items():
        for part, qids in classes.items():
            inside = np.array([values[q] for q in qids if q in values])
            members = set(qids)
            outside = np.array([v for q, v in values.items() if q not in members])
            if not len(inside) or not len(outside):
                continue
            low, high = bootstrap_interval(inside, seed) if len(inside) > 1 else (inside[0], inside[0])
            rows.append(
                (name, part, inside.mean(), low, high, outside.mean(), len(inside), welch_t_test(inside, outside))
            )
    corrected = adjust_p_values([row[-1] for row in rows], "holm") if rows else ()
    return [
        SlicePart(name, part, float(mean), float(low), float(high), float(rest), n, float(p))
        for (name, part, mean, low, high, rest, n, _), p in zip(rows, corrected, strict=True)
    ]


@dataclass(frozen=True)
class PartGain:
    """The gain over the first stage on one part of a slice, in per cent of the first stage's mean on that part."""

    slice: str
    part: str
    gain: float
    low: float
    high: float
    p: float
    """The p of the paired t-test, corrected for the number of parts by Holm."""
    corrected_ends: tuple[float, float]
    """The ends of the interval, corrected like p."""
    values: Mapping[str, float]
    """The contribution of each query."""


def compare_with_first_stage(
    before: Mapping[str, float], after: Mapping[str, float], slices: Slices, seed: int = 0
) -> list[PartGain]:
    """Return the gain of a ranker over the first stage on each part with enough queries.

    `before` and `after` have the value of each query by the first stage and by the ranker.
    """
    found = []
    for name, classes in slices.items():
        for part, qids in classes.items():
            common = [qid for qid in qids if qid in before and qid in after]
            start = float(np.mean([before[qid] for qid in common])) if common else 0.0
            if len(common) < MIN_QUERIES_PER_PART or not start:
                continue
            values = {qid: 100 * (after[qid] - before[qid]) / start for qid in common}
            changes = np.array(list(values.values()))
            low, high = bootstrap_interval(changes, seed)
            p = float(t_test(np.zeros_like(changes), changes))
            ends = float(low), float(high)
            found.append(PartGain(name, part, float(changes.mean()), *ends, p, ends, values))
    raw = [one.p for one in found]
    corrected = adjust_p_values(raw)
    columns = np.array([(one.gain, one.low, one.high, len(one.values)) for one in found]).reshape(-1, 4).T
    lows, highs = correct_intervals(columns[0], columns[1], columns[2], raw, corrected, columns[3])
    return [
        replace(one, p=float(p), corrected_ends=(float(start), float(end)))
        for one, p, start, end in zip(found, corrected, lows, highs, strict=True)
    ]


def welch_t_test(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """Return the two-sided p of Welch's t-test of two means over different queries; 1 if there is nothing to test.

    >>> round(welch_t_test(np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.6, 0.9, 0.4])), 4)
    0.0267
    """
    from scipy.special import stdtr

    if min(len(left), len(right)) < 2:
        return 1.0
    a, b = left.var(ddof=1) / len(left), right.var(ddof=1) / len(right)
    if a + b <= 1e-24 * max(1.0, float(np.abs([left.mean(), right.mean()]).max())):
        return 1.0
    freedom = (a + b) ** 2 / (a**2 / (len(left) - 1) + b**2 / (len(right) - 1))
    return float(2 * stdtr(freedom, -abs(left.mean() - right.mean()) / np.sqrt(a + b)))


def find_worst_part(rows: Sequence[SlicePart], better: str = "higher") -> SlicePart | None:
    """Return the part furthest behind the other queries, of those with enough queries; None if there is none."""
    sign = 1 if better == "higher" else -1
    behind = [row for row in rows if row.n >= MIN_QUERIES_PER_PART and sign * (row.mean - row.rest_mean) < 0]
    return min(behind, key=lambda row: sign * (row.mean - row.rest_mean), default=None)

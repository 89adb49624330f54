"""Parity of two rankers: whether they score the same documents equally, and if not, whether lists differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shaketable.core.documents import Run, rank_docnos

ROUNDING_SHARE = 1e-6
"""Differences up to this share of a score (of at least 1) are rounding: float32 has seven digits."""
PARITY_OUTCOMES = (
    "equal within noise",
    "scores differ, but no list changes",
    "lists change, but not among the first ten",
    "lists change among the first ten",
)
"""From the smallest change to the largest; the number of an outcome is its index here."""


@dataclass(frozen=True)
class ScoreDifference:
    """A query, a document, and the scores of two rankers."""

    query: str
    document: str
    first: float
    second: float

    @property
    def size(self) -> float:
        return abs(self.second - self.first)


def find_score_differences(first: Run, second: Run) -> list[ScoreDifference]:
    """Return all documents that both rankers scored, largest difference first.

    >>> find_score_differences({"q": {"a": 1.0, "b": 0.5}}, {"q": {"a": 1.0, "b": 0.75, "c": 9.0}})[0]
    ScoreDifference(query='q', document='b', first=0.5, second=0.75)
    """
    both = [
        ScoreDifference(qid, docno, score, second[qid][docno])
        for qid, scores in first.items()
        for docno, score in scores.items()
        if docno in second.get(qid, {})
    ]
    return sorted(both, key=lambda one: -one.size)


def largest_difference(first: Run, second: Run) -> float:
    """Return the largest score difference; 0 if the rankers scored no common documents.

    >>> largest_difference({"q": {"a": 1.0}}, {"q": {"a": 0.25}})
    0.75
    """
    return max((one.size for one in find_score_differences(first, second)), default=0.0)


def count_beyond_noise(differences: Sequence[ScoreDifference], noise: float) -> int:
    """Return the number of differences beyond noise and rounding: |a - b| > 2 noise + 1e-6 max(1, |a|, |b|).

    `noise` is the difference between repeated scores of one ranker. The largest of many differences exceeds the largest
    of a few, so twice the noise is allowed, as in the check of cached scores.

    >>> count_beyond_noise([ScoreDifference("q", "a", 1.0, 1.25), ScoreDifference("q", "b", 1.0, 1.0)], noise=0.1)
    1
    """
    return sum(d.size > 2 * noise + ROUNDING_SHARE * max(1.0, abs(d.first), abs(d.second)) for d in differences)


def saturated_share(run: Run) -> float:
    """Return the share of scores at an end of the range: equal (in float32) to the highest or lowest of all.

    An end with a single document does not count as saturated. Low-precision sigmoids saturate at 0 and 1.

    >>> saturated_share({"q1": {"a": 1.0, "b": 1.0, "c": 0.5}, "q2": {"a": 0.75}})
    0.5
    """
    scores = np.array([score for scores in run.values() for score in scores.values()], dtype=np.float32)
    if not len(scores):
        return float("nan")
    ends = [int((scores == end).sum()) for end in dict.fromkeys((scores.min(), scores.max()))]
    return sum(count for count in ends if count > 1) / len(scores)


def tied_share(run: Run) -> float:
    """Return the share of documents that share their score (in float32) with another document of their list.

    >>> tied_share({"q": {"a": 1.0, "b": 1.0, "c": 0.5, "d": 0.25}})
    0.5
    """
    tied = total = 0
    for scores in run.values():
        values = np.fromiter(scores.values(), np.float32, len(scores))
        _, counts = np.unique(values, return_counts=True)
        tied += int(counts[counts > 1].sum())
        total += len(values)
    return tied / total if total else float("nan")


def classify_parity(beyond_noise: int, rankings: Mapping[str, tuple[Sequence[str], Sequence[str]]]) -> int:
    """Return the index in `PARITY_OUTCOMES`, from the differences beyond noise and the two lists of each query.

    >>> classify_parity(0, {"q": ("ab", "ba")}), classify_parity(3, {"q": ("ab", "ab")})
    (0, 1)
    >>> classify_parity(3, {"q": ("ab", "ba")})
    3
    """
    if not beyond_noise:
        return 0
    if all(list(before) == list(after) for before, after in rankings.values()):
        return 1
    return 2 if all(list(before[:10]) == list(after[:10]) for before, after in rankings.values()) else 3


def pair_rankings(first: Run, second: Run) -> dict[str, tuple[list[str], list[str]]]:
    """Return the two lists of each query that both rankers ranked."""
    return {qid: (rank_docnos(first[qid]), rank_docnos(second[qid])) for qid in first if qid in second}

"""Distances between two rankings of one query, before and after, best document first."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shaketable.core.errors import BadInput


def drop_rate(before: float, after: float) -> float:
    """Return (after - before) / before: negative is a drop, higher is more robust; NaN if `before` is 0.

    >>> round(drop_rate(0.325, 0.227), 3)
    -0.302
    """
    return (after - before) / before if before else float("nan")


def count_ranks_lost(before: Sequence[str], after: Sequence[str]) -> int:
    """Return how many ranks the first document lost; a missing document ranks after the last one.

    >>> count_ranks_lost(["a", "b", "c"], ["c", "b", "a"]), count_ranks_lost(["a", "b"], ["b", "c", "d"])
    (2, 3)
    >>> count_ranks_lost([], ["a"])
    0
    """
    if not before:
        return 0
    return list(after).index(before[0]) if before[0] in after else len(after)


@dataclass(frozen=True)
class TopChange:
    """1 if the first document differs, else 0; the mean is the share of changed first documents.

    >>> TopChange().between(["a", "b"], ["b", "a"]), TopChange().between(["a", "b", "c"], ["a", "c", "b"])
    (1.0, 0.0)
    """

    def between(self, before: Sequence[str], after: Sequence[str]) -> float:
        return float(list(before[:1]) != list(after[:1]))


@dataclass(frozen=True)
class Kendall:
    """Share of document pairs that changed order: 0 for the same ranking, 1 for its reverse.

    Discordant pairs / (n(n-1)/2) = (1 - τ)/2 over the documents of both lists. Scores are accepted instead of lists:
    documents with equal scores share a rank, and a pair that shares a rank on either side is not discordant. NaN if
    the lists differ and have fewer than two documents in common.

    >>> Kendall().between(["a", "b", "c"], ["a", "c", "b"])
    0.3333333333333333
    >>> Kendall().between({"a": 2.0, "b": 1.0}, {"a": 1.0, "b": 1.0})
    0.0
    """

    def between(self, before: Sequence[str] | Mapping[str, float], after: Sequence[str] | Mapping[str, float]) -> float:
        left, right = _build_ranks(before), _build_ranks(after)
        moves = sorted((rank, right[docno]) for docno, rank in left.items() if docno in right)
        if len(moves) < 2:
            return 0.0 if left.keys() == right.keys() else float("nan")
        passed: list[float] = []  # ranks in `after` of the documents above in `before`, sorted
        discordant = 0
        for _, rank in moves:
            discordant += len(passed) - bisect_right(passed, rank)
            insort(passed, rank)
        return discordant / (len(moves) * (len(moves) - 1) / 2)


@dataclass(frozen=True)
class RBO:
    """Rank-biased overlap: agreement of two rankings, weighted towards the top; 1 for the same list.

    The mean agreement of the two tops of depth d, weighted (1-p) p^(d-1), extrapolated beyond the lists, which may
    differ in length: equation 32 of Webber, Moffat, Zobel, A similarity measure for indefinite rankings (TOIS 2010).

    >>> round(RBO(p=0.9).between("abcdefg", "bacdefg"), 9)
    0.9
    """

    p: float = 0.9

    def __post_init__(self) -> None:
        if not 0 < self.p < 1:
            raise BadInput(f"rbo: p must lie between 0 and 1, not {self.p}")

    def between(self, before: Sequence[str], after: Sequence[str]) -> float:
        left, right = _build_ranks(before), _build_ranks(after)
        short, long = sorted((len(left), len(right)))
        if list(left) == list(right):
            return 1.0
        if short == 0:
            return 0.0
        # a document is in both tops of depth d if d is at least the larger of its two ranks
        met = [int(max(rank, right[docno])) for docno, rank in left.items() if docno in right]
        shared = np.bincount(met, minlength=long)[:long].cumsum()
        depth = np.arange(1, long + 1)
        missing = np.maximum(depth - short, 0)  # documents missing from the shorter list at this depth
        agreement = (shared + missing * shared[short - 1] / short) / depth
        return float((1 - self.p) * agreement @ self.p ** (depth - 1.0) + agreement[-1] * self.p**long)


@dataclass(frozen=True)
class Overlap:
    """Share of the first k documents that both lists have, in any order.

    Lists shorter than k are compared at the length of the longer one.

    >>> Overlap(k=2).between(["a", "b", "c"], ["a", "c", "b"])
    0.5
    """

    k: int = 10

    def __post_init__(self) -> None:
        if self.k < 1:
            raise BadInput(f"overlap: k must be at least 1, not {self.k}")

    def between(self, before: Sequence[str], after: Sequence[str]) -> float:
        left, right = set(before[: self.k]), set(after[: self.k])
        return len(left & right) / max(len(left), len(right)) if left or right else 1.0


@dataclass(frozen=True)
class LSD:
    """Location square deviation: the mean square of the number of ranks that a document moved; 0 for the same ranking.

    (1/n) Σ (rank before - rank after)², over the documents of both lists. As in `Kendall`, documents of only one list
    are excluded, and ranks are counted among the others. NaN if the lists differ and have fewer than two documents in
    common.

    >>> LSD().between(["a", "b", "c"], ["c", "b", "a"])
    2.6666666666666665

    Liu, Zhang, Zhang, Chen, de Rijke, Guo, Cheng. Perturbation-invariant adversarial training for neural ranking
    models: Improving the effectiveness-robustness trade-off. AAAI 2024.
    """

    def between(self, before: Sequence[str], after: Sequence[str]) -> float:
        return _mean_or_nan(_rank_moves(before, after) ** 2, before, after)


@dataclass(frozen=True)
class RLSD:
    """Relative location square deviation: `LSD` as a share of its maximum, 1 for the reverse ranking.

    LSD / ((n² - 1) / 3) = (1 - ρ)/2, with ρ Spearman's correlation and n the number of documents of both lists.

    >>> RLSD().between(["a", "b", "c"], ["c", "b", "a"]), RLSD().between(["a", "b", "c"], ["b", "a", "c"])
    (1.0, 0.25)
    """

    def between(self, before: Sequence[str], after: Sequence[str]) -> float:
        most = (len(_rank_moves(before, after)) ** 2 - 1) / 3
        return LSD().between(before, after) / most if most > 0 else LSD().between(before, after)


@dataclass(frozen=True)
class LMD:
    """Location mean deviation: the mean number of ranks that a document moved, up or down; 0 for the same ranking.

    (1/n) Σ |rank before - rank after|, over the documents of both lists, counted as for `LSD`.

    >>> LMD().between(["a", "b", "c"], ["c", "b", "a"])
    1.3333333333333333
    """

    def between(self, before: Sequence[str], after: Sequence[str]) -> float:
        return _mean_or_nan(np.abs(_rank_moves(before, after)), before, after)


def _rank_moves(before: Sequence[str], after: Sequence[str]) -> NDArray[np.float64]:
    """Return how many ranks each common document moved, with ranks counted among the common documents."""
    left, right = _build_ranks(before), _build_ranks(after)
    arrived = {docno: rank for rank, docno in enumerate(docno for docno in right if docno in left)}
    stayed = [docno for docno in left if docno in arrived]
    return np.array([rank - arrived[docno] for rank, docno in enumerate(stayed)], dtype=np.float64)


def _mean_or_nan(values: NDArray[np.float64], before: Sequence[str], after: Sequence[str]) -> float:
    """Return the mean of two or more values; for fewer, 0 if the lists have the same documents, otherwise NaN."""
    if len(values) < 2:
        return 0.0 if set(before) == set(after) else float("nan")
    return float(values.mean())


def _build_ranks(ranked: Sequence[str] | Mapping[str, float]) -> dict[str, float]:
    """Return docno -> rank, lower is better; equal float32 scores share a rank."""
    if isinstance(ranked, Mapping):
        scores = -np.fromiter(ranked.values(), np.float32, len(ranked))
        return dict(zip(ranked, scores.tolist(), strict=True))
    ranks = {docno: float(i) for i, docno in enumerate(ranked)}
    if len(ranks) < len(ranked):
        raise BadInput("a ranking contains a document twice")
    return ranks

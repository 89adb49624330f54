"""The preference of a ranker between two texts: counts, the score s, and its significance.

MacAvaney, Feldman, Goharian, Downey, Cohan. ABNIRML: Analyzing the behavior of neural IR models. TACL 2022, 3.1 to 3.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shaketable.core.seeding import make_numpy_rng
from shaketable.measures.significance import interval_tail_share, t_test

MIN_SAMPLES = 200
"""The minimum number of samples for a claim."""
PROBE_SIGNIFICANCE_LEVEL = 0.001
"""The threshold of p, corrected for the table (3.4)."""
GAP_TOP_K = 10


@dataclass(frozen=True)
class Preference:
    """The preference of a ranker over the samples of a probe.

    `s` is (positive - negative) / n, from -1 to 1, and `low` and `high` its 95 % interval over queries; `mean` and
    `median` are those of the score differences. `p` is that of the two-sided paired t-test of the scores. A symmetric
    probe has absolute differences without a direction: `s` is the share that is not neutral, and there is no p.
    """

    positive: int
    negative: int
    neutral: int
    s: float
    low: float
    high: float
    mean: float
    median: float
    p: float
    queries: int
    values: Mapping[str, float] = field(default_factory=dict, repr=False)
    """The contribution of each query; their mean is `s`."""

    @property
    def n(self) -> int:
        """The number of samples."""
        return self.positive + self.negative + self.neutral

    @property
    def has_enough_samples(self) -> bool:
        """True if there are enough samples for a claim."""
        return self.n >= MIN_SAMPLES


def measure_preference(
    differences: ArrayLike, qids: Sequence[str], delta: float = 0.0, *, symmetric: bool = False, seed: int = 0
) -> Preference:
    """Return the preference from score differences: first text minus second text, one for each sample.

    A difference counts if it is larger than delta (Eq. 1). The median of an even number is the upper of two.

    >>> found = measure_preference([0.5, 0.2, -0.3, 0.05], ["a", "a", "b", "b"], delta=0.1)
    >>> found.positive, found.negative, found.neutral, found.s, found.median
    (2, 1, 1, 0.25, 0.2)
    """
    d = np.asarray(differences, dtype=np.float64)
    if symmetric:
        d = np.abs(d)
    if not d.size:
        return Preference(0, 0, 0, 0.0, nan, nan, nan, nan, nan, 0)
    signs = np.where(d > delta, 1, np.where(d < -delta, -1, 0))
    names, groups = np.unique(np.asarray(qids, dtype=object).astype(str), return_inverse=True)
    low, high = bootstrap_ratio_interval(np.bincount(groups, signs), np.bincount(groups), seed)
    return Preference(
        positive=int((signs > 0).sum()),
        negative=int((signs < 0).sum()),
        neutral=int((signs == 0).sum()),
        s=float(signs.mean()),
        low=low,
        high=high,
        mean=float(d.mean()),
        median=float(np.sort(d)[d.size // 2]),
        p=nan if symmetric else float(t_test(np.zeros_like(d), d)),
        queries=len(names),
        values=dict(zip(names.tolist(), (np.bincount(groups, signs) * len(names) / d.size).tolist(), strict=True)),
    )


def bootstrap_ratio_interval(
    sums: ArrayLike, counts: ArrayLike, seed: int = 0, level: float = 0.95, draws: int = 2000
) -> tuple[float, float]:
    """Return the bootstrap interval of Σ sums / Σ counts; queries are resampled with all their samples.

    Samples of one query are not independent, so they are not resampled singly. The tails are those of
    `significance.bootstrap_interval`; one query has no interval.
    """
    top, bottom = np.asarray(sums, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    if top.size < 2:
        return nan, nan
    times = _draw_resample_counts(top.size, seed, draws)
    ratios = (times @ top) / (times @ bottom)
    tail = interval_tail_share(top.size, level)
    low, high = np.quantile(ratios, [tail, 1 - tail])
    return float(low), float(high)


@lru_cache(maxsize=8)
def _draw_resample_counts(queries: int, seed: int, draws: int) -> NDArray[np.float64]:
    """Return how often each query is in each resample; the counts are the same for all tests of a table."""
    rng = make_numpy_rng(seed, "queries again")
    return rng.multinomial(queries, np.full(queries, 1 / queries), size=draws).astype(np.float64)


def typical_gap(lists: Iterable[ArrayLike]) -> float:
    """Return delta: the median difference between neighbours in the first ten of a ranker's own lists (3.3).

    Delta is 0 for scores that are ranks, because these are equally spaced and every difference counts.

    >>> typical_gap([[3.0, 2.5, 2.25], [1.0, 0.5]]), typical_gap([[3, 2, 1], [2, 1]])
    (0.5, 0.0)
    """
    tops = (np.sort(np.asarray(scores, dtype=np.float64))[::-1][:GAP_TOP_K] for scores in lists)
    gaps: NDArray[np.float64] = np.concatenate([np.zeros(0), *(-np.diff(top) for top in tops)])
    if not gaps.size or (gaps == gaps[0]).all():
        return 0.0
    return float(np.median(gaps))


def both_right_share(preferences: Iterable[tuple[str, float]]) -> float:
    """Return the share of pairs that are right in both directions; a random ranker has a quarter.

    `preferences` has the id of the pair and the score difference, positive if right, for each direction of each pair.

    >>> both_right_share([("p1", 0.5), ("p1", 0.1), ("p2", 0.3), ("p2", -0.3), ("p3", 0.0), ("p3", 1.0)])
    0.3333333333333333

    Equal scores are not right, because they express no preference.

    Weller, Lawrie, Van Durme. NevIR: Negation in neural information retrieval. EACL 2024.
    """
    right: dict[str, bool] = {}
    for pair, difference in preferences:
        right[pair] = right.get(pair, True) and difference > 0
    return sum(right.values()) / len(right) if right else nan

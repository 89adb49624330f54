"""Could it be chance? Tests of paired differences, corrections for many of them, intervals and effect sizes.

Arrays end in topics; what comes before is vectorised over. Where there is nothing to test (a single topic, no
difference anywhere) p is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shaketable.chance import rng_for
from shaketable.errors import BadInput, UnknownName
from shaketable.measure import NOISE, difference, per_topic

Values = NDArray[np.float64]

FEWEST_QUERIES = 20
"""With fewer a star would promise more than the test can keep."""

_BLOCK = 4_000_000
"""Random numbers held at once."""


def t_test(first: ArrayLike, second: ArrayLike) -> Values:
    """Two-sided p of the paired t-test.

    >>> round(t_test([0.1, 0.2, 0.3, 0.4], [0.2, 0.3, 0.5, 0.5]).item(), 4)
    0.0154
    """
    from scipy.special import stdtr

    d = _differences(first, second)
    mean, deviation, count = d.mean(axis=-1), _deviation(d), d.shape[-1]
    if count == 1:
        return np.ones_like(mean)
    endless = np.where(mean == 0, 0.0, np.inf)  # a difference that never varies
    t = np.divide(np.abs(mean) * np.sqrt(count), deviation, out=endless, where=deviation > 0)
    return np.asarray(2 * stdtr(count - 1, -t))


def wilcoxon(first: ArrayLike, second: ArrayLike) -> Values:
    """Two-sided p of Wilcoxon's signed-rank test; topics without a difference are left out, as he did."""
    from scipy.stats import wilcoxon as test

    d = _differences(first, second)
    rows = [row[row != 0] for row in d.reshape(-1, d.shape[-1])]
    # rounding must not rank differences that tie: 0.3 - 0.1 and 0.4 - 0.2
    alike = [np.round(row / np.abs(row).max(initial=0), 12) for row in rows]
    return np.array([test(row).pvalue if row.size else 1.0 for row in alike]).reshape(d.shape[:-1])


def randomisation(first: ArrayLike, second: ArrayLike, seed: int = 0, draws: int = 10_000) -> Values:
    """Two-sided p of Fisher's randomisation test of the mean: how often do random signs do as much?

    Every assignment of signs is tried where there are no more than `draws`; otherwise that many are drawn, and the one
    observed counts among them.

    >>> randomisation([0.1, 0.2, 0.3], [0.2, 0.3, 0.5]).item()
    0.25
    """
    d = _differences(first, second)
    rows = d.reshape(-1, d.shape[-1])
    count = d.shape[-1]
    # sums of one set of numbers in two orders differ by rounding
    least = np.abs(rows.sum(axis=1)) - NOISE * np.abs(rows).sum(axis=1)
    as_much, total = np.zeros(len(rows)), 0
    for coins in flips(count, seed, draws, len(rows)):
        as_much += (np.abs((2.0 * coins - 1) @ rows.T) >= least).sum(axis=0)
        total += len(coins)
    p = as_much / total if tries_all(count, draws) else (as_much + 1) / (total + 1)
    return np.asarray(p.reshape(d.shape[:-1]))


def tries_all(topics: int, draws: int) -> bool:
    """Whether `flips` has every way to assign signs, and not only a sample of them."""
    return topics < 60 and 2**topics <= draws


def flips(topics: int, seed: int, draws: int, width: int = 1) -> Iterator[NDArray[np.integer[Any]]]:
    """Signs for each topic, 0 or 1, [some draws, topics] at a time: all assignments, or a sample of `draws` of them.

    `width` is how many numbers the caller holds for each draw.

    >>> [block.tolist() for block in flips(2, seed=0, draws=4)]
    [[[0, 0], [1, 0], [0, 1], [1, 1]]]
    """
    exact, rng = tries_all(topics, draws), rng_for(seed, "randomisation")
    for start, stop in _blocks(2**topics if exact else draws, max(topics, width)):
        if exact:
            yield np.arange(start, stop)[:, None] >> np.arange(topics) & 1
        else:
            yield rng.integers(2, size=(stop - start, topics), dtype=np.int8)


def adjust(p_values: ArrayLike, method: str = "holm") -> Values:
    """p-values corrected for their number by bonferroni, holm or bh (Benjamini-Hochberg).

    NaN is no test: it does not count and stays NaN.

    >>> adjust([0.01, 0.04, float("nan"), 0.03], "holm")
    array([0.03, 0.06,  nan, 0.06])
    """
    if method not in _CORRECTIONS:
        raise UnknownName("correction", method, _CORRECTIONS)
    p = np.asarray(p_values, dtype=np.float64)
    tested = ~np.isnan(p)
    if ((p[tested] < 0) | (p[tested] > 1)).any():
        raise BadInput("a p-value lies outside 0 to 1")
    family = p[tested]
    order = np.argsort(family, kind="stable")
    corrected = np.empty_like(family)
    corrected[order] = np.minimum(_CORRECTIONS[method](family[order]), 1)
    adjusted = np.full_like(p, np.nan)
    adjusted[tested] = corrected
    return adjusted


def _holm(p: Values) -> Values:
    return np.asarray(np.maximum.accumulate(p * np.arange(p.size, 0, -1)))


def _benjamini_hochberg(p: Values) -> Values:
    return np.asarray(np.minimum.accumulate((p * p.size / np.arange(1, p.size + 1))[::-1])[::-1])


_CORRECTIONS: dict[str, Callable[[Values], Values]] = {
    "bonferroni": lambda p: p * p.size,
    "holm": _holm,
    "bh": _benjamini_hochberg,
}
"""Of p-values in ascending order."""


def bootstrap_interval(
    values: ArrayLike, seed: int = 0, level: float = 0.95, draws: int = 2000
) -> tuple[Values, Values]:
    """Lower and upper end of a bootstrap interval of the mean, as wide with few topics as it should be.

    All rows are resampled alike, so systems stay paired. The ends are percentiles of the resampled means, further out
    than the level says: the tail is Φ(-√(n/(n-1)) t), with t the quantile of Student's distribution with n - 1 degrees
    of freedom. Plain percentiles take the topics at hand for all there are, and with 10 topics catch the mean in 89 %
    of all cases instead of 95 %. What this and others catch is in docs/choices.md.

    Hesterberg. What teachers should know about the bootstrap. The American Statistician 2015 (expanded percentile).
    """
    if not 0 < level < 1:
        raise BadInput(f"the level of an interval lies between 0 and 1, not {level}")
    x = per_topic(values)
    rows = x.reshape(-1, x.shape[-1])
    count = x.shape[-1]
    rng = rng_for(seed, "bootstrap")
    means = np.empty((draws, len(rows)))
    for start, stop in _blocks(draws, count):
        drawn = rng.integers(count, size=(stop - start, count)) + count * np.arange(stop - start)[:, None]
        times = np.bincount(drawn.ravel(), minlength=(stop - start) * count).reshape(-1, count)
        means[start:stop] = times @ rows.T / count
    tail = _tail(count, level)
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return low.reshape(x.shape[:-1]), high.reshape(x.shape[:-1])


def _tail(count: int, level: float) -> float:
    """The share of resampled means to leave out on each side."""
    from scipy.special import ndtr, stdtrit

    if count == 1:  # all resampled means are one
        return (1 - level) / 2
    return float(ndtr(-((count / (count - 1)) ** 0.5) * stdtrit(count - 1, (1 + level) / 2)))


def effect_size(first: ArrayLike, second: ArrayLike) -> Values:
    """Cohen's d_z: the mean difference in standard deviations of the differences; 0 if there is none, or one topic.

    >>> effect_size([0.0, 0.0], [0.25, 0.75]).item()
    1.414213562373095
    """
    d = _differences(first, second)
    mean, deviation = d.mean(axis=-1), _deviation(d)
    endless = np.where((mean == 0) | (d.shape[-1] == 1), 0.0, np.copysign(np.inf, mean))
    return np.asarray(np.divide(mean, deviation, out=endless, where=deviation > 0))


def mark(p: float, queries: int, level: float = 0.05) -> str:
    """A star for a p below the level, if there were queries enough to say so.

    >>> mark(0.01, 50), mark(0.01, 19), mark(0.2, 50)
    ('*', '', '')
    """
    return "*" if p < level and queries >= FEWEST_QUERIES else ""


def _differences(first: ArrayLike, second: ArrayLike) -> Values:
    first, second = per_topic(first), per_topic(second)
    if first.shape[-1] != second.shape[-1]:
        raise BadInput(f"{first.shape[-1]} and {second.shape[-1]} topics cannot be paired")
    return difference(first, second)


def _deviation(d: Values) -> Values:
    """Standard deviation, 0 for a single topic and where only rounding varies."""
    if d.shape[-1] == 1:
        return np.zeros(d.shape[:-1])
    deviation = np.asarray(d.std(axis=-1, ddof=1))
    return np.where(deviation > NOISE * np.abs(d).max(axis=-1), deviation, 0)


def _blocks(total: int, width: int) -> list[tuple[int, int]]:
    size = max(1, _BLOCK // width)
    return [(start, min(start + size, total)) for start in range(0, total, size)]

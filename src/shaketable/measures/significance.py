"""Tests of paired differences, corrections for multiple tests, intervals and effect sizes.

The last axis of an array is topics; functions are vectorised over the other axes. p is 1 if there is nothing to test (a
single topic, or no difference).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.seeding import make_numpy_rng
from shaketable.measures import ROUNDING_TOLERANCE, subtract_scores, validate_topic_scores
from shaketable.measures.letter_display import compute_letter_display
from shaketable.measures.tukey import tukey_hsd

Values = NDArray[np.float64]

MIN_QUERIES = 20
"""The minimum number of queries for a significance star."""

_MAX_NUMBERS_PER_BLOCK = 4_000_000
"""The number of random numbers held at once."""


def t_test(first: ArrayLike, second: ArrayLike) -> Values:
    """Return the two-sided p of the paired t-test.

    >>> round(t_test([0.1, 0.2, 0.3, 0.4], [0.2, 0.3, 0.5, 0.5]).item(), 4)
    0.0154
    """
    from scipy.special import stdtr

    d = _paired_differences(first, second)
    mean, deviation, count = d.mean(axis=-1), _standard_deviation(d), d.shape[-1]
    if count == 1:
        return np.ones_like(mean)
    endless = np.where(mean == 0, 0.0, np.inf)  # for a constant difference
    t = np.divide(np.abs(mean) * np.sqrt(count), deviation, out=endless, where=deviation > 0)
    return np.asarray(2 * stdtr(count - 1, -t))


def wilcoxon(first: ArrayLike, second: ArrayLike) -> Values:
    """Return the two-sided p of Wilcoxon's signed-rank test; as in his paper, zero differences are excluded."""
    from scipy.stats import wilcoxon as test

    d = _paired_differences(first, second)
    rows = [row[row != 0] for row in d.reshape(-1, d.shape[-1])]
    # keep ties despite rounding: 0.3 - 0.1 and 0.4 - 0.2
    alike = [np.round(row / np.abs(row).max(initial=0), 12) for row in rows]
    return np.array([test(row).pvalue if row.size else 1.0 for row in alike]).reshape(d.shape[:-1])


def randomisation_test(first: ArrayLike, second: ArrayLike, seed: int = 0, draws: int = 10_000) -> Values:
    """Return the two-sided p of Fisher's randomisation test of the mean.

    The test tries all assignments of signs if there are at most `draws`; otherwise it draws that many and adds the
    observed one.

    >>> randomisation_test([0.1, 0.2, 0.3], [0.2, 0.3, 0.5]).item()
    0.25
    """
    d = _paired_differences(first, second)
    rows = d.reshape(-1, d.shape[-1])
    count = d.shape[-1]
    # sums of the same numbers in two orders differ by rounding
    least = np.abs(rows.sum(axis=1)) - ROUNDING_TOLERANCE * np.abs(rows).sum(axis=1)
    as_much, total = np.zeros(len(rows)), 0
    for coins in iter_sign_assignments(count, seed, draws, len(rows)):
        as_much += (np.abs((2.0 * coins - 1) @ rows.T) >= least).sum(axis=0)
        total += len(coins)
    p = as_much / total if enumerates_all_signs(count, draws) else (as_much + 1) / (total + 1)
    return np.asarray(p.reshape(d.shape[:-1]))


def enumerates_all_signs(topics: int, draws: int) -> bool:
    """Return True if `iter_sign_assignments` yields all assignments of signs, not a sample."""
    return topics < 60 and 2**topics <= draws


def iter_sign_assignments(
    topics: int, seed: int, draws: int, values_per_draw: int = 1
) -> Iterator[NDArray[np.integer[Any]]]:
    """Yield blocks of signs, 0 or 1, [some draws, topics]: all assignments, or a sample of `draws` of them.

    `values_per_draw` is how many numbers the caller holds for each draw.

    >>> [block.tolist() for block in iter_sign_assignments(2, seed=0, draws=4)]
    [[[0, 0], [1, 0], [0, 1], [1, 1]]]
    """
    exact, rng = enumerates_all_signs(topics, draws), make_numpy_rng(seed, "randomisation")
    for start, stop in _split_into_blocks(2**topics if exact else draws, max(topics, values_per_draw)):
        if exact:
            yield np.arange(start, stop)[:, None] >> np.arange(topics) & 1
        else:
            yield rng.integers(2, size=(stop - start, topics), dtype=np.int8)


def adjust_p_values(p_values: ArrayLike, method: str = "holm") -> Values:
    """Return p-values corrected for their number by bonferroni, holm or bh (Benjamini-Hochberg).

    NaN does not count as a test and stays NaN.

    >>> adjust_p_values([0.01, 0.04, float("nan"), 0.03], "holm")
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


def correct_intervals(
    value: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    p: ArrayLike,
    corrected_p: ArrayLike,
    n: ArrayLike,
    tests: int | None = None,
) -> tuple[Values, Values]:
    """Return the ends of 95 % intervals of differences, widened as correction has enlarged their p.

    The level becomes 1 - 0.05 / c, where c is the factor from p to the corrected p, or the number of `tests` (default:
    all that are given) if the corrected p is 1. So the interval of a t-test excludes 0 if and only if its corrected p
    is below 0.05. The distances of the ends to the value grow by the ratio of the quantiles of Student's distribution
    with n - 1 degrees of freedom.

    >>> low, high = correct_intervals([-5.0], [-9.0], [-1.0], [0.02], [0.08], [50])
    >>> low.round(1).tolist(), high.round(1).tolist()
    ([-10.2], [0.2])
    """
    from scipy.special import stdtrit

    value, low, high, p, corrected = (np.asarray(x, np.float64) for x in (value, low, high, p, corrected_p))
    freedom = np.maximum(np.asarray(n, np.float64) - 1, 1)
    tests = max(1, int((~np.isnan(p)).sum())) if tests is None else tests
    known = (p > 0) & (corrected < 1)
    factor = np.where(known, np.divide(corrected, p, out=np.ones_like(p), where=known), tests)
    wider = stdtrit(freedom, 1 - 0.025 / factor) / stdtrit(freedom, 0.975)
    return value - wider * (value - low), value + wider * (high - value)


def _holm(p: Values) -> Values:
    return np.asarray(np.maximum.accumulate(p * np.arange(p.size, 0, -1)))


def _benjamini_hochberg(p: Values) -> Values:
    return np.asarray(np.minimum.accumulate((p * p.size / np.arange(1, p.size + 1))[::-1])[::-1])


_CORRECTIONS: dict[str, Callable[[Values], Values]] = {
    "bonferroni": lambda p: p * p.size,
    "holm": _holm,
    "bh": _benjamini_hochberg,
}
"""Functions of p-values in ascending order."""


TESTS: dict[str, Callable[..., Values]] = {"t_test": t_test, "wilcoxon": wilcoxon, "randomisation": randomisation_test}
"""Tests of paired differences by name; only the randomisation test is random and takes a seed."""
TUKEY_HSD = "tukey_hsd"
"""The test that compares all systems at once, so that its p-values need no correction."""
CORRECTIONS = tuple(_CORRECTIONS)
"""The methods of `adjust_p_values`."""
CORRECTION_TITLES = {"bonferroni": "Bonferroni", "holm": "Holm", "bh": "Benjamini-Hochberg"}
_TEST_TITLES = {
    "t_test": "paired t-test",
    "wilcoxon": "Wilcoxon signed-rank test",
    "randomisation": "randomisation test",
    TUKEY_HSD: "Tukey's HSD after a two-way analysis of variance",
}
_TUKEY_CORRECTION = "valid for all pairs together"


def choose_correction(test: str, correction: str = "") -> str:
    """Return the correction of a test's p-values: by default holm, and "" for Tukey's HSD, which needs none.

    >>> choose_correction("wilcoxon"), choose_correction("tukey-hsd")
    ('holm', '')
    """
    if _normalise_test_name(test) == TUKEY_HSD:
        if correction:
            raise BadInput(f"leave out the correction {correction}: the test {TUKEY_HSD} corrects for all pairs itself")
        return ""
    get_test(test)
    if correction and correction not in CORRECTIONS:
        raise UnknownName("correction", correction, CORRECTIONS)
    return correction or "holm"


def describe_comparison(test: str, correction: str, pairs: int, level: float = 0.05) -> str:
    """Describe how all pairs of systems are compared: the test, its level and its correction.

    >>> describe_comparison("t-test", "holm", 6)
    'paired t-test, p < 0.05, Holm correction for 6 pairs'
    """
    name = _normalise_test_name(test)
    plural = "pair" if pairs == 1 else "pairs"
    corrected = (
        f"{CORRECTION_TITLES[correction]} correction for {pairs:,} {plural}" if correction else _TUKEY_CORRECTION
    )
    return f"{_TEST_TITLES[name]}, p < {level:g}, {corrected}"


def get_test(name: str, seed: int = 0) -> Callable[[ArrayLike, ArrayLike], Values]:
    """Return the test of that name; "t-test" is accepted for "t_test".

    >>> round(get_test("t-test")([0.1, 0.2, 0.3, 0.4], [0.2, 0.3, 0.5, 0.5]).item(), 4)
    0.0154
    """
    if _normalise_test_name(name) not in TESTS:
        raise UnknownName("test", name, [*TESTS, TUKEY_HSD])
    test = TESTS[_normalise_test_name(name)]
    return (lambda first, second: test(first, second, seed)) if test is randomisation_test else test


def _normalise_test_name(name: str) -> str:
    return name.strip().lower().replace("-", "_")


@dataclass(frozen=True)
class PairwiseComparisons:
    """Comparisons of all pairs of systems: a row for each pair, the better system first (by mean; then by position)."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    """The numbers of the two systems."""
    difference: Values
    """Mean of the first minus mean of the second: 0 or more."""
    raw_p: Values
    p: Values
    """p-values corrected for the number of pairs; those of Tukey's HSD hold for all pairs as they are."""
    effect: Values
    """Cohen's d_z of the difference."""
    significant: NDArray[np.bool_]
    """True where p is below the level and there are enough topics."""
    letters: tuple[str, ...]
    """The letters of each system: two systems share a letter if, and only if, they do not differ significantly."""

    def find_beaten(self, system: int) -> list[int]:
        """Return the numbers of the systems with a significantly lower mean, in ascending order."""
        return sorted(self.second[self.significant & (self.first == system)].tolist())

    def select_p(self, system: int) -> Values:
        """Return the p-values of one system against each of the others, in the order of their numbers."""
        own = (self.first == system) | (self.second == system)
        return np.asarray(self.p[own][np.argsort((self.first + self.second)[own])])


def compare_all_pairs(
    values: ArrayLike, test: str = "t_test", correction: str = "", level: float = 0.05, seed: int = 0
) -> PairwiseComparisons:
    """Compare all pairs of systems of a matrix [systems, topics], such as `ScoreTable.values`.

    `test` is one of `TESTS`, or tukey_hsd. `correction` is by default that of `choose_correction`.

    With fewer than 20 topics no difference is significant, as in `format_star`, so all systems share a letter. The
    number of draws of the randomisation test grows with the number of pairs: a p of 1 / 10,001 would survive no
    correction for thousands of pairs.

    >>> found = compare_all_pairs(np.array([0.5, 0.1, 0.6])[:, None] + np.arange(40) / 100 * [[1], [1.01], [0.99]])
    >>> found.letters, found.difference.round(2).tolist()
    (('b', 'c', 'a'), [0.1, 0.5, 0.4])
    """
    x = validate_topic_scores(values)
    if x.ndim != 2:
        raise BadInput(f"a comparison needs a matrix of systems x topics, not an array of shape {x.shape}")
    means = x.mean(axis=1)
    order = np.argsort(-means, kind="stable")
    above, below = np.triu_indices(len(x), 1)
    first, second = order[above], order[below]
    correction = choose_correction(test, correction)
    if not len(first):
        raw = np.zeros(0)
    elif not correction:
        raw = tukey_hsd(x)[first, second]
    elif TESTS[_normalise_test_name(test)] is randomisation_test:
        raw = _randomisation_test_of_pairs(x, first, second, seed, draws=max(10_000, math.ceil(2 * len(first) / level)))
    else:
        raw = _map_pairs(get_test(test), x, first, second)
    p = adjust_p_values(raw, correction) if correction else raw
    effect = _map_pairs(effect_size, x, first, second)
    differ = np.zeros((len(x), len(x)), dtype=np.bool_)
    significant = (p < level) & (x.shape[1] >= MIN_QUERIES)
    differ[above, below] = differ[below, above] = significant
    ranked = compute_letter_display(differ)  # systems from best to worst
    by_system = [""] * len(x)
    for position, system in enumerate(order.tolist()):
        by_system[system] = ranked[position]
    apart = means[first] - means[second]
    return PairwiseComparisons(first, second, apart, raw, p, effect, significant, tuple(by_system))


def _map_pairs(
    function: Callable[[Values, Values], Values], x: Values, first: NDArray[np.int64], second: NDArray[np.int64]
) -> Values:
    """Return the value of a function of two rows for each pair; blocks of pairs bound the memory."""
    found = np.empty(len(first))
    for start, stop in _split_into_blocks(len(first), x.shape[1]):
        found[start:stop] = function(x[second[start:stop]], x[first[start:stop]])
    return found


def _sum_differences(before: Values, after: Values) -> Values:
    return np.asarray(subtract_scores(before, after).sum(axis=1))


def _randomisation_test_of_pairs(
    x: Values, first: NDArray[np.int64], second: NDArray[np.int64], seed: int, draws: int
) -> Values:
    """Return `randomisation_test` of pairs of rows; all pairs share the row sums under each assignment."""
    size = np.abs(x).sum(axis=1)
    sums_apart = np.abs(_map_pairs(_sum_differences, x, first, second))
    least = sums_apart - ROUNDING_TOLERANCE * (size[first] + size[second])
    as_much, total = np.zeros(len(first)), 0
    for coins in iter_sign_assignments(x.shape[1], seed, draws, len(first)):
        sums = (2.0 * coins - 1) @ x.T
        as_much += (np.abs(sums[:, first] - sums[:, second]) >= least).sum(axis=0)
        total += len(coins)
    return np.asarray(as_much / total if enumerates_all_signs(x.shape[1], draws) else (as_much + 1) / (total + 1))


def bootstrap_interval(
    values: ArrayLike, seed: int = 0, level: float = 0.95, draws: int = 2000, weights: ArrayLike | None = None
) -> tuple[Values, Values]:
    """Return the lower and upper end of a bootstrap interval of the mean, widened for few topics.

    All rows are resampled alike, so systems stay paired. The ends are percentiles of the resampled means with the tail
    Φ(-√(n/(n-1)) t), where t is the quantile of Student's distribution with n - 1 degrees of freedom. Plain percentiles
    are too narrow: with 10 topics they cover the mean in 89 % of all cases instead of 95 %. docs/choices.md reports the
    coverage of this and other intervals.

    Hesterberg. What teachers should know about the bootstrap. The American Statistician 2015 (expanded percentile).

    Parameters
    ----------
    values
        The scores [..., topics]: one number for each topic, or an array with one row for each system.
    seed
        The random seed.
    level
        The confidence level, between 0 and 1.
    draws
        The number of bootstrap samples.
    weights
        The weight of each topic in the mean; None means equal weights. Topics are drawn with equal probability, and
        the mean of each sample is weighted.

    Returns
    -------
    low, high : tuple of arrays
        The ends of the interval, one for each system.

    Raises
    ------
    BadInput
        If there are no topics, a score is not finite, or the level is not between 0 and 1.

    Examples
    --------
    >>> import shaketable as st
    >>> low, high = st.bootstrap_interval([0.2, 0.5, 0.4, 0.9, 0.7], seed=1)
    >>> bool(low < 0.54 < high)
    True
    """
    if not 0 < level < 1:
        raise BadInput(f"the level of an interval lies between 0 and 1, not {level}")
    x = validate_topic_scores(values)
    rows = x.reshape(-1, x.shape[-1])
    count = x.shape[-1]
    rng = make_numpy_rng(seed, "bootstrap")
    means = np.empty((draws, len(rows)))
    heavy = None if weights is None else np.asarray(weights, dtype=np.float64)
    for start, stop in _split_into_blocks(draws, count):
        drawn = rng.integers(count, size=(stop - start, count)) + count * np.arange(stop - start)[:, None]
        times = np.bincount(drawn.ravel(), minlength=(stop - start) * count).reshape(-1, count)
        if heavy is None:
            means[start:stop] = times @ rows.T / count
        else:
            means[start:stop] = (times * heavy) @ rows.T / (times @ heavy)[:, None]
    tail = interval_tail_share(count, level)
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return low.reshape(x.shape[:-1]), high.reshape(x.shape[:-1])


def interval_tail_share(count: int, level: float) -> float:
    """Return the share of resampled means to exclude on each side."""
    from scipy.special import ndtr, stdtrit

    if count == 1:  # all resampled means are equal
        return (1 - level) / 2
    return float(ndtr(-((count / (count - 1)) ** 0.5) * stdtrit(count - 1, (1 + level) / 2)))


def weighted_t_test(first: ArrayLike, second: ArrayLike, weights: ArrayLike) -> tuple[Values, Values]:
    """Return the two-sided p of the paired t-test of a weighted mean, and the effect size.

    The mean is m = Σ w d / Σ w, a ratio, and its variance n/(n-1) Σ (w / Σ w)² (d - m)², with n - 1 degrees of freedom.
    With equal weights, the results are those of `t_test` and `effect_size`.

    >>> p, d = weighted_t_test([0.1, 0.2, 0.3, 0.4], [0.2, 0.3, 0.5, 0.5], [3, 3, 3, 3])
    >>> round(p.item(), 4)
    0.0154

    Cochran. Sampling techniques. 3rd edition, 1977, section 6.4 (the ratio estimate).
    """
    from scipy.special import stdtr

    d = _paired_differences(first, second)
    shares = np.asarray(weights, dtype=np.float64) / np.sum(weights)
    mean, count = d @ shares, d.shape[-1]
    apart = (d - mean[..., None]) ** 2
    if count == 1:
        return np.ones_like(mean), np.zeros_like(mean)
    error = np.sqrt(count / (count - 1) * (apart @ shares**2))
    deviation = np.sqrt(count / (count - 1) * (apart @ shares))
    endless = np.where(mean == 0, 0.0, np.inf)  # for a constant difference
    t = np.divide(np.abs(mean), error, out=endless.copy(), where=error > ROUNDING_TOLERANCE * np.abs(mean))
    signed = np.asarray(np.copysign(endless, mean))
    effect = np.divide(mean, deviation, out=signed, where=deviation > ROUNDING_TOLERANCE * np.abs(mean))
    return np.asarray(2 * stdtr(count - 1, -t)), np.asarray(effect)


def effect_size(first: ArrayLike, second: ArrayLike) -> Values:
    """Return Cohen's d_z, the mean difference in standard deviations; 0 if there is no difference, or one topic.

    >>> effect_size([0.0, 0.0], [0.25, 0.75]).item()
    1.414213562373095
    """
    d = _paired_differences(first, second)
    mean, deviation = d.mean(axis=-1), _standard_deviation(d)
    endless = np.where((mean == 0) | (d.shape[-1] == 1), 0.0, np.copysign(np.inf, mean))
    return np.asarray(np.divide(mean, deviation, out=endless, where=deviation > 0))


def format_star(p: float, queries: int, level: float = 0.05) -> str:
    """Return a star for a p below the level if there are enough queries.

    >>> format_star(0.01, 50), format_star(0.01, 19), format_star(0.2, 50)
    ('*', '', '')
    """
    return "*" if p < level and queries >= MIN_QUERIES else ""


def _paired_differences(first: ArrayLike, second: ArrayLike) -> Values:
    first, second = validate_topic_scores(first), validate_topic_scores(second)
    if first.shape[-1] != second.shape[-1]:
        raise BadInput(f"{first.shape[-1]} and {second.shape[-1]} topics cannot be paired")
    return subtract_scores(first, second)


def _standard_deviation(d: Values) -> Values:
    """Return the standard deviation; 0 for a single topic and for variation by rounding only."""
    if d.shape[-1] == 1:
        return np.zeros(d.shape[:-1])
    deviation = np.asarray(d.std(axis=-1, ddof=1))
    return np.where(deviation > ROUNDING_TOLERANCE * np.abs(d).max(axis=-1), deviation, 0)


def _split_into_blocks(total: int, width: int) -> list[tuple[int, int]]:
    size = max(1, _MAX_NUMBERS_PER_BLOCK // width)
    return [(start, min(start + size, total)) for start in range(0, total, size)]

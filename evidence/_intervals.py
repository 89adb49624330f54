"""Measurements of claims with their 95 % intervals: how each number of a page gets its interval."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evidence._verdicts import Measurement
from shaketable.core.seeding import make_numpy_rng
from shaketable.measures.rates import exact_interval, measure_rate_difference
from shaketable.measures.significance import bootstrap_interval

Values = NDArray[np.float64]
DRAWS, SEED = 1000, 0


def measure_difference(
    claim: str, ranker: str, collection: str, first: Values, second: Values, training: str = ""
) -> Measurement:
    """Return the difference of two means over the same queries, with a paired bootstrap interval."""
    difference = first - second
    low, high = bootstrap_interval(difference, SEED)
    return Measurement(
        claim, ranker, collection, float(difference.mean()), float(low), float(high), len(difference), training
    )


def measure_statistic_difference(
    claim: str,
    ranker: str,
    collection: str,
    first: Values,
    second: Values,
    statistic: Callable[[Values], Values],
    training: str = "",
) -> Measurement:
    """Return the difference of a statistic of the same queries, such as VNAP, with a paired bootstrap interval."""
    drawn = draw_topics(len(first))
    value = float(statistic(first) - statistic(second))
    low, high = bound(value, statistic(first[drawn]) - statistic(second[drawn]))
    return Measurement(claim, ranker, collection, value, low, high, len(first), training)


def measure_relative_change(
    claim: str, ranker: str, collection: str, change: Values, before: Values, training: str = ""
) -> Measurement:
    """Return the mean change in per cent of the mean before; both means come from the same resample of queries."""
    drawn = draw_topics(len(change))
    value = float(100 * change.sum() / before.sum())
    ends = bound(value, 100 * change[drawn].sum(axis=1) / before[drawn].sum(axis=1))
    return Measurement(claim, ranker, collection, value, *ends, len(change), training)


def measure_share_difference(
    claim: str, ranker: str, collection: str, first: Values, second: Values, training: str = ""
) -> Measurement:
    """Return the difference of two shares of queries in percentage points, from 0 or 1 of each, by exact intervals."""
    rate = measure_rate_difference({str(i): 100 * float(d) for i, d in enumerate(first - second)})
    return Measurement(claim, ranker, collection, rate.value, rate.low, rate.high, len(first), training)


def measure_share(claim: str, ranker: str, collection: str, events: int, cases: int) -> Measurement:
    """Return a share of independent cases in per cent, with its exact interval."""
    low, high = exact_interval(events, cases)
    return Measurement(claim, ranker, collection, 100 * events / cases, 100 * low, 100 * high, cases)


def measure_correlation(claim: str, collection: str, r: float, systems: int) -> Measurement:
    """Return Pearson's r over all systems of a collection, with the interval of Fisher's z."""
    z, reach = np.arctanh(r), 1.959964 / np.sqrt(systems - 3)
    return Measurement(claim, "all runs", collection, r, float(np.tanh(z - reach)), float(np.tanh(z + reach)), systems)


def draw_topics(count: int, draws: int = DRAWS) -> NDArray[np.int64]:
    """Return topics drawn with replacement, [draws, count]: the same for all rankers, so that they stay paired."""
    return make_numpy_rng(SEED, "topics").integers(count, size=(draws, count))


def bound(value: float, drawn: Values) -> tuple[float, float]:
    """Return the 2.5 and 97.5 percentiles of resampled values; an interval always has its estimate within."""
    low, high = np.quantile(drawn, (0.025, 0.975))
    return min(float(low), value), max(float(high), value)


def show_interval(found: Measurement, digits: int = 3) -> str:
    """Return a number with a sign and its interval, as a cell of a table."""
    return f"{found.value:+.{digits}f} [{found.low:+.{digits}f}, {found.high:+.{digits}f}]"

"""Rates of events with exact intervals, over independent cases or over queries with several cases each.

A bootstrap interval of a rate near 0 or 1 is far too narrow: for 0 of 24 it is [0, 0], and such intervals contain the
true rate in 22 to 70 % of all samples. An exact interval contains it in at least 95 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan

import numpy as np

from shaketable.core.errors import BadInput


@dataclass(frozen=True)
class Rate:
    """A rate in per cent with its 95 % interval.

    `effective_cases` is the number of independent cases that would give the same interval as the `cases` cases.
    """

    value: float
    low: float
    high: float
    cases: int
    effective_cases: float


def exact_interval(events: float, cases: float, level: float = 0.95) -> tuple[float, float]:
    """Return the ends of the exact interval of a rate, as shares; `events` and `cases` need not be whole numbers.

    >>> [round(end, 3) for end in exact_interval(0, 24)], [round(end, 3) for end in exact_interval(24, 24)]
    ([0.0, 0.142], [0.858, 1.0])

    Clopper, Pearson. The use of confidence or fiducial limits illustrated in the case of the binomial. Biometrika 1934.
    """
    from scipy.special import betaincinv

    if not 0 <= events <= cases or cases <= 0:
        raise BadInput(f"a rate needs 0 or more events among 1 or more cases, not {events:g} of {cases:g}")
    tail = (1 - level) / 2
    low = float(betaincinv(events, cases - events + 1, tail)) if events > 0 else 0.0
    high = float(betaincinv(events + 1, cases - events, 1 - tail)) if events < cases else 1.0
    return low, high


def measure_rate(outcomes: Mapping[str, float], cases: Mapping[str, int] | None = None, level: float = 0.95) -> Rate:
    """Return the rate of an event, from the share of each query's cases with the event in per cent.

    Each query has the same weight. `cases` is the number of cases of each query, 1 by default. Cases of one query are
    not independent, so the interval is exact for the number of independent cases with the same variance of the mean:
    at least the number of queries if they agree, and never more than the number of cases.

    >>> rate = measure_rate({f"q{i}": 0.0 for i in range(24)})
    >>> rate.value, rate.low, round(rate.high, 1), rate.cases
    (0.0, 0.0, 14.2, 24)

    Korn, Graubard. Confidence intervals for proportions with small expected number of positive counts estimated from
    survey data. Survey Methodology 1998.
    """
    known = {qid: value / 100 for qid, value in outcomes.items() if not np.isnan(value)}
    if not known:
        return Rate(nan, nan, nan, 0, 0.0)
    shares = np.array(list(known.values()))
    total = sum(cases[qid] for qid in known) if cases else len(known)
    mean, count = float(shares.mean()), float(len(shares))
    variance = float(shares.var(ddof=1)) / count if count > 1 else 0.0
    effective = mean * (1 - mean) / variance if variance > 0 else count
    effective = float(min(max(effective, count), total))
    low, high = exact_interval(min(mean * effective, effective), effective, level)
    return Rate(100 * mean, 100 * low, 100 * high, total, effective)


def measure_rate_difference(changes: Mapping[str, float], level: float = 0.95) -> Rate:
    """Return the increase of a rate in per cent, from +100, 0 or -100 of each query: gained, kept or lost the event.

    The interval combines the exact intervals of the two rates of change, so it has a width even if no query changes.

    >>> increase = measure_rate_difference({"a": 100.0} | {str(i): 0.0 for i in range(49)})
    >>> increase.value, round(increase.low, 1), round(increase.high, 1)
    (2.0, -5.4, 10.6)

    Zou, Donner. Construction of confidence limits about effect measures. Statistics in Medicine 2008.
    """
    known = np.array([value for value in changes.values() if not np.isnan(value)])
    if not known.size:
        return Rate(nan, nan, nan, 0, 0.0)
    count = len(known)
    gained, lost = float((known > 0).mean()), float((known < 0).mean())
    gained_ends = exact_interval(gained * count, count, level)
    lost_ends = exact_interval(lost * count, count, level)
    value = gained - lost
    low = value - float(np.hypot(gained - gained_ends[0], lost_ends[1] - lost))
    high = value + float(np.hypot(gained_ends[1] - gained, lost - lost_ends[0]))
    return Rate(100 * value, 100 * max(low, -1.0), 100 * min(high, 1.0), count, float(count))

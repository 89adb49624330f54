"""Exact intervals of rates: by hand, against scipy, and by their coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from shaketable.core.errors import BadInput
from shaketable.measures.rates import exact_interval, measure_rate, measure_rate_difference


@pytest.mark.parametrize(("events", "cases"), [(0, 24), (1, 24), (12, 24), (24, 24), (3, 50), (1, 1)])
def test_the_interval_is_clopper_and_pearsons(events, cases):
    expected = binomtest(events, cases).proportion_ci(method="exact")
    assert exact_interval(events, cases) == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.mark.parametrize("cases", [12, 24, 50])
@pytest.mark.parametrize("rate", [0.01, 0.02, 0.05, 0.1, 0.25, 0.5])
def test_the_interval_covers_every_rate(cases, rate):
    ends = [exact_interval(events, cases) for events in range(cases + 1)]
    covered = [low <= rate <= high for low, high in ends]
    assert binom.pmf(np.arange(cases + 1), cases, rate)[covered].sum() >= 0.95


def test_impossible_counts_are_refused():
    for events, cases in ((-1, 5), (6, 5), (0, 0)):
        with pytest.raises(BadInput, match="a rate needs"):
            exact_interval(events, cases)


def test_one_case_a_query_is_plain_counting():
    rate = measure_rate({"a": 100.0, "b": 0.0, "c": 0.0, "d": 0.0})
    expected = binomtest(1, 4).proportion_ci(method="exact")
    assert (rate.value, rate.cases, rate.effective_cases) == (25.0, 4, 4.0)
    assert (rate.low, rate.high) == pytest.approx((100 * expected.low, 100 * expected.high))


def test_cases_of_one_query_that_agree_count_once():
    agreeing = measure_rate({str(q): 100.0 * (q % 2) for q in range(20)}, {str(q): 10 for q in range(20)})
    assert agreeing.effective_cases == 20.0
    independent = measure_rate({str(q): 50.0 + 10 * (-1) ** q for q in range(20)}, {str(q): 10 for q in range(20)})
    assert independent.effective_cases == 200.0, "never more than there are cases"
    assert independent.high - independent.low < agreeing.high - agreeing.low


def test_unknown_values_are_left_out():
    assert measure_rate({"a": float("nan"), "b": 100.0}).cases == 1
    assert np.isnan(measure_rate({}).value)


def test_a_difference_of_rates_has_a_width_even_if_nothing_changes():
    same = measure_rate_difference({str(q): 0.0 for q in range(50)})
    assert same.value == 0.0
    assert same.high == pytest.approx(7.11, abs=0.01)
    assert same.low == pytest.approx(-7.11, abs=0.01)
    worse = measure_rate_difference({str(q): 100.0 * (q < 20) for q in range(50)})
    assert worse.value == 40.0
    assert worse.low > 20

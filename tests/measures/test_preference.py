"""Preferences: counts and s by hand, laws, intervals and deltas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp, ttest_rel

from shaketable.measures.preference import bootstrap_ratio_interval, both_right_share, measure_preference, typical_gap

differences = st.lists(st.floats(-3, 3).map(lambda x: round(x, 3)), min_size=1, max_size=30)


def test_by_hand():
    found = measure_preference([0.5, -0.5, 0.1, 0.0, 0.2, 0.9], list("aabbcc"), delta=0.1)
    assert (found.positive, found.negative, found.neutral, found.n) == (3, 1, 2, 6)
    assert found.s == pytest.approx(2 / 6)
    assert found.mean == pytest.approx(0.2)
    assert found.median == 0.2, "of the two in the middle, the upper one"
    assert found.queries == 3
    assert not found.has_enough_samples


def test_a_difference_of_delta_itself_does_not_count():
    assert measure_preference([0.5, -0.5], ["a", "b"], delta=0.5).neutral == 2


def test_p_is_that_of_the_paired_test():
    rng = np.random.default_rng(0)
    first, second = rng.normal(0.1, 1, 300), rng.normal(0, 1, 300)
    found = measure_preference(first - second, [str(i) for i in range(300)])
    assert found.p == pytest.approx(ttest_rel(first, second).pvalue)
    assert found.p == pytest.approx(ttest_1samp(first - second, 0).pvalue)


@given(differences, st.floats(0, 1))
def test_turning_the_texts_round_negates_s(d, delta):
    qids = [str(i % 3) for i in range(len(d))]
    there, back = measure_preference(d, qids, delta), measure_preference([-x for x in d], qids, delta)
    assert there.s == -back.s
    assert (there.positive, there.negative, there.neutral) == (back.negative, back.positive, back.neutral)
    assert there.p == pytest.approx(back.p)


@given(differences)
def test_s_lies_between_its_ends_and_within_one(d):
    found = measure_preference(d, [str(i % 4) for i in range(len(d))])
    assert -1 <= found.s <= 1
    if len(d) > 1:
        assert -1 <= found.low <= found.high <= 1


def test_nothing_is_zero_and_claims_nothing():
    found = measure_preference([], [])
    assert (found.n, found.s, found.has_enough_samples) == (0, 0.0, False)
    assert np.isnan(found.p)


def test_a_symmetric_probe_has_sizes_and_no_p():
    found = measure_preference([0.5, -0.5, 0.1], ["a", "b", "c"], delta=0.2, symmetric=True)
    assert (found.positive, found.negative, found.neutral, found.s) == (2, 0, 1, pytest.approx(2 / 3))
    assert np.isnan(found.p)


def test_queries_are_drawn_again_and_not_samples():
    """All samples of a query say the same: there are as many independent observations as queries."""
    signs = np.array([1, 1, -1, 1, -1, 1, 1, 1, -1, 1])
    few, many = (
        bootstrap_ratio_interval(signs, np.ones(10), seed=1),
        bootstrap_ratio_interval(signs * 100, np.full(10, 100), seed=1),
    )
    assert few == pytest.approx(many)
    assert few[0] < 0.4 < few[1]


def test_queries_with_more_samples_weigh_more():
    low, high = bootstrap_ratio_interval([90, 0, 0], [100, 1, 1])
    assert low == 0.0
    assert high == pytest.approx(0.9)


def test_delta_is_the_median_gap_of_the_first_ten():
    scores = np.concatenate([np.arange(10)[::-1] * 2.0 + 100, [0.0]])  # the eleventh is far off
    assert typical_gap([scores, [5.0, 4.5]]) == 2.0
    assert typical_gap([]) == 0.0
    assert typical_gap([[10, 9, 8], [3, 2]]) == 0.0, "ranks: every difference counts"


def test_both_directions():
    pairs = {"a": (1, 1), "b": (1, -1), "c": (-1, -1), "d": (0, 1)}
    assert both_right_share((name, d) for name, both in pairs.items() for d in both) == 0.25
    assert np.isnan(both_right_share([]))

"""AdaRank: a round by hand, and planted features."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shaketable.core.errors import BadInput
from shaketable.training.linear import AdaRank
from tests.training.lists import letor, make_planted_lists, nothing_to_learn

SECOND = 1 / math.log2(3)
"""NDCG of a list of two whose better document comes second."""


def test_two_rounds_by_hand():
    # feature 1 ranks q0, q1 well and q2 badly; feature 2 only q2 well
    better, worse = [1.0, 0.0], [0.0, 1.0]
    data = letor([(1, better), (0, worse)], [(1, better), (0, worse)], [(1, worse), (0, better)])
    one = AdaRank(rounds=1).fit_rows(data, None, seed=0)
    value = (2 + SECOND) / 3
    first = 0.5 * math.log((1 + value) / (1 - value))
    assert one.predictor.weights == pytest.approx((first, 0.0))

    two = AdaRank(rounds=2, repeats=1).fit_rows(data, None, seed=0)
    assert [row["feature"] for row in two.history] == [1, 2]
    shares = np.exp([-1, -1, -SECOND])
    shares /= shares.sum()
    value = shares @ [SECOND, SECOND, 1]
    second = 0.5 * math.log((1 + value) / (1 - value))
    assert second < first  # q2 is still the exception, so the first round stays the best
    assert two.best_iteration == 1
    assert two.history[1]["train"] == pytest.approx(two.history[0]["train"])


def test_a_feature_comes_so_many_times_in_a_row_and_then_no_more():
    fit = AdaRank(rounds=100, repeats=3).fit_rows(make_planted_lists(dims=4), None, seed=0)
    chosen = [row["feature"] for row in fit.history]
    assert chosen[:3] == [1, 1, 1]
    assert 1 not in chosen[3:]
    assert len(chosen) <= 100


def test_a_perfect_feature_has_a_finite_weight():
    fit = AdaRank(rounds=1).fit_rows(letor([(1, [1.0]), (0, [0.0])]), None, seed=0)
    assert np.isfinite(fit.predictor.weights).all()
    assert fit.history[0]["train"] == 1.0


def test_the_validation_queries_choose_the_round():
    fit = AdaRank(rounds=30).fit_rows(make_planted_lists(), make_planted_lists(seed=1), seed=0)
    values = [row["valid"] for row in fit.history]
    assert fit.best_iteration == 1 + values.index(max(values))
    assert fit.importance.argmax() == 0


def test_nothing_to_learn_and_bad_settings():
    with pytest.raises(BadInput, match="no order to learn"):
        AdaRank().fit_rows(nothing_to_learn(), None, seed=0)
    with pytest.raises(BadInput, match="adarank: repeats should be between 1 and 1,000,000, not 0"):
        AdaRank(repeats=0).fit_rows(make_planted_lists(), None, seed=0)

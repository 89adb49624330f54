"""Automatic feature selection: which features, in which direction, and when it ends."""

from __future__ import annotations

import pytest

from shaketable.core.errors import BadInput
from shaketable.training.linear import AFS
from tests.training.lists import letor, make_planted_lists, nothing_to_learn


def test_one_feature_by_hand_upside_down():
    # the feature is larger for the worse document: the weight must be negative, and the other one is constant
    fit = AFS().fit_rows(letor([(0, [1.0, 5.0]), (1, [0.0, 5.0])], [(0, [0.7, 5.0]), (2, [0.2, 5.0])]), None, seed=0)
    assert fit.predictor.weights[0] < 0
    assert fit.predictor.weights[1] == 0
    assert fit.history == [{"iteration": 1, "train": 1.0, "features": 1}]


def test_it_selects_only_useful_features():
    fit = AFS(gain=0.005).fit_rows(make_planted_lists(noise=0.0), None, seed=0)
    first, second, *others = fit.predictor.weights
    assert first > 0 > second
    assert first / -second == pytest.approx(2, rel=0.5)
    assert sum(weight != 0 for weight in others) <= 1
    assert fit.history[-1]["train"] > 0.95


def test_training_never_gets_worse_from_round_to_round():
    values = [row["train"] for row in AFS(gain=0.0001).fit_rows(make_planted_lists(), None, seed=0).history]
    assert values == sorted(values)


def test_it_stops_at_so_many_features():
    fit = AFS(features=1).fit_rows(make_planted_lists(), None, seed=0)
    assert sum(weight != 0 for weight in fit.predictor.weights) == 1


def test_scale_does_not_matter():
    data, large = make_planted_lists(), make_planted_lists()
    large.features[:, 0] *= 1024
    plain, scaled = AFS().fit_rows(data, None, seed=0), AFS().fit_rows(large, None, seed=0)
    assert [row["train"] for row in plain.history] == pytest.approx([row["train"] for row in scaled.history])


def test_uninformative_features_get_no_weights():
    fit = AFS().fit_rows(letor([(0, [1.0]), (1, [1.0])]), None, seed=0)
    assert fit.predictor.weights == (0.0,)


def test_the_validation_queries_choose_the_set():
    fit = AFS(gain=0.0001).fit_rows(make_planted_lists(), make_planted_lists(seed=1), seed=0)
    values = [row["valid"] for row in fit.history]
    assert fit.best_iteration == 1 + values.index(max(values))


def test_nothing_to_learn_and_bad_settings():
    with pytest.raises(BadInput, match="no order to learn"):
        AFS().fit_rows(nothing_to_learn(), None, seed=0)
    with pytest.raises(BadInput, match="afs: features should be between 1 and 1,000,000, not 0"):
        AFS(features=0).fit_rows(make_planted_lists(), None, seed=0)

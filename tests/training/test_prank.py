"""PRank: the algorithm by hand, and as plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.errors import BadInput
from shaketable.core.seeding import make_numpy_rng
from shaketable.training.linear import PRank
from shaketable.training.linear_kernels import prank
from tests.training.lists import letor, make_planted_lists, nothing_to_learn


def pass_over(features, labels, order=None, levels=None):
    """One pass from zero: weights, thresholds, the sum of the weights after each row, and mistakes."""
    features, labels = np.array(features, np.float32), np.array(labels)
    weights, total = np.zeros(features.shape[1]), np.zeros(features.shape[1])
    thresholds = np.zeros(max(labels) if levels is None else levels)
    order = np.arange(len(labels)) if order is None else order
    mistakes = prank(features, labels, order, weights, thresholds, total)
    return weights.tolist(), thresholds.tolist(), total.tolist(), mistakes


def test_by_hand_on_three_grades():
    # grades 0, 1, 2: thresholds b0 (0 | 1 2) and b1 (0 1 | 2), all zero; a score that is not below b1 means grade 2
    # x = (1, 0), grade 2: w·x = 0: right
    # x = (0, 1), grade 0: w·x = 0 is not below b0 nor b1: both wrong (-1, -1): w -= 2x, b0 += 1, b1 += 1
    # x = (1, 1), grade 1: w·x = -2 is below b0 = 1, wrongly (+1), and below b1 = 1, rightly: w += x, b0 -= 1
    # x = (2, 0), grade 2: w·x = 2 is above b0 = 0 and b1 = 1: right
    weights, thresholds, total, mistakes = pass_over([[1, 0], [0, 1], [1, 1], [2, 0]], [2, 0, 1, 2])
    assert weights == [1.0, -1.0]
    assert thresholds == [0.0, 1.0]
    assert total == [2.0, -4.0]  # (0, 0) + (0, -2) + (1, -1) + (1, -1)
    assert mistakes == 2


def crammer_and_singer(rows, labels, levels):
    """Run the algorithm of the paper: ranks 1..k, an infinite last threshold, an update only after a mistake."""
    w, b = [0.0] * len(rows[0]), [0.0] * levels + [float("inf")]
    for x, label in zip(rows, labels, strict=True):
        y = label + 1
        score = sum(wi * xi for wi, xi in zip(w, x, strict=True))
        predicted = min(r for r in range(1, levels + 2) if score - b[r - 1] < 0)
        if predicted != y:
            sides = [-1 if y <= r else 1 for r in range(1, levels + 1)]
            tau = [side if (score - b[r]) * side <= 0 else 0 for r, side in enumerate(sides)]
            w = [wi + sum(tau) * xi for wi, xi in zip(w, x, strict=True)]
            b = [br - t for br, t in zip(b, [*tau, 0], strict=True)]
    return w, b[:-1]


@given(
    st.lists(st.tuples(st.tuples(st.integers(-8, 8), st.integers(-8, 8)), st.integers(0, 3)), min_size=1, max_size=30)
)
def test_as_the_paper_writes_it(rows):
    features, labels = [list(map(float, x)) for x, _ in rows], [label for _, label in rows]
    weights, thresholds, _, _ = pass_over(features, labels, levels=3)
    assert (weights, thresholds) == crammer_and_singer(features, labels, 3)
    assert thresholds == sorted(thresholds)


def test_the_last_weights_and_the_mean_ones():
    data = letor([(2, [1, 0]), (0, [0, 1]), (1, [1, 1]), (2, [2, 0])])
    last = PRank(epochs=1, average=False).fit_rows(data, None, seed=0)
    mean = PRank(epochs=1).fit_rows(data, None, seed=0)
    order = make_numpy_rng(0, "prank", 1).permutation(4)
    weights, _, total, _ = pass_over(data.features, data.labels, order)
    assert last.predictor.weights == tuple(weights)
    assert mean.predictor.weights == tuple(np.array(total) / 4)


def test_it_finds_the_planted_weights_and_keeps_the_best_pass():
    train, valid = make_planted_lists(), make_planted_lists(seed=1)
    fit = PRank(epochs=10).fit_rows(train, valid, seed=3)
    first, second, *others = fit.predictor.weights
    assert first > 0 > second
    assert max(map(abs, others)) < min(first, -second)
    values = [row["valid"] for row in fit.history]
    assert fit.best_iteration == 1 + values.index(max(values))
    assert fit.importance.argmax() == 0
    again = PRank(epochs=10).fit_rows(train, valid, seed=3)
    assert again.predictor == fit.predictor
    assert PRank(epochs=10).fit_rows(train, valid, seed=4).predictor != fit.predictor


def test_it_stops_when_nothing_is_wrong():
    fit = PRank(epochs=50, average=False).fit_rows(letor([(1, [1.0]), (0, [-1.0])]), None, seed=0)
    assert fit.history[-1]["mistakes"] == 0
    assert len(fit.history) < 50


def test_nothing_to_learn_and_bad_settings():
    with pytest.raises(BadInput, match="no order to learn"):
        PRank().fit_rows(nothing_to_learn(), None, seed=0)
    with pytest.raises(BadInput, match="prank: epochs should be between 1 and 1,000,000, not 0"):
        PRank(epochs=0).fit_rows(make_planted_lists(), None, seed=0)

"""RankSVM: the minimum against scikit-learn's on explicit differences, derivatives against differences of the loss."""

from __future__ import annotations

import numpy as np
import pytest

from shaketable.core.errors import BadInput
from shaketable.datasets.letor import read_letor
from shaketable.training.linear import PairLoss, RankSVM, find_pairs_below
from tests.training.lists import letor, make_planted_lists, nothing_to_learn


def differences(data):
    """x_i - x_j for all pairs of one query with y_i > y_j, one by one."""
    rows = []
    for start, end in zip(data.starts[:-1], data.starts[1:], strict=True):
        for i in range(start, end):
            rows += [
                data.features[i].astype(float) - data.features[j]
                for j in range(start, end)
                if data.labels[i] > data.labels[j]
            ]
    return np.array(rows)


def objective(weights, pairs, C):
    return 0.5 * weights @ weights + C * np.maximum(0, 1 - pairs @ weights).sum()


def liblinear(pairs, C):
    """scikit-learn's minimum: the differences with both signs."""
    svm = pytest.importorskip("sklearn.svm")
    signs = np.where(np.arange(len(pairs)) % 2, 1, -1)
    model = svm.LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-7, max_iter=200_000, random_state=0)
    return model.fit(pairs * signs[:, None], signs).coef_[0]


def test_one_pair_by_hand():
    # min ½w² + C max(0, 1 - 2w): w = ½ if C is large enough (C ≥ ¼), else w = 2C
    data = letor([(1, [3.0]), (0, [1.0])])
    assert RankSVM(C=10.0).fit_rows(data, None, seed=0).predictor.weights[0] == pytest.approx(0.5, abs=1e-3)
    assert RankSVM(C=0.1).fit_rows(data, None, seed=0).predictor.weights[0] == pytest.approx(0.2, abs=1e-6)


@pytest.mark.parametrize("C", RankSVM.grid["C"])
def test_as_scikit_learn_on_explicit_pairs(C):
    data = make_planted_lists(queries=8, docs=10, dims=4)
    pairs = differences(data)
    ours, theirs = np.array(RankSVM(C=C).fit_rows(data, None, seed=0).predictor.weights), liblinear(pairs, C)
    assert objective(ours, pairs, C) <= objective(theirs, pairs, C) * (1 + 1e-4)
    np.testing.assert_allclose(ours, theirs, atol=0.01 * np.linalg.norm(theirs))


def test_svm_ranks_c_is_shared_by_the_queries():
    # by hand: two queries of one pair each, min ½w² + (c/2) Σ max(0, 1 - 2w): w = 2c while that is less than ½
    data = letor([(1, [3.0]), (0, [1.0])], [(2, [4.0]), (0, [2.0])])
    assert RankSVM(C=0.1, svm_rank=True).fit_rows(data, None, seed=0).predictor.weights[0] == pytest.approx(
        0.2, abs=1e-6
    )
    assert RankSVM(C=0.1).fit_rows(data, None, seed=0).predictor.weights[0] == pytest.approx(0.4, abs=1e-6)
    data = make_planted_lists(queries=8, docs=10, dims=4)
    ours, theirs = (
        RankSVM(C=0.8, svm_rank=True).fit_rows(data, None, seed=0),
        RankSVM(C=0.1).fit_rows(data, None, seed=0),
    )
    assert ours.predictor.weights == pytest.approx(theirs.predictor.weights)
    np.testing.assert_allclose(ours.predictor.weights, liblinear(differences(data), 0.8 / 8), atol=0.02)


@pytest.mark.slow
def test_as_scikit_learn_on_real_data(shared_data):
    data = read_letor(shared_data / "ltr" / "mq2008" / "test.txt").normalise()
    pairs = differences(data)
    ours, theirs = np.array(RankSVM(C=0.01).fit_rows(data, None, seed=0).predictor.weights), liblinear(pairs, 0.01)
    assert objective(ours, pairs, 0.01) == pytest.approx(objective(theirs, pairs, 0.01), rel=1e-5)
    np.testing.assert_allclose(ours, theirs, atol=0.01 * np.linalg.norm(theirs))


@pytest.mark.parametrize("width", [1.0, 0.1])
def test_derivatives(width):
    data = make_planted_lists(queries=3, docs=8, dims=3)
    loss, rng = PairLoss(data, 0.5), np.random.default_rng(0)
    weights, move, step = rng.normal(size=3), rng.normal(size=3), 1e-6
    (ahead, slope_ahead), (behind, slope_behind) = (
        loss.loss_and_gradient(weights + s * move, width) for s in (step, -step)
    )
    assert loss.loss_and_gradient(weights, width)[1] @ move == pytest.approx((ahead - behind) / (2 * step), rel=1e-5)
    expected = (slope_ahead - slope_behind) / (2 * step)
    np.testing.assert_allclose(loss.hessian_product(weights, move, width), expected, rtol=1e-3)


def test_a_narrow_kink_is_the_hinge():
    data = make_planted_lists(queries=3, docs=8, dims=3)
    weights = np.array([2.0, -1.0, 0.5])
    loss = PairLoss(data, 0.5)
    assert loss.pair_count == len(differences(data))
    assert loss.loss_and_gradient(weights, 1e-9)[0] == pytest.approx(objective(weights, differences(data), 0.5))


def test_every_pair_is_met_once():
    data = make_planted_lists(queries=5, docs=7)
    order, below, end = find_pairs_below(data)
    met = {(int(order[i]), int(order[j])) for i in range(data.row_count) for j in range(below[i], end[i])}
    wanted = {
        (i, j)
        for i in range(data.row_count)
        for j in range(data.row_count)
        if data.query_numbers[i] == data.query_numbers[j] and data.labels[i] > data.labels[j]
    }
    assert met == wanted
    assert (end - below).sum() == len(wanted)


def test_rows_that_nothing_can_part_do_no_harm():
    fit = RankSVM(C=1.0).fit_rows(
        letor([(1, [1.0, 0.0]), (0, [1.0, 0.0])], [(1, [1.0, 1.0]), (0, [0.0, 1.0])]), None, seed=0
    )
    assert fit.predictor.weights[0] > 0
    assert fit.predictor.weights[1] == pytest.approx(0)


def test_it_finds_the_planted_weights():
    fit = RankSVM().fit_rows(make_planted_lists(), make_planted_lists(seed=1), seed=0)
    first, second, *others = fit.predictor.weights
    assert first > 0 > second
    assert max(map(abs, others)) < min(first, -second)
    assert fit.history[0]["valid"] > 0.8
    assert fit.importance.argmax() == 0


def test_nothing_to_learn_and_bad_settings():
    with pytest.raises(BadInput, match="no order to learn"):
        RankSVM().fit_rows(nothing_to_learn(), None, seed=0)
    with pytest.raises(BadInput, match=r"ranksvm: C should be a number between 1e-12 and 1e12, not 0\.0"):
        RankSVM(C=0.0).fit_rows(make_planted_lists(), None, seed=0)

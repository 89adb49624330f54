"""Boosted regression trees: LightGBM's own, stopped by NDCG."""

from __future__ import annotations

import numpy as np
import pytest

from shaketable.core.errors import BadInput
from shaketable.training.boosted import GBRT
from tests.training.lists import make_planted_lists, nothing_to_learn

lightgbm = pytest.importorskip("lightgbm")
SMALL = GBRT(trees=20, leaves=4, min_docs=5)


def test_without_validation_it_is_plain_regression():
    data = make_planted_lists()
    fit = SMALL.fit_rows(data, None, seed=0)
    params = {
        "objective": "regression", "num_leaves": 4, "learning_rate": 0.1, "min_data_in_leaf": 5, "verbosity": -1,
    }  # fmt: skip
    plain = lightgbm.train(params, lightgbm.Dataset(data.features, data.labels.astype(float)), 20)
    np.testing.assert_allclose(fit.predictor.predict(data.features), plain.predict(data.features))
    assert fit.best_iteration == 20
    assert len(fit.history) == 20


def test_validation_queries_choose_the_number_of_trees():
    train, valid = make_planted_lists(), make_planted_lists(seed=1)
    fit = GBRT(trees=200, leaves=8, min_docs=5, early_stop=10).fit_rows(train, valid, seed=0)
    values = [row["valid"] for row in fit.history]
    assert fit.best_iteration == 1 + values.index(max(values))
    assert len(values) == fit.best_iteration + 10
    assert fit.predictor.text.count("Tree=") == fit.best_iteration
    assert fit.importance[:2].sum() > fit.importance[2:].sum()


def test_the_same_seed_gives_the_same_trees():
    assert (
        SMALL.fit_rows(make_planted_lists(), None, seed=5).predictor
        == SMALL.fit_rows(make_planted_lists(), None, seed=5).predictor
    )


def test_nothing_to_learn_and_bad_settings():
    with pytest.raises(BadInput, match="no order to learn"):
        GBRT().fit_rows(nothing_to_learn(), None, seed=0)
    with pytest.raises(BadInput, match="gbrt: leaves should be between 2 and 131,072, not 1"):
        GBRT(leaves=1).fit_rows(make_planted_lists(), None, seed=0)

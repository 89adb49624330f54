"""Boosted regression trees, which learn to predict the labels and rank by the predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shaketable.core.errors import BadInput, check_parameter, check_ranges
from shaketable.datasets.letor import Letor
from shaketable.rankers.ltr import TreePredictor, import_lightgbm
from shaketable.training.baselines import Baselines
from shaketable.training.feature_learner import FeatureLearner, FitResult, refuse_nothing_to_learn
from shaketable.training.ndcg import NDCG

Floats = NDArray[np.float64]
MAX_SETTING = 1_000_000
TREE_BOUNDS = {
    "trees": (1, MAX_SETTING),
    "leaves": (2, 131_072),
    "min_docs": (1, 2**31 - 1),
    "early_stop": (0, MAX_SETTING),
}
"""The value ranges that LightGBM accepts."""


@dataclass(frozen=True)
class GBRT(FeatureLearner):
    """Boosted regression trees on the labels, by least squares (LightGBM).

    trees, leaves, learning_rate, min_docs    the number of trees, leaves per tree, learning rate, least rows per leaf
    early_stop    trees without a better NDCG on the validation queries before training stops; 0 for never
    truncation    the k of this NDCG@k (gain 2^label - 1)

    Friedman. Greedy function approximation: a gradient boosting machine. Annals of Statistics 2001.
    """

    grid: ClassVar[Mapping[str, Sequence[Any]]] = {"leaves": (10, 20, 50), "learning_rate": (0.01, 0.05, 0.1)}
    extra: ClassVar[str] = "ltr"

    trees: int = 500
    leaves: int = 50
    learning_rate: float = 0.1
    min_docs: int = 20
    early_stop: int = 100
    truncation: int = 10

    def __post_init__(self) -> None:
        check_ranges("gbrt", self, **TREE_BOUNDS, truncation=(1, MAX_SETTING))
        check_parameter(
            "gbrt", 0 < self.learning_rate <= 1, "learning_rate", "above 0 and not above 1", self.learning_rate
        )

    def fit_rows(self, train: Letor, valid: Letor | None, seed: int, baselines: Baselines | None = None) -> FitResult:
        """Grow trees; return the number of trees that is best on the validation queries."""
        refuse_nothing_to_learn(train)
        parameters = {
            "objective": "regression",
            "num_leaves": self.leaves,
            "learning_rate": self.learning_rate,
            "min_data_in_leaf": self.min_docs,
            "seed": seed,
        }
        sets = [data for data in (train, valid) if data is not None]
        measures = [NDCG(data, self.truncation) for data in sets]
        return grow_trees(
            sets,
            lambda at, scores: measures[at].compute_mean(scores),
            measures[0].name,
            parameters,
            self.trees,
            self.early_stop,
        )


def grow_trees(
    sets: Sequence[Letor],
    measure: Callable[[int, Floats], float],
    measure_name: str,
    parameters: Mapping[str, Any],
    trees: int,
    early_stop: int,
) -> FitResult:
    """Boost on the first set and return the fit; stop when `measure` of the second set, if any, no longer rises.

    `measure` gets the number of a set, 0 or 1, and the scores of its rows.
    """
    lightgbm = import_lightgbm()
    settings = FIXED_PARAMETERS | dict(parameters)
    data = lightgbm.Dataset(sets[0].features, sets[0].labels, group=sets[0].list_sizes, params=settings)
    held = [lightgbm.Dataset(s.features, s.labels, data, group=s.list_sizes, params=settings) for s in sets[1:]]
    curves: dict[str, dict[str, list[float]]] = {}
    callbacks = [lightgbm.record_evaluation(curves)]
    if held and early_stop:
        callbacks.append(lightgbm.early_stopping(early_stop, verbose=False))
    try:
        booster = lightgbm.train(
            settings,
            data,
            trees,
            valid_sets=[data, *held],
            valid_names=["train", "valid"][: len(sets)],
            feval=lambda scores, which: ("measure", measure(0 if which is data else 1, scores), True),
            callbacks=callbacks,
        )
    except lightgbm.basic.LightGBMError as error:
        useless = f"no trees grow on these {sets[0].row_count} rows: there are too few, or no feature differs"
        raise BadInput(f"{useless} (LightGBM: {' '.join(str(error).split())})", sets[0].source or None) from error
    best = booster.best_iteration if booster.best_iteration > 0 else booster.current_iteration()
    columns = {name: curve["measure"] for name, curve in curves.items()}
    history = [
        {"iteration": i + 1} | {name: curve[i] for name, curve in columns.items()} for i in range(len(columns["train"]))
    ]
    importance = np.asarray(booster.feature_importance("gain", iteration=best), dtype=np.float64)
    predictor = TreePredictor(booster.model_to_string(num_iteration=best))
    return FitResult(predictor, history, best, importance, measure_name)


FIXED_PARAMETERS = {
    "metric": "None",
    "deterministic": True,
    "force_col_wise": True,  # with the line above: the same trees for any number of threads
    "verbosity": -1,
}

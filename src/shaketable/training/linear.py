"""Learners of linear models: PRank, RankSVM, AdaRank, and automatic feature selection.

All of them need features on the same scale: normalise within queries, as `feature_learner` does by default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shaketable.core.errors import check_parameter, check_ranges
from shaketable.core.seeding import make_numpy_rng
from shaketable.datasets.letor import Letor
from shaketable.rankers.ltr import LinearPredictor
from shaketable.training.baselines import Baselines
from shaketable.training.feature_learner import FeatureLearner, FitResult, refuse_nothing_to_learn
from shaketable.training.ndcg import NDCG

Floats = NDArray[np.float64]
Grid = Mapping[str, Sequence[Any]]
MAX_SETTING = 1_000_000
"""The largest number of rounds, epochs or ranks."""


class BestWeights:
    """The best weights so far, on the validation queries if there are any, else on the training queries."""

    def __init__(self, train: Letor, valid: Letor | None, truncation: int):
        self.measures = {"train": NDCG(train, truncation)} | ({"valid": NDCG(valid, truncation)} if valid else {})
        self.history: list[dict[str, float]] = []
        self.best_iteration = 0
        self.weights = np.zeros(train.feature_count)

    def record(self, weights: Floats, **more: float) -> dict[str, float]:
        """Measure the weights of an iteration, keep them if they are the best, and return the history row."""
        scores = LinearPredictor(tuple(weights.tolist())).predict
        values = {name: m.compute_mean(scores(m.data.features)) for name, m in self.measures.items()}
        self.history.append({"iteration": len(self.history) + 1, **values, **more})
        judge = list(values)[-1]
        if not self.best_iteration or values[judge] > self.history[self.best_iteration - 1][judge]:
            self.best_iteration, self.weights = len(self.history), weights.copy()
        return values

    def to_fit_result(self) -> FitResult:
        """Return the best weights; the importance of a feature is |w| times the spread of the feature."""
        columns = self.measures["train"].data.features.T
        importance = np.abs(self.weights) * [float(column.std(dtype=np.float64)) for column in columns]
        predictor, name = LinearPredictor(tuple(self.weights.tolist())), self.measures["train"].name
        return FitResult(predictor, self.history, self.best_iteration, importance, name)


@dataclass(frozen=True)
class PRank(FeatureLearner):
    """PRank: a perceptron that learns weights and the thresholds between grades (Crammer, Singer 2001).

    epochs        passes over the rows, each in a different order
    average       use the mean of the weights after each row, not the last weights, which depend on the last few rows
    truncation    the NDCG@k (gain 2^label - 1) that chooses the pass to keep

    The predicted label is the first r with w·x < b_r. A row with label y that is predicted wrongly moves weights and
    thresholds: τ_r = y_r where (w·x - b_r) y_r ≤ 0, y_r = +1 if y > r else -1; w += (Σ τ_r) x; b_r -= τ_r. Only w
    ranks.

    Crammer, Singer. Pranking with ranking. NIPS 2001.
    """

    grid: ClassVar[Grid] = {"average": (True, False)}

    epochs: int = 20
    average: bool = True
    truncation: int = 10

    def __post_init__(self) -> None:
        check_ranges("prank", self, epochs=(1, MAX_SETTING), truncation=(1, MAX_SETTING))

    def fit_rows(self, train: Letor, valid: Letor | None, seed: int, baselines: Baselines | None = None) -> FitResult:
        """Make all passes and return the best one."""
        from shaketable.training.linear_kernels import prank

        refuse_nothing_to_learn(train)
        watch = BestWeights(train, valid, self.truncation)
        weights, thresholds, total = (
            np.zeros(train.feature_count),
            np.zeros(int(train.labels.max())),
            np.zeros(train.feature_count),
        )
        for epoch in range(1, self.epochs + 1):
            order = make_numpy_rng(seed, "prank", epoch).permutation(train.row_count)
            mistakes = prank(train.features, train.labels, order, weights, thresholds, total)
            watch.record(total / (epoch * train.row_count) if self.average else weights, mistakes=mistakes)
            if not mistakes:
                break
        return watch.to_fit_result()


@dataclass(frozen=True)
class RankSVM(FeatureLearner):
    """RankSVM, linear: better documents above worse ones by a margin (Joachims 2002).

        min ½|w|² + C Σ max(0, 1 - w·(x_i - x_j))   over pairs of one query with y_i > y_j

    C             the cost of a violated pair
    svm_rank      C is SVM-rank's -c: a pair costs C / number of training queries, so -c = C x queries
    truncation    the NDCG@k (gain 2^label - 1) that is reported

    The grid has the values 0.0001 to 10 under both readings. A paper that says "SVM-rank, C from 0.0001 to 10" most
    likely means -c; with 1000 queries that is a C of 0.0000001 to 0.01.

    Newton's method with conjugate gradients solves the primal problem on a smoothed hinge, with less smoothing in each
    round. Pairs are computed as differences of two scores, so memory grows with rows, not with pairs.

    Joachims. Optimizing search engines using clickthrough data. KDD 2002.
    Joachims. Training linear SVMs in linear time. KDD 2006 (SVM-rank).
    Chapelle, Keerthi. Efficient algorithms for ranking with SVMs. Information Retrieval 2010.
    """

    grid: ClassVar[Grid] = {"svm_rank": (False, True), "C": (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0)}

    C: float = 0.01
    svm_rank: bool = False
    truncation: int = 10

    def __post_init__(self) -> None:
        check_parameter("ranksvm", 1e-12 <= self.C <= 1e12, "C", "a number between 1e-12 and 1e12", self.C)
        check_ranges("ranksvm", self, truncation=(1, MAX_SETTING))

    def fit_rows(self, train: Letor, valid: Letor | None, seed: int, baselines: Baselines | None = None) -> FitResult:
        """Return the weights at the only minimum; the seed has no effect."""
        from scipy.optimize import minimize

        refuse_nothing_to_learn(train)
        cost = self.C / train.query_count if self.svm_rank else self.C
        loss, weights = PairLoss(train, cost), np.zeros(train.feature_count)
        # The gradient is a sum over pairs, so its tolerance depends on their number.
        near = {"gtol": 1e-4 * cost * loss.pair_count**0.5, "maxiter": 200}
        for width in HINGE_WIDTHS:
            settings: dict[str, Any] = {
                "method": "trust-ncg",
                "jac": True,
                "hessp": loss.hessian_product,
                "options": near,
            }
            weights = minimize(loss.loss_and_gradient, weights, (width,), **settings).x
        watch = BestWeights(train, valid, self.truncation)
        watch.record(weights, loss=loss.loss_and_gradient(weights, width)[0])
        return watch.to_fit_result()


HINGE_WIDTHS = (1.0, 0.1, 0.01, 0.001)
"""The smoothing widths of the hinge, from the first minimisation to the last."""


class PairLoss:
    """½|w|² + C Σ hinge over all pairs of better and worse documents, with derivatives; see `linear_kernels`."""

    def __init__(self, data: Letor, C: float):
        order, self._below, self._end = find_pairs_below(data)
        self._features = data.features[order]
        self._C = C
        self.pair_count = int((self._end - self._below).sum())

    def loss_and_gradient(self, weights: Floats, width: float) -> tuple[float, Floats]:
        """Return the loss and its gradient."""
        from shaketable.training.linear_kernels import hinge

        pulls = np.empty(len(self._features))
        total = hinge(self._compute_scores(weights), self._below, self._end, width, pulls)
        return 0.5 * float(weights @ weights) + self._C * total, weights + self._C * self._accumulate_gradient(pulls)

    def hessian_product(self, weights: Floats, move: Floats, width: float) -> Floats:
        """Return the product of the Hessian and a step."""
        from shaketable.training.linear_kernels import hinge_hessian_product

        pulls = np.empty(len(self._features))
        hinge_hessian_product(
            self._compute_scores(weights), self._compute_scores(move), self._below, self._end, width, pulls
        )
        return move + self._C * self._accumulate_gradient(pulls)

    def _compute_scores(self, weights: Floats) -> Floats:
        from shaketable.training.linear_kernels import compute_scores

        out = np.empty(len(self._features))
        compute_scores(self._features, weights, out)
        return out

    def _accumulate_gradient(self, pulls: Floats) -> Floats:
        from shaketable.training.linear_kernels import accumulate_gradient

        out = np.empty(self._features.shape[1])
        accumulate_gradient(self._features, pulls, out)
        return out


def find_pairs_below(data: Letor) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return an order of the rows by query and falling label, in which row i is better than rows below[i]:end[i].

    >>> data = Letor(np.zeros((4, 1), np.float32), np.array([0, 2, 1, 2]), np.array([0, 4]), ("q",), tuple("abcd"))
    >>> [part.tolist() for part in find_pairs_below(data)]
    [[1, 3, 2, 0], [2, 2, 3, 4], [4, 4, 4, 4]]
    """
    order = np.lexsort((-data.labels, data.query_numbers))
    ends = data.starts[1:][data.query_numbers]
    width = int(data.labels.max(initial=0)) + 1
    group = data.query_numbers * width + (width - 1 - data.labels[order])  # non-decreasing
    below = np.searchsorted(group, group, side="right")
    return order, below, ends


@dataclass(frozen=True)
class AdaRank(FeatureLearner):
    """AdaRank: boosting of single features, with more weight on queries with low NDCG (Xu, Li 2007).

    rounds        the maximum number of added features; a feature may be added again
    repeats       how often in a row a feature may be added before it is excluded
    truncation    the NDCG@k (gain 2^label - 1) that is boosted

    P weighs queries. Each round takes the feature h with the best Σ P(q) NDCG(q, h), adds it with
    α = ½ ln[Σ P(q)(1 + NDCG(q, h)) / Σ P(q)(1 - NDCG(q, h))], and makes P(q) ∝ exp(-NDCG(q, f)) of the sum f so far.

    Xu, Li. AdaRank: a boosting algorithm for information retrieval. SIGIR 2007.
    """

    grid: ClassVar[Grid] = {"repeats": (1, 5)}

    rounds: int = 100
    repeats: int = 5
    truncation: int = 10

    def __post_init__(self) -> None:
        check_ranges("adarank", self, rounds=(1, MAX_SETTING), repeats=(1, MAX_SETTING), truncation=(1, MAX_SETTING))

    def fit_rows(self, train: Letor, valid: Letor | None, seed: int, baselines: Baselines | None = None) -> FitResult:
        """Add features until rounds or features run out; return the best round."""
        refuse_nothing_to_learn(train)
        telling = train.select_queries(np.flatnonzero(train.mixed_labels))
        measure = NDCG(telling, self.truncation)
        alone = np.array([measure.compute(column) for column in telling.features.T])
        shares = np.full(telling.query_count, 1 / telling.query_count)
        weights, free = np.zeros(train.feature_count), np.ones(train.feature_count, np.bool_)
        watch = BestWeights(train, valid, self.truncation)
        last, times = -1, 0
        for _ in range(self.rounds):
            if not free.any():
                break
            chosen = int(np.where(free, alone @ shares, -np.inf).argmax())
            times = times + 1 if chosen == last else 1
            last, free[chosen] = chosen, times < self.repeats
            value = float(alone[chosen] @ shares)
            weights[chosen] += 0.5 * np.log((1 + value) / max(1 - value, 1e-12))
            watch.record(weights, feature=chosen + 1)
            shares = np.exp(-measure.compute(LinearPredictor(tuple(weights.tolist())).predict(telling.features)))
            shares /= shares.sum()
        return watch.to_fit_result()


@dataclass(frozen=True)
class AFS(FeatureLearner):
    """Automatic feature selection: add the feature that raises NDCG most, then tune all weights (Metzler 2007).

    features      the maximum number of features
    gain          the NDCG that another feature must add
    truncation    the NDCG@k (gain 2^label - 1) that is maximised

    Coordinate ascent: several step sizes are tried for one weight at a time, with the others fixed.

    Metzler. Automatic feature selection in the Markov random field model for information retrieval. CIKM 2007.
    """

    grid: ClassVar[Grid] = {"gain": (0.0001, 0.001, 0.005)}

    features: int = 20
    gain: float = 0.001
    truncation: int = 10

    def __post_init__(self) -> None:
        check_ranges("afs", self, features=(1, MAX_SETTING), gain=(0, 1), truncation=(1, MAX_SETTING))

    def fit_rows(self, train: Letor, valid: Letor | None, seed: int, baselines: Baselines | None = None) -> FitResult:
        """Add features until none adds enough; return the best set."""
        refuse_nothing_to_learn(train)
        climb = CoordinateAscent(train.select_queries(np.flatnonzero(train.mixed_labels)), self.truncation)
        watch = BestWeights(train, valid, self.truncation)
        for _ in range(min(self.features, train.feature_count)):
            before, unused = climb.mean_ndcg, np.flatnonzero(climb.weights == 0)
            trials = [climb.find_best_step(feature) for feature in unused.tolist()]
            best = int(np.argmax([value for value, _ in trials]))
            if trials[best][0] < before + self.gain:
                break
            climb.apply_step(int(unused[best]), *trials[best])
            for feature in np.flatnonzero(climb.weights):
                value, step = climb.find_best_step(int(feature))
                if value > climb.mean_ndcg:
                    climb.apply_step(int(feature), value, step)
            watch.record(climb.weights, features=int((climb.weights != 0).sum()))
        if not watch.best_iteration:
            watch.record(climb.weights, features=0)
        return watch.to_fit_result()


WEIGHT_STEPS = np.array([sign * 0.03125 * 2**rung for rung in range(7) for sign in (1, -1)])
"""Step sizes of a weight, from 1/32 to 2 times the step that moves scores by their own spread."""


class CoordinateAscent:
    """Coordinate ascent on weights: the current scores and their mean NDCG."""

    def __init__(self, data: Letor, truncation: int):
        self._columns = np.ascontiguousarray(data.features.T, np.float64)
        self._spread = self._columns.std(axis=1)
        self._measure = NDCG(data, truncation)
        self._scores = np.zeros(data.row_count)
        self.weights = np.zeros(data.feature_count)
        self.mean_ndcg = self._compute_mean_ndcg(self._scores)

    def find_best_step(self, feature: int) -> tuple[float, float]:
        """Return the best mean NDCG that a step of one weight reaches, and the step."""
        if not self._spread[feature]:
            return -np.inf, 0.0
        unit = (self._scores.std() or 1.0) / self._spread[feature]
        values = [self._compute_mean_ndcg(self._scores + step * unit * self._columns[feature]) for step in WEIGHT_STEPS]
        best = int(np.argmax(values))
        return values[best], float(WEIGHT_STEPS[best] * unit)

    def apply_step(self, feature: int, value: float, step: float) -> None:
        """Apply a step to one weight."""
        self.weights[feature] += step
        self._scores += step * self._columns[feature]
        self.mean_ndcg = value

    def _compute_mean_ndcg(self, scores: Floats) -> float:
        return float(self._measure.compute(scores).mean())

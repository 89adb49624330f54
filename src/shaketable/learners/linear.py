"""Learners of linear models: PRank, RankSVM, AdaRank, and automatic feature selection.

All of them want features of one scale: normalise them within queries, as `fit.learn` does unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shaketable.chance import rng_for
from shaketable.data.letor import Letor
from shaketable.errors import check, check_within
from shaketable.learners.baselines import Baselines
from shaketable.learners.fit import FeatureLearner, Fit, refuse_nothing_to_learn
from shaketable.learners.ndcg import NDCG
from shaketable.rankers.ltr import Linear

Floats = NDArray[np.float64]
Grid = Mapping[str, Sequence[Any]]
MOST = 1_000_000
"""Rounds, epochs and places of a list that nobody wants more of."""


class Watch:
    """Keeps the weights that did best: on the validation queries where there are any, else on the training queries."""

    def __init__(self, train: Letor, valid: Letor | None, truncation: int):
        self.measures = {"train": NDCG(train, truncation)} | ({"valid": NDCG(valid, truncation)} if valid else {})
        self.history: list[dict[str, float]] = []
        self.best = 0
        self.weights = np.zeros(train.dims)

    def see(self, weights: Floats, **more: float) -> dict[str, float]:
        """Measure the weights of another iteration."""
        scores = Linear(tuple(weights.tolist())).predict
        values = {name: float(m.of(scores(m.data.features)).mean()) for name, m in self.measures.items()}
        self.history.append({"iteration": len(self.history) + 1, **values, **more})
        judge = list(values)[-1]
        if not self.best or values[judge] > self.history[self.best - 1][judge]:
            self.best, self.weights = len(self.history), weights.copy()
        return values

    def fit(self) -> Fit:
        """A weight has as much to say as it moves scores: |w| times the spread of its feature."""
        columns = self.measures["train"].data.features.T
        importance = np.abs(self.weights) * [float(column.std(dtype=np.float64)) for column in columns]
        return Fit(Linear(tuple(self.weights.tolist())), self.history, self.best, importance)


@dataclass(frozen=True)
class PRank(FeatureLearner):
    """PRank: a perceptron that learns a direction and the thresholds between grades (Crammer, Singer 2001).

    epochs        passes over the rows, each in another order
    average       take the mean of the weights after each row, not the last ones, which hang on the last few rows
    truncation    the NDCG@k that chooses the pass to keep

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
        check_within("prank", self, epochs=(1, MOST), truncation=(1, MOST))

    def fit_rows(self, train: Letor, valid: Letor | None, seed: int, baselines: Baselines | None = None) -> Fit:
        """As many passes as asked for; the best one counts."""
        from shaketable.learners.descent import prank

        refuse_nothing_to_learn(train)
        watch = Watch(train, valid, self.truncation)
        weights, thresholds, total = np.zeros(train.dims), np.zeros(int(train.labels.max())), np.zeros(train.dims)
        for epoch in range(1, self.epochs + 1):
            order = rng_for(seed, "prank", epoch).permutation(train.rows)
            mistakes = prank(train.features, train.labels, order, weights, thresholds, total)
            watch.see(total / (epoch * train.rows) if self.average else weights, mistakes=mistakes)
            if not mistakes:
                break
        return watch.fit()


@dataclass(frozen=True)
class RankSVM(FeatureLearner):
    """RankSVM, linear: better documents above worse ones by a margin (Joachims 2002).

        min ½|w|² + C Σ max(0, 1 - w·(x_i - x_j))   over pairs of one query with y_i > y_j

    C             what a violated pair costs
    svm_rank      C is SVM-rank's -c: a pair costs C / number of training queries, so -c = C x queries
    truncation    the NDCG@k that is reported

    The grid has the values 0.0001 to 10 under both readings. A paper that says "SVM-rank, C from 0.0001 to 10" most
    likely means -c; with 1000 queries that is a C of 0.0000001 to 0.01.

    Solved in the primal by Newton's method, conjugate gradients within, on a hinge whose kink is rounded off less and
    less. A pair is only ever a difference of two scores: memory goes to rows, not to pairs.

    Joachims. Optimizing search engines using clickthrough data. KDD 2002.
    Joachims. Training linear SVMs in linear time. KDD 2006 (SVM-rank).
    Chapelle, Keerthi. Efficient algorithms for ranking with SVMs. Information Retrieval 2010.
    """

    grid: ClassVar[Grid] = {"svm_rank": (False, True), "C": (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0)}

    C: float = 0.01
    svm_rank: bool = False
    truncation: int = 10

    def __post_init__(self) -> None:
        check("ranksvm", 1e-12 <= self.C <= 1e12, "C", "a number between 1e-12 and 1e12", self.C)
        check_within("ranksvm", self, truncation=(1, MOST))

    def fit_rows(self, train: Letor, valid: Letor | None, seed: int, baselines: Baselines | None = None) -> Fit:
        """Find the one minimum; the seed plays no part in it."""
        from scipy.optimize import minimize

        refuse_nothing_to_learn(train)
        cost = self.C / train.queries if self.svm_rank else self.C
        loss, weights = PairLoss(train, cost), np.zeros(train.dims)
        # The gradient is a sum over pairs, so what counts as zero depends on how many there are.
        near = {"gtol": 1e-4 * cost * loss.pairs**0.5, "maxiter": 200}
        for width in WIDTHS:
            settings: dict[str, Any] = {"method": "trust-ncg", "jac": True, "hessp": loss.bend, "options": near}
            weights = minimize(loss.of, weights, (width,), **settings).x
        watch = Watch(train, valid, self.truncation)
        watch.see(weights, loss=loss.of(weights, width)[0])
        return watch.fit()


WIDTHS = (1.0, 0.1, 0.01, 0.001)
"""How far the kink of the hinge is rounded off, from the first minimum sought to the last."""


class PairLoss:
    """½|w|² + C Σ hinge over all pairs of better and worse documents, with derivatives; see `descent.hinge`."""

    def __init__(self, data: Letor, C: float):
        order, self._below, self._end = pairs_below(data)
        self._features = data.features[order]
        self._C = C
        self.pairs = int((self._end - self._below).sum())

    def of(self, weights: Floats, width: float) -> tuple[float, Floats]:
        """The loss and its gradient."""
        from shaketable.learners.descent import hinge

        pulls = np.empty(len(self._features))
        total = hinge(self._scores(weights), self._below, self._end, width, pulls)
        return 0.5 * float(weights @ weights) + self._C * total, weights + self._C * self._gathered(pulls)

    def bend(self, weights: Floats, move: Floats, width: float) -> Floats:
        """The Hessian times a move."""
        from shaketable.learners.descent import hinge_bend

        pulls = np.empty(len(self._features))
        hinge_bend(self._scores(weights), self._scores(move), self._below, self._end, width, pulls)
        return move + self._C * self._gathered(pulls)

    def _scores(self, weights: Floats) -> Floats:
        from shaketable.learners.descent import scores

        out = np.empty(len(self._features))
        scores(self._features, weights, out)
        return out

    def _gathered(self, pulls: Floats) -> Floats:
        from shaketable.learners.descent import gathered

        out = np.empty(self._features.shape[1])
        gathered(self._features, pulls, out)
        return out


def pairs_below(data: Letor) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """An order of the rows, queries in place and labels falling, in which row i is better than rows below[i]:end[i].

    >>> data = Letor(np.zeros((4, 1), np.float32), np.array([0, 2, 1, 2]), np.array([0, 4]), ("q",), tuple("abcd"))
    >>> [part.tolist() for part in pairs_below(data)]
    [[1, 3, 2, 0], [2, 2, 3, 4], [4, 4, 4, 4]]
    """
    order = np.lexsort((-data.labels, data.owners))
    ends = data.starts[1:][data.owners]
    width = int(data.labels.max(initial=0)) + 1
    group = data.owners * width + (width - 1 - data.labels[order])  # rises from row to row
    below = np.searchsorted(group, group, side="right")
    return order, below, ends


@dataclass(frozen=True)
class AdaRank(FeatureLearner):
    """AdaRank: boosting of single features, with more and more weight on queries that go badly (Xu, Li 2007).

    rounds        features added at most; one may come again
    repeats       times in a row that a feature is taken before it is set aside
    truncation    the NDCG@k that is boosted

    P weighs queries. Each round takes the feature h with the best Σ P(q) NDCG(q, h), adds it with
    α = ½ ln[Σ P(q)(1 + NDCG(q, h)) / Σ P(q)(1 - NDCG(q, h))], and makes P(q) ∝ exp(-NDCG(q, f)) of the sum f so far.

    Xu, Li. AdaRank: a boosting algorithm for information retrieval. SIGIR 2007.
    """

    grid: ClassVar[Grid] = {"repeats": (1, 5)}

    rounds: int = 100
    repeats: int = 5
    truncation: int = 10

    def __post_init__(self) -> None:
        check_within("adarank", self, rounds=(1, MOST), repeats=(1, MOST), truncation=(1, MOST))

    def fit_rows(self, train: Letor, valid: Letor | None, seed: int, baselines: Baselines | None = None) -> Fit:
        """Add features until rounds or features run out; the best round counts."""
        refuse_nothing_to_learn(train)
        telling = train.select(np.flatnonzero(train.telling))
        measure = NDCG(telling, self.truncation)
        alone = np.array([measure.of(column) for column in telling.features.T])
        shares = np.full(telling.queries, 1 / telling.queries)
        weights, free = np.zeros(train.dims), np.ones(train.dims, np.bool_)
        watch = Watch(train, valid, self.truncation)
        last, times = -1, 0
        for _ in range(self.rounds):
            if not free.any():
                break
            chosen = int(np.where(free, alone @ shares, -np.inf).argmax())
            times = times + 1 if chosen == last else 1
            last, free[chosen] = chosen, times < self.repeats
            value = float(alone[chosen] @ shares)
            weights[chosen] += 0.5 * np.log((1 + value) / max(1 - value, 1e-12))
            watch.see(weights, feature=chosen + 1)
            shares = np.exp(-measure.of(Linear(tuple(weights.tolist())).predict(telling.features)))
            shares /= shares.sum()
        return watch.fit()


@dataclass(frozen=True)
class AFS(FeatureLearner):
    """Automatic feature selection: add the feature that lifts NDCG most, then tune all weights (Metzler 2007).

    features      that are chosen at most
    gain          NDCG that another feature must add
    truncation    the NDCG@k that is climbed

    Coordinate ascent: NDCG is tried at a ladder of steps for one weight at a time, the others held.

    Metzler. Automatic feature selection in the Markov random field model for information retrieval. CIKM 2007.
    """

    grid: ClassVar[Grid] = {"gain": (0.0001, 0.001, 0.005)}

    features: int = 20
    gain: float = 0.001
    truncation: int = 10

    def __post_init__(self) -> None:
        check_within("afs", self, features=(1, MOST), gain=(0, 1), truncation=(1, MOST))

    def fit_rows(self, train: Letor, valid: Letor | None, seed: int, baselines: Baselines | None = None) -> Fit:
        """Choose features until none adds enough; the best set of them counts."""
        refuse_nothing_to_learn(train)
        climb = Climb(train.select(np.flatnonzero(train.telling)), self.truncation)
        watch = Watch(train, valid, self.truncation)
        for _ in range(min(self.features, train.dims)):
            before, unused = climb.value, np.flatnonzero(climb.weights == 0)
            trials = [climb.best_step(feature) for feature in unused.tolist()]
            best = int(np.argmax([value for value, _ in trials]))
            if trials[best][0] < before + self.gain:
                break
            climb.take(int(unused[best]), *trials[best])
            for feature in np.flatnonzero(climb.weights):
                value, step = climb.best_step(int(feature))
                if value > climb.value:
                    climb.take(int(feature), value, step)
            watch.see(climb.weights, features=int((climb.weights != 0).sum()))
        if not watch.best:
            watch.see(climb.weights, features=0)
        return watch.fit()


LADDER = np.array([sign * 0.03125 * 2**rung for rung in range(7) for sign in (1, -1)])
"""Steps of a weight, from 1/32 to 2 times what moves scores by as much as they are spread."""


class Climb:
    """Weights on their way up: their scores, and the mean NDCG these have."""

    def __init__(self, data: Letor, truncation: int):
        self._columns = np.ascontiguousarray(data.features.T, np.float64)
        self._spread = self._columns.std(axis=1)
        self._measure = NDCG(data, truncation)
        self._scores = np.zeros(data.rows)
        self.weights = np.zeros(data.dims)
        self.value = self._mean(self._scores)

    def best_step(self, feature: int) -> tuple[float, float]:
        """The best mean NDCG that a step of one weight reaches, and that step."""
        if not self._spread[feature]:
            return -np.inf, 0.0
        unit = (self._scores.std() or 1.0) / self._spread[feature]
        values = [self._mean(self._scores + step * unit * self._columns[feature]) for step in LADDER]
        best = int(np.argmax(values))
        return values[best], float(LADDER[best] * unit)

    def take(self, feature: int, value: float, step: float) -> None:
        """Go that step."""
        self.weights[feature] += step
        self._scores += step * self._columns[feature]
        self.value = value

    def _mean(self, scores: Floats) -> float:
        return float(self._measure.of(scores).mean())

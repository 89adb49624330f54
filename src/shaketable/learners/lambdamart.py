"""LambdaMART, plain and sensitive to risk: boosted trees that learn to rank without losing to what is there already.

LambdaMART pulls apart each pair of documents of different labels in proportion to |ΔM|, the change of NDCG if the two
swapped places. Here ΔM becomes ΔM', the change of a risk measure against one baseline or several.

Burges. From RankNet to LambdaRank to LambdaMART. MSR-TR-2010-82.
Wang, Bennett, Collins-Thompson. Robust ranking models via risk-sensitive optimization. SIGIR 2012.
Dinçer, Macdonald, Ounis. Hypothesis testing for the risk-sensitive evaluation of retrieval systems. SIGIR 2014.
Dinçer, Macdonald, Ounis. Risk-sensitive evaluation and learning to rank using multiple baselines. SIGIR 2016.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from shaketable.data.letor import Letor
from shaketable.errors import BadInput, UnknownName, check, check_within
from shaketable.learners.baselines import Baselines
from shaketable.learners.boosted import BOUNDS, grow
from shaketable.learners.fit import FeatureLearner, Fit, refuse_nothing_to_learn
from shaketable.learners.ndcg import NDCG
from shaketable.measure import NOISE
from shaketable.measure.risk import expected, geo_risk, penalised, standardised, t_risk, u_risk

if TYPE_CHECKING:
    from shaketable.learners.lambdas import Terms

Values = NDArray[np.float64]

SHARE = 2000  # rows that are worth a thread
HESSIAN = 1e-3  # that a leaf needs at least, as in LightGBM's own lambdarank


class Objective(Protocol):
    """What is maximised: a number for the NDCG of each list, and what a change in one list does to it."""

    def measure(self, value: Values) -> float: ...
    def terms(self, value: Values) -> Terms: ...


@dataclass(frozen=True, eq=False)
class Mean:
    """Mean NDCG: ΔM' = ΔM."""

    def measure(self, value: Values) -> float:
        return float(value.mean())

    def terms(self, value: Values) -> Terms:
        return _utility(value, value, np.zeros_like(value))


@dataclass(frozen=True, eq=False)
class URisk:
    """U-CRO: URisk against one baseline, with α alike for all lists."""

    baseline: Values
    alpha: float
    eq9: bool = False

    def measure(self, value: Values) -> float:
        return float(u_risk(value, self.baseline, self.alpha))

    def terms(self, value: Values) -> Terms:
        return _utility(value, self.baseline, np.full_like(value, self.alpha), eq9=self.eq9)


@dataclass(frozen=True, eq=False)
class TRisk:
    """T-SARO and T-FARO: TRisk against one baseline, with α'_j = [1 - Φ(δ_j / spread)] α, largest where losses are.

    T-SARO puts α'_j in the place of U-CRO's α; T-FARO (`everywhere`) multiplies all changes of list j by 1 + α'_j.
    `spread` is that of the penalised differences before the first tree, as jforests has it, or None to take it anew
    before each.
    """

    baseline: Values
    alpha: float
    everywhere: bool
    spread: float | None
    error: bool = False
    eq9: bool = False

    def measure(self, value: Values) -> float:
        return float(t_risk(value, self.baseline, self.alpha))

    def terms(self, value: Values) -> Terms:
        alpha = self.alphas(value)
        if self.everywhere:
            return _utility(value, self.baseline, np.zeros_like(value), factor=1 + alpha)
        return _utility(value, self.baseline, alpha, eq9=self.eq9)

    def alphas(self, value: Values) -> Values:
        """α' of each list."""
        from scipy.special import ndtr

        delta = value - self.baseline
        spread = spread_of(penalised(delta, self.alpha), self.error) if self.spread is None else self.spread
        t = delta / spread if spread > 0 else np.zeros_like(delta)
        return np.asarray(self.alpha * ndtr(-t))


@dataclass(frozen=True, eq=False)
class GeoRisk:
    """GeoRisk among several baselines [baselines, lists]: mean NDCG, and how it lies beside what lists lead to expect.

    Lists that are `barren`, without a relevant document, are no topics of the matrix: an NDCG of 1 for everybody would
    lie far from what is expected of weak systems, and drown what the other lists say.

    With α = 0 this is not plain LambdaMART: lists below expectation still count more than others.
    """

    baselines: Values
    alpha: float
    barren: NDArray[np.bool_] | None = None

    def measure(self, value: Values) -> float:
        return float(geo_risk(np.vstack([self.baselines, value])[:, self._topics], self.alpha)[-1])

    def terms(self, value: Values) -> Terms:
        from shaketable.learners.lambdas import ONE_Z, Terms

        against, topics = self.baselines.sum(axis=0), self._topics
        topic, system = (against + value)[topics], float(value[topics].sum())
        total = float(topic.sum())
        own = np.zeros_like(value)
        e = expected(np.asarray(system), topic, total)
        own[topics] = penalised(standardised(value[topics], e), self.alpha)
        risk = self.measure(value)
        if risk == 0 < system:  # then so is its change, and there is nothing to learn from
            raise BadInput(f"alpha = {self.alpha} is so large that GeoRisk is 0 to the last digit; take a smaller one")
        ones, alpha = np.ones_like(value), np.full_like(value, self.alpha)
        return Terms(ONE_Z, ones, alpha, value, against, own.sum() - own, system, total, risk, len(topic))

    @cached_property
    def _topics(self) -> NDArray[np.int64]:
        """The lists that the matrix has, by number."""
        lists = self.baselines.shape[1]
        return np.arange(lists) if self.barren is None else np.flatnonzero(~self.barren)


def spread_of(penalised: Values, error: bool = False) -> float:
    """The standard deviation of penalised differences, or the error of their mean; 0 if only rounding varies."""
    if len(penalised) < 2:
        return 0.0
    deviation = float(penalised.std(ddof=1))
    if deviation <= NOISE * float(np.abs(penalised).max()):
        return 0.0
    return deviation / len(penalised) ** 0.5 if error else deviation


def _utility(value: Values, baseline: Values, alpha: Values, factor: Values | None = None, eq9: bool = False) -> Terms:
    from shaketable.learners.lambdas import EQ9, UTILITY, Terms

    factor = np.ones_like(value) if factor is None else factor
    return Terms(EQ9 if eq9 else UTILITY, factor, alpha, value, baseline, np.empty(0))


@dataclass(frozen=True, eq=False)
class Goal:
    """How a data set's lists are measured, and what is made of that."""

    ndcg: NDCG
    objective: Objective


@dataclass(frozen=True)
class LambdaMART(FeatureLearner):
    """Boosted trees on the changes of NDCG, or of a risk measure against baselines (LightGBM).

    objective     ndcg | u-cro | t-saro | t-faro | t*-faro | georisk
    alpha         how much more a loss counts than a gain
    min_docs      rows that a leaf needs; the paper has 1500 for some 600,000
    truncation    NDCG@k, of the measure and of its changes; None for whole lists
    historical    changes of NDCG as in jforests (all ranks, best DCG@50), measured NDCG at `truncation`
    early_stop    trees without a better objective on the validation queries before the end; 0 for never
    subsample     share of the queries that a tree is grown on
    columns       share of the features that a tree may use
    eq9           u-cro and t-saro by the paper's equation 9, which does not split crossings of the baseline
    spread        t-...: divide differences by their standard deviation (sd) or by its standard error (se)
    refresh       t-...: take the spread anew before each tree, not once before the first

    Early stopping and the history are by the objective's own measure: mean NDCG, URisk, TRisk or GeoRisk. A list
    without a relevant document is neither gain nor loss, and no topic of GeoRisk.
    """

    extra: ClassVar[str] = "ltr"
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {
        "leaves": range(2, 21, 2),
        "learning_rate": (0.001, 0.005, 0.01, 0.05, 0.1),
    }  # the number of trees is left to early stopping

    objective: str = "ndcg"
    alpha: float = 0.0
    trees: int = 500
    leaves: int = 50
    learning_rate: float = 0.1
    min_docs: int = 20
    truncation: int | None = 10
    historical: bool = False
    early_stop: int = 100
    subsample: float = 1.0
    columns: float = 1.0
    eq9: bool = False
    spread: str = "sd"
    refresh: bool = False

    def fit_rows(self, train: Letor, valid: Letor | None, seed: int, baselines: Baselines | None = None) -> Fit:
        """Grow trees on the training queries; keep as many as do best on the validation queries."""
        refuse_nothing_to_learn(train)
        sets = [data for data in (train, valid) if data is not None]
        goals = [self.prepared(data, baselines) for data in sets]

        def measure(at: int, scores: Values) -> float:
            return goals[at].objective.measure(goals[at].ndcg.of(scores))

        with ThreadPoolExecutor() as pool:
            parameters = self.parameters(seed) | {"objective": derivatives(goals[0], pool)}
            return grow(sets, measure, parameters, self.trees, self.early_stop)

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise UnknownName("objective", self.objective, OBJECTIVES)
        if self.spread not in ("sd", "se"):
            raise UnknownName("spread", self.spread, ("sd", "se"))
        check("lambdamart", 0 <= self.alpha < np.inf, "alpha", "a number from 0 up", self.alpha)
        if self.objective == "ndcg" and self.alpha > 0:
            raise BadInput(f"plain LambdaMART has no alpha ({self.alpha:g}); name a risk-sensitive objective with it")
        check_within("lambdamart", self, **BOUNDS)
        fine = self.truncation is None or self.truncation >= 1
        check("lambdamart", fine, "truncation", "1 or more, or None for whole lists", self.truncation)
        for name in ("learning_rate", "subsample", "columns"):
            value = getattr(self, name)
            check("lambdamart", 0 < value <= 1, name, "above 0 and not above 1", value)

    def prepared(self, data: Letor, baselines: Baselines | None = None) -> Goal:
        """What is maximised on a data set."""
        ndcg = NDCG(data, self.truncation, self.historical)
        if self.objective == "ndcg":
            return Goal(ndcg, Mean())
        if baselines is None:
            raise BadInput(f"the objective {self.objective} needs a baseline to measure risk against; name one")
        values = np.where(ndcg.barren, 1.0, baselines.values(data, ndcg))  # wherever they were measured
        return Goal(ndcg, OBJECTIVES[self.objective](self, ndcg, values))

    def parameters(self, seed: int) -> dict[str, Any]:
        """What LightGBM is told, beside the objective."""
        sampled = {"bagging_fraction": self.subsample, "bagging_freq": 1, "bagging_by_query": True}
        return {
            "num_leaves": self.leaves,
            "learning_rate": self.learning_rate,
            "min_data_in_leaf": self.min_docs,
            "min_sum_hessian_in_leaf": HESSIAN,
            "feature_fraction": self.columns,
            "seed": seed,
        } | (sampled if self.subsample < 1 else {})


def _one(how: LambdaMART, values: Values) -> Values:
    if len(values) > 1:
        many = f"{how.objective} compares with one baseline and there are {len(values)}"
        raise BadInput(f"{many}; name one, or take t*-faro or georisk")
    return np.asarray(values[0])


def _student(how: LambdaMART, ndcg: NDCG, baseline: Values, everywhere: bool) -> Objective:
    error = how.spread == "se"
    # jforests takes every list to have NDCG 0 before the first tree
    start = np.zeros_like(baseline) if how.historical else ndcg.of(np.zeros(ndcg.data.rows))
    spread = None if how.refresh else spread_of(penalised(start - baseline, how.alpha), error)
    return TRisk(baseline, how.alpha, everywhere, spread, error, how.eq9)


def _geometric(how: LambdaMART, ndcg: NDCG, values: Values) -> Objective:
    if ndcg.barren.all():
        raise BadInput("no query has a relevant document, so there is no GeoRisk to measure", ndcg.data.source or None)
    return GeoRisk(values, how.alpha, ndcg.barren)


OBJECTIVES: dict[str, Callable[[LambdaMART, NDCG, Values], Objective]] = {
    "ndcg": lambda how, ndcg, values: Mean(),
    "u-cro": lambda how, ndcg, values: URisk(_one(how, values), how.alpha, how.eq9),
    "t-saro": lambda how, ndcg, values: _student(how, ndcg, _one(how, values), everywhere=False),
    "t-faro": lambda how, ndcg, values: _student(how, ndcg, _one(how, values), everywhere=True),
    "t*-faro": lambda how, ndcg, values: _student(how, ndcg, values.mean(axis=0), everywhere=True),
    "georisk": lambda how, ndcg, values: _geometric(how, ndcg, values),
}


def derivatives(goal: Goal, pool: ThreadPoolExecutor) -> Callable[..., tuple[Values, Values]]:
    """A custom objective of LightGBM: scores of all rows -> first and second derivatives. Threads share the lists."""
    from shaketable.index.kernels import THREADS
    from shaketable.learners.lambdas import DESK, lambdas

    ndcg, data = goal.ndcg, goal.ndcg.data
    lanes = max(1, min(THREADS, data.rows // SHARE))
    edges = np.searchsorted(data.starts, np.linspace(0, data.rows, lanes + 1))
    desks = np.empty((lanes, DESK, int(data.sizes.max(initial=0))))

    def of(scores: NDArray[np.floating[Any]], _: object = None) -> tuple[Values, Values]:
        scores = np.asarray(scores, np.float64)
        order, value = ndcg.ranked(scores)
        terms = goal.objective.terms(value)
        gradient, hessian = np.empty(data.rows), np.empty(data.rows)

        def work(lane: int) -> None:
            lambdas(ndcg.lists, terms, scores, order, edges[lane], edges[lane + 1], desks[lane], gradient, hessian)

        list(pool.map(work, range(lanes)))
        return gradient, hessian

    return of

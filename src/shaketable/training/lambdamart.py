"""LambdaMART, plain and risk-sensitive: boosted trees that learn to rank without losing to baselines.

LambdaMART weighs each pair of documents with different labels by |ΔM|, the change of NDCG if the two are swapped. The
risk-sensitive objectives replace ΔM by ΔM', the change of a risk measure against one or more baselines.

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

from shaketable.core.errors import BadInput, UnknownName, check_parameter, check_ranges
from shaketable.datasets.letor import Letor
from shaketable.measures import ROUNDING_TOLERANCE
from shaketable.measures.risk import expected_scores, geo_risk, penalise_losses, standardise_scores, t_risk, u_risk
from shaketable.training.baselines import Baselines
from shaketable.training.boosted import TREE_BOUNDS, grow_trees
from shaketable.training.feature_learner import FeatureLearner, FitResult, refuse_nothing_to_learn
from shaketable.training.ndcg import NDCG

if TYPE_CHECKING:
    from shaketable.training.lambdamart_kernels import ObjectiveTerms

Values = NDArray[np.float64]

MIN_ROWS_PER_THREAD = 2000  # fewer rows do not pay for a thread
MIN_LEAF_HESSIAN = 1e-3  # the minimum of a leaf, as in LightGBM's own lambdarank


class LambdaObjective(Protocol):
    """An objective to maximise: a function of the NDCG of each list, and the effect of a change in one list."""

    def measure(self, value: Values) -> float: ...
    def compute_terms(self, value: Values) -> ObjectiveTerms: ...


@dataclass(frozen=True, eq=False)
class MeanObjective:
    """Mean NDCG: ΔM' = ΔM. A list without a relevant document counts 0."""

    without_relevant: NDArray[np.bool_] | bool = False

    def measure(self, value: Values) -> float:
        return float(np.where(self.without_relevant, 0.0, value).mean())

    def compute_terms(self, value: Values) -> ObjectiveTerms:
        return _make_utility_terms(value, value, np.zeros_like(value))


@dataclass(frozen=True, eq=False)
class URiskObjective:
    """U-CRO: URisk against one baseline, with the same α for all lists."""

    baseline: Values
    alpha: float
    eq9: bool = False

    def measure(self, value: Values) -> float:
        return float(u_risk(value, self.baseline, self.alpha))

    def compute_terms(self, value: Values) -> ObjectiveTerms:
        return _make_utility_terms(value, self.baseline, np.full_like(value, self.alpha), eq9=self.eq9)


@dataclass(frozen=True, eq=False)
class TRiskObjective:
    """T-SARO and T-FARO: TRisk against one baseline, with α'_j = [1 - Φ(δ_j / spread)] α, largest for losses.

    T-SARO replaces U-CRO's α by α'_j; T-FARO (`scale_all_changes`) multiplies all changes of list j by 1 + α'_j.
    `spread` is that of the penalised differences before the first tree, as in jforests; None computes it before each
    tree.
    """

    baseline: Values
    alpha: float
    scale_all_changes: bool
    spread: float | None
    use_standard_error: bool
    eq9: bool

    def measure(self, value: Values) -> float:
        return float(t_risk(value, self.baseline, self.alpha))

    def compute_terms(self, value: Values) -> ObjectiveTerms:
        alpha = self.compute_alphas(value)
        if self.scale_all_changes:
            return _make_utility_terms(value, self.baseline, np.zeros_like(value), factor=1 + alpha)
        return _make_utility_terms(value, self.baseline, alpha, eq9=self.eq9)

    def compute_alphas(self, value: Values) -> Values:
        """Return α' of each list."""
        from scipy.special import ndtr

        delta = value - self.baseline
        spread = (
            compute_spread(penalise_losses(delta, self.alpha), self.use_standard_error)
            if self.spread is None
            else self.spread
        )
        t = delta / spread if spread > 0 else np.zeros_like(delta)
        return np.asarray(self.alpha * ndtr(-t))


@dataclass(frozen=True, eq=False)
class GeoRiskObjective:
    """GeoRisk among several baselines [baselines, lists]: mean NDCG, and its deviation from the expected NDCG of lists.

    Lists without a relevant document are excluded from the matrix: every system has an NDCG of 1 there, which is far
    from the expected value of weak systems and would dominate the other lists.

    With α = 0 this is not plain LambdaMART: lists below expectation still count more than others.
    """

    baselines: Values
    alpha: float
    without_relevant: NDArray[np.bool_] | None = None

    def measure(self, value: Values) -> float:
        return float(geo_risk(np.vstack([self.baselines, value])[:, self._topic_numbers], self.alpha)[-1])

    def compute_terms(self, value: Values) -> ObjectiveTerms:
        from shaketable.training.lambdamart_kernels import ONE_Z, ObjectiveTerms

        against, topics = self.baselines.sum(axis=0), self._topic_numbers
        topic, system = (against + value)[topics], float(value[topics].sum())
        total = float(topic.sum())
        own = np.zeros_like(value)
        e = expected_scores(np.asarray(system), topic, total)
        own[topics] = penalise_losses(standardise_scores(value[topics], e), self.alpha)
        risk = self.measure(value)
        if risk == 0 < system:  # its change is 0 as well, so nothing can be learned
            raise BadInput(f"alpha = {self.alpha} is so large that GeoRisk is numerically 0; use a smaller one")
        ones, alpha = np.ones_like(value), np.full_like(value, self.alpha)
        return ObjectiveTerms(ONE_Z, ones, alpha, value, against, own.sum() - own, system, total, risk, len(topic))

    @cached_property
    def _topic_numbers(self) -> NDArray[np.int64]:
        """The numbers of the lists in the matrix."""
        lists = self.baselines.shape[1]
        return np.arange(lists) if self.without_relevant is None else np.flatnonzero(~self.without_relevant)


def compute_spread(penalised: Values, use_standard_error: bool = False) -> float:
    """Return the standard deviation of penalised differences, or the error of their mean; 0 if only rounding varies."""
    if len(penalised) < 2:
        return 0.0
    deviation = float(penalised.std(ddof=1))
    if deviation <= ROUNDING_TOLERANCE * float(np.abs(penalised).max()):
        return 0.0
    return deviation / len(penalised) ** 0.5 if use_standard_error else deviation


def _make_utility_terms(
    value: Values, baseline: Values, alpha: Values, factor: Values | None = None, eq9: bool = False
) -> ObjectiveTerms:
    from shaketable.training.lambdamart_kernels import EQ9, UTILITY, ObjectiveTerms

    factor = np.ones_like(value) if factor is None else factor
    return ObjectiveTerms(EQ9 if eq9 else UTILITY, factor, alpha, value, baseline, np.empty(0))


@dataclass(frozen=True, eq=False)
class ListObjective:
    """The NDCG of a data set and the objective on it."""

    ndcg: NDCG
    objective: LambdaObjective


@dataclass(frozen=True)
class LambdaMART(FeatureLearner):
    """LambdaMART: boosted trees on changes of NDCG, or of a risk measure against baselines (LightGBM).

    objective     ndcg | u-cro | t-saro | t-faro | t*-faro | georisk
    alpha         the additional weight of a loss relative to a gain
    min_docs      the least rows per leaf; the paper has 1500 for some 600,000
    truncation    the k of NDCG@k (gain 2^label - 1), for the measure and its changes; None for whole lists
    historical    changes of NDCG as in jforests (all ranks, best DCG@50), measured NDCG at `truncation`
    early_stop    trees without a better objective on the validation queries before training stops; 0 for never
    subsample     the share of the queries that a tree is grown on
    columns       the share of the features that a tree may use
    eq9           u-cro and t-saro by the paper's equation 9, which does not split crossings of the baseline
    spread        t-...: divide differences by their standard deviation (sd) or the standard error of their mean (se)
    refresh       t-...: compute the spread before each tree, not once before the first

    Early stopping and the history use the objective's own measure: mean NDCG, URisk, TRisk or GeoRisk. A list without a
    relevant document is neither gain nor loss, and no topic of GeoRisk.
    """

    extra: ClassVar[str] = "ltr"
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {
        "leaves": range(2, 21, 2),
        "learning_rate": (0.001, 0.005, 0.01, 0.05, 0.1),
    }  # early stopping chooses the number of trees

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

    def fit_rows(self, train: Letor, valid: Letor | None, seed: int, baselines: Baselines | None = None) -> FitResult:
        """Grow trees on the training queries; return the number of trees that is best on the validation queries."""
        refuse_nothing_to_learn(train)
        sets = [data for data in (train, valid) if data is not None]
        goals = [self.prepare_objective(data, baselines) for data in sets]

        def measure(at: int, scores: Values) -> float:
            return goals[at].objective.measure(goals[at].ndcg.compute(scores))

        with ThreadPoolExecutor() as pool:
            parameters = self.build_parameters(seed) | {"objective": make_lightgbm_objective(goals[0], pool)}
            name = HISTORY_MEASURES.get(self.objective, goals[0].ndcg.name)
            return grow_trees(sets, measure, name, parameters, self.trees, self.early_stop)

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVE_FACTORIES:
            raise UnknownName("objective", self.objective, OBJECTIVE_FACTORIES)
        if self.spread not in ("sd", "se"):
            raise UnknownName("spread", self.spread, ("sd", "se"))
        check_parameter("lambdamart", 0 <= self.alpha < np.inf, "alpha", "a number from 0 up", self.alpha)
        if self.objective == "ndcg" and self.alpha > 0:
            raise BadInput(f"alpha={self.alpha:g} needs a risk-sensitive objective; name one")
        check_ranges("lambdamart", self, **TREE_BOUNDS)
        fine = self.truncation is None or self.truncation >= 1
        check_parameter("lambdamart", fine, "truncation", "1 or more, or None for whole lists", self.truncation)
        for name in ("learning_rate", "subsample", "columns"):
            value = getattr(self, name)
            check_parameter("lambdamart", 0 < value <= 1, name, "above 0 and not above 1", value)

    def prepare_objective(self, data: Letor, baselines: Baselines | None = None) -> ListObjective:
        """Return the objective on a data set."""
        ndcg = NDCG(data, self.truncation, self.historical)
        if self.objective == "ndcg":
            return ListObjective(ndcg, MeanObjective(ndcg.without_relevant))
        if baselines is None:
            raise BadInput(f"the objective {self.objective} needs a baseline to measure risk against; name one")
        values = np.where(ndcg.without_relevant, 1.0, baselines.compute_ndcg(data, ndcg))
        return ListObjective(ndcg, OBJECTIVE_FACTORIES[self.objective](self, ndcg, values))

    def build_parameters(self, seed: int) -> dict[str, Any]:
        """Return the parameters of LightGBM, without the objective."""
        sampled = {"bagging_fraction": self.subsample, "bagging_freq": 1, "bagging_by_query": True}
        return {
            "num_leaves": self.leaves,
            "learning_rate": self.learning_rate,
            "min_data_in_leaf": self.min_docs,
            "min_sum_hessian_in_leaf": MIN_LEAF_HESSIAN,
            "feature_fraction": self.columns,
            "seed": seed,
        } | (sampled if self.subsample < 1 else {})


def _require_one_baseline(how: LambdaMART, values: Values) -> Values:
    if len(values) > 1:
        many = f"{how.objective} compares with one baseline and there are {len(values)}"
        raise BadInput(f"{many}; name one, or use t*-faro or georisk")
    return np.asarray(values[0])


def _make_t_risk(how: LambdaMART, ndcg: NDCG, baseline: Values, scale_all_changes: bool) -> LambdaObjective:
    error = how.spread == "se"
    # jforests assumes NDCG 0 for every list before the first tree
    start = np.zeros_like(baseline) if how.historical else ndcg.compute(np.zeros(ndcg.data.row_count))
    spread = None if how.refresh else compute_spread(penalise_losses(start - baseline, how.alpha), error)
    return TRiskObjective(baseline, how.alpha, scale_all_changes, spread, error, how.eq9)


def _make_geo_risk(how: LambdaMART, ndcg: NDCG, values: Values) -> LambdaObjective:
    if ndcg.without_relevant.all():
        raise BadInput("no query has a relevant document, so there is no GeoRisk to measure", ndcg.data.source or None)
    return GeoRiskObjective(values, how.alpha, ndcg.without_relevant)


OBJECTIVE_FACTORIES: dict[str, Callable[[LambdaMART, NDCG, Values], LambdaObjective]] = {
    "ndcg": lambda how, ndcg, values: MeanObjective(ndcg.without_relevant),
    "u-cro": lambda how, ndcg, values: URiskObjective(_require_one_baseline(how, values), how.alpha, how.eq9),
    "t-saro": lambda how, ndcg, values: _make_t_risk(
        how, ndcg, _require_one_baseline(how, values), scale_all_changes=False
    ),
    "t-faro": lambda how, ndcg, values: _make_t_risk(
        how, ndcg, _require_one_baseline(how, values), scale_all_changes=True
    ),
    "t*-faro": lambda how, ndcg, values: _make_t_risk(how, ndcg, values.mean(axis=0), scale_all_changes=True),
    "georisk": lambda how, ndcg, values: _make_geo_risk(how, ndcg, values),
}

HISTORY_MEASURES = {"u-cro": "URisk", "t-saro": "TRisk", "t-faro": "TRisk", "t*-faro": "T*Risk", "georisk": "GeoRisk"}
"""The measure in the history of each risk-sensitive objective."""


def make_lightgbm_objective(goal: ListObjective, pool: ThreadPoolExecutor) -> Callable[..., tuple[Values, Values]]:
    """Return a custom objective of LightGBM: scores of all rows -> first and second derivatives."""
    from shaketable.retrieval.kernels import NUMBA_THREADS
    from shaketable.training.lambdamart_kernels import SCRATCH_ROWS, compute_lambdas

    ndcg, data = goal.ndcg, goal.ndcg.data
    lanes = max(1, min(NUMBA_THREADS, data.row_count // MIN_ROWS_PER_THREAD))
    edges = np.searchsorted(data.starts, np.linspace(0, data.row_count, lanes + 1))
    desks = np.empty((lanes, SCRATCH_ROWS, int(data.list_sizes.max(initial=0))))

    def of(scores: NDArray[np.floating[Any]], _: object = None) -> tuple[Values, Values]:
        scores = np.asarray(scores, np.float64)
        order, value = ndcg.rank(scores)
        terms = goal.objective.compute_terms(value)
        gradient, hessian = np.empty(data.row_count), np.empty(data.row_count)

        def work(lane: int) -> None:
            compute_lambdas(
                ndcg.graded_lists, terms, scores, order, edges[lane], edges[lane + 1], desks[lane], gradient, hessian
            )

        list(pool.map(work, range(lanes)))
        return gradient, hessian

    return of

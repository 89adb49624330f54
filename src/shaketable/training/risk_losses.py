"""Risk-sensitive objectives of nets: URisk and GeoRisk of a differentiable NDCG against baselines.

LambdaMART has the same objectives (`training.lambdamart`); `measures.risk` has the formulas of both. The topics of the
measure are the lists of a step, and a baseline's value is its NDCG on the same list (`list_sources.BaselineLists`). As
with LambdaMART, the weights that are best by the risk measure on the validation queries are kept.

Dinçer, Macdonald, Ounis. Risk-sensitive evaluation and learning to rank using multiple baselines. SIGIR 2016.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shaketable.core.documents import Scores, Slate
from shaketable.core.errors import BadInput, check_parameter
from shaketable.core.registries import OBJECTIVES
from shaketable.measures.risk import geo_risk, geo_risk_slope, u_risk, u_risk_slope
from shaketable.rankers.neural.net import Net
from shaketable.training.baselines import BaselineScorer
from shaketable.training.list_sources import Sample
from shaketable.training.loop import QueryValidation
from shaketable.training.losses import score_samples

Values = NDArray[np.float64]
BASELINE_NAME = "baseline"


def approx_ndcg(scores: Tensor, labels: Tensor, kept: Tensor, temperature: float = 0.1) -> Tensor:
    """Return the NDCG of whole lists with differentiable ranks: [lists, texts] -> [lists].

        rank_i = 1 + Σ_{j ≠ i} sigmoid((s_j - s_i) / temperature)

    A lower temperature is closer to NDCG, but fewer pairs have a gradient. The value is 0 if no text is relevant.

    Qin, Liu, Li. A general approximation framework for direct optimization of information retrieval measures.
    Information Retrieval 2010 (ApproxNDCG; their α is 1 / temperature).
    """
    gains = (2**labels - 1).masked_fill(~kept, 0.0)
    others = kept[:, None, :] & ~torch.eye(scores.shape[1], dtype=torch.bool, device=scores.device)
    before = torch.sigmoid((scores[:, None, :] - scores[:, :, None]) / temperature)
    ranks = 1 + before.masked_fill(~others, 0.0).sum(2)
    places = torch.arange(1, scores.shape[1] + 1, dtype=scores.dtype, device=scores.device)
    best = (gains.sort(1, descending=True).values / torch.log2(1 + places)).sum(1)
    return (gains / torch.log2(1 + ranks)).sum(1) / best.clamp(min=1e-9)


@dataclass(frozen=True)
class RiskLoss(ABC):
    """Base class of the risk objectives: a loss whose gradient is that of the risk measure.

    A list without a relevant text is neither gain nor loss, and no topic.
    """

    alpha: float = 1.0
    temperature: float = 0.1

    def __post_init__(self) -> None:
        check_parameter(self.name, 0 <= self.alpha < float("inf"), "alpha", "a number from 0 up", self.alpha)
        check_parameter(
            self.name, 0 < self.temperature < float("inf"), "temperature", "a number above 0", self.temperature
        )

    def __call__(self, net: Net, samples: Sequence[Sample]) -> Tensor:
        for sample in samples:
            self.refuse_baseline_count(len(sample.baseline_ndcg))
        scores, labels, kept = score_samples(net, samples)
        telling = labels.masked_fill(~kept, 0.0).amax(1) > 0
        if not telling.any():
            return scores.sum() * 0
        baselines = np.array([sample.baseline_ndcg for sample in samples]).T[:, telling.cpu().numpy()]
        return self.loss(approx_ndcg(scores, labels, kept, self.temperature)[telling], baselines)

    def loss(self, values: Tensor, baselines: Values) -> Tensor:
        """Return the negative risk measure of values [lists] against those of baselines [baselines, lists]."""
        reached = values.detach().cpu().double().numpy()
        slope = torch.as_tensor(self.compute_slope(reached, baselines), dtype=values.dtype, device=values.device)
        # the added term is 0 and carries the gradient
        return -self.compute_risk(reached, baselines) - (slope * (values - values.detach())).sum()

    def make_validation(self, validation: QueryValidation, baselines: Sequence[BaselineScorer]) -> RiskValidation:
        """Return a validation by the risk measure against the values of the baselines on the validation queries."""
        self.refuse_baseline_count(len(baselines))
        reached = [validation.measure_scores(BASELINE_NAME, partial(_score_slates, rival)) for rival in baselines]
        return RiskValidation(validation, self, np.stack(reached))

    def refuse_baseline_count(self, baselines: int) -> None:
        """Raise an error if there is no baseline, or more baselines than the measure takes."""
        if not baselines:
            raise BadInput(
                f"the objective {self.name} needs a baseline to measure risk against; name one, such as bm25"
            )

    @property
    def name(self) -> str:
        return OBJECTIVES.get_name(self)

    @abstractmethod
    def compute_risk(self, values: Values, baselines: Values) -> float:
        """Return the risk measure of values [queries] against those of baselines [baselines, queries]."""

    @abstractmethod
    def compute_slope(self, values: Values, baselines: Values) -> Values:
        """Return the derivative of the risk measure by the value of each query."""


@dataclass(frozen=True)
class URiskLoss(RiskLoss):
    """URisk against one baseline: the mean difference of NDCG, with losses multiplied by 1 + α.

    Wang, Bennett, Collins-Thompson. Robust ranking models via risk-sensitive optimization. SIGIR 2012.
    """

    def refuse_baseline_count(self, baselines: int) -> None:
        super().refuse_baseline_count(baselines)
        if baselines > 1:
            raise BadInput(f"urisk compares with one baseline and there are {baselines}; name one, or use georisk")

    def compute_risk(self, values: Values, baselines: Values) -> float:
        return float(u_risk(values, baselines[0], self.alpha))

    def compute_slope(self, values: Values, baselines: Values) -> Values:
        return u_risk_slope(values, baselines[0], self.alpha)


@dataclass(frozen=True)
class GeoRiskLoss(RiskLoss):
    """GeoRisk among baselines: √(mean NDCG · Φ(ZRisk / lists)), where the baselines' values are constants.

    With α = 0 this is not plain NDCG: lists below expectation still count more than others.
    """

    def compute_risk(self, values: Values, baselines: Values) -> float:
        return float(geo_risk(np.vstack([baselines, values]), self.alpha)[-1])

    def compute_slope(self, values: Values, baselines: Values) -> Values:
        if self.compute_risk(values, baselines) == 0:
            raise BadInput(f"alpha = {self.alpha} is so large that GeoRisk is numerically 0; use a smaller one")
        return geo_risk_slope(np.vstack([baselines, values]), self.alpha)


@dataclass(frozen=True, eq=False)
class RiskValidation:
    """Validation by a risk measure of the net's values against those of baselines."""

    validation: QueryValidation
    objective: RiskLoss
    baseline_values: Values

    @property
    def measure(self) -> str:
        """The name of the measure, for the card."""
        return f"{self.objective.name} of {self.validation.measure}"

    def __call__(self, net: Net) -> float:
        return self.objective.compute_risk(self.validation.measure_net(net), self.baseline_values)


def _score_slates(rival: BaselineScorer, qids: list[str], slates: list[Slate]) -> list[Scores]:
    return [rival(qid, slate) for qid, slate in zip(qids, slates, strict=True)]

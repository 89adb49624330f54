"""Objectives of nets that should not lose to baselines: URisk and GeoRisk of an NDCG that has a gradient.

LambdaMART has the same objectives (`learners.lambdamart`); the mathematics of both is in `measure.risk`. The topics of
the measure are the lists of a step, and a baseline's value is its NDCG on the very same list (`samples.Compared`). As
with LambdaMART, the net that is kept is the one that does best by the risk measure on the validation queries.

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

from shaketable.errors import BadInput, check
from shaketable.learners.baselines import Rival
from shaketable.learners.loop import Validation
from shaketable.learners.losses import scored
from shaketable.learners.samples import Sample
from shaketable.measure.risk import geo_risk, geo_risk_slope, u_risk, u_risk_slope
from shaketable.rankers.nets.net import Net
from shaketable.types import Scores, Slate

Values = NDArray[np.float64]
BASELINE = "baseline"


def approx_ndcg(scores: Tensor, labels: Tensor, kept: Tensor, temperature: float = 0.1) -> Tensor:
    """NDCG of whole lists with ranks that have a gradient: [lists, texts] -> [lists].

        rank_i = 1 + Σ_{j ≠ i} sigmoid((s_j - s_i) / temperature)

    The lower the temperature, the nearer to NDCG, and the fewer pairs have a gradient. 0 where nothing is relevant.

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
class OnRisk(ABC):
    """What the objectives share: the lists that count, and a loss whose gradient is that of the risk measure.

    A list without a relevant text is neither gain nor loss, and no topic.
    """

    alpha: float = 1.0
    temperature: float = 0.1

    def __post_init__(self) -> None:
        check(self.name, 0 <= self.alpha < float("inf"), "alpha", "a number from 0 up", self.alpha)
        check(self.name, 0 < self.temperature < float("inf"), "temperature", "a number above 0", self.temperature)

    def __call__(self, net: Net, samples: Sequence[Sample]) -> Tensor:
        for sample in samples:
            self.refuse_number(len(sample.baselines))
        scores, labels, kept = scored(net, samples)
        telling = labels.masked_fill(~kept, 0.0).amax(1) > 0
        if not telling.any():
            return scores.sum() * 0
        baselines = np.array([sample.baselines for sample in samples]).T[:, telling.cpu().numpy()]
        return self.loss(approx_ndcg(scores, labels, kept, self.temperature)[telling], baselines)

    def loss(self, values: Tensor, baselines: Values) -> Tensor:
        """The risk measure, negative, of the values of lists [lists] against those of baselines [baselines, lists]."""
        reached = values.detach().cpu().double().numpy()
        slope = torch.as_tensor(self.slope(reached, baselines), dtype=values.dtype, device=values.device)
        # what is added is 0, and has the gradient
        return -self.risk(reached, baselines) - (slope * (values - values.detach())).sum()

    def examination(self, validation: Validation, rivals: Sequence[Rival]) -> Examination:
        """What a net is validated by: the risk measure of the validation's own, against what the rivals reach there."""
        self.refuse_number(len(rivals))
        reached = [validation.reached(BASELINE, partial(_scored, rival)) for rival in rivals]
        return Examination(validation, self, np.stack(reached))

    def refuse_number(self, baselines: int) -> None:
        """Refuse to measure risk against nobody, or against more than the measure takes."""
        if not baselines:
            raise BadInput(
                f"the objective {self.name} needs a baseline to measure risk against; name one, such as bm25"
            )

    @property
    def name(self) -> str:
        return type(self).__name__.lower()

    @abstractmethod
    def risk(self, values: Values, baselines: Values) -> float:
        """The risk measure of values [queries] against those of baselines [baselines, queries]."""

    @abstractmethod
    def slope(self, values: Values, baselines: Values) -> Values:
        """Its derivative by the value of each query."""


@dataclass(frozen=True)
class URisk(OnRisk):
    """URisk against one baseline: the mean difference of NDCG, losses counted 1 + α fold.

    Wang, Bennett, Collins-Thompson. Robust ranking models via risk-sensitive optimization. SIGIR 2012.
    """

    def refuse_number(self, baselines: int) -> None:
        super().refuse_number(baselines)
        if baselines > 1:
            raise BadInput(f"urisk compares with one baseline and there are {baselines}; name one, or take georisk")

    def risk(self, values: Values, baselines: Values) -> float:
        return float(u_risk(values, baselines[0], self.alpha))

    def slope(self, values: Values, baselines: Values) -> Values:
        return u_risk_slope(values, baselines[0], self.alpha)


@dataclass(frozen=True)
class GeoRisk(OnRisk):
    """GeoRisk among baselines: √(mean NDCG · Φ(ZRisk / lists)), the baselines' values being constants.

    With α = 0 this is not plain NDCG: lists below expectation still count more than others.
    """

    def risk(self, values: Values, baselines: Values) -> float:
        return float(geo_risk(np.vstack([baselines, values]), self.alpha)[-1])

    def slope(self, values: Values, baselines: Values) -> Values:
        if self.risk(values, baselines) == 0:
            raise BadInput(f"alpha = {self.alpha} is so large that GeoRisk is 0 to the last digit; take a smaller one")
        return geo_risk_slope(np.vstack([baselines, values]), self.alpha)


@dataclass(frozen=True, eq=False)
class Examination:
    """Validation by a risk measure: the values of the net's lists against those that baselines reached."""

    validation: Validation
    objective: OnRisk
    reached: Values

    @property
    def measure(self) -> str:
        """Its name, for the card."""
        return f"{self.objective.name} of {self.validation.measure}"

    def __call__(self, net: Net) -> float:
        return self.objective.risk(self.validation.values(net), self.reached)


def _scored(rival: Rival, qids: list[str], slates: list[Slate]) -> list[Scores]:
    return [rival(qid, slate) for qid, slate in zip(qids, slates, strict=True)]

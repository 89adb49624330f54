"""Objectives of nets: `objective(net, samples)` returns a loss on lists of labelled texts.

The objectives of this module depend only on scores and labels. An objective that needs more of the net, for example
its gradients, is any other function of a net and samples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import relu, softplus

from shaketable.rankers.neural.net import Net
from shaketable.training.list_sources import Sample


class Objective(Protocol):
    """A loss to minimise."""

    def __call__(self, net: Net, samples: Sequence[Sample]) -> Tensor: ...


def score_samples(net: Net, samples: Sequence[Sample]) -> tuple[Tensor, Tensor, Tensor]:
    """Return scores, labels and a mask without padding, [lists, texts] each; all pairs are scored in one batch."""
    pairs = [(sample.query, text) for sample in samples for text in sample.texts]
    device = next(net.parameters()).device
    flat = net(**{key: tensor.to(device) for key, tensor in net.collate(net.prepare(pairs)).items()})
    sizes = torch.tensor([len(sample.texts) for sample in samples], device=device)
    kept = torch.arange(int(sizes.max()), device=device) < sizes[:, None]
    labels = torch.tensor([label for sample in samples for label in sample.labels], device=device)
    blank = torch.zeros(kept.shape, device=device)
    return blank.masked_scatter(kept, flat), blank.masked_scatter(kept, labels), kept


class ScoreLoss(ABC):
    """An objective of scores and labels: the mean of `loss` over lists."""

    def __call__(self, net: Net, samples: Sequence[Sample]) -> Tensor:
        return self.loss(*score_samples(net, samples)).mean()

    @abstractmethod
    def loss(self, scores: Tensor, labels: Tensor, kept: Tensor) -> Tensor:
        """Return the loss of each list: [lists, texts] -> [lists]."""


@dataclass(frozen=True)
class HingeLoss(ScoreLoss):
    """Pairwise hinge: the better text's score is higher by a margin.

    Mean of max(0, margin - (s_i - s_j)) over pairs with y_i > y_j.
    """

    margin: float = 1.0

    def loss(self, scores: Tensor, labels: Tensor, kept: Tensor) -> Tensor:
        return _masked_mean(relu(self.margin - _differences(scores)), _mask_better_pairs(labels, kept), 2)


@dataclass(frozen=True)
class RankNetLoss(ScoreLoss):
    """Pairwise softmax: the better text of each pair is more likely (RankNet, Burges et al. 2005).

    Mean of -log softmax(s_i, s_j)_i = log(1 + exp(-(s_i - s_j))) over pairs with y_i > y_j.
    """

    def loss(self, scores: Tensor, labels: Tensor, kept: Tensor) -> Tensor:
        return _masked_mean(softplus(-_differences(scores)), _mask_better_pairs(labels, kept), 2)


@dataclass(frozen=True)
class BCELoss(ScoreLoss):
    """Pointwise cross-entropy: sigmoid(score) is the probability that a text is relevant.

    A text is relevant if its label is at least `count_relevant`. If a score is the difference of two logits, this is
    the two-way cross-entropy of monoBERT.
    """

    relevant: float = 1.0

    def loss(self, scores: Tensor, labels: Tensor, kept: Tensor) -> Tensor:
        return _masked_mean(softplus(torch.where(labels >= self.relevant, -scores, scores)), kept, 1)


@dataclass(frozen=True)
class LikelihoodLoss(ScoreLoss):
    """Pointwise cross-entropy of scores that are ln p(relevant), such as those of monoT5.

    -s for a text whose label is at least `count_relevant`, -ln(1 - exp(s)) for any other.
    """

    relevant: float = 1.0

    def loss(self, scores: Tensor, labels: Tensor, kept: Tensor) -> Tensor:
        near, far = scores.clamp(-0.5, -1e-30), scores.clamp(max=-0.5)  # each form of ln(1 - exp(s)) where it is exact
        otherwise = torch.where(scores > -0.5, (-near.expm1()).log(), (-far.exp()).log1p())
        return _masked_mean(torch.where(labels >= self.relevant, -scores, -otherwise), kept, 1)


@dataclass(frozen=True)
class SoftmaxLoss(ScoreLoss):
    """Listwise softmax: the best text of a list is the most likely.

    -log softmax(s / temperature)_i, averaged over the texts i with the highest label. Scores that are cosines need a
    low temperature, because they lie close together.
    """

    temperature: float = 1.0

    def loss(self, scores: Tensor, labels: Tensor, kept: Tensor) -> Tensor:
        likely = (scores / self.temperature).masked_fill(~kept, float("-inf")).log_softmax(1)
        best = labels.masked_fill(~kept, float("-inf"))
        return _masked_mean(-likely, best == best.amax(1, keepdim=True), 1)


@dataclass(frozen=True)
class ListMLELoss(ScoreLoss):
    """Listwise likelihood of the true order (ListMLE, Xia et al. 2008).

    -Σ_i log(exp(s_i) / Σ_{j ≥ i} exp(s_j)), texts by label, best first. Texts with the same label keep the order of the
    list, which is random.
    """

    def loss(self, scores: Tensor, labels: Tensor, kept: Tensor) -> Tensor:
        order = labels.masked_fill(~kept, float("-inf")).sort(dim=1, descending=True, stable=True).indices
        scores, kept = scores.gather(1, order), kept.gather(1, order)
        hidden = scores.masked_fill(~kept, -1e9)  # not -inf, whose log-sum-exp has no gradient
        remaining = hidden.flip(1).logcumsumexp(1).flip(1)  # log Σ_{j ≥ i} exp(s_j)
        return (remaining - scores).masked_fill(~kept, 0.0).sum(1)


@dataclass(frozen=True)
class LambdaLoss(ScoreLoss):
    """A bound on NDCG: a pair's weight is the change of NDCG if it is swapped (LambdaLoss, Wang et al. 2018).

        Σ_{y_i > y_j} (ρ_ij + μ δ_ij) |G_i - G_j| log2(1 + exp(-(s_i - s_j)))
        ρ_ij = |1/D(i) - 1/D(j)|,  δ_ij = |1/D(|i-j|) - 1/D(|i-j| + 1)|,  D(r) = log2(1 + r)

    with ranks by score and gains G = (2^y - 1) / max DCG. This is NDCG-Loss2++; with mu=0 it is LambdaRank.
    """

    mu: float = 10.0

    def loss(self, scores: Tensor, labels: Tensor, kept: Tensor) -> Tensor:
        gains = (2**labels - 1).masked_fill(~kept, 0.0)
        places = torch.arange(1, scores.shape[1] + 1, device=scores.device)
        most = (gains.sort(1, descending=True).values / torch.log2(1.0 + places)).sum(1, keepdim=True)
        gains = gains / most.clamp(min=1e-9)
        order = scores.detach().masked_fill(~kept, float("-inf")).argsort(dim=1, descending=True, stable=True)
        ranks = torch.empty_like(order).scatter_(1, order, places.expand_as(order))
        apart = _differences(ranks).abs().clamp(min=1)
        rho = _differences(1 / torch.log2(1.0 + ranks)).abs()
        delta = 1 / torch.log2(1.0 + apart) - 1 / torch.log2(2.0 + apart)
        weights = (rho + self.mu * delta) * _differences(gains).abs() * _mask_better_pairs(labels, kept)
        return (weights * softplus(-_differences(scores)) / torch.log(torch.tensor(2.0))).sum((1, 2))


@dataclass(frozen=True)
class MarginMSELoss(ScoreLoss):
    """Distillation: the net learns the teacher's margins between texts (Hofstätter et al. 2020).

    Mean of ((s_i - s_j) - (t_i - t_j))² over the pairs of a list; labels are the teacher's scores t.
    """

    def loss(self, scores: Tensor, labels: Tensor, kept: Tensor) -> Tensor:
        pairs = (kept[:, :, None] & kept[:, None, :]).triu(1)
        return _masked_mean((_differences(scores) - _differences(labels)) ** 2, pairs, 2)


def _differences(values: Tensor) -> Tensor:
    """Return v_i - v_j: [lists, i, j]."""
    return values[:, :, None] - values[:, None, :]


def _mask_better_pairs(labels: Tensor, kept: Tensor) -> Tensor:
    """Return True where text i is better than text j: [lists, i, j]."""
    return (_differences(labels) > 0) & kept[:, :, None] & kept[:, None, :]


def _masked_mean(values: Tensor, which: Tensor, dims: int) -> Tensor:
    """Return the mean of the selected values over the last dimensions; 0 if none is selected."""
    over = tuple(range(-dims, 0))
    return values.masked_fill(~which, 0.0).sum(over) / which.sum(over).clamp(min=1)

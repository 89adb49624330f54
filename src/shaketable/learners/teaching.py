"""A net that is its own teacher: what it makes of a query is what it should make of the query with a slip in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from shaketable.errors import BadInput, check
from shaketable.learners.losses import Objective, OnScores, scored
from shaketable.learners.neural import OBJECTIVES
from shaketable.learners.samples import Sample
from shaketable.rankers.nets.net import Net


@dataclass(frozen=True)
class SelfTeaching:
    """Self-teaching: a list under another way to write its query has the score distribution of the list as it is.

        natural(lists) + weight · mean over lists of KL(p ‖ p'),   p = softmax(s / temperature) over the texts of a list

    s are the scores under the query, s' those under its variant, which p' is of. p is a constant: the query teaches the
    variant, never the other way round. A list without a variant adds 0. Scores that are cosines need a low temperature.

    Zhuang, Zuccon. CharacterBERT and self-teaching for improving the robustness of dense retrievers on queries with
    typos. SIGIR 2022.
    """

    natural: str = "softmax"
    weight: float = 1.0
    temperature: float = 1.0

    def __post_init__(self) -> None:
        check("self_teaching", 0 < self.weight < float("inf"), "weight", "a number above 0", self.weight)
        fine = 0 < self.temperature < float("inf")
        check("self_teaching", fine, "temperature", "a number above 0", self.temperature)
        _ = self._natural  # which refuses what is no objective

    @cached_property
    def _natural(self) -> Objective:
        natural: Objective = OBJECTIVES.build(self.natural)
        return natural

    def __call__(self, net: Net, samples: Sequence[Sample]) -> Tensor:
        if any(sample.variant is None for sample in samples):
            raise BadInput("self_teaching needs lists with a second way to write the query; varied_queries has them")
        natural = self._natural
        if isinstance(natural, OnScores):
            scores, labels, kept = scored(net, samples)
            loss = natural.loss(scores, labels, kept).mean()
        else:
            loss = natural(net, samples)
            with torch.no_grad():
                scores, _, kept = scored(net, samples)
        rows = [i for i, sample in enumerate(samples) if sample.variant != sample.query]
        if not rows:
            return loss
        varied, _, there = scored(net, [replace(samples[i], query=samples[i].variant or "") for i in rows])
        taught = self._likely(scores.detach()[rows, : there.shape[1]], there)
        apart = taught.exp() * (taught - self._likely(varied, there))
        return loss + self.weight * apart.masked_fill(~there, 0.0).sum() / len(samples)

    def _likely(self, scores: Tensor, kept: Tensor) -> Tensor:
        """ln p of each text; padding has as good as none."""
        return (scores / self.temperature).masked_fill(~kept, -1e9).log_softmax(1)

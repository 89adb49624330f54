"""Typo training: some queries are misspelled, and the ranker learns the ranking of the correctly spelled query.

Zhuang, Zuccon. CharacterBERT and self-teaching for improving the robustness of dense retrievers on queries with typos.
SIGIR 2022 (self-teaching). The same. Dealing with typos for BERT-based passage retrieval and ranking. EMNLP 2021 (data
augmentation, half of all queries).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from shaketable.core.documents import Qrels
from shaketable.core.errors import BadInput, check_parameter
from shaketable.core.protocols import Transform, TransformContext
from shaketable.core.registries import OBJECTIVES, TRANSFORMS
from shaketable.core.seeding import make_item_rng
from shaketable.training.list_sources import Sample, SampleSource
from shaketable.training.plan import JudgementSource, ListSource, TextListSource, TrainingData, TrainingPlan
from shaketable.transforms.vary import normalise_query, refuse_document_transform

if TYPE_CHECKING:
    from torch import Tensor

    from shaketable.rankers.neural.net import Net
    from shaketable.training.losses import Objective

TYPO_TRANSFORMS = ("neighb_char_swap", "random_char_sub", "qwerty_char_sub", "drop_letter", "double_letter")
"""The misspellings that Zhuang and Zuccon train with: letters swapped, replaced, left out and added."""


@dataclass(frozen=True)
class TypoTraining:
    """Typo training: varies the query of a share of the lists, for instance with a misspelling.

    transforms    the transforms that vary queries, from `registries.TRANSFORMS`; not only misspellings
    share         the share of lists whose query varies
    teach         the order of a list under the query teaches its order under the variant (self_teaching, at `weight`
                  and `temperature`); without it, the variant replaces the query (data augmentation)

    The loss of the original queries is the objective of the plan, or softmax if the plan names none. Start from the
    plan of a learner, which has its own objective.
    """

    transforms: tuple[str, ...] = TYPO_TRANSFORMS
    share: float = 0.5
    teach: bool = True
    weight: float = 1.0
    temperature: float = 1.0

    def __post_init__(self) -> None:
        VariedQuerySource(transforms=self.transforms, share=self.share)  # validates both
        _check_positive("typos", weight=self.weight, temperature=self.temperature)

    def plan(self, plan: TrainingPlan, adversaries: Callable[[], Path]) -> TrainingPlan:
        lists = VariedQuerySource(plan.lists, self.transforms, self.share, instead=not self.teach)
        if not self.teach:
            return replace(plan, lists=lists)
        settings = f"natural={plan.objective or 'softmax'!r}, weight={self.weight!r}, temperature={self.temperature!r}"
        return replace(plan, lists=lists, objective=f"self_teaching({settings})")


def _check_positive(owner: str, **numbers: float) -> None:
    for name, value in numbers.items():
        check_parameter(owner, 0 < value < float("inf"), name, "a number above 0", value)


@dataclass(frozen=True)
class VariedQuerySource(TextListSource):
    """Lists of another source, a share of them with a variant of the query.

    transforms  transforms that write the variant, from `registries.TRANSFORMS`: one per list, drawn in each pass
    share       the share of lists with a variant
    instead     the variant replaces the query, as in data augmentation; otherwise it is added to the sample, for an
                objective such as self_teaching
    """

    text_only_reason: ClassVar[str] = (
        "learners from features use precomputed rows, so varied queries are for neural nets only"
    )

    lists: ListSource = field(default_factory=JudgementSource)
    transforms: tuple[str, ...] = TYPO_TRANSFORMS
    share: float = 0.5
    instead: bool = False

    def __post_init__(self) -> None:
        check_parameter("varied_queries", bool(self.transforms), "transforms", "one transform or more", self.transforms)
        check_parameter("varied_queries", 0 < self.share <= 1, "share", "above 0 and not above 1", self.share)
        for transform in map(TRANSFORMS.build, self.transforms):
            refuse_document_transform(transform)

    def open_samples(self, training_data: TrainingData, size: int) -> tuple[SampleSource, Qrels]:
        source, qrels = self.lists.open_samples(training_data, size)
        transforms = list(map(TRANSFORMS.build, self.transforms))
        return VariedLists(source, transforms, self.share, self.instead, training_data.seed), qrels


@dataclass(frozen=True, eq=False)
class VariedLists:
    """The lists of another source, a share of them with a variant of the query.

    The variant is added to the sample, or replaces the query (`replace_query`). The transform and its changes depend on
    the seed, the query and the pass, so each pass has other misspellings. If no transform applies, the query stays.
    """

    source: SampleSource
    transforms: Sequence[Transform]
    share: float = 0.5
    replace_query: bool = False
    seed: int = 0

    def __len__(self) -> int:
        return len(self.source)

    def draw(self, number: int, turn: int) -> Sample:
        sample = self.source.draw(number, turn)
        text = self._draw_variant(sample, turn)
        return replace(sample, query=text) if self.replace_query else replace(sample, query_variant=text)

    def _draw_variant(self, sample: Sample, turn: int) -> str:
        rng = make_item_rng(self.seed, "variant", sample.name, turn)
        if rng.random() < self.share:
            query = normalise_query(sample.query, lower=False)
            for transform in rng.permutation(self.transforms):
                if (changed := transform.apply(query, rng, TransformContext(query))) is not None:
                    return changed
        return sample.query


@dataclass(frozen=True)
class SelfTeachingLoss:
    """Self-teaching: a list under a variant of its query learns the score distribution of the list under the query.

        natural(lists) + weight · mean over lists of KL(p ‖ p'),   p = softmax(s / temperature) over the texts of a list

    s are the scores under the query, s' the scores under its variant, and p' is the distribution of s'. p is a
    constant: the query teaches the variant, never the reverse. A list without a variant adds 0. Scores that are cosines
    need a low temperature.
    """

    natural: str = "softmax"
    weight: float = 1.0
    temperature: float = 1.0

    def __post_init__(self) -> None:
        _check_positive("self_teaching", weight=self.weight, temperature=self.temperature)
        _ = self._natural_objective  # raises an error if the text names no objective

    @cached_property
    def _natural_objective(self) -> Objective:
        natural: Objective = OBJECTIVES.build(self.natural)
        return natural

    def __call__(self, net: Net, samples: Sequence[Sample]) -> Tensor:
        import torch

        from shaketable.training.losses import ScoreLoss, score_samples

        if any(sample.query_variant is None for sample in samples):
            raise BadInput("self_teaching needs lists with a variation of the query; use the source varied_queries")
        natural = self._natural_objective
        if isinstance(natural, ScoreLoss):
            scores, labels, kept = score_samples(net, samples)
            loss = natural.loss(scores, labels, kept).mean()
        else:
            loss = natural(net, samples)
            with torch.no_grad():
                scores, _, kept = score_samples(net, samples)
        rows = [i for i, sample in enumerate(samples) if sample.query_variant != sample.query]
        if not rows:
            return loss
        varied, _, there = score_samples(net, [replace(samples[i], query=samples[i].query_variant or "") for i in rows])
        taught = self._log_probs(scores.detach()[rows, : there.shape[1]], there)
        apart = taught.exp() * (taught - self._log_probs(varied, there))
        return loss + self.weight * apart.masked_fill(~there, 0.0).sum() / len(samples)

    def _log_probs(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Return ln p of each text; padding has almost no probability."""
        return (scores / self.temperature).masked_fill(~mask, -1e9).log_softmax(1)

"""Adversarial training: attacked documents as negatives of additional training lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from shaketable.core.documents import Qrels
from shaketable.core.errors import BadInput
from shaketable.core.seeding import make_item_rng
from shaketable.defences.adversarial_examples import ExampleBasedDefence, read_adversarial_examples
from shaketable.defences.data_augmentation import AugmentedSource
from shaketable.training.list_sources import Sample, SampleSource
from shaketable.training.plan import (
    JudgementSource,
    ListSource,
    TextListSource,
    TrainingData,
    TrainingPlan,
    list_files,
)


@dataclass(frozen=True, kw_only=True)
class AdversarialTraining(ExampleBasedDefence):
    """Adversarial training: adds for each list one with its best text and attacked documents as negatives."""

    def plan(self, plan: TrainingPlan, adversaries: Callable[[], Path]) -> TrainingPlan:
        return replace(plan, lists=AdversarialSource(plan.lists, path=str(adversaries())))


@dataclass(frozen=True)
class AdversarialSource(TextListSource):
    """The lists of another source and, for each, a second list: its best text with attacked documents as negatives.

    `path` is a file of attacked documents, which still count as not relevant. A query without attacked documents in the
    file gets no such list. Attacked documents that are relevant are excluded.
    """

    lists: ListSource = field(default_factory=JudgementSource)
    path: str = field(
        kw_only=True, metadata={"says": "The file of attacked documents.", "example": "adversarial.jsonl"}
    )

    @property
    def files(self) -> tuple[Path, ...]:
        return (*list_files(self.lists), Path(self.path))

    def open_samples(self, training_data: TrainingData, size: int) -> tuple[SampleSource, Qrels]:
        if not isinstance(self.lists, JudgementSource | AugmentedSource):
            raise BadInput("attacked documents count as not relevant, so this defence needs lists made from judgements")
        source, qrels = self.lists.open_samples(training_data, size)
        grades = training_data.collection.qrels
        examples = read_adversarial_examples(Path(self.path), training_data.collection, training_data.train)
        attacked = {
            qid: texts
            for qid, some in examples.items()
            if (texts := [one.doc.text for one in some if grades.get(qid, {}).get(one.docno, 0) <= 0])
        }
        numbers = [number for number in range(len(source)) if source.draw(number, 0).name in attacked]
        if not numbers:
            raise BadInput("has no attacked document that is not relevant for any of the lists", self.path)
        return AdversarialLists(source, attacked, numbers, size, training_data.seed), qrels


@dataclass(frozen=True, eq=False)
class AdversarialLists:
    """The lists of another source, then lists with attacked documents for some of its numbers."""

    source: SampleSource
    attacked_texts: Mapping[str, Sequence[str]]
    numbers_with_attacked: Sequence[int]
    size: int = 7
    seed: int = 0

    def __len__(self) -> int:
        return len(self.source) + len(self.numbers_with_attacked)

    def draw(self, number: int, turn: int) -> Sample:
        if number < len(self.source):
            return self.source.draw(number, turn)
        at = self.numbers_with_attacked[number - len(self.source)]
        sample = self.source.draw(at, turn)
        rng = make_item_rng(self.seed, "attacked list", at, sample.name, turn)
        best = max(range(len(sample.labels)), key=sample.labels.__getitem__)
        texts = {sample.texts[best]: sample.labels[best]}
        for text in rng.permutation(self.attacked_texts[sample.name])[: self.size - 1]:
            texts.setdefault(text, 0.0)
        order = rng.permutation(list(texts))
        return replace(sample, texts=tuple(order), labels=tuple(texts[text] for text in order))

"""Data augmentation: copies of all training lists whose texts have some words replaced by synonyms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path

from shaketable.core.documents import Qrels
from shaketable.core.errors import BadInput, check_ranges
from shaketable.core.registries import OBJECTIVES, SYNONYMS
from shaketable.core.seeding import make_item_rng
from shaketable.defences.adversarial_examples import ExampleBasedDefence, read_adversarial_examples
from shaketable.measures.text_change import count_changed_words
from shaketable.nlp.synonyms import SynonymSource
from shaketable.training.list_sources import Sample, SampleSource
from shaketable.training.plan import (
    JudgementSource,
    ListSource,
    TextListSource,
    TrainingData,
    TrainingPlan,
    list_files,
)
from shaketable.transforms.synonyms import substitute_synonyms

MAX_CACHED_COPIES = 100_000


@dataclass(frozen=True, kw_only=True)
class DataAugmentation(ExampleBasedDefence):
    """Data augmentation: adds copies of every list whose texts have words replaced by random synonyms.

    copies      copies of each list
    words       replaced words per text; with 0, an attack on the ranker runs first, and its numbers of words are used,
                so that the copies differ from the originals as much as attacked documents do
    objective   the objective of all lists, copies included; "" keeps the objective of the plan
    """

    copies: int = 2
    words: int = 0
    synonyms: str = "thesaurus"
    objective: str = "hinge"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges("da", self, copies=(1, 100), words=(0, 10_000))
        SYNONYMS.build(self.synonyms)
        if self.objective:
            OBJECTIVES.build(self.objective)

    def plan(self, plan: TrainingPlan, adversaries: Callable[[], Path]) -> TrainingPlan:
        path = "" if self.words else str(adversaries())
        lists = AugmentedSource(plan.lists, self.copies, self.words, self.synonyms, path)
        return replace(plan, lists=lists, objective=self.objective or plan.objective)


@dataclass(frozen=True)
class AugmentedSource(TextListSource):
    """Lists of another source, and copies of them whose texts have random words replaced by synonyms.

    words     replaced words per text, or fewer if fewer have synonyms; 0 draws the number for each text from the
              numbers of words that an attack changed in the documents of the file `path`
    synonyms  a source of synonyms

    A copy is a separate list with the same labels. A copy of a text is the same in every pass.
    """

    lists: ListSource = field(default_factory=JudgementSource)
    copies: int = 2
    words: int = 20
    synonyms: str = "thesaurus"
    path: str = ""

    def __post_init__(self) -> None:
        check_ranges("augmented", self, copies=(1, 100), words=(0, 10_000))
        SYNONYMS.build(self.synonyms)
        if not self.words and not self.path:
            raise BadInput(
                "augmented: words=0 takes the number of words from attacked documents; give their file as path"
            )

    @property
    def files(self) -> tuple[Path, ...]:
        attacked = [Path(self.path)] if self.path else []
        return (*list_files(self.lists), *attacked, *getattr(SYNONYMS.build(self.synonyms), "files", ()))

    def open_samples(self, training_data: TrainingData, size: int) -> tuple[SampleSource, Qrels]:
        source, qrels = self.lists.open_samples(training_data, size)
        counts: tuple[int, ...] = (self.words,)
        if not self.words:
            docs = training_data.collection.docs
            examples = read_adversarial_examples(Path(self.path), training_data.collection, training_data.train)
            numbers = (count_changed_words(docs[one.docno], one.doc) for some in examples.values() for one in some)
            counts = tuple(filter(None, numbers))
            if not counts:
                raise BadInput(
                    "has no document that an attack changed, so the number of words to change is unknown", self.path
                )
        return AugmentedLists(source, self.copies, counts, SYNONYMS.build(self.synonyms), training_data.seed), qrels


@dataclass(frozen=True, eq=False)
class AugmentedLists:
    """The lists of another source, then the first copy of each, then the second, and so on."""

    source: SampleSource
    copies: int
    replacement_counts: Sequence[int]
    """Numbers of replaced words; each copy of a text draws one of them."""
    synonyms: SynonymSource
    seed: int = 0

    def __len__(self) -> int:
        return (1 + self.copies) * len(self.source)

    def draw(self, number: int, turn: int) -> Sample:
        copy, original = divmod(number, len(self.source))
        sample = self.source.draw(original, turn)
        return replace(sample, texts=tuple(self._copy_text(text, copy) for text in sample.texts)) if copy else sample

    @cached_property
    def _copy_text(self) -> Callable[[str, int], str]:
        """A cached function: text and number of the copy -> the copy."""

        def copy_text(text: str, copy: int) -> str:
            rng = make_item_rng(self.seed, "augmented", copy, text)
            return substitute_synonyms(text, rng.choice(self.replacement_counts), self.synonyms, rng)

        return lru_cache(maxsize=MAX_CACHED_COPIES)(copy_text)

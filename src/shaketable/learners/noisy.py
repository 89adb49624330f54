"""Lists with noise: what a ranker learns from that is to be smoothed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from shaketable.chance import rng_for
from shaketable.data.letor import Letor
from shaketable.errors import BadInput, check_within
from shaketable.learners.plan import Judgements, Lessons, Lists
from shaketable.learners.samples import Sample, Source
from shaketable.registry import SYNONYMS
from shaketable.text.perturbation import MOST, TAU, Sets, sets_for
from shaketable.types import Qrels


@dataclass(frozen=True)
class Noisy:
    """The lists of another source, each word of each text replaced by a random one of its perturbation set.

    A text is perturbed once: it is the same in all lists and all passes. Judgements to validate by, and the texts that
    are ranked for that, are as they were. Sets are those of `rankers.smoothed.Smoothed` with the same settings.

    Wu, Zhang, Guo, Chen, Fan, de Rijke, Cheng. Certified robustness to word substitution ranking attack for neural
    ranking models. CIKM 2022.
    """

    lists: Lists = field(default_factory=Judgements)
    synonyms: str = "thesaurus"
    tau: float = TAU
    most: int = MOST

    def __post_init__(self) -> None:
        check_within("noisy", self, tau=(-1, 1), most=(2, 10_000))
        SYNONYMS.build(self.synonyms)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that lists and synonyms are read from: what is learned depends on what is in them."""
        return *getattr(self.lists, "files", ()), *getattr(SYNONYMS.build(self.synonyms), "files", ())

    def source(self, lessons: Lessons, size: int) -> tuple[Source, Qrels]:
        source, qrels = self.lists.source(lessons, size)
        texts = (doc.text for _, doc in lessons.collection.docs.items())
        return Perturbed(source, sets_for(texts, self.synonyms, self.tau, self.most), lessons.seed), qrels

    def relabelled(self, rows: Letor, seed: int) -> Letor:
        raise BadInput("learners from features see no words, so noise in texts is for nets only")


@dataclass(frozen=True, eq=False)
class Perturbed:
    """The lists of another source with their texts as they are drawn, once, from perturbation sets."""

    source: Source
    sets: Sets
    seed: int = 0

    def __len__(self) -> int:
        return len(self.source)

    def draw(self, number: int, turn: int) -> Sample:
        sample = self.source.draw(number, turn)
        return replace(sample, texts=tuple(map(self.perturbed, sample.texts)))

    def perturbed(self, text: str) -> str:
        """What becomes of a text, wherever and whenever it comes."""
        ((drawn,),) = self.sets.draws((text,), rng_for(self.seed, "noisy", text), 1)
        return drawn

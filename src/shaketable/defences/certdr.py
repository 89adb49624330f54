"""CertDR: training with noise, and smoothing of the trained ranker with the same noise, which allows certificates.

Wu, Zhang, Guo, Chen, Fan, de Rijke, Cheng. Certified robustness to word substitution ranking attack for neural ranking
models. CIKM 2022.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from shaketable.core.documents import Qrels
from shaketable.core.errors import check_ranges
from shaketable.core.registries import OBJECTIVES, SYNONYMS
from shaketable.core.seeding import make_numpy_rng
from shaketable.defences.perturbation_sets import DEFAULT_TAU, MAX_SET_WORDS, PerturbationSets, build_perturbation_sets
from shaketable.defences.smoothing import SubstitutionSmoothed
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
class CertDR:
    """CertDR: replaces words of training texts by random synonyms; the trained ranker is meant to be smoothed.

    synonyms, tau, most    the perturbation sets: see `defences.perturbation_sets`; the paper's synonyms are
                           "counterfitted"
    objective              the objective of the lists with noise; "" keeps the objective of the plan

    The defence consists of training and smoothing: call `smooth` on the trained model. Without smoothing there is no
    certificate. The authors' code learns at 3e-6 from one pass over documents of 445 pieces, in batches of 8.
    """

    synonyms: str = "thesaurus"
    tau: float = DEFAULT_TAU
    most: int = MAX_SET_WORDS
    objective: str = "hinge"

    def __post_init__(self) -> None:
        NoisySource(synonyms=self.synonyms, tau=self.tau, most=self.most)  # validates the settings
        if self.objective:
            OBJECTIVES.build(self.objective)

    def plan(self, plan: TrainingPlan, adversaries: Callable[[], Path]) -> TrainingPlan:
        lists = NoisySource(plan.lists, self.synonyms, self.tau, self.most)
        return replace(plan, lists=lists, objective=self.objective or plan.objective)

    def smooth(self, folder: str | Path, samples: int = 100, seed: int = 0) -> SubstitutionSmoothed:
        """Return the model of a folder, smoothed with the noise that it was trained with."""
        return SubstitutionSmoothed(str(folder), samples, self.synonyms, self.tau, self.most, seed=seed)


@dataclass(frozen=True)
class NoisySource(TextListSource):
    """Lists of another source, each word of each text replaced by a random word of its perturbation set.

    A text is perturbed once, so it is the same in all lists and all passes. Validation queries have no noise. The sets
    are those of `defences.smoothing.SubstitutionSmoothed` with the same settings.
    """

    text_only_reason: ClassVar[str] = (
        "learners from features do not read texts, so noise in texts is for neural nets only"
    )

    lists: ListSource = field(default_factory=JudgementSource)
    synonyms: str = "thesaurus"
    tau: float = DEFAULT_TAU
    most: int = MAX_SET_WORDS

    def __post_init__(self) -> None:
        check_ranges("noisy", self, tau=(-1, 1), most=(2, 10_000))
        SYNONYMS.build(self.synonyms)

    @property
    def files(self) -> tuple[Path, ...]:
        return *list_files(self.lists), *getattr(SYNONYMS.build(self.synonyms), "files", ())

    def open_samples(self, training_data: TrainingData, size: int) -> tuple[SampleSource, Qrels]:
        source, qrels = self.lists.open_samples(training_data, size)
        texts = (doc.text for _, doc in training_data.collection.docs.items())
        sets = build_perturbation_sets(texts, self.synonyms, self.tau, self.most)
        return NoisyLists(source, sets, training_data.seed), qrels


@dataclass(frozen=True, eq=False)
class NoisyLists:
    """The lists of another source with texts drawn from perturbation sets."""

    source: SampleSource
    sets: PerturbationSets
    seed: int = 0

    def __len__(self) -> int:
        return len(self.source)

    def draw(self, number: int, turn: int) -> Sample:
        sample = self.source.draw(number, turn)
        return replace(sample, texts=tuple(map(self.perturb_text, sample.texts)))

    def perturb_text(self, text: str) -> str:
        """Return the noisy version of a text, which is always the same."""
        ((drawn,),) = self.sets.sample_texts((text,), make_numpy_rng(self.seed, "noisy", text), 1)
        return drawn

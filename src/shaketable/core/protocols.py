"""Protocols of pluggable objects: rankers, learners, defences, transforms, probes, measures and tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Collection, Doc, Run, Scores, Slate
from shaketable.core.progress import ProgressFactory, no_progress
from shaketable.core.results import Result
from shaketable.core.seeding import ItemRandom

if TYPE_CHECKING:
    from shaketable.experiment import Experiment
    from shaketable.probes.context import ProbeContext
    from shaketable.training.plan import TrainingPlan


@runtime_checkable
class Ranker(Protocol):
    """Scores slates: one array for each, one number for each document, higher is better.

    These attributes are optional (`score_pairs.engine.RankerTraits` reads all but the last five, of which
    `ScoringEngine.get_remark` reads two, a progress display, tables of means by class, and executors one each):
      pointwise    True if a text's score depends on (query, text) alone. A wrong True corrupts results, a wrong
                   False only costs time, so absent means False.
      fingerprint  names everything the scores depend on; absent means scores are never kept on disk.
      cached       False where scoring is cheaper than a lookup.
      volatile     True if what answers may change behind its name, as a server may: then answers on disk are used only
                   after a few of them were asked for again and came out the same.
      floor        how far the scores of a volatile ranker were seen to lie from themselves; absent means 0.
      in_flight    how many chunks it takes at the same time, each in a thread; absent means one.
      chunk        pairs that it is asked for at once; each chunk is kept when it is answered.
      noise        how far a score may lie from itself when it is asked for in other company, as a share of its size
                   (which is 1 at least); documents that lie no further apart tie. Absent means 0.
      threaded     True if it uses the cores of a machine by itself; absent means that one core is busy with it.
      num_cpus     what it takes of a machine, as Ray counts it, and so
      num_gpus     how many of it work at the same time there; absent means one core, and no GPU.
      status       what it is waiting for just now, such as a server that is busy, for display; "" if nothing.
      counted      a Counter of what it met while it worked; counts of workers are added to it.
      family       the class of ranker, such as traditional, neural or transformer.
      remark       what a reader of the scores should know by now, in a sentence; "" if nothing. Kept with the scores.
      notice       what is to be known of this process alone, such as an index that could not be kept; "" if nothing.
    """

    @property
    def name(self) -> str: ...
    def score(self, slates: Sequence[Slate]) -> Sequence[Scores]: ...


@runtime_checkable
class Retriever(Protocol):
    """Finds the best k documents of a collection: for each query docno -> score, best first."""

    def search(self, queries: Sequence[str], k: int) -> list[dict[str, float]]: ...


@runtime_checkable
class RecordedRanker(Protocol):
    """A ranker whose lists were made elsewhere, such as a run file: measured as they are, never asked for scores."""

    @property
    def recorded(self) -> Run: ...


class Model(Protocol):
    """A ranker before it has seen a collection: a value with a text form, such as "bm25(k1=0.9)"."""

    def open(self, collection: Collection) -> Ranker: ...


class Learner(Protocol):
    """A ranker before it has learned: a frozen dataclass whose fields are its settings.

    `fit` learns from the queries `train` of a collection, keeps what is best on the queries `valid`, and leaves a model
    in the folder. `plan` says where the lists to learn from come from, what is made small and against which baselines
    (`training.plan.TrainingPlan`); without one, it is the learner's own. `grid` has the values that its paper chose
    from.
    """

    grid: Mapping[str, Sequence[Any]]

    def fit(
        self,
        collection: Collection,
        train: Sequence[str],
        *,
        valid: Sequence[str] = (),
        seed: int = 0,
        plan: Any = None,
        candidates: Run | None = None,
        folder: str | Path,
        depth: int = 100,
        progress: ProgressFactory = no_progress,
        overwrite: bool = False,
    ) -> Model: ...


@runtime_checkable
class Defence(Protocol):
    """A way to train a ranker that attacks move less: a frozen dataclass, with a text form.

    It makes another plan of the plan of a training. `adversaries` returns the file of adversarial training examples
    (`datasets.adversarial_documents`); they are made when it is called, so a defence that needs none does not call it.
    A defence by such examples may say in an attribute `examples` which
    (`defences.adversarial_examples.ExampleSpec`).
    """

    def plan(self, plan: TrainingPlan, adversaries: Callable[[], Path]) -> TrainingPlan: ...


@dataclass(frozen=True, slots=True)
class TransformContext:
    """What a transform may know besides the text: the query of a document, the need, words of the collection."""

    query: str = ""
    description: str = ""
    vocabulary: Sequence[str] = ()


class Transform(Protocol):
    """A small change of a text: the new text, or None where it does not apply; never the text it was given.

    `category` is its class in the taxonomy of query variations. A transform that needs a model may also have
    `apply_many(texts, rngs, contexts)`, which does the same to many texts at once.
    """

    @property
    def category(self) -> str: ...
    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None: ...


@dataclass(frozen=True, slots=True)
class TextPair:
    """A query and two texts that differ in one thing: a ranker that prefers `first` has the sign +.

    A text that was changed is `first`, and `second` is the original, whose id is `docno` and whose grade is `grade`: a
    ranker that looks at whole lists is shown the changed text in its place. Where there is no original, `docno` is "".
    """

    query: str
    first: Doc
    second: Doc
    qid: str = ""
    docno: str = ""
    grade: int | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A case that a probe was offered and did not take, and why: "it has one sentence"."""

    reason: str


@runtime_checkable
class Probe(Protocol):
    """A behaviour test: a frozen dataclass that draws pairs of texts from a context (`probes.context.ProbeContext`).

    `strategy` is how it comes by them: matching, manipulation, transfer or minimal pair. `symmetric` is True where
    neither text should be preferred, so that only the size of the difference counts; a probe whose first text is the
    second one made worse for readers says so by `degrades_text = True`. `unavailable_reason` says why a context has no
    pairs for it; "" if it has.
    """

    @property
    def strategy(self) -> str: ...
    @property
    def symmetric(self) -> bool: ...
    def unavailable_reason(self, context: ProbeContext) -> str: ...
    def draw_pairs(self, context: ProbeContext) -> Iterable[TextPair | Skipped]: ...


@runtime_checkable
class ListMeasure(Protocol):
    """A measure of one query's list: the grades that are known, and the documents, best first."""

    def value(self, grades: Mapping[str, int], ranking: Sequence[str]) -> float: ...


@runtime_checkable
class SpreadMeasure(Protocol):
    """A measure of a ranker's queries: their values [..., queries] in, a number for each ranker out."""

    def over(self, values: Any) -> NDArray[np.float64]: ...


@runtime_checkable
class ChangeMeasure(Protocol):
    """A measure of two rankings of one query: the documents before and after, best first."""

    def between(self, before: Sequence[str], after: Sequence[str]) -> float: ...


class Task(Protocol):
    """An experiment: a frozen dataclass whose fields are its settings."""

    needs_judgements: ClassVar[bool]
    needs_scoring: ClassVar[bool]
    """Does it ask rankers for new scores? A run file has none to give.

    A task that runs only when it is named, because it trains rankers for example, says so by `opt_in = True`; one that
    has use for rankers but does without, by `needs_rankers = False`: then no default rankers are opened for it. One for
    some models only has a static method `applies_to(model)`. One whose requests depend on the answers, as those of an
    attack do, says so by `adaptive = True`: its cost can only be estimated.
    """

    def run(self, experiment: Experiment) -> Result: ...

"""Protocols of pluggable objects: rankers, learners, defences, transforms, probes, measures and tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
    """A ranker: it returns one array per slate with one score per document; higher is better.

    These attributes are optional. `scoring.traits.RankerTraits` reads those that say how to call the ranker,
    `scoring.engine.ScoringEngine.get_remark` reads `remark` and `notice`:
      pointwise    True if a score depends on (query, text) alone. A wrong True corrupts results, a wrong False only
                   costs time. If it is absent or None, an experiment finds out and checks again during the run
                   (`scoring.pointwise`).
      fingerprint  a name for everything the scores depend on; without it, scores are never stored on disk. An object
                   of a user's file without it gets a hash of the source (`rankers.source_fingerprint`).
      cached       False if scoring is cheaper than a cache lookup.
      volatile     True if the scores may change under the same name, as with a server. The engine then scores a few
                   pairs again and uses the disk cache only if their scores are unchanged.
      noise_floor  the observed difference between repeated scores of a volatile ranker; default 0.
      max_concurrency  the number of concurrent requests, one thread each; default 1.
      chunk        pairs per request, for a server; by default, a chunk is about two seconds of work. Each chunk is
                   cached when it completes.
      batch_chars  characters of the texts in one call, padding included. Set it if the batch of a text changes the
                   last digits of its score: calls then do not depend on the chunks, which depend on time.
      pads_texts   True if a short text costs as much as the longest one of its batch; with `batch_chars`, texts of
                   similar length then come together.
      noise        the largest difference between scores of the same text in different batches, relative to the score
                   (or to 1 if the score is smaller); documents with smaller differences tie. Default 0.
      uses_all_cores  True if it uses several cores by itself; default: one core.
      num_cpus     CPUs per worker, as Ray counts them; default 1.
      num_gpus     GPUs per worker, as Ray counts them; default 0.
      status       the reason for a current wait, such as a busy server, for display; "" if none.
      counters     a Counter of events; the counts of workers are added to it.
      family       the family of the ranker, such as traditional, neural or transformer.
      remark       a sentence that readers of the scores should know; "" if none. Stored with the scores.
      notice       a sentence about this process only, such as an index that could not be stored; "" if none.
    """

    @property
    def name(self) -> str: ...
    def score(self, slates: Sequence[Slate]) -> Sequence[Scores]: ...


@runtime_checkable
class Retriever(Protocol):
    """A retriever: it returns the top k documents of a collection for each query, docno -> score, best first."""

    def search(self, queries: Sequence[str], k: int) -> list[dict[str, float]]: ...


@runtime_checkable
class RecordedRanker(Protocol):
    """A ranker with precomputed lists, such as a run file; the lists are evaluated as they are."""

    @property
    def recorded(self) -> Run: ...


def can_score_texts(ranker: object) -> bool:
    """Return True if a ranker scores any text; a run file does not, and a search engine knows its own index only."""
    return callable(getattr(ranker, "score", None)) and not isinstance(ranker, RecordedRanker)


class Model(Protocol):
    """A ranker that is not yet opened on a collection: a value with a text form, such as "bm25(k1=0.9)"."""

    def open(self, collection: Collection) -> Ranker: ...


class Learner(Protocol):
    """A trainable ranker: a frozen dataclass whose fields are its settings.

    `fit` trains on the queries `train` of a collection, selects the best model on the queries `valid`, and writes it to
    the folder. `plan` defines the training lists, the loss and the baselines (`training.plan.TrainingPlan`); the
    default is the learner's own plan.

    Attributes
    ----------
    grid
        Setting -> values to try in a grid search. The built-in learners have the values of their papers.
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
    """A training method that makes a ranker more robust to attacks: a frozen dataclass with a text form.

    It derives a new training plan from a given one. `adversaries` creates the adversarial training examples and returns
    their file (`datasets.adversarial_documents`); call it only if the defence needs them. A defence that trains on such
    examples may describe them in an attribute `examples` (`defences.adversarial_examples.ExampleSpec`).
    """

    def plan(self, plan: TrainingPlan, adversaries: Callable[[], Path]) -> TrainingPlan: ...


@dataclass(frozen=True, slots=True)
class TransformContext:
    """The context of a text for a transform: the query, its description and words of the collection.

    Parameters
    ----------
    query
        The original text of the query; empty if there is none.
    description
        A longer statement of the information need, such as the description of a TREC topic; empty if there is none.
    vocabulary
        Words of the collection, from which transforms draw new words; empty if they are not known.
    language
        The language of the query, such as "de"; empty if it is not known.
    translations
        The same query in other languages, by language; empty if there are none.
    """

    query: str = ""
    description: str = ""
    vocabulary: Sequence[str] = ()
    language: str = ""
    translations: Mapping[str, str] = field(default_factory=dict)


class Transform(Protocol):
    """A small change of a text: `apply` returns a different text, or None where the transform does not apply.

    `category` is its class in the taxonomy of query variations. A transform that needs a model may also have
    `apply_many(texts, rngs, contexts)`, which transforms many texts at once.
    """

    @property
    def category(self) -> str: ...
    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None: ...


@dataclass(frozen=True, slots=True)
class TextPair:
    """A query and two texts that differ in one property; a ranker that prefers `first` has the sign +.

    If one text is a changed document, it is `first`, and `second` is the original with id `docno` and grade `grade`. A
    listwise ranker gets the changed text at the position of the original.

    Parameters
    ----------
    query
        The text of the query.
    first, second
        The two texts.
    qid
        The id of the query; if empty, pairs with the same query text belong together.
    docno
        The id of the original document; empty if neither text is a changed document.
    grade
        The relevance grade of the original, or of both texts; None if it is not known.
    """

    query: str
    first: Doc
    second: Doc
    qid: str = ""
    docno: str = ""
    grade: int | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A case that a probe skipped.

    Parameters
    ----------
    reason
        The reason, such as "it has one sentence".
    """

    reason: str


@runtime_checkable
class Probe(Protocol):
    """A behaviour test: a frozen dataclass that draws pairs of texts from a context (`probes.context.ProbeContext`).

    `strategy` is the source of the pairs: matching, manipulation, transfer or minimal pair. `symmetric` is True if
    neither text should be preferred, so that only the size of the difference counts. A probe whose first text is a
    degraded second text sets `degrades_text = True`. `unavailable_reason` says why a context has no pairs for it; "" if
    it has.
    """

    @property
    def strategy(self) -> str: ...
    @property
    def symmetric(self) -> bool: ...
    def unavailable_reason(self, context: ProbeContext) -> str: ...
    def draw_pairs(self, context: ProbeContext) -> Iterable[TextPair | Skipped]: ...


@runtime_checkable
class ListMeasure(Protocol):
    """A measure of one query's ranking: known grades and docnos, best first."""

    def value(self, grades: Mapping[str, int], ranking: Sequence[str]) -> float: ...


@runtime_checkable
class SpreadMeasure(Protocol):
    """A measure of a ranker's queries: it maps values [..., queries] to one number per ranker."""

    def over(self, values: Any) -> NDArray[np.float64]: ...


@runtime_checkable
class ChangeMeasure(Protocol):
    """A measure of two rankings of one query: the docnos before and after, best first."""

    def between(self, before: Sequence[str], after: Sequence[str]) -> float: ...


class Task(Protocol):
    """An experiment: a frozen dataclass whose fields are its settings.

    A task may also have these attributes: `opt_in = True` if the task runs only when named, for example because it
    trains rankers; `needs_rankers = False` if it can run without rankers, so no default rankers are opened; a static
    method `applies_to(model)` if it is for some models only; `adaptive = True` if its requests depend on the results,
    as in an attack, so its cost can only be estimated; `accepts_search = True` if it changes queries only, so the lists
    of a search engine are enough.

    Attributes
    ----------
    needs_judgements
        True if the task needs relevance judgements. It is skipped for a collection without any.
    needs_scoring
        True if the task requests new scores, which a run file cannot provide.
    """

    needs_judgements: ClassVar[bool]
    needs_scoring: ClassVar[bool]

    def run(self, experiment: Experiment) -> Result: ...

"""The nouns. Everything else in the package makes, moves or measures these.

Protocols stand for what a user may bring: any class with the right method will do, no import of ours needed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shaketable.chance import Draws
from shaketable.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.attacks.knowledge import Knowledge
    from shaketable.bench import Bench
    from shaketable.learners.plan import Plan
    from shaketable.probes.ground import Ground
    from shaketable.rankers.nets.net import Net

Scores: TypeAlias = NDArray[np.floating[Any]]
Run: TypeAlias = Mapping[str, Mapping[str, float]]
"""qid -> docno -> score. The order of a list is that of `ranking`, never that of the mapping."""
Qrels: TypeAlias = Mapping[str, Mapping[str, int]]
"""qid -> docno -> grade."""


@dataclass(frozen=True, slots=True)
class Doc:
    """A text to rank. `text` is what a reader sees; the url is there for features, not for matching."""

    body: str
    title: str = ""
    url: str = ""

    @property
    def text(self) -> str:
        """Title and body in one string."""
        return f"{self.title} {self.body}" if self.title and self.body else self.title or self.body


@dataclass(frozen=True, slots=True)
class Query:
    """What somebody typed, and what is known of it: the kind of answer asked for, the need in a sentence.

    `weight` is how often it was asked, as a query log counts: what means over queries weigh it by.
    """

    text: str
    kind: str = ""
    description: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Variant:
    """Another way somebody wrote a query, and how it differs: its category in the taxonomy of query variations."""

    text: str
    category: str


@dataclass(frozen=True, slots=True)
class Slate:
    """One query text and the documents to rank for it. It has no ids: whoever makes a slate keeps them."""

    query: str
    docs: tuple[Doc, ...]


class Corpus(Protocol):
    """docno -> Doc, possibly far larger than memory: look up, iterate, count."""

    @property
    def fingerprint(self) -> str: ...
    def __getitem__(self, docno: str, /) -> Doc: ...
    def __contains__(self, docno: object, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def items(self) -> Any: ...


@dataclass(frozen=True)
class Collection:
    """Documents, queries, and what is known of them.

    `splits` names sets of queries; `candidates` is a first stage's run and `variants` are queries as people wrote them,
    where the data has them. `source` is the text that `data.load` reads the documents from, and all of the collection
    unless a part was made of it, for another process to open them by; what was made in memory has none, and stays in
    this process.
    """

    name: str
    docs: Corpus
    queries: Mapping[str, Query]
    qrels: Qrels = field(default_factory=dict)
    splits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    candidates: Run = field(default_factory=dict)
    variants: Mapping[str, tuple[Variant, ...]] = field(default_factory=dict)
    source: str = ""

    @cached_property
    def fingerprint(self) -> str:
        """Names the content of the collection: equal texts, queries, judgements and candidates, equal name.

        The kinds and weights of the queries are no part of it: no ranker sees them and none learns from them, so that
        what was learned before somebody gave the queries kinds is still what is learned.
        """
        queries = sorted((qid, q.text, "", q.description) for qid, q in self.queries.items())
        qrels = sorted((qid, sorted(grades.items())) for qid, grades in self.qrels.items())
        candidates = sorted((qid, sorted(scores.items())) for qid, scores in self.candidates.items())
        return fingerprint(self.docs.fingerprint, queries, qrels, candidates)


@dataclass(frozen=True)
class Competition:
    """Documents that authors wrote against each other: in each round one document of each author for a query.

    `rounds` is round -> query id -> author -> document, and `grades` has the judgements in the same order; a round may
    lack some or all of them. An author is who is the same from round to round, whatever becomes of the document. Some
    query must have two rounds with several authors: otherwise there is nothing to compare, which is an error.

    >>> round_1 = {"q": {"ann": Doc("a boat"), "bob": Doc("boats, boats")}}
    >>> Competition("tiny", {"q": Query("boats")}, {1: round_1, 2: round_1}).matches("q").keys()
    dict_keys([1, 2])
    """

    name: str
    queries: Mapping[str, Query]
    rounds: Mapping[int, Mapping[str, Mapping[str, Doc]]]
    grades: Mapping[int, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, matches in self.rounds.items():
            for qid in matches:
                if qid not in self.queries or not self.queries[qid].text.strip():
                    raise BadInput(f"{self.name}: round {number} is about query {qid!r}, which has no text")
        if not any(len(self.matches(qid)) > 1 for qid in self.queries):
            raise BadInput(
                f"{self.name}: no query has two rounds with documents of two authors or more in each, so there is no "
                "round to compare with the next"
            )

    def matches(self, qid: str) -> dict[int, Mapping[str, Doc]]:
        """The rounds of a query in their order, without those where one author was alone, as in a round of examples."""
        by_round = {number: self.rounds[number].get(qid, {}) for number in sorted(self.rounds)}
        return {number: docs for number, docs in by_round.items() if len(docs) > 1}


@runtime_checkable
class Ranker(Protocol):
    """Scores slates: one array for each, one number for each document, higher is better.

    These attributes are optional (`score.road.Traits` reads all but the last five, of which `Road.remark` reads two,
    a progress display, tables of means by class, and executors one each):
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
      status       what it is waiting for just now, such as a server that is busy, for whoever looks on; "" if nothing.
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
class Recorded(Protocol):
    """A ranker whose lists were made elsewhere, such as a run file: measured as they are, never asked for scores."""

    @property
    def recorded(self) -> Run: ...


class Model(Protocol):
    """A ranker before it has seen a collection: a value with a text form, such as "bm25(k1=0.9)"."""

    def open(self, collection: Collection) -> Ranker: ...


class Watch(Protocol):
    """Opens a progress display for (what, how many, of what: "queries") and hands back what advances it.

    One that is opened while another is open is a part of the other. What advances it may have a method `beside(say)`:
    `say()` is a text to show beside the bar, asked for whenever the bar is drawn.
    """

    def __call__(self, what: str, total: int, unit: str, /) -> AbstractContextManager[Callable[[int], None]]: ...


def unwatched(what: str, total: int, unit: str) -> AbstractContextManager[Callable[[int], None]]:
    """Progress that nobody looks at."""
    return nullcontext(lambda done: None)


def beside(advance: Callable[[int], None], say: Callable[[], str]) -> None:
    """Let a progress display that can (see `Watch`) show what `say` says beside its bar."""
    if callable(show := getattr(advance, "beside", None)):
        show(say)


class Learner(Protocol):
    """A ranker before it has learned: a frozen dataclass whose fields are its settings.

    `fit` learns from the queries `train` of a collection, keeps what is best on the queries `valid`, and leaves a model
    in the folder. `plan` says where the lists to learn from come from, what is made small and against which baselines
    (`learners.plan.Plan`); without one, it is the learner's own. `grid` has the values that its paper chose from.
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
        watch: Watch = unwatched,
        overwrite: bool = False,
    ) -> Model: ...


@runtime_checkable
class Defence(Protocol):
    """A way to train a ranker that attacks move less: a frozen dataclass, with a text form.

    It makes another plan of the plan of a training. `adversaries` hands out the file of adversarial training examples
    (`data.attacked`); they are made when it is called, so a defence that needs none does not call it. A defence by such
    examples may say in an attribute `examples` which (`defend.adversaries.Examples`).
    """

    def plan(self, plan: Plan, adversaries: Callable[[], Path]) -> Plan: ...


@dataclass(frozen=True, slots=True)
class Context:
    """What an edit may know besides the text: the query a document is edited for, the need, words of the collection."""

    query: str = ""
    description: str = ""
    vocabulary: Sequence[str] = ()


class Edit(Protocol):
    """A small change of a text: the new text, or None where it does not apply; never the text it was given.

    `category` is the place in the taxonomy of query variations. An edit that needs a model may also have
    `apply_many(texts, draws, contexts)`, which does the same to many texts at once.
    """

    @property
    def category(self) -> str: ...
    def apply(self, text: str, draws: Draws, context: Context) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Contrast:
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
class Omitted:
    """A case that a probe was offered and did not take, and why: "it has one sentence"."""

    reason: str


class Probe(Protocol):
    """A behaviour test: a frozen dataclass that draws contrasts from a ground (`probes.ground.Ground`).

    `strategy` is how it comes by them: matching, manipulation, transfer or minimal pair. `symmetric` is True where
    neither text should be preferred, so that only the size of the difference counts; a probe whose first text is the
    second one, spoiled for whoever reads it, says so by `spoils = True`. `lacking` says why a ground has
    nothing for it, in words; "" if it has.
    """

    @property
    def strategy(self) -> str: ...
    @property
    def symmetric(self) -> bool: ...
    def lacking(self, ground: Ground) -> str: ...
    def contrasts(self, ground: Ground) -> Iterable[Contrast | Omitted]: ...


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


Places: TypeAlias = tuple[int, ...]
"""Where a document stands in each list of a case, counted from 1."""


class Goal(Protocol):
    """What an attack is after: `worth` grows with what it has got, `reached` says that there is no more to get."""

    def worth(self, places: Places) -> float: ...
    def reached(self, places: Places) -> bool: ...


@dataclass(frozen=True, eq=False)
class Listing:
    """A query and its list as the attacked ranker orders it, best first: what anybody who asks it can see."""

    qid: str
    query: str
    docnos: tuple[str, ...]
    docs: tuple[Doc, ...]

    def others(self, docno: str) -> list[Doc]:
        """The documents but for one, best first."""
        return [doc for name, doc in zip(self.docnos, self.docs, strict=True) if name != docno]


@dataclass(frozen=True, eq=False)
class Case:
    """A document to attack, the lists that it is to move in, what for, and where it stands before.

    Most cases have one list. With several, one text is to do well for all of their queries. A document that is in none
    of the lists is a new one, and is added to each.
    """

    docno: str
    doc: Doc
    lists: tuple[Listing, ...]
    goal: Goal
    places: Places

    @property
    def query(self) -> str:
        """The query of a case that has one, the first of several."""
        return self.lists[0].query

    @property
    def name(self) -> tuple[str, ...]:
        """What tells the case from others: the document and the queries."""
        return self.docno, *(listing.qid for listing in self.lists)


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """What an attack wants to know of the ranker: where each of these texts would stand. Each is a trial.

    An offered text may become the outcome; others are looked at only, for instance to see what a word is worth.
    """

    docs: Sequence[Doc]
    offered: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Consult:
    """What an attack wants to know of anything else, an encoder or a net that it has: `source` answers many at once.

    Attacks that consult the same source do it together.
    """

    source: Callable[[Sequence[Any]], Sequence[Any]]
    question: Any


Steps: TypeAlias = Generator[Ask | Consult, Any, None]
"""An attack under way: it yields an `Ask`, and is sent the `Places` of each text, never a score; or a `Consult`, and is
sent the answer. When it ends, or is ended, the text it offered that serves the goal best is its outcome."""


class Attack(Protocol):
    """Ways to change a document so that its place changes."""

    def steps(self, case: Case, draws: Draws) -> Steps: ...


@runtime_checkable
class Recipe(Protocol):
    """An attack before it knows whom: a frozen dataclass whose fields are its settings, with a text form.

    What it is given is what an attacker can know who sees places only (`attacks.knowledge.Knowledge`).
    """

    def open(self, knowledge: Knowledge) -> Attack: ...


@runtime_checkable
class WhiteBox(Protocol):
    """A recipe of an attacker who has the ranker itself: the net that scores, and so its gradients."""

    def open_net(self, knowledge: Knowledge, net: Net) -> Attack: ...


Check: TypeAlias = Callable[[Sequence[tuple[Case, Sequence[Doc]]]], Sequence[Sequence[bool]]]
"""For each case and texts that may take the place of its document: which of them are allowed."""


class Constraint(Protocol):
    """What a changed document must still be, such as fluent: a frozen dataclass, with a text form."""

    def open(self, knowledge: Knowledge) -> Check: ...


Suspicion: TypeAlias = Callable[[Sequence[Doc]], NDArray[np.float64]]
"""How suspicious each text is; more is worse."""


class Detector(Protocol):
    """A simple filter against attacks, which knows the documents of a collection: a frozen dataclass."""

    def open(self, knowledge: Knowledge) -> Suspicion: ...


@dataclass(frozen=True)
class Outcome:
    """What an attack came to: the text, which is the original one where nothing served the goal better.

    `before` and `after` are its places, `trials` the texts that the ranker was asked about, `first` the trial that
    served the goal before any other (0 if none did), and `pairs` what all of them cost: one pair a trial and list, or
    the whole list where a score depends on the list.
    """

    doc: Doc
    before: Places
    after: Places
    trials: int = 0
    pairs: int = 0
    first: int = 0


@dataclass(frozen=True)
class Attacked:
    """A document as an attack left it, for others to read: which one, for which queries, by whom, and what it did.

    `before` and `after` are its places for `ranker`, which is the one that was attacked; a text that somebody else
    wrote may know neither. A document without `docno` is none of the collection: it is added to the lists.
    """

    queries: Mapping[str, str]
    docno: str
    doc: Doc
    original: Doc = Doc("")
    recipe: str = ""
    ranker: str = ""
    before: Places = ()
    after: Places = ()
    trials: int = 0


@dataclass(frozen=True)
class ScoreTable:
    """What one effectiveness measure says: `values` has a row for each system and a column for each topic."""

    measure: str
    systems: tuple[str, ...]
    topics: tuple[str, ...]
    values: NDArray[np.float64]

    def row(self, system: str) -> NDArray[np.float64]:
        """The scores of one system over the topics."""
        row: NDArray[np.float64] = self.values[self.systems.index(system)]
        return row

    def by_topic(self, system: str) -> dict[str, float]:
        """The same scores, by topic."""
        return dict(zip(self.topics, self.row(system).tolist(), strict=True))


@dataclass(frozen=True)
class Figure:
    """A drawing of one table, as data: what goes where. `report` knows how to draw each kind.

    `join` is a column: points that are the same there are joined by a line. `mark` is one too: what is written there
    stands in the place of the point. `label` is a column that names points whose colour says something else. All three
    are for kinds that draw points. A figure that is `folded` is for readers who ask for it, below the others. `source`
    is where the literature has one like it: "Wu et al. 2022, Fig. 2".
    """

    kind: str
    table: str
    title: str
    x: str
    y: str
    color: str = ""
    caption: str = ""
    join: str = ""
    mark: str = ""
    label: str = ""
    folded: bool = False
    source: str = ""


@dataclass(frozen=True)
class Failure:
    """Something that was tried and did not work: counted and shown, never dropped."""

    ranker: str
    query: str
    reason: str


@dataclass(frozen=True)
class Finding:
    """One number that a task found of a ranker, and how far it can be trusted: what gates and comparisons read.

    `low` and `high` are its 95 % interval over `n` queries and `p` is of the comparison that it stands for, already
    corrected for the number of comparisons; NaN where there is none. `task` is the text form of the task, so that two
    settings of one task keep their numbers apart; `against` names what the ranker was compared with; `where` is the
    slice of the queries, and empty for all of them. `facet` is the side of robustness that the number speaks for in the
    answer of an audit, such as "query typos", and empty for numbers that are in the tables only. `values` has what each
    query adds, where the number is a mean over queries or a function of one: what a comparison of two audits pairs.
    """

    ranker: str
    name: str
    value: float
    low: float = nan
    high: float = nan
    n: int = 0
    p: float = nan
    better: Literal["higher", "lower"] = "higher"
    task: str = ""
    against: str = ""
    where: str = ""
    facet: str = ""
    values: Mapping[str, float] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Example:
    """One case, before and after: the texts, what they were worth, and the document that moved most.

    Places count from 1; 0 means that the document is not in the list.
    """

    ranker: str
    query: str
    shake: str
    before: str
    after: str
    value_before: float = nan
    value_after: float = nan
    document: str = ""
    place_before: int = 0
    place_after: int = 0


@dataclass(frozen=True)
class Result:
    """What a task found: tidy tables, figures that draw them, remarks, findings for gates, and examples.

    `brief` names the tables for a screen; without it all short ones are shown. Files and pages have every table.
    `attacked` are documents as attacks left them, for a file of their own. `sources` says where in the literature a
    table like ours stands, by its name.
    """

    task: str
    question: str
    tables: Mapping[str, pd.DataFrame]
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    examples: tuple[Example, ...] = ()
    failures: tuple[Failure, ...] = ()
    brief: tuple[str, ...] = ()
    attacked: tuple[Attacked, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)


class Task(Protocol):
    """An experiment: a frozen dataclass whose fields are its settings."""

    needs_judgements: ClassVar[bool]
    needs_scoring: ClassVar[bool]
    """Does it ask rankers for new scores? A run file has none to give.

    A task that nobody should meet unasked, because it trains rankers for example, says so by `asked_only = True`; one
    that has use for rankers but does without, by `needs_rankers = False`: then nobody opens default ones for it. One
    that is for models of a kind has a static method `is_for(model)`. One whose questions depend on the answers, as
    those of an attack do, says so by `adapts = True`: its cost can only be estimated.
    """

    def run(self, bench: Bench) -> Result: ...


def ranking(scores: Mapping[str, float]) -> list[str]:
    """The one order of a score list: float32 score descending, then docno descending, as trec_eval sorts.

    >>> ranking({"a": 1.0, "b": 1.0, "c": 2.0})
    ['c', 'b', 'a']
    """
    docnos = sorted(scores, reverse=True)
    order = np.argsort(-np.array([scores[d] for d in docnos], dtype=np.float32), kind="stable")
    return [docnos[i] for i in order]


def fingerprint(*parts: object) -> str:
    """A short name for content. Parts are told apart by their `repr`, so use plain values only.

    >>> fingerprint("a", "b") == fingerprint("ab")
    False
    """
    return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

"""Attack protocols: goals, cases, requests to the target, recipes, constraints, detectors and outcomes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Doc
from shaketable.core.seeding import ItemRandom

if TYPE_CHECKING:
    from shaketable.attacks.knowledge import AttackerKnowledge
    from shaketable.rankers.neural.net import Net

Ranks: TypeAlias = tuple[int, ...]
"""Where a document stands in each list of a case, counted from 1."""
_NO_DOC = Doc("")


class Goal(Protocol):
    """The aim of an attack: `utility` grows with what it has got, `is_reached` says that there is no more to get."""

    def utility(self, ranks: Ranks) -> float: ...
    def is_reached(self, ranks: Ranks) -> bool: ...


@dataclass(frozen=True, eq=False)
class TargetRanking:
    """A query and its list as the attacked ranker orders it, best first: what anybody who asks it can see."""

    qid: str
    query: str
    docnos: tuple[str, ...]
    docs: tuple[Doc, ...]

    def get_other_documents(self, docno: str) -> list[Doc]:
        """The documents but for one, best first."""
        return [doc for name, doc in zip(self.docnos, self.docs, strict=True) if name != docno]


@dataclass(frozen=True, eq=False)
class AttackCase:
    """A document to attack, the lists that it is to move in, what for, and where it stands before.

    Most cases have one list. With several, one text is to do well for all of their queries. A document that is in none
    of the lists is a new one, and is added to each.
    """

    docno: str
    doc: Doc
    lists: tuple[TargetRanking, ...]
    goal: Goal
    ranks: Ranks

    @property
    def query(self) -> str:
        """The query of a case that has one, the first of several."""
        return self.lists[0].query

    @property
    def key(self) -> tuple[str, ...]:
        """What tells the case from others: the document and the queries."""
        return self.docno, *(listing.qid for listing in self.lists)


@dataclass(frozen=True, slots=True, eq=False)
class RankQuery:
    """What an attack wants to know of the ranker: where each of these texts would stand. Each is a trial.

    An offered text may become the outcome; others are looked at only, for instance to see what a word is worth.
    """

    docs: Sequence[Doc]
    may_be_outcome: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class ModelQuery:
    """A question of an attack to a model of its own, an encoder or a net: `model` answers many at once.

    Attacks that ask the same model do it together.
    """

    model: Callable[[Sequence[Any]], Sequence[Any]]
    question: Any


AttackSteps: TypeAlias = Generator[RankQuery | ModelQuery, Any, None]
"""An attack under way: it yields an `RankQuery`, and is sent the `Ranks` of each text, never a score; or a
`ModelQuery`, and is sent the answer. When it ends, or is ended, the text it offered that serves the goal best is its
outcome."""


class Attack(Protocol):
    """Ways to change a document so that its place changes."""

    def steps(self, case: AttackCase, rng: ItemRandom) -> AttackSteps: ...


@runtime_checkable
class Recipe(Protocol):
    """The settings of an attack: a frozen dataclass with a text form.

    It is opened with what an attacker can know that sees ranks only (`attacks.knowledge.AttackerKnowledge`).
    """

    def open(self, knowledge: AttackerKnowledge) -> Attack: ...


@runtime_checkable
class WhiteBoxRecipe(Protocol):
    """A recipe of an attacker who has the ranker itself: the net that scores, and so its gradients."""

    def open_net(self, knowledge: AttackerKnowledge, net: Net) -> Attack: ...


ConstraintCheck: TypeAlias = Callable[[Sequence[tuple[AttackCase, Sequence[Doc]]]], Sequence[Sequence[bool]]]
"""For each case and texts that may take the place of its document: which of them are allowed."""


class Constraint(Protocol):
    """What a changed document must still be, such as fluent: a frozen dataclass, with a text form."""

    def open(self, knowledge: AttackerKnowledge) -> ConstraintCheck: ...


Suspicion: TypeAlias = Callable[[Sequence[Doc]], NDArray[np.float64]]
"""How suspicious each text is; more is worse."""


class Detector(Protocol):
    """A simple filter against attacks, which knows the documents of a collection: a frozen dataclass."""

    def open(self, knowledge: AttackerKnowledge) -> Suspicion: ...


@dataclass(frozen=True)
class AttackOutcome:
    """The result of an attack: the text, which is the original one where nothing served the goal better.

    `trials` counts the texts that the ranker was asked about, `first_success_trial` is the first that served the goal
    (0 if none did), and `scored_pairs` is what all of them cost: one pair a trial and list, or the whole list where a
    score depends on the list.
    """

    doc: Doc
    ranks_before: Ranks
    ranks_after: Ranks
    trials: int = 0
    scored_pairs: int = 0
    first_success_trial: int = 0


@dataclass(frozen=True)
class AdversarialDocument:
    """A document as an attack left it: which one, for which queries, by which recipe, and what it did.

    `ranks_before` and `ranks_after` are its ranks for `ranker`, which is the one that was attacked; a text from another
    source may have neither. A document without `docno` is none of the collection: it is added to the lists.
    """

    queries: Mapping[str, str]
    docno: str
    doc: Doc
    original: Doc = _NO_DOC
    recipe: str = ""
    ranker: str = ""
    ranks_before: Ranks = ()
    ranks_after: Ranks = ()
    trials: int = 0

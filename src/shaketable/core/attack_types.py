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
"""The ranks of a document in each list of a case, starting at 1."""
_NO_DOC = Doc("")


class Goal(Protocol):
    """The aim of an attack: `utility` grows with success, `is_reached` is True if no further gain is possible."""

    def utility(self, ranks: Ranks) -> float: ...
    def is_reached(self, ranks: Ranks) -> bool: ...


@dataclass(frozen=True, eq=False)
class TargetRanking:
    """A query and its ranking by the attacked ranker, best first, as any user of the ranker sees it.

    Attributes
    ----------
    qid, query
        The id and the text of the query.
    docnos, docs
        The ids and the texts of the documents, best first.
    """

    qid: str
    query: str
    docnos: tuple[str, ...]
    docs: tuple[Doc, ...]

    def get_other_documents(self, docno: str) -> list[Doc]:
        """Return all documents except one, best first."""
        return [doc for name, doc in zip(self.docnos, self.docs, strict=True) if name != docno]


@dataclass(frozen=True, eq=False)
class AttackCase:
    """A document to attack, its lists, the goal and the ranks before the attack.

    Most cases have one list. With several lists, one text must do well for all queries. A document that is in none of
    the lists is new and is added to each.

    Attributes
    ----------
    docno
        The id of the document.
    doc
        The document before the attack.
    lists
        The rankings in which the document should move.
    goal
        The goal of the attack.
    ranks
        The rank of the document in each list before the attack.
    """

    docno: str
    doc: Doc
    lists: tuple[TargetRanking, ...]
    goal: Goal
    ranks: Ranks

    @property
    def query(self) -> str:
        """The query of the first list."""
        return self.lists[0].query

    @property
    def key(self) -> tuple[str, ...]:
        """The unique key of the case: the document and the queries."""
        return self.docno, *(listing.qid for listing in self.lists)


@dataclass(frozen=True, slots=True, eq=False)
class RankQuery:
    """A request for the ranks of texts; each text counts as one trial.

    Texts with `may_be_outcome` may become the outcome; others are only ranked, for instance to measure a word's
    importance.

    Attributes
    ----------
    docs
        The texts to rank, each in place of the document.
    may_be_outcome
        True if one of the texts may become the outcome of the attack.
    """

    docs: Sequence[Doc]
    may_be_outcome: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class ModelQuery:
    """A request of an attack to a model of its own, such as an encoder or a network; `model` answers a batch.

    Requests of several attacks to the same model are batched.

    Attributes
    ----------
    model
        A function that answers a batch of questions.
    question
        The question of this attack.
    """

    model: Callable[[Sequence[Any]], Sequence[Any]]
    question: Any


AttackSteps: TypeAlias = Generator[RankQuery | ModelQuery, Any, None]
"""A running attack. It yields a `RankQuery` and receives the `Ranks` of each text, never a score; or it yields a
`ModelQuery` and receives the answer. When it ends, or is stopped, its outcome is the best text it offered.
"""


class Attack(Protocol):
    """An attack that changes a document so that its rank changes."""

    def steps(self, case: AttackCase, rng: ItemRandom) -> AttackSteps: ...


@runtime_checkable
class Recipe(Protocol):
    """The settings of an attack: a frozen dataclass with a text form.

    `open` gets the knowledge of an attacker that sees ranks only (`attacks.knowledge.AttackerKnowledge`).
    """

    def open(self, knowledge: AttackerKnowledge) -> Attack: ...


@runtime_checkable
class WhiteBoxRecipe(Protocol):
    """A recipe of a white-box attacker, which has the scoring network and its gradients."""

    def open_net(self, knowledge: AttackerKnowledge, net: Net) -> Attack: ...


ConstraintCheck: TypeAlias = Callable[[Sequence[tuple[AttackCase, Sequence[Doc]]]], Sequence[Sequence[bool]]]
"""A function that tells, for each case and its replacement texts, which texts are allowed."""


class Constraint(Protocol):
    """A requirement on changed documents, such as fluency: a frozen dataclass with a text form."""

    def open(self, knowledge: AttackerKnowledge) -> ConstraintCheck: ...


Suspicion: TypeAlias = Callable[[Sequence[Doc]], NDArray[np.float64]]
"""The suspicion score of each text; higher is more suspicious."""


class Detector(Protocol):
    """A simple filter against attacks that knows the documents of a collection: a frozen dataclass."""

    def open(self, knowledge: AttackerKnowledge) -> Suspicion: ...


@dataclass(frozen=True)
class AttackOutcome:
    """The result of an attack: the best text, or the original if no text served the goal better.

    `trials` counts the ranked texts. `first_success_trial` is the first trial that served the goal (0 if none).
    `scored_pairs` is the total cost: one pair per trial and list, or the whole list if a score depends on the list.
    """

    doc: Doc
    ranks_before: Ranks
    ranks_after: Ranks
    trials: int = 0
    scored_pairs: int = 0
    first_success_trial: int = 0


@dataclass(frozen=True)
class AdversarialDocument:
    """A document changed by an attack, with its queries, recipe and effect.

    `ranks_before` and `ranks_after` are its ranks for the attacked `ranker`; a text from another source may have
    neither. A document without `docno` is not part of the collection and is added to the lists.
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

"""Texts of the query that are put into a document: the query itself, a line that states it, its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from shaketable.attacks.constraints import open_constraints
from shaketable.attacks.knowledge import AttackerKnowledge
from shaketable.attacks.search import BodyTrials
from shaketable.core.attack_types import AttackCase
from shaketable.core.errors import check_parameter
from shaketable.core.seeding import ItemRandom
from shaketable.transforms.insertion import (
    InsertionPosition,
    insert_text,
    prepend_query_lines,
    select_keywords,
    stuff_keywords,
)


@dataclass(frozen=True)
class QueryInsertion:
    """The query is written into the document's body: at its start, at its end, or between two words of its middle.

    Tamber, Lin. Illusions of relevance: using content injection attacks to deceive retrievers, rerankers, and LLM
    judges. 2025. A case of several queries gets all of them.
    """

    place: InsertionPosition = "start"
    times: int = 1
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_parameter(
            "query_insertion", self.place in get_args(InsertionPosition), "place", "start, middle or end", self.place
        )
        check_parameter("query_insertion", 1 <= self.times <= 100, "times", "between 1 and 100", self.times)

    def open(self, knowledge: AttackerKnowledge) -> BodyTrials:
        return BodyTrials(self._make_bodies, open_constraints(self.constraints, knowledge))

    def _make_bodies(self, case: AttackCase, rng: ItemRandom) -> list[str]:
        body = case.doc.body
        for _ in range(self.times):
            for listing in case.lists:
                body = insert_text(body, listing.query, self.place, rng)
        return [body]


@dataclass(frozen=True)
class QueryLine:
    """The query becomes a first line of the document's body: "Query: how do boats float".

    A passage then begins as the prompts of language models do. A case of several queries gets a line for each.

    Tamber, Lin. Illusions of relevance: using content injection attacks to deceive retrievers, rerankers, and LLM
    judges. 2025.
    """

    constraints: tuple[str, ...] = ()

    def open(self, knowledge: AttackerKnowledge) -> BodyTrials:
        return BodyTrials(self._make_bodies, open_constraints(self.constraints, knowledge))

    def _make_bodies(self, case: AttackCase, rng: ItemRandom) -> list[str]:
        return [prepend_query_lines(case.doc.body, [listing.query for listing in case.lists])]


@dataclass(frozen=True)
class KeywordStuffingRecipe:
    """The query's words that are no stop-words are written into the document's body, in their order, n times.

    Each number of times is a trial of its own. In the middle, a place between two words is drawn for each repetition.
    A case of several queries gets the words of all of them; a query of nothing but stop-words has none.

    Gyöngyi, Garcia-Molina. Web spam taxonomy. AIRWeb 2005. Tamber, Lin. Illusions of relevance. 2025.
    """

    times: tuple[int, ...] = (1, 2, 3)
    place: InsertionPosition = "end"
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_parameter(
            "keyword_stuffing", self.place in get_args(InsertionPosition), "place", "start, middle or end", self.place
        )
        fine = bool(self.times) and all(1 <= times <= 100 for times in self.times)
        check_parameter("keyword_stuffing", fine, "times", "numbers between 1 and 100", self.times)

    def open(self, knowledge: AttackerKnowledge) -> BodyTrials:
        return BodyTrials(self._make_bodies, open_constraints(self.constraints, knowledge))

    def _make_bodies(self, case: AttackCase, rng: ItemRandom) -> list[str]:
        words = [word for listing in case.lists for word in select_keywords(listing.query)]
        texts = stuff_keywords(case.doc.body, words, max(self.times), self.place, rng)
        return [texts[n] for n in self.times]

"""Recipes that insert the query, a query line or the query's keywords into a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

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

TrialPosition = InsertionPosition | Literal["each"]
POSITIONS_BEST_FIRST: tuple[InsertionPosition, ...] = ("start", "end", "middle")
"""The order of trials: rankers that truncate texts see their start only."""


@dataclass(frozen=True)
class QueryInsertion:
    """Insert the query at the start, at the end, or between two words of the body; "each" tries all three.

    Tamber, Lin. Illusions of relevance: using content injection attacks to deceive retrievers, rerankers, and LLM
    judges. 2025. A case of several queries gets all of them.
    """

    place: TrialPosition = "start"
    times: int = 1
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_position("query_insertion", self.place)
        check_parameter("query_insertion", 1 <= self.times <= 100, "times", "between 1 and 100", self.times)

    def open(self, knowledge: AttackerKnowledge) -> BodyTrials:
        return BodyTrials(self._make_bodies, open_constraints(self.constraints, knowledge))

    def _make_bodies(self, case: AttackCase, rng: ItemRandom) -> list[str]:
        bodies = []
        for position in _list_positions(self.place):
            body = case.doc.body
            for _ in range(self.times):
                for listing in case.lists:
                    body = insert_text(body, listing.query, position, rng)
            bodies.append(body)
        return bodies


@dataclass(frozen=True)
class QueryLine:
    """Insert the query as the first line of the body: "Query: how do boats float".

    A passage then starts like a prompt of a language model. A case of several queries gets one line for each.

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
    """Insert the query's words without stop-words into the body, in query order, n times.

    Each n is a separate trial, and so is each position if `place` is "each". In the middle, each repetition gets a
    random position between two words. A case of several queries gets the words of all; a query of stop-words only has
    none.

    Gyöngyi, Garcia-Molina. Web spam taxonomy. AIRWeb 2005. Tamber, Lin. Illusions of relevance. 2025.
    """

    times: tuple[int, ...] = (1, 2, 3)
    place: TrialPosition = "end"
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_position("keyword_stuffing", self.place)
        fine = bool(self.times) and all(1 <= times <= 100 for times in self.times)
        check_parameter("keyword_stuffing", fine, "times", "numbers between 1 and 100", self.times)

    def open(self, knowledge: AttackerKnowledge) -> BodyTrials:
        return BodyTrials(self._make_bodies, open_constraints(self.constraints, knowledge))

    def _make_bodies(self, case: AttackCase, rng: ItemRandom) -> list[str]:
        words = [word for listing in case.lists for word in select_keywords(listing.query)]
        texts = [
            stuff_keywords(case.doc.body, words, max(self.times), position, rng)
            for position in _list_positions(self.place)
        ]
        return [some[n] for n in self.times for some in texts]


def _check_position(recipe: str, place: str) -> None:
    known = (*get_args(InsertionPosition), "each")
    check_parameter(recipe, place in known, "place", "start, middle, end or each", place)


def _list_positions(place: TrialPosition) -> tuple[InsertionPosition, ...]:
    return POSITIONS_BEST_FIRST if place == "each" else (place,)

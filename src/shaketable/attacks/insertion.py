"""Texts of the query that are put into a document: the query itself, a line that states it, its words."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, get_args

from shaketable.attacks.constraints import checks
from shaketable.attacks.knowledge import Knowledge
from shaketable.attacks.search import try_all
from shaketable.chance import Draws
from shaketable.errors import check
from shaketable.text.words import NLTK, spans
from shaketable.types import Case, Check, Doc, Steps

Place = Literal["start", "middle", "end"]


@dataclass(frozen=True)
class QueryInsertion:
    """The query is written into the document's body: at its start, at its end, or between two words of its middle.

    Tamber, Lin. Illusions of relevance: using content injection attacks to deceive retrievers, rerankers, and LLM
    judges. 2025. A case of several queries gets all of them.
    """

    place: Place = "start"
    times: int = 1
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check("query_insertion", self.place in get_args(Place), "place", "start, middle or end", self.place)
        check("query_insertion", 1 <= self.times <= 100, "times", "between 1 and 100", self.times)

    def open(self, knowledge: Knowledge) -> _Insertion:
        return _Insertion(self, checks(self.constraints, knowledge))


@dataclass(frozen=True, eq=False)
class _Insertion:
    recipe: QueryInsertion
    checks: list[Check]

    def steps(self, case: Case, draws: Draws) -> Steps:
        doc = case.doc
        for _ in range(self.recipe.times):
            for listing in case.lists:
                doc = inserted(doc, listing.query, self.recipe.place, draws)
        yield from try_all(self.checks, case, [doc])


@dataclass(frozen=True)
class QueryLine:
    """The query becomes a first line of the document's body: "Query: how do boats float".

    A passage then begins as the prompts of language models do. A case of several queries gets a line for each.

    Tamber, Lin. Illusions of relevance: using content injection attacks to deceive retrievers, rerankers, and LLM
    judges. 2025.
    """

    constraints: tuple[str, ...] = ()

    def open(self, knowledge: Knowledge) -> _Lines:
        return _Lines(checks(self.constraints, knowledge))


@dataclass(frozen=True, eq=False)
class _Lines:
    checks: list[Check]

    def steps(self, case: Case, draws: Draws) -> Steps:
        lines = "".join(f"Query: {listing.query}\n" for listing in case.lists)
        yield from try_all(self.checks, case, [replace(case.doc, body=lines + case.doc.body)])


@dataclass(frozen=True)
class KeywordStuffing:
    """The query's words that are no stop-words are written into the document's body, in their order, n times.

    Each number of times is a trial of its own. In the middle, a place between two words is drawn for each repetition.
    A case of several queries gets the words of all of them; a query of nothing but stop-words has none.

    Gyöngyi, Garcia-Molina. Web spam taxonomy. AIRWeb 2005. Tamber, Lin. Illusions of relevance. 2025.
    """

    times: tuple[int, ...] = (1, 2, 3)
    place: Place = "end"
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check("keyword_stuffing", self.place in get_args(Place), "place", "start, middle or end", self.place)
        fine = bool(self.times) and all(1 <= times <= 100 for times in self.times)
        check("keyword_stuffing", fine, "times", "numbers between 1 and 100", self.times)

    def open(self, knowledge: Knowledge) -> _Stuffing:
        return _Stuffing(self, checks(self.constraints, knowledge))


@dataclass(frozen=True, eq=False)
class _Stuffing:
    recipe: KeywordStuffing
    checks: list[Check]

    def steps(self, case: Case, draws: Draws) -> Steps:
        words = " ".join(word for listing in case.lists for word in keywords(listing.query))
        texts = [case.doc]
        for _ in range(max(self.recipe.times) if words else 0):
            texts.append(inserted(texts[-1], words, self.recipe.place, draws))
        yield from try_all(self.checks, case, [texts[n] for n in self.recipe.times if n < len(texts)])


def keywords(query: str) -> list[str]:
    """The words of a query that are no stop-words, in order.

    >>> keywords("What is the weight of a (cargo) boat?")
    ['weight', 'cargo', 'boat']
    """
    words = (query[start:end] for start, end in spans(query))
    return [word for word in words if word.lower() not in NLTK]


def inserted(doc: Doc, text: str, place: Place, draws: Draws) -> Doc:
    """The document with a text in its body: before it, after it, or between two of its words, which are drawn.

    A body of one word or none has no middle: there the text comes last.
    """
    gaps = [gap.start() for gap in _GAP.finditer(doc.body)] if place == "middle" else []
    if gaps:
        at = gaps[draws.below(len(gaps))]
        return replace(doc, body=f"{doc.body[:at]} {text}{doc.body[at:]}")
    parts = [text, doc.body] if place == "start" else [doc.body, text]
    return replace(doc, body=" ".join(filter(None, parts)))


_GAP = re.compile(r"(?<=\S)\s+(?=\S)")

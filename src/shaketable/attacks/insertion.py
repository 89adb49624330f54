"""Texts that are put into a document: the query itself, its words, a sentence from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from shaketable.attacks.constraints import checks
from shaketable.attacks.knowledge import Knowledge
from shaketable.attacks.search import try_all
from shaketable.chance import Draws
from shaketable.errors import check
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


def inserted(doc: Doc, text: str, place: Place, draws: Draws) -> Doc:
    """The document with a text in its body: before it, after it, or between two of its words, which are drawn."""
    words = doc.body.split(" ")
    at = {"start": 0, "end": len(words), "middle": 1 + draws.below(max(1, len(words) - 1))}[place]
    return replace(doc, body=" ".join(part for part in [*words[:at], text, *words[at:]] if part))

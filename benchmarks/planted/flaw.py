"""A flaw, the rankers that have one, and the ways in which a flaw changes scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from benchmarks.planted.bases import BaseRanker, Floats, hash_text
from benchmarks.planted.ranked_list import BOOST, QueryChange, RankedList, compare_queries

from shaketable.core.documents import Collection, Scores, Slate

Adjust: TypeAlias = Callable[[RankedList], Floats]
Effect: TypeAlias = Callable[[str, str, str], float]
"""A function of the query, a changed text and the original text."""
Strength: TypeAlias = Literal["full", "quarter"]


@dataclass(frozen=True)
class Flaw:
    """A flaw: how it changes the scores of a list, and the facets, tests and gate rules that name it.

    `expected` maps a facet to patterns of the test in the cell. The first facet is the flaw's own in the tables.
    """

    name: str
    expected: Mapping[str, Sequence[str]]
    adjust: Adjust = field(repr=False)
    gate_rules: tuple[str, ...] = ()
    pointwise: bool = True
    is_repeatable: bool = True
    needs_query_types: bool = False
    score_noise: float = 0.0

    @property
    def is_held_out(self) -> bool:
        """True for the half of the flaws that no threshold may be tuned on; the name decides."""
        return hash_text("held out", self.name) % 2 == 1


def add_effect(effect: Effect, amount: float = BOOST) -> Adjust:
    """Return an adjustment that adds an amount times the effect to changed texts."""
    return lambda items: items.scores + amount * items.map_changed(effect)


def collapse_if(test: Callable[[str, str, QueryChange], bool]) -> Adjust:
    """Return an adjustment that gives random scores if test(query, original, difference) is True."""

    def adjust(items: RankedList) -> Floats:
        query, original = items.query, items.original_query
        if query != original and original and test(query, original, compare_queries(query, original)):
            return items.draw_noise("collapse", query)
        return items.scores

    return adjust


def collapse_on(select: Callable[[RankedList], bool]) -> Adjust:
    """Return an adjustment that gives random scores to selected queries."""
    return lambda items: items.draw_noise("collapse") if select(items) else items.scores


def is_in_quarter(name: str, qid: str) -> bool:
    """Return True for a seeded quarter of the queries; both queries of a bundled pair are in the same quarter."""
    root = " ".join(qid.split()[:2]) if qid.startswith("pair ") else qid
    return hash_text("quarter", name, root) % 4 == 0


class PlantedRanker:
    """A base ranker with a flaw that acts on all queries, or on a seeded quarter of them."""

    def __init__(self, base: BaseRanker, flaw: Flaw, strength: Strength):
        self.base, self.flaw, self.strength = base, flaw, strength
        self.name = f"{flaw.name} {strength}"
        self.pointwise = flaw.pointwise
        self.fingerprint = f"{self.name} {base.fingerprint}" if flaw.is_repeatable else None
        self.noise = flaw.score_noise
        self.pairs = 0

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        self.pairs += sum(len(slate.docs) for slate in slates)
        return [self._score_list(RankedList(self.base, one.query, tuple(d.text for d in one.docs))) for one in slates]

    def _score_list(self, items: RankedList) -> Floats:
        is_active = self.strength == "full" or is_in_quarter(f"strength of {self.flaw.name}", items.qid)
        return self.flaw.adjust(items) if is_active else items.scores


@dataclass(frozen=True)
class PlantedModel:
    """A model of a ranker that is made in this process, for `shaketable.audit`."""

    ranker: PlantedRanker | BaseRanker

    def open(self, collection: Collection) -> PlantedRanker | BaseRanker:
        return self.ranker

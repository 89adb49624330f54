"""User objects that record their calls; their specs are "tests.counting:NAME"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from shaketable.core.documents import Collection, Doc, Scores, Slate
from shaketable.core.protocols import TransformContext
from shaketable.core.seeding import ItemRandom
from shaketable.rankers import saved_spec
from shaketable.rankers.lexical import BM25, QL
from shaketable.rankers.saved import SavedModel

Search = tuple[str, int]


@dataclass
class Searcher:
    """A retriever that searches with another one's index, without a fingerprint: only the engine can cache it."""

    name: str
    inner: Any
    searches: list[list[Search]]
    pairs: list[tuple[str, Doc]] = field(default_factory=list)

    def search(self, queries: Sequence[str], k: int) -> list[dict[str, float]]:
        self.searches.append([(query, k) for query in queries])
        found: list[dict[str, float]] = self.inner.search(queries, k)
        return found

    def score(self, slates: Sequence[Slate]) -> Sequence[Scores]:
        self.pairs += [(slate.query, doc) for slate in slates for doc in slate.docs]
        scores: Sequence[Scores] = self.inner.score(slates)
        return scores


class FirstStage:
    """BM25 that writes down every search."""

    searches: ClassVar[list[list[Search]]] = []

    def open(self, collection: Collection) -> Searcher:
        return Searcher("first", BM25().open(collection), self.searches)


class Mine:
    """Query likelihood that writes down every search."""

    searches: ClassVar[list[list[Search]]] = []

    def open(self, collection: Collection) -> Searcher:
        return Searcher("mine", QL().open(collection), self.searches)


def list_repeated(calls: list[list[Search]]) -> list[Search]:
    """Return the searches that repeat an earlier search with the same or a larger depth."""
    known: dict[str, int] = {}
    again = []
    for call in calls:
        for query, k in call:
            if known.get(query, 0) >= k:
                again.append((query, k))
            known[query] = max(known.get(query, 0), k)
    return again


@dataclass(frozen=True)
class Elision:
    """A transform that removes letters and records each text and each draw."""

    letters: str = "aeiou"

    applied: ClassVar[list[tuple[str, str, int]]] = []
    category: ClassVar[str] = "misspelling"

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        self.applied.append((self.letters, text, rng.random_bits()))
        places = [match.start() for match in re.finditer(f"[{self.letters}]", text)]
        if not places:
            return None
        place = rng.choice(places)
        return text[:place] + text[place + 1 :]


@dataclass(frozen=True)
class Notebook:
    """A learner that only records its arguments; its model is a fixed formula."""

    k1: float = 1.0

    grid: ClassVar[dict[str, tuple[float, ...]]] = {"k1": (0.5, 2.0)}
    training_data: ClassVar[list[dict[str, Any]]] = []

    def fit(self, collection: Collection, train: Sequence[str], *, folder: str | Path, **given: Any) -> SavedModel:
        number = len(self.training_data)
        kept = ("valid", "seed", "plan", "candidates", "depth")
        lesson = {"train": tuple(train)} | {name: given[name] for name in kept}
        self.training_data.append(lesson)
        card = {"learner": "notebook", "value": -abs(self.k1 - 2.0), "train": {"queries": len(train)}}
        saved_spec.save(f"bm25(k1={self.k1 + number / 8})", Path(folder), card, overwrite=given["overwrite"])
        return SavedModel(str(folder))

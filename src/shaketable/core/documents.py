"""Documents, queries and collections, and the order of a scored list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shaketable.core.errors import BadInput

if TYPE_CHECKING:
    pass

Scores: TypeAlias = NDArray[np.floating[Any]]
Run: TypeAlias = Mapping[str, Mapping[str, float]]
"""qid -> docno -> score. The order of a list is that of `rank_docnos`, never that of the mapping."""
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
    """The text of a query, and what is known of it: its type, such as "person", and the need in a sentence.

    `weight` is how often it was asked, as a query log counts: what means over queries weigh it by.
    """

    text: str
    type: str = ""
    description: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Variant:
    """Another way to write a query, and how it differs: its category in the taxonomy of query variations."""

    text: str
    category: str


@dataclass(frozen=True, slots=True)
class Slate:
    """One query text and the documents to rank for it. It has no ids: its maker keeps them."""

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
    where the data has them. `source` is the text that `datasets.load` reads the documents from, and all of the
    collection unless a part was made of it, for another process to open them by; what was made in memory has none, and
    stays in this process.
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
        """The name of the content: equal texts, queries, judgements and candidates have equal fingerprints.

        The types and weights of the queries are no part of it: no ranker sees them and none learns from them, so that a
        model that was trained before the queries got types is still the model of this collection.
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
    >>> Competition("tiny", {"q": Query("boats")}, {1: round_1, 2: round_1}).get_contested_rounds("q").keys()
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
        if not any(len(self.get_contested_rounds(qid)) > 1 for qid in self.queries):
            raise BadInput(
                f"{self.name}: no query has two rounds with documents of two authors or more in each, so there is no "
                "round to compare with the next"
            )

    def get_contested_rounds(self, qid: str) -> dict[int, Mapping[str, Doc]]:
        """The rounds of a query in their order, without those where one author was alone, as in a round of examples."""
        by_round = {number: self.rounds[number].get(qid, {}) for number in sorted(self.rounds)}
        return {number: docs for number, docs in by_round.items() if len(docs) > 1}


def rank_docnos(scores: Mapping[str, float]) -> list[str]:
    """The one order of a score list: float32 score descending, then docno descending, as trec_eval sorts.

    >>> rank_docnos({"a": 1.0, "b": 1.0, "c": 2.0})
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

"""Documents, queries, collections and the order of a scored list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shaketable.core.errors import BadInput

Scores: TypeAlias = NDArray[np.floating[Any]]
Run: TypeAlias = Mapping[str, Mapping[str, float]]
"""qid -> docno -> score. `rank_docnos` defines the order of a list, not the order of the mapping."""
Qrels: TypeAlias = Mapping[str, Mapping[str, int]]
"""qid -> docno -> grade."""
MAX_CHANGED_CHARS = 200_000
"""The length of the longest text that is changed in a test; longer texts are ranked but never changed.

A test asks for dozens of changed copies of a text. 200,000 characters are about 30,000 words.
"""


@dataclass(frozen=True, slots=True)
class Doc:
    """A document to rank.

    Parameters
    ----------
    body
        The text of the document without its title.
    title
        The title.
    url
        The URL, which is used for features, not for matching.
    """

    body: str
    title: str = ""
    url: str = ""

    @property
    def text(self) -> str:
        """Title and body in one string."""
        return f"{self.title} {self.body}" if self.title and self.body else self.title or self.body


@dataclass(frozen=True, slots=True)
class Query:
    """A query.

    Parameters
    ----------
    text
        The text of the query.
    type
        The query type, such as "person".
    description
        A description of the information need.
    weight
        The frequency of the query in a query log; means over queries are weighted by it.
    language
        The language of the query as an ISO 639-1 code, such as "de"; empty if the collection does not state it.
    """

    text: str
    type: str = ""
    description: str = ""
    weight: float = 1.0
    language: str = ""


@dataclass(frozen=True, slots=True)
class Variant:
    """Another way to write a query, with its category in the taxonomy of query variations.

    A variant with a `language` is the query in this other language.
    """

    text: str
    category: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Slate:
    """A query text and the documents to rank for it, without ids.

    Parameters
    ----------
    query
        The text of the query.
    docs
        The documents.
    """

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
    """Documents, queries, judgements and related data.

    Parameters
    ----------
    name
        The name in reports.
    docs
        The documents by docno.
    queries
        The queries by query id.
    qrels
        The relevance judgements: qid -> docno -> grade.
    splits
        Named sets of query ids, such as "train" and "test".
    candidates
        The run of a first stage, if the data has one.
    variants
        Other ways to write the queries, written by people, if the data has them.
    source
        The spec from which `st.load` opens the documents in another process; for a subset, the spec of the whole
        collection. A collection made in memory has no source and stays in this process.
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
        """A fingerprint of the content: equal texts, queries, judgements and candidates have equal fingerprints.

        Query types and weights are not part of it, because no ranker sees them: models trained before the queries got
        types stay valid.
        """
        queries = sorted((qid, q.text, "", q.description) for qid, q in self.queries.items())
        qrels = sorted((qid, sorted(grades.items())) for qid, grades in self.qrels.items())
        candidates = sorted((qid, sorted(scores.items())) for qid, scores in self.candidates.items())
        return fingerprint(self.docs.fingerprint, queries, qrels, candidates)


@dataclass(frozen=True)
class Competition:
    """A ranking competition: in each round, each author has one document per query.

    `rounds` is round -> query id -> author -> document; `grades` has the judgements in the same layout, and some or all
    may be missing. A name stands for the same author in all rounds. Some query must have two rounds with several
    authors; otherwise `BadInput` is raised.

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
                    raise BadInput(f"{self.name}: query {qid!r} of round {number} has no text")
        if not any(len(self.get_contested_rounds(qid)) > 1 for qid in self.queries):
            raise BadInput(
                f"{self.name}: no query has two rounds with documents of two authors or more in each, so there is no "
                "round to compare with the next"
            )

    def get_contested_rounds(self, qid: str) -> dict[int, Mapping[str, Doc]]:
        """Return the rounds of a query in order, without rounds of a single author, such as rounds of examples."""
        by_round = {number: self.rounds[number].get(qid, {}) for number in sorted(self.rounds)}
        return {number: docs for number, docs in by_round.items() if len(docs) > 1}


def rank_docnos(scores: Mapping[str, float]) -> list[str]:
    """Return the docnos by float32 score descending, then docno descending, as trec_eval sorts.

    >>> rank_docnos({"a": 1.0, "b": 1.0, "c": 2.0})
    ['c', 'b', 'a']
    """
    docnos = sorted(scores, reverse=True)
    order = np.argsort(-np.array([scores[d] for d in docnos], dtype=np.float32), kind="stable")
    return [docnos[i] for i in order]


def fingerprint(*parts: object) -> str:
    """Return a short hash of the content. Parts are compared by their `repr`, so use plain values only.

    >>> fingerprint("a", "b") == fingerprint("ab")
    False
    """
    return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

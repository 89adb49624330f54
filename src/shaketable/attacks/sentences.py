"""Sentences of other documents that are put between those of a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log, sqrt
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shaketable.attacks.constraints import checks
from shaketable.attacks.knowledge import Knowledge
from shaketable.attacks.search import try_all
from shaketable.chance import Draws
from shaketable.errors import check, check_within
from shaketable.text.sentences import split_sentences
from shaketable.text.tokens import Tokenizer
from shaketable.types import Case, Check, Doc, Listing, Steps

Where = Literal["best", "start", "end"]
Vector: TypeAlias = Mapping[str, float]
"""term -> weight; the squares of the weights add up to 1."""

RIVALS = 10
"""Documents at the head of each list whose sentences are candidates."""


@dataclass(frozen=True)
class SentenceInsertion:
    """A sentence of a document that ranks high is put between two sentences of the body, where it connects best.

    Candidates are the sentences of the ten best other documents of each list. At a boundary between sentences, the
    connection of a candidate is the mean of its cosines with the sentence before and the one after; its relevance is
    its cosine with the query. Vectors are terms weighted by idf in the lists. Each candidate goes where it connects
    best (or to the start or the end), and the `candidates` best by

        relevance * (cosine with the query) + (1 - relevance) * connection

    are tried on the target. Title and other sentences stay as they are.

    The idea and the equal weights are IDEM's, whose sentences a language model writes, and nets rate: Chen, He, Ye,
    Sun, Sun. Towards imperceptible document manipulations against neural ranking models. Findings of ACL 2023.
    """

    candidates: int = 20
    place: Where = "best"
    relevance: float = 0.5
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_within("sentence_insertion", self, candidates=(1, 10_000), relevance=(0, 1))
        check("sentence_insertion", self.place in ("best", "start", "end"), "place", "best, start or end", self.place)

    def open(self, knowledge: Knowledge) -> _Joining:
        weights = lru_cache(maxsize=64)(Weights.of)  # several documents of one list are attacked
        return _Joining(self, checks(self.constraints, knowledge), weights)


@dataclass(frozen=True, eq=False)
class _Joining:
    recipe: SentenceInsertion
    checks: list[Check]
    weights: Callable[[tuple[Listing, ...]], Weights]

    def steps(self, case: Case, draws: Draws) -> Steps:
        yield from try_all(self.checks, case, [joined(case.doc, sentence, at) for sentence, at in self._chosen(case)])

    def _chosen(self, case: Case) -> list[tuple[str, int]]:
        """The best candidates, each with the number of the sentence that it is to stand before."""
        weights = self.weights(case.lists)
        own = split_sentences(case.doc.body)
        neighbours = _Neighbours([weights.vector(sentence) for sentence in own])
        queries = [weights.vector(listing.query) for listing in case.lists]
        rated: list[tuple[float, str, int]] = []
        for sentence in rivals_sentences(case):
            if sentence in own or not (vector := weights.vector(sentence)):
                continue
            connections = neighbours.connections(vector)
            at = {"best": int(connections.argmax()), "start": 0, "end": len(own)}[self.recipe.place]
            relevance = sum(cosine(vector, query) for query in queries) / len(queries)
            share = self.recipe.relevance
            rated.append((share * relevance + (1 - share) * float(connections[at]), sentence, at))
        rated.sort(key=lambda one: -one[0])  # stable: of equals the one of the better document is first
        return [(sentence, at) for _, sentence, at in rated[: self.recipe.candidates]]


def rivals_sentences(case: Case) -> list[str]:
    """The distinct sentences of the best other documents of each list, best documents first."""
    found: dict[str, None] = {}
    for listing in case.lists:
        for doc in listing.others(case.docno)[:RIVALS]:
            found |= dict.fromkeys(split_sentences(doc.body))
    return list(found)


def joined(doc: Doc, sentence: str, at: int) -> Doc:
    """The document with a sentence before the one of this number in its body, or after the last.

    >>> joined(Doc("It rains.  It pours."), "It drips.", 1).body
    'It rains. It drips.  It pours.'
    """
    body = doc.body
    if at == 0:
        return replace(doc, body=f"{sentence} {body}" if body.strip() else sentence)
    end = 0
    for before in split_sentences(body)[:at]:
        end = body.index(before, end) + len(before)
    return replace(doc, body=f"{body[:end]} {sentence}{body[end:]}")


@dataclass(frozen=True, eq=False)
class Weights:
    """What terms weigh in the documents of lists: idf = ln(1 + N / df), with df = 1 for a term in none of them."""

    documents: int
    counts: Mapping[str, int]

    @classmethod
    def of(cls, lists: tuple[Listing, ...]) -> Weights:
        docs = {docno: doc for one in lists for docno, doc in zip(one.docnos, one.docs, strict=True)}
        terms = [set(_terms(doc.text)) for doc in docs.values()]
        return cls(len(terms), Counter(term for some in terms for term in some))

    def vector(self, text: str) -> Vector:
        """The terms of a text, weighted; empty where it has none."""
        tf = Counter(_terms(text))
        weights = {term: n * log(1 + self.documents / max(1, self.counts.get(term, 0))) for term, n in tf.items()}
        length = sqrt(sum(weight * weight for weight in weights.values()))
        return {term: weight / length for term, weight in weights.items()} if length else {}


def cosine(left: Vector, right: Vector) -> float:
    """The cosine of two vectors of length 1; 0 where one is empty."""
    return sum(weight * right[term] for term, weight in left.items() if term in right)


class _Neighbours:
    """The sentences of a document by their terms, so that a candidate meets only those that it shares a term with."""

    def __init__(self, sentences: Sequence[Vector]):
        self._sentences = len(sentences)
        self._by_term: dict[str, list[tuple[int, float]]] = {}
        for number, vector in enumerate(sentences):
            for term, weight in vector.items():
                self._by_term.setdefault(term, []).append((number, weight))

    def connections(self, vector: Vector) -> NDArray[np.float64]:
        """How well a sentence connects before each sentence, and after the last: its mean cosine with neighbours."""
        cosines = np.zeros(self._sentences)
        for term, weight in vector.items():
            for number, other in self._by_term.get(term, ()):
                cosines[number] += weight * other
        if not self._sentences:
            return np.zeros(1)
        return np.concatenate([cosines[:1], (cosines[:-1] + cosines[1:]) / 2, cosines[-1:]])


_terms = Tokenizer()

"""A recipe that inserts sentences of other documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import log, sqrt
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shaketable.attacks.constraints import open_constraints
from shaketable.attacks.knowledge import AttackerKnowledge
from shaketable.attacks.search import BodyTrials
from shaketable.core.attack_types import AttackCase, TargetRanking
from shaketable.core.errors import check_parameter, check_ranges
from shaketable.core.seeding import ItemRandom
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.sentences import split_sentences
from shaketable.transforms.insertion import insert_sentence

SentencePosition = Literal["best", "start", "end"]
WeightsOfLists: TypeAlias = "Callable[[tuple[TargetRanking, ...]], Weights]"
TermVector: TypeAlias = Mapping[str, float]
"""Term -> weight; the vector has length 1."""

RIVALS_PER_LIST = 10
"""Top documents of each list whose sentences are candidates."""


@dataclass(frozen=True)
class SentenceInsertion:
    """Insert a sentence of a high-ranked document between two sentences of the body, where it connects best.

    Candidates are the sentences of the ten best other documents of each list. At a sentence boundary, the connection of
    a candidate is its mean cosine with the sentences before and after. Its relevance is its cosine with the query.
    Vectors are terms weighted by idf in the lists. Each candidate goes where it connects best (or to the start or the
    end), and the `candidates` best by

        relevance * (cosine with the query) + (1 - relevance) * connection

    are tried on the target. Title and other sentences stay unchanged.

    The idea and the equal weights are those of IDEM, where a language model writes the sentences and nets rate them:
    Chen, He, Ye, Sun, Sun. Towards imperceptible document manipulations against neural ranking models. Findings of ACL
    2023.
    """

    candidates: int = 20
    place: SentencePosition = "best"
    relevance: float = 0.5
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_ranges("sentence_insertion", self, candidates=(1, 10_000), relevance=(0, 1))
        check_parameter(
            "sentence_insertion", self.place in ("best", "start", "end"), "place", "best, start or end", self.place
        )

    def open(self, knowledge: AttackerKnowledge) -> BodyTrials:
        weights = lru_cache(maxsize=64)(Weights.from_rankings)  # many targets share a list
        return BodyTrials(partial(self._make_bodies, weights), open_constraints(self.constraints, knowledge))

    def _make_bodies(self, weights: WeightsOfLists, case: AttackCase, rng: ItemRandom) -> list[str]:
        chosen = self._select_sentences(weights(case.lists), case)
        return [insert_sentence(case.doc.body, sentence, at) for sentence, at in chosen]

    def _select_sentences(self, weights: Weights, case: AttackCase) -> list[tuple[str, int]]:
        """Return the best candidates, each with the number of the sentence it is inserted before."""
        own = split_sentences(case.doc.body)
        neighbours = _Neighbours([weights.vectorize(sentence) for sentence in own])
        queries = [weights.vectorize(listing.query) for listing in case.lists]
        rated: list[tuple[float, str, int]] = []
        for sentence in collect_rival_sentences(case):
            if sentence in own or not (vector := weights.vectorize(sentence)):
                continue
            connections = neighbours.compute_connections(vector)
            at = {"best": int(connections.argmax()), "start": 0, "end": len(own)}[self.place]
            relevance = sum(cosine(vector, query) for query in queries) / len(queries)
            value = self.relevance * relevance + (1 - self.relevance) * float(connections[at])
            rated.append((value, sentence, at))
        rated.sort(key=lambda one: -one[0])  # stable: ties keep the order of the documents
        return [(sentence, at) for _, sentence, at in rated[: self.candidates]]


def collect_rival_sentences(case: AttackCase) -> list[str]:
    """Return the distinct sentences of the best other documents of each list, best documents first.

    A document of one sentence gives none: a text that contains a whole relevant document may be relevant itself.
    """
    found: dict[str, None] = {}
    for listing in case.lists:
        for doc in listing.get_other_documents(case.docno)[:RIVALS_PER_LIST]:
            sentences = split_sentences(doc.body)
            found |= dict.fromkeys(sentences if len(sentences) > 1 else ())
    return list(found)


@dataclass(frozen=True, eq=False)
class Weights:
    """The term weights in the documents of lists: idf = ln(1 + N / df), with df = 1 for an unknown term."""

    document_count: int
    document_frequencies: Mapping[str, int]

    @classmethod
    def from_rankings(cls, lists: tuple[TargetRanking, ...]) -> Weights:
        docs = {docno: doc for one in lists for docno, doc in zip(one.docnos, one.docs, strict=True)}
        terms = [set(_analyze(doc.text)) for doc in docs.values()]
        return cls(len(terms), Counter(term for some in terms for term in some))

    def vectorize(self, text: str) -> TermVector:
        """Return the weighted terms of a text, normalised to length 1; empty if it has no terms."""
        tf = Counter(_analyze(text))
        weights = {
            term: n * log(1 + self.document_count / max(1, self.document_frequencies.get(term, 0)))
            for term, n in tf.items()
        }
        length = sqrt(sum(weight * weight for weight in weights.values()))
        return {term: weight / length for term, weight in weights.items()} if length else {}


def cosine(left: TermVector, right: TermVector) -> float:
    """Return the cosine of two vectors of length 1; 0 if one is empty."""
    return sum(weight * right[term] for term, weight in left.items() if term in right)


class _Neighbours:
    """An index of a document's sentences by term, so that a candidate is compared only where it shares a term."""

    def __init__(self, sentences: Sequence[TermVector]):
        self._sentence_count = len(sentences)
        self._by_term: dict[str, list[tuple[int, float]]] = {}
        for number, vector in enumerate(sentences):
            for term, weight in vector.items():
                self._by_term.setdefault(term, []).append((number, weight))

    def compute_connections(self, vector: TermVector) -> NDArray[np.float64]:
        """Return the mean cosine of a sentence with its neighbours at each boundary, start and end included."""
        cosines = np.zeros(self._sentence_count)
        for term, weight in vector.items():
            for number, other in self._by_term.get(term, ()):
                cosines[number] += weight * other
        if not self._sentence_count:
            return np.zeros(1)
        return np.concatenate([cosines[:1], (cosines[:-1] + cosines[1:]) / 2, cosines[-1:]])


_analyze = Analyzer()

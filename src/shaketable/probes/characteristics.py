"""Characteristics of the documents of one query, by which pairs are matched.

Relevance, length, term frequencies, their sum and overlap are those of paper 001 (section 4; methods of its code: terms
without stop-words, stemmed, as in the index). The others are quantities of the retrieval axioms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from shaketable.nlp.thesaurus import read_bundled_thesaurus
from shaketable.probes.context import JudgedDoc, ProbeContext

Values = NDArray[np.float64]
"""One value for each document [documents] or for each document and query term [documents, terms]. A document with NaN
is not matched."""
MAX_TERMS_IN_PAIRS = 100
"""The largest number of query terms whose pairs are compared."""


@dataclass(frozen=True, eq=False)
class DocumentPool:
    """The documents of one query with their index terms."""

    context: ProbeContext
    docs: Sequence[JudgedDoc]
    _measurements: dict[str, Values] = field(default_factory=dict, repr=False)

    @cached_property
    def query_terms(self) -> list[str]:
        """The distinct terms of the query."""
        return list(dict.fromkeys(self.context.extract_query_terms(self.docs[0].query)))

    @cached_property
    def document_terms(self) -> list[list[str]]:
        """The terms of each document."""
        return [self.context.extract_terms(doc.doc.text) for doc in self.docs]

    @cached_property
    def term_positions(self) -> list[dict[str, list[int]]]:
        """The positions of the query terms in each document."""
        wanted = set(self.query_terms)
        places: list[dict[str, list[int]]] = []
        for terms in self.document_terms:
            here: dict[str, list[int]] = {}
            for place, term in enumerate(terms):
                if term in wanted:
                    here.setdefault(term, []).append(place)
            places.append(here)
        return places

    @cached_property
    def idf(self) -> Values:
        """ln(N / df) of each query term; an unknown term counts as df = 1."""
        return np.array([self.context.idf(term) for term in self.query_terms])

    def measure(self, name: str) -> Values:
        """Return a characteristic of all documents, computed once."""
        if name not in self._measurements:
            self._measurements[name] = CHARACTERISTICS[name](self)
        return self._measurements[name]

    def measure_positions(self, function: Callable[[dict[str, list[int]]], float | None]) -> Values:
        """Apply a function to the positions of the query terms in each document; None becomes NaN."""
        found = (function(here) for here in self.term_positions)
        return np.array([np.nan if one is None else one for one in found])


def build_pools(context: ProbeContext, include_unjudged: bool = False) -> Mapping[str, DocumentPool]:
    """Return the documents of each query with at least two; probes with the same context share them."""
    if include_unjudged not in context.shared_cache:
        docs = context.get_documents(include_unjudged)
        context.shared_cache[include_unjudged] = {
            qid: DocumentPool(context, some) for qid, some in docs.items() if len(some) > 1
        }
    found: Mapping[str, DocumentPool] = context.shared_cache[include_unjudged]
    return found


def relevance(pool: DocumentPool) -> Values:
    """Return the grade of each document."""
    return np.array([doc.grade for doc in pool.docs], dtype=np.float64)


def length(pool: DocumentPool) -> Values:
    """Return the number of terms of each document."""
    return np.array([len(terms) for terms in pool.document_terms], dtype=np.float64)


def frequencies(pool: DocumentPool) -> Values:
    """Return the frequency of each query term in each document."""
    counts = [[len(here.get(term, ())) for term in pool.query_terms] for here in pool.term_positions]
    return np.array(counts, dtype=np.float64).reshape(len(pool.docs), len(pool.query_terms))


def frequency(pool: DocumentPool) -> Values:
    """Return the total frequency of the query terms in each document."""
    return np.asarray(frequencies(pool).sum(axis=1))


def overlap(pool: DocumentPool) -> Values:
    """Return Σ TF / length; documents without a query term have NaN, as in the paper's code."""
    total, size = frequency(pool), length(pool)
    return np.divide(total, size, out=np.full_like(total, np.nan), where=total > 0)


def idf_overlap(pool: DocumentPool) -> Values:
    """Return Σ TF · IDF / length."""
    total, size = frequencies(pool) @ pool.idf, length(pool)
    return np.divide(total, size, out=np.full_like(total, np.nan), where=(total > 0) & (size > 0))


def coverage(pool: DocumentPool) -> Values:
    """Return the number of distinct query terms in each document."""
    return np.asarray((frequencies(pool) > 0).sum(axis=1), dtype=np.float64)


def rarity(pool: DocumentPool) -> Values:
    """Return the mean IDF of the occurrences of query terms."""
    tf = frequencies(pool)
    total = tf.sum(axis=1)
    return np.asarray(np.divide(tf @ pool.idf, total, out=np.full(len(tf), np.nan), where=total > 0))


def evenness(pool: DocumentPool) -> Values:
    """Return the evenness of the occurrences over the query terms: -Σ TF², largest if all are equal."""
    tf = frequencies(pool)
    return np.where(tf.sum(axis=1) > 0, -np.square(tf).sum(axis=1), np.nan)


def other_words(pool: DocumentPool) -> Values:
    """Return the number of words that are not query terms."""
    return length(pool) - frequency(pool)


def first_match(pool: DocumentPool) -> Values:
    """Return the position of the first query term."""
    return pool.measure_positions(lambda here: min(places[0] for places in here.values()) if here else None)


def all_early(pool: DocumentPool) -> Values:
    """Return the mean first position of the query terms; NaN unless all occur."""
    size = len(pool.query_terms)
    return pool.measure_positions(
        lambda h: sum(places[0] for places in h.values()) / size if len(h) == size > 1 else None
    )


def distance(pool: DocumentPool) -> Values:
    """Return the mean over pairs of query terms of the fewest terms between them; NaN unless all occur.

    It is NaN also for queries of more than `MAX_TERMS_IN_PAIRS` terms, which have too many pairs.
    """
    if not 2 <= len(pool.query_terms) <= MAX_TERMS_IN_PAIRS:
        return np.full(len(pool.docs), np.nan)

    def mean(here: dict[str, list[int]]) -> float | None:
        if len(here) < len(pool.query_terms):
            return None
        gaps = [find_smallest_gap(here[s], here[t]) - 1 for s, t in combinations(pool.query_terms, 2)]
        return sum(gaps) / len(gaps)

    return pool.measure_positions(mean)


def find_smallest_gap(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the smallest distance between a position of one sorted list and one of the other.

    >>> find_smallest_gap([0, 10, 20], [4, 17])
    3
    """
    i = j = 0
    least = abs(first[0] - second[0])
    while i < len(first) and j < len(second):
        least = min(least, abs(first[i] - second[j]))
        if first[i] < second[j]:
            i += 1
        else:
            j += 1
    return least


def window(pool: DocumentPool) -> Values:
    """Return the length of the smallest window with all query terms; NaN unless all occur."""
    size = len(pool.query_terms)
    return pool.measure_positions(lambda here: smallest_window(here) if len(here) == size > 1 else None)


def smallest_window(positions: Mapping[str, Sequence[int]]) -> int:
    """Return the length of the shortest window with one position of each term.

    >>> smallest_window({"a": [0, 7], "b": [3, 9], "c": [8]})
    3
    """
    marks = sorted((place, term) for term, all_places in positions.items() for place in all_places)
    inside: Counter[str] = Counter()
    left, best = 0, marks[-1][0] - marks[0][0] + 1
    for place, term in marks:
        inside[term] += 1
        while len(inside) == len(positions):
            best = min(best, place - marks[left][0] + 1)
            inside[marks[left][1]] -= 1
            if not inside[marks[left][1]]:
                del inside[marks[left][1]]
            left += 1
    return best


def phrase(pool: DocumentPool) -> Values:
    """Return the position of the exact query phrase; NaN if it does not occur."""
    typed = pool.context.extract_terms(pool.docs[0].query)
    return np.array([_find_phrase(terms, typed) if len(typed) > 1 else np.nan for terms in pool.document_terms])


def _find_phrase(terms: Sequence[str], wanted: Sequence[str]) -> float:
    ends = range(len(terms) - len(wanted) + 1)
    return next((float(i) for i in ends if list(terms[i : i + len(wanted)]) == list(wanted)), np.nan)


def surroundings(pool: DocumentPool) -> Values:
    """Return the mean distance from each occurrence of a query term to the nearest occurrence of another."""

    def mean(here: dict[str, list[int]]) -> float | None:
        if len(here) < 2:
            return None
        marks = sorted((place, term) for term, places in here.items() for place in places)
        back = [(-place, term) for place, term in reversed(marks)]
        gaps = map(min, _find_gaps_to_other_terms(marks), reversed(list(_find_gaps_to_other_terms(back))))
        return sum(gaps) / len(marks)

    return pool.measure_positions(mean)


def _find_gaps_to_other_terms(marks: Sequence[tuple[int, str]]) -> Iterator[float]:
    """Yield the distance from each position to the last position of another term; infinity if there is none before.

    >>> list(_find_gaps_to_other_terms([(0, "a"), (2, "b"), (5, "b"), (6, "a")]))
    [inf, 2, 5, 1]
    """
    last, other = marks[0], (float("-inf"), "")  # the last position, and the last one of another term
    for mark in marks:
        if mark[1] != last[1]:
            other = last
        last = mark
        yield mark[0] - other[0]


def synonyms(pool: DocumentPool) -> Values:
    """Return the number of terms that the bundled thesaurus lists as synonyms of a query word."""
    known = read_bundled_thesaurus()
    words = pool.context.extract_words(pool.docs[0].query)
    others = {other for word in words for by_part in known.get(word, {}).values() for other in by_part}
    wanted = {term for other in others for term in pool.context.extract_terms(other)} - set(pool.query_terms)
    return np.array([sum(term in wanted for term in terms) for terms in pool.document_terms], dtype=np.float64)


def frequency_or_synonyms(pool: DocumentPool) -> Values:
    """Return the number of words that are query terms or their synonyms; NaN if there are none."""
    total = frequency(pool) + synonyms(pool)
    return np.where(total > 0, total, np.nan)


def reading_grade(pool: DocumentPool) -> Values:
    """Return the school grade of a text: 0.0588 L - 0.296 S - 15.8, of letters and sentences in 100 words.

    Coleman, Liau. A computer readability formula designed for machine scoring. J. Applied Psychology 1975.
    """
    values = []
    for doc in pool.docs:
        parsed = pool.context.parse(doc.doc.body)
        words = [token.text for token in parsed.tokens if any(map(str.isalnum, token.text))]
        letters = sum(map(str.isalnum, "".join(words)))
        grade = 5.88 * letters / len(words) - 29.6 * len(parsed.sentences) / len(words) - 15.8 if words else np.nan
        values.append(round(grade, 6))
    return np.array(values)


def sentences(pool: DocumentPool) -> Values:
    """Return the number of sentences of each document."""
    return np.array([len(pool.context.parse(doc.doc.body).sentences) for doc in pool.docs], dtype=np.float64)


CHARACTERISTICS: Mapping[str, Callable[[DocumentPool], Values]] = {
    "relevance": relevance,
    "length": length,
    "tf": frequencies,
    "sum_tf": frequency,
    "overlap": overlap,
    "idf_overlap": idf_overlap,
    "coverage": coverage,
    "rarity": rarity,
    "evenness": evenness,
    "other_words": other_words,
    "sum_tf_or_synonyms": frequency_or_synonyms,
    "first_match": first_match,
    "all_early": all_early,
    "distance": distance,
    "window": window,
    "phrase": phrase,
    "surroundings": surroundings,
    "synonyms": synonyms,
    "reading_grade": reading_grade,
    "sentences": sentences,
}
"""name -> function that measures the documents of a pool, as [documents] or [documents, terms]."""

PARSER_CHARACTERISTICS = ("reading_grade", "sentences")
"""The characteristics that need a parser."""

CHARACTERISTIC_TITLES = {
    "relevance": "Relevance",
    "length": "Length",
    "tf": "TF",
    "sum_tf": "Sum-TF",
    "overlap": "Overlap",
    "idf_overlap": "IDF overlap",
    "coverage": "Distinct query terms",
    "rarity": "Rarity of matches",
    "evenness": "Evenness of TF",
    "other_words": "Other words",
    "sum_tf_or_synonyms": "Sum-TF or synonyms",
    "first_match": "Place of first match",
    "all_early": "Mean first place",
    "distance": "Distance of query terms",
    "window": "Smallest window",
    "phrase": "Place of the phrase",
    "surroundings": "Distance to next match",
    "synonyms": "Synonyms",
    "reading_grade": "Reading grade",
    "sentences": "Sentences",
}

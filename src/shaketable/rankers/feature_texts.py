"""Texts and queries as term numbers, for features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shaketable.nlp.analyzer import Analyzer
from shaketable.retrieval.inverted_index import QueryBags
from shaketable.retrieval.term_numbers import TermNumbering, TextCache

MAX_TERMS = 2_000_000  # terms that a reader numbers before it is reset


class TermReader:
    """A reader that maps texts and queries to term numbers, which all fields share. Words and texts are cached."""

    def __init__(self, analyzer: Analyzer, max_terms: int = MAX_TERMS):
        self._analyzer, self._max_terms = analyzer, max_terms
        self._reset()

    def number_terms(self, queries: Sequence[str]) -> tuple[NDArray[np.integer[Any]], NDArray[np.int64]]:
        """Return the term numbers of all queries in sequence, and the number of terms of each query.

        The numbers are valid until the next call of this method or `make_bags`, which may reset the reader.
        """
        if len(self.terms) > self._max_terms:
            self._reset()
        return self._vocabulary(queries)

    def make_bags(self, queries: Sequence[str]) -> QueryBags:
        """Return the terms of each query as a bag of words."""
        terms, sizes = self.number_terms(queries)
        return QueryBags.from_triples(
            len(queries), np.repeat(np.arange(len(queries)), sizes), terms, np.ones(len(terms))
        )

    def _reset(self) -> None:
        self.terms: list[str] = []
        known: dict[str, int] = {}

        def numbers(terms: list[str]) -> list[int]:
            for term in terms:
                if known.setdefault(term, len(known)) == len(self.terms):
                    self.terms.append(term)
            return [known[term] for term in terms]

        self._vocabulary = TermNumbering(self._analyzer, numbers)
        self.texts = TextCache(self._vocabulary)

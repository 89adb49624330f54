"""Texts and queries as numbers of terms, whatever the field, for features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shaketable.index.inverted import Bags
from shaketable.index.texts import Texts, Vocabulary
from shaketable.text.tokens import Tokenizer

TERMS = 2_000_000  # that a reader numbers before it starts anew


class Reader:
    """Texts and queries as numbers of terms, whatever the field: a word is looked at once, a text once for a field."""

    def __init__(self, tokenizer: Tokenizer, limit: int = TERMS):
        self._tokenizer, self._limit = tokenizer, limit
        self._forget()

    def words(self, queries: Sequence[str]) -> tuple[NDArray[np.integer[Any]], NDArray[np.int64]]:
        """The terms of queries one after the other, and how many each query has.

        Numbers hold until the next call of this or of `bags`, which forgets them if there are too many.
        """
        if len(self.terms) > self._limit:
            self._forget()
        return self._vocabulary(queries)

    def bags(self, queries: Sequence[str]) -> Bags:
        """The terms of queries, without their order."""
        terms, sizes = self.words(queries)
        return Bags.of(len(queries), np.repeat(np.arange(len(queries)), sizes), terms, np.ones(len(terms)))

    def _forget(self) -> None:
        self.terms: list[str] = []
        known: dict[str, int] = {}

        def numbers(terms: list[str]) -> list[int]:
            for term in terms:
                if known.setdefault(term, len(known)) == len(self.terms):
                    self.terms.append(term)
            return [known[term] for term in terms]

        self._vocabulary = Vocabulary(self._tokenizer, numbers)
        self.texts = Texts(self._vocabulary)

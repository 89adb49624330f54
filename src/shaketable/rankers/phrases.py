"""Phrases of a query that occur in a text, and their log-probabilities under a language model.

A text is read from its start. Where a phrase of the query begins, the longest one, of at most 7 words, is taken, and
reading continues after it. A phrase that is part of a longer phrase taken elsewhere is not counted again, and a single
stop word is not a phrase. Words are compared in lower case, without stemming.

These are the features on texts of the search engine of Semantic Scholar (Feldman. Building a better search engine for
Semantic Scholar. 2020), which paper 001 calls L-GBM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Doc
from shaketable.nlp.ngram_model import UNKNOWN, NGramModel
from shaketable.nlp.stopwords import ENGLISH_STOPWORDS
from shaketable.rankers.feature_texts import TermReader

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MAX_PHRASE_WORDS = 7
MAX_CACHED_TEXTS = 100_000  # texts whose fluency is cached


@dataclass(frozen=True, eq=False)
class Phrases:
    """The phrases of queries in texts; each array has one number for each pair of a query and a text."""

    query_length: Floats
    """The number of words of the query."""
    content_words: Floats
    """The number of distinct query words that are not stop words."""
    covered: Floats
    """The number of content words that are in a phrase of the text."""
    phrases: Floats
    """The number of phrases in the text."""
    logs: Floats
    """The sum of log10 p of these phrases."""
    mass: Floats
    """The sum of log10 p times the number of words of each phrase."""
    longest: Floats
    """The number of words of the longest phrase."""
    neighbours: Floats
    """The number of adjacent query words that are adjacent in the text, in the same order."""
    missing: Floats
    """The sum of log10 p of the content words that the text lacks and the language model knows."""
    fluency: Floats
    """log10 p of the text per word."""


@dataclass(frozen=True, eq=False)
class PhraseReader:
    """A phrase finder for any texts, with a language model that scores the phrases."""

    model: NGramModel
    reader: TermReader
    _cached_fluency: dict[str, float] = field(default_factory=dict, repr=False)

    @classmethod
    def from_model(cls, model: NGramModel) -> PhraseReader:
        return cls(model, TermReader(model.analyzer))

    def find_phrases(self, queries: Sequence[str], owners: Ints, docs: Sequence[Doc], texts: Ints) -> Phrases:
        """Return the phrases of query owners[p] in docs[texts[p]], for every pair p."""
        from shaketable.rankers import phrase_kernels

        terms, sizes = self.reader.number_terms(queries)
        rows, tokens, starts = self.reader.texts.read(docs)
        first = np.concatenate(([0], np.cumsum(sizes)))
        distinct, which = np.unique(terms, return_inverse=True)
        words = [self.reader.terms[term] for term in distinct]
        numbers = np.array([self.model.find_word_number(word) for word in words], np.int64)[which]
        plain = np.array([word in ENGLISH_STOPWORDS for word in words], np.bool_)[which]
        asked = np.repeat(np.arange(len(queries)), sizes)
        content = np.zeros(len(terms), np.bool_)
        content[np.unique(asked * (1 << 32) + terms, return_index=True)[1]] = True  # the first occurrence of each word
        content &= ~plain
        pairs = len(owners)
        outs = np.zeros((len(phrase_kernels.OUTPUT_ROWS), pairs))
        phrase_kernels.fill_phrases(
            tokens, starts, first, terms, plain, content, numbers != UNKNOWN,
            self._compute_span_logs(numbers, first), owners, rows[texts], outs,
        )  # fmt: skip
        contents = np.bincount(asked[content], minlength=len(queries)).astype(np.float64)
        fluency = self._compute_fluency([doc.text for doc in docs])[texts]
        return Phrases(
            query_length=sizes[owners].astype(np.float64),
            content_words=contents[owners],
            fluency=fluency,
            **dict(zip(phrase_kernels.OUTPUT_ROWS, outs, strict=True)),
        )

    def _compute_span_logs(self, numbers: Ints, first: Ints) -> Floats:
        """Return log10 p of the phrases of 1, 2, ... words that start at each query word, without left context."""
        ends = np.repeat(first[1:], np.diff(first))
        places = np.arange(len(numbers))[:, None] + np.arange(MAX_PHRASE_WORDS)  # [words, MAX_PHRASE_WORDS]
        inside = places < ends[:, None]
        logs = np.zeros(places.shape)
        logs[inside] = self.model.compute_conditional_logs(numbers[places[inside]], np.nonzero(inside)[1])
        return np.cumsum(logs, axis=1)

    def _compute_fluency(self, texts: Sequence[str]) -> Floats:
        known = self._cached_fluency
        if len(known) > MAX_CACHED_TEXTS:
            known.clear()
        if fresh := [text for text in dict.fromkeys(texts) if text not in known]:
            scores = self.model.score(fresh).tolist()
            known.update((text, score if text.strip() else 0.0) for text, score in zip(fresh, scores, strict=True))
        return np.array([known[text] for text in texts])

"""The phrases of a query that a text has, word after word, and what a language model says of them and of the text.

A text is read from its start. Where a phrase of the query begins, the longest one, of 7 words at most, is taken, and
reading goes on behind it. A phrase that is part of a longer one that was taken elsewhere is not counted again, and a
single stop-word is no phrase. Words are compared as they are, in lower case.

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
MAX_CACHED_TEXTS = 100_000  # texts whose fluency is


@dataclass(frozen=True, eq=False)
class Phrases:
    """What texts have of queries' phrases, each array with a number for each pair of a query and a text."""

    query_length: Floats
    """Words of the query."""
    content_words: Floats
    """Different words of the query that are no stop-words."""
    covered: Floats
    """Those of them that are in a phrase that the text has."""
    phrases: Floats
    """Phrases that the text has."""
    logs: Floats
    """log10 p of these phrases, added up."""
    mass: Floats
    """The same, each times the words of the phrase."""
    longest: Floats
    """Words of the longest."""
    neighbours: Floats
    """Neighbouring words of the query that are neighbours in the text too, in this order."""
    missing: Floats
    """log10 p of the content words that the text lacks and the language model knows, added up."""
    fluency: Floats
    """log10 p of the text, per word."""


@dataclass(frozen=True, eq=False)
class PhraseReader:
    """Finds phrases in any texts, and has a language model judge them."""

    model: NGramModel
    reader: TermReader
    _cached_fluency: dict[str, float] = field(default_factory=dict, repr=False)

    @classmethod
    def from_model(cls, model: NGramModel) -> PhraseReader:
        return cls(model, TermReader(model.analyzer))

    def find_phrases(self, queries: Sequence[str], owners: Ints, docs: Sequence[Doc], texts: Ints) -> Phrases:
        """What docs[texts[p]] has of query owners[p], for every pair p."""
        from shaketable.rankers import phrase_kernels

        terms, sizes = self.reader.number_terms(queries)
        held = self.reader.texts.add_rows(docs)[texts]
        first = np.concatenate(([0], np.cumsum(sizes)))
        distinct, which = np.unique(terms, return_inverse=True)
        words = [self.reader.terms[term] for term in distinct]
        numbers = np.array([self.model.find_word_number(word) for word in words], np.int64)[which]
        plain = np.array([word in ENGLISH_STOPWORDS for word in words], np.bool_)[which]
        asked = np.repeat(np.arange(len(queries)), sizes)
        content = np.zeros(len(terms), np.bool_)
        content[np.unique(asked * (1 << 32) + terms, return_index=True)[1]] = True  # each word where it stands first
        content &= ~plain
        pairs = len(owners)
        outs = np.zeros((len(phrase_kernels.OUTPUT_ROWS), pairs))
        phrase_kernels.fill_phrases(
            self.reader.texts.tokens, self.reader.texts.starts, first, terms, plain, content, numbers != UNKNOWN,
            self._compute_span_logs(numbers, first), owners, held, outs,
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
        """log10 p of the phrase of 1, 2, ... words from each word of the queries on, nothing being known before it."""
        ends = np.repeat(first[1:], np.diff(first))
        places = np.arange(len(numbers))[:, None] + np.arange(MAX_PHRASE_WORDS)  # [words, LONGEST]
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

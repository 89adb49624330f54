"""The list that a flaw acts on, and the differences between its texts and the originals."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, lru_cache

import numpy as np
from benchmarks.planted.bases import UNRECOGNISED, BaseRanker, Floats, draw_normals
from benchmarks.planted.recognition import UNKNOWN, split_words
from numpy.typing import NDArray

BOOST = 10.0
"""A change of score that brings any document to the top, or to the end, of any list."""
TYPO_SIMILARITY = 0.7
"""The similarity of a word to a word of the original query from which it counts as a typing error."""
STOP_WORDS = frozenset(
    "a an and are as at be by can did do does for from has have how in is it of on or that the there this to was were "
    "what when where which who why will with".split()
)
QUESTION_WORDS = frozenset("what when where which who whom whose why how is are was were do does did can could".split())


@dataclass(frozen=True)
class RankedList:
    """A query, the texts to rank, and the scores of the base ranker."""

    base: BaseRanker
    query: str
    texts: tuple[str, ...]

    @cached_property
    def qid(self) -> str:
        """The id of the query that the base ranker recognises."""
        return self.base.known.find_query(self.query)

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """The numbers of the documents that the base ranker recognises."""
        return self.base.known.find_docs(self.texts)

    @cached_property
    def scores(self) -> Floats:
        return self.base.score_known(self.qid, self.numbers)

    @property
    def original_query(self) -> str:
        return self.base.known.queries.get(self.qid, "")

    @property
    def positions(self) -> Floats:
        """The position of each text in the input, divided by the number of texts."""
        return np.arange(len(self.texts)) / max(len(self.texts), 1)

    def get_original(self, index: int) -> str:
        """Return the text of the recognised document, or ""."""
        number = int(self.numbers[index])
        return "" if number == UNKNOWN else self.base.known.doc_texts[number]

    def draw_noise(self, *seed: object) -> Floats:
        """Return a normal number for each text, which depends on the recognised query and document only."""
        names = self.base.known.noise_names
        noise = draw_normals(np.append(names, np.uint64(0))[self.numbers], self.qid, *seed)
        return np.where(self.numbers == UNKNOWN, UNRECOGNISED - BOOST, noise)

    def map_changed(self, effect: Callable[[str, str, str], float]) -> Floats:
        """Return effect(query, text, original) of each changed text, and 0 for texts that are not changed."""
        values = np.zeros(len(self.texts))
        for i, text in enumerate(self.texts):
            original = self.get_original(i)
            if original and text != original:
                values[i] = effect(self.query, text, original)
        return values


def count_query_words(query: str, text: str) -> int:
    """Count the words of a text that are content words of the query."""
    wanted = set(split_words(query)) - STOP_WORDS
    return sum(word in wanted for word in split_words(text))


def has_phrase(query: str, text: str, max_words: int | None = None) -> bool:
    """Return True if all words of the query occur in a row, among the first words of the text if a maximum is given."""
    return f" {' '.join(split_words(query))} " in f" {' '.join(split_words(text)[:max_words])} "


def compute_lead_share(query: str, text: str, words: int = 25) -> float:
    """Return the share of the query's content words that are among the first words of a text."""
    wanted = set(split_words(query)) - STOP_WORDS
    return len(wanted & set(split_words(text)[:words])) / max(len(wanted), 1)


def gains_match(pattern: str) -> Callable[[str, str, str], float]:
    """Return an effect that is 1 if a pattern occurs more often in the text than in the original."""
    found = re.compile(pattern, re.IGNORECASE)
    return lambda query, text, original: float(len(found.findall(text)) > len(found.findall(original)))


def count_accents(text: str) -> int:
    """Count the combining marks of a text in decomposed form."""
    return sum(map(bool, map(unicodedata.combining, unicodedata.normalize("NFD", text))))


def count_punctuation(text: str) -> int:
    """Count the characters that are neither letters, digits nor white space."""
    return sum(not letter.isalnum() and not letter.isspace() for letter in text)


def find_newest_year(text: str) -> int:
    """Return the largest year in a text, or 0."""
    return max(map(int, re.findall(r"\b(?:1[5-9]|20)\d\d\b", text)), default=0)


@dataclass(frozen=True)
class QueryChange:
    """The differences between a query and the original query."""

    lost: tuple[str, ...]
    added: tuple[str, ...]
    is_reordered: bool

    @property
    def has_typo(self) -> bool:
        """True if an added word is similar to a lost word."""
        return (
            any(
                SequenceMatcher(None, new, old).ratio() >= TYPO_SIMILARITY
                for new in self.added
                for old in (*self.lost, "".join(self.lost))
            )
            or "".join(self.added) == "".join(self.lost) != ""
        )

    @property
    def has_other_words(self) -> bool:
        """True if a content word was replaced by words that are not similar to it."""
        return bool(set(self.lost) - STOP_WORDS) and bool(set(self.added) - STOP_WORDS) and not self.has_typo


@lru_cache(maxsize=20_000)
def compare_queries(query: str, original: str) -> QueryChange:
    """Return the differences between a query and the original query."""
    new, old = split_words(query), split_words(original)
    lost = tuple(word for word in old if word not in new)
    added = tuple(word for word in new if word not in old)
    return QueryChange(lost, added, sorted(new) == sorted(old) and new != old)

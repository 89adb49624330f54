"""Comparison of the content words of two queries.

Two words are equal if their stems are. One word can replace another if their spellings are close or, where the
thesaurus is allowed, if the bundled thesaurus lists them as synonyms.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from shaketable.nlp import misspellings
from shaketable.nlp.analyzer import Analyzer, Memo
from shaketable.nlp.edit_distance import damerau_levenshtein
from shaketable.nlp.inflection import find_lemmas
from shaketable.nlp.thesaurus import read_bundled_thesaurus
from shaketable.nlp.words import NLTK_STOPWORDS

MAX_LETTER_DIFFERENCES = 2  # between two spellings of one word
MIN_LETTERS_TO_COMPARE = 4  # shorter words are not compared by spelling

_analyzer, _written_analyzer = Analyzer(), Analyzer(lower=False)
_term_memo: Memo[str] = Memo(_analyzer.to_term)


def split_words(text: str) -> list[str]:
    """Return the words in lower case, without punctuation."""
    return _analyzer.split_words(text)


def split_written_words(text: str) -> list[str]:
    """Return the words of `split_words` in their own case."""
    return _written_analyzer.split_words(text)


def stem_content_word(word: str) -> str:
    """Return the stem of a content word, or "" for a stop-word."""
    return "" if word in NLTK_STOPWORDS else _term_memo[word]


def map_stems_to_words(text: str) -> dict[str, str]:
    """Return stem -> word for the content words, in text order."""
    return {found: word for word in split_words(text) if (found := stem_content_word(word))}


CONTENT_STEMS: Memo[frozenset[str]] = Memo(lambda token: frozenset(map_stems_to_words(token)))
"""token -> stems of the content words in it."""


def _find_synonym_stems(word: str) -> frozenset[str]:
    forms = [word, *(lemma for lemma, _ in find_lemmas(word))]
    synonyms = (
        other for form in forms for others in read_bundled_thesaurus().get(form, {}).values() for other in others
    )
    return frozenset(_term_memo[other] for other in synonyms)


SYNONYM_STEMS: Memo[frozenset[str]] = Memo(_find_synonym_stems)
"""word -> stems of its synonyms."""


def is_near_spelling(left: str, right: str) -> bool:
    """Return True if the words differ by one letter, or by at most two in long words."""
    slips = 1 if min(len(left), len(right)) <= MIN_LETTERS_TO_COMPARE else MAX_LETTER_DIFFERENCES
    return min(len(left), len(right)) >= MIN_LETTERS_TO_COMPARE and damerau_levenshtein(left, right, slips) <= slips


def is_known_word(word: str) -> bool:
    """Return True if the word is a stop-word or one of its lemmas is in the bundled lists."""
    forms = (word, *(lemma for lemma, _ in find_lemmas(word)))
    return not stem_content_word(word) or any(
        form in read_bundled_thesaurus() or form in misspellings.read_bundled_misspellings() for form in forms
    )


def are_synonyms(left: str, right: str) -> bool:
    """Return True if the thesaurus lists one word as a synonym of the other.

    >>> are_synonyms("quick", "fast"), are_synonyms("starts", "begins"), are_synonyms("boat", "tea")
    (True, True, False)
    """
    return _term_memo[right] in SYNONYM_STEMS[left] or _term_memo[left] in SYNONYM_STEMS[right]


@dataclass(frozen=True)
class SharedContent:
    """The content words of two queries, compared; `use_thesaurus` allows synonyms to count as replacements."""

    original: str
    variant: str
    use_thesaurus: bool = True

    @cached_property
    def original_words(self) -> dict[str, str]:
        """Stem -> content word of the original."""
        return map_stems_to_words(self.original)

    @cached_property
    def variant_words(self) -> dict[str, str]:
        """Stem -> content word of the variant."""
        return map_stems_to_words(self.variant)

    @cached_property
    def lost_words(self) -> list[str]:
        """Content words of the original that are not in the variant."""
        return [word for found, word in self.original_words.items() if found not in self.variant_words]

    @cached_property
    def new_words(self) -> list[str]:
        """Content words of the variant that are not in the original."""
        return [word for found, word in self.variant_words.items() if found not in self.original_words]

    @cached_property
    def reduced_words(self) -> list[str]:
        """Content words that occur less often in the variant than in the original."""
        counts = self._stem_counts
        return [word for found, word in self.original_words.items() if counts[0][found] > counts[1][found]]

    @cached_property
    def repeated_words(self) -> list[str]:
        """Content words of the original that occur more often in the variant."""
        counts = self._stem_counts
        return [word for found, word in self.original_words.items() if counts[0][found] < counts[1][found]]

    @cached_property
    def unrelated_words(self) -> list[str]:
        """New words that replace no reduced word."""
        return [word for word in self.new_words if not any(self._can_replace(word, old) for old in self.reduced_words)]

    @cached_property
    def unreplaced_words(self) -> list[str]:
        """Lost words that no new word replaces."""
        return [word for word in self.lost_words if not any(self._can_replace(new, word) for new in self.new_words)]

    @property
    def kept_share(self) -> float:
        """Share of the original's content words that are in the variant; 1 if the original has none."""
        return 1 - len(self.lost_words) / len(self.original_words) if self.original_words else 1.0

    @property
    def expressed_share(self) -> float:
        """Share of the original's content words that are in the variant or replaced by another word."""
        return 1 - len(self.unreplaced_words) / len(self.original_words) if self.original_words else 1.0

    @cached_property
    def _stem_counts(self) -> tuple[Counter[str], Counter[str]]:
        before, after = (Counter(map(stem_content_word, split_words(text))) for text in (self.original, self.variant))
        return before, after

    def _can_replace(self, new: str, old: str) -> bool:
        return is_near_spelling(new, old) or (self.use_thesaurus and are_synonyms(new, old))


class WordSwap(NamedTuple):
    """A replacement of one word of a query: the words of the query, the position, and the new words."""

    words: list[str]
    position: int
    new_words: list[str]

    @property
    def old_word(self) -> str:
        """The replaced word."""
        return self.words[self.position]


def find_swap(original: str, variant: str) -> WordSwap | None:
    """Return the single word replacement between two queries, or None if they differ in any other way.

    >>> find_swap("how to stop a cough", "how to halt a cough")
    WordSwap(words=['how', 'to', 'stop', 'a', 'cough'], position=2, new_words=['halt'])
    >>> find_swap("stop a cough", "how to halt coughs")
    """
    before, after = split_words(original), split_words(variant)
    more = len(after) - len(before)
    place = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), None)
    if place is None or more < 0 or before[place + 1 :] != after[place + 1 + more :]:
        return None
    return WordSwap(before, place, after[place : place + 1 + more])

"""What two queries share: the content words that both have, that one lost, that the other brought in.

All of it is lexical evidence: words are the same if their stems are, and may stand for each other if they are spelled
nearly alike or, unless it must not be asked, if the bundled thesaurus says so.
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

MAX_LETTER_DIFFERENCES = 2  # letters by which two spellings of one word may differ
MIN_LETTERS_TO_COMPARE = 4  # letters that a word needs for that

_analyzer = Analyzer()
_term_memo: Memo[str] = Memo(_analyzer.to_term)


def split_words(text: str) -> list[str]:
    """The words in lower case, without punctuation."""
    return _analyzer.split_words(text)


def stem_content_word(word: str) -> str:
    """The stem of a content word, empty for a stop-word."""
    return "" if word in NLTK_STOPWORDS else _term_memo[word]


def map_stems_to_words(text: str) -> dict[str, str]:
    """stem -> word, of the content words in their order."""
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
    """Are the two spelled nearly alike: one letter apart, in long words two?"""
    slips = 1 if min(len(left), len(right)) <= MIN_LETTERS_TO_COMPARE else MAX_LETTER_DIFFERENCES
    return min(len(left), len(right)) >= MIN_LETTERS_TO_COMPARE and damerau_levenshtein(left, right, slips) <= slips


def is_known_word(word: str) -> bool:
    """Is it a stop-word or a word of the bundled lists, in itself or without an ending?"""
    forms = (word, *(lemma for lemma, _ in find_lemmas(word)))
    return not stem_content_word(word) or any(
        form in read_bundled_thesaurus() or form in misspellings.read_bundled_misspellings() for form in forms
    )


def are_synonyms(left: str, right: str) -> bool:
    """Does the thesaurus know one as a synonym of the other?

    >>> are_synonyms("quick", "fast"), are_synonyms("starts", "begins"), are_synonyms("boat", "tea")
    (True, True, False)
    """
    return _term_memo[right] in SYNONYM_STEMS[left] or _term_memo[left] in SYNONYM_STEMS[right]


@dataclass(frozen=True)
class SharedContent:
    """Two queries side by side; `use_thesaurus` says whether it may be asked for synonyms."""

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
        """Content words that the original has more often than the variant: of a repeated word one may have gone."""
        counts = self._stem_counts
        return [word for found, word in self.original_words.items() if counts[0][found] > counts[1][found]]

    @cached_property
    def repeated_words(self) -> list[str]:
        """Content words of the original that the variant has more often."""
        counts = self._stem_counts
        return [word for found, word in self.original_words.items() if counts[0][found] < counts[1][found]]

    @cached_property
    def unrelated_words(self) -> list[str]:
        """New words that stand for none that went."""
        return [word for word in self.new_words if not any(self._can_replace(word, old) for old in self.reduced_words)]

    @cached_property
    def unreplaced_words(self) -> list[str]:
        """Lost words that no new one stands for."""
        return [word for word in self.lost_words if not any(self._can_replace(new, word) for new in self.new_words)]

    @property
    def kept_share(self) -> float:
        """Share of the original's content words that are in the variant; 1 where it has none."""
        return 1 - len(self.lost_words) / len(self.original_words) if self.original_words else 1.0

    @property
    def expressed_share(self) -> float:
        """The same, counting those for which another word stands."""
        return 1 - len(self.unreplaced_words) / len(self.original_words) if self.original_words else 1.0

    @cached_property
    def _stem_counts(self) -> tuple[Counter[str], Counter[str]]:
        before, after = (Counter(map(stem_content_word, split_words(text))) for text in (self.original, self.variant))
        return before, after

    def _can_replace(self, new: str, old: str) -> bool:
        return is_near_spelling(new, old) or (self.use_thesaurus and are_synonyms(new, old))


class WordSwap(NamedTuple):
    """One word of a query that gave way to others: all words of the query, its place, and what stands there now."""

    words: list[str]
    position: int
    new_words: list[str]

    @property
    def old_word(self) -> str:
        """The word that went."""
        return self.words[self.position]


def find_swap(original: str, variant: str) -> WordSwap | None:
    """The one word in which two queries differ; None where they differ in more, or a word only came or went.

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

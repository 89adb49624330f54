"""What two queries share: the content words that both have, that one lost, that the other brought in.

All of it is lexical evidence: words are the same if their stems are, and may stand for each other if they are spelled
nearly alike or, unless it must not be asked, if the bundled thesaurus says so.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from shaketable.text import misspellings
from shaketable.text.distance import damerau_levenshtein
from shaketable.text.inflection import lemmas
from shaketable.text.thesaurus import bundled
from shaketable.text.tokens import Memo, Tokenizer
from shaketable.text.words import NLTK

SLIPS = 2  # letters by which two spellings of one word may differ
SPELLED = 4  # letters that a word needs for that

_tokenizer = Tokenizer()
_terms: Memo[str] = Memo(_tokenizer.term)


def words(text: str) -> list[str]:
    """The words in lower case, without punctuation."""
    return _tokenizer.words(text)


def stem(word: str) -> str:
    """The stem of a content word, empty for a stop-word."""
    return "" if word in NLTK else _terms[word]


def content(text: str) -> dict[str, str]:
    """stem -> word, of the content words in their order."""
    return {found: word for word in words(text) if (found := stem(word))}


STEMS: Memo[frozenset[str]] = Memo(lambda token: frozenset(content(token)))
"""token -> stems of the content words in it."""


def _related(word: str) -> frozenset[str]:
    forms = [word, *(lemma for lemma, _ in lemmas(word))]
    synonyms = (other for form in forms for others in bundled().get(form, {}).values() for other in others)
    return frozenset(_terms[other] for other in synonyms)


RELATED: Memo[frozenset[str]] = Memo(_related)
"""word -> stems of its synonyms."""


def misspelled(left: str, right: str) -> bool:
    """Are the two spelled nearly alike: one letter apart, in long words two?"""
    slips = 1 if min(len(left), len(right)) <= SPELLED else SLIPS
    return min(len(left), len(right)) >= SPELLED and damerau_levenshtein(left, right, slips) <= slips


def known(word: str) -> bool:
    """Is it a stop-word or a word of the bundled lists, in itself or without an ending?"""
    forms = (word, *(lemma for lemma, _ in lemmas(word)))
    return not stem(word) or any(form in bundled() or form in misspellings.bundled() for form in forms)


def synonymous(left: str, right: str) -> bool:
    """Does the thesaurus know one as a synonym of the other?

    >>> synonymous("quick", "fast"), synonymous("starts", "begins"), synonymous("boat", "tea")
    (True, True, False)
    """
    return _terms[right] in RELATED[left] or _terms[left] in RELATED[right]


@dataclass(frozen=True)
class Shared:
    """Two queries side by side; `thesaurus` says whether it may be asked for synonyms."""

    original: str
    variant: str
    thesaurus: bool = True

    @cached_property
    def before(self) -> dict[str, str]:
        """Stem -> content word of the original."""
        return content(self.original)

    @cached_property
    def after(self) -> dict[str, str]:
        """Stem -> content word of the variant."""
        return content(self.variant)

    @cached_property
    def lost(self) -> list[str]:
        """Content words of the original that are not in the variant."""
        return [word for found, word in self.before.items() if found not in self.after]

    @cached_property
    def new(self) -> list[str]:
        """Content words of the variant that are not in the original."""
        return [word for found, word in self.after.items() if found not in self.before]

    @cached_property
    def fewer(self) -> list[str]:
        """Content words that the original has more often than the variant: of a repeated word one may have gone."""
        counts = self._counts
        return [word for found, word in self.before.items() if counts[0][found] > counts[1][found]]

    @cached_property
    def doubled(self) -> list[str]:
        """Content words of the original that the variant has more often."""
        counts = self._counts
        return [word for found, word in self.before.items() if counts[0][found] < counts[1][found]]

    @cached_property
    def foreign(self) -> list[str]:
        """New words that stand for none that went."""
        return [word for word in self.new if not any(self._stands_for(word, old) for old in self.fewer)]

    @cached_property
    def missing(self) -> list[str]:
        """Lost words that no new one stands for."""
        return [word for word in self.lost if not any(self._stands_for(new, word) for new in self.new)]

    @property
    def kept(self) -> float:
        """Share of the original's content words that are in the variant; 1 where it has none."""
        return 1 - len(self.lost) / len(self.before) if self.before else 1.0

    @property
    def meant(self) -> float:
        """The same, counting those for which another word stands."""
        return 1 - len(self.missing) / len(self.before) if self.before else 1.0

    @cached_property
    def _counts(self) -> tuple[Counter[str], Counter[str]]:
        before, after = (Counter(map(stem, words(text))) for text in (self.original, self.variant))
        return before, after

    def _stands_for(self, new: str, old: str) -> bool:
        return misspelled(new, old) or (self.thesaurus and synonymous(new, old))


class Swap(NamedTuple):
    """One word of a query that gave way to others: all words of the query, its place, and what stands there now."""

    words: list[str]
    place: int
    new: list[str]

    @property
    def old(self) -> str:
        """The word that went."""
        return self.words[self.place]


def swap_of(original: str, variant: str) -> Swap | None:
    """The one word in which two queries differ; None where they differ in more, or a word only came or went.

    >>> swap_of("how to stop a cough", "how to halt a cough")
    Swap(words=['how', 'to', 'stop', 'a', 'cough'], place=2, new=['halt'])
    >>> swap_of("stop a cough", "how to halt coughs")
    """
    before, after = words(original), words(variant)
    more = len(after) - len(before)
    place = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), None)
    if place is None or more < 0 or before[place + 1 :] != after[place + 1 + more :]:
        return None
    return Swap(before, place, after[place : place + 1 + more])

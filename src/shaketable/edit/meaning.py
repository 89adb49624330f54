"""What two queries share: the content words that both have, that one lost, that the other brought in.

All of it is lexical evidence: words are the same if their stems are, and may stand for each other if the bundled
thesaurus says so or if they are spelled nearly alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

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
    """Two queries side by side."""

    original: str
    variant: str

    @cached_property
    def before(self) -> dict[str, str]:
        return content(self.original)

    @cached_property
    def after(self) -> dict[str, str]:
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
    def foreign(self) -> list[str]:
        """New words that stand for no lost one."""
        return [word for word in self.new if not any(_stands_for(word, old) for old in self.lost)]

    @cached_property
    def missing(self) -> list[str]:
        """Lost words that no new one stands for."""
        return [word for word in self.lost if not any(_stands_for(new, word) for new in self.new)]

    @property
    def kept(self) -> float:
        """Share of the original's content words that are in the variant; 1 where it has none."""
        return 1 - len(self.lost) / len(self.before) if self.before else 1.0

    @property
    def meant(self) -> float:
        """The same, counting those for which another word stands."""
        return 1 - len(self.missing) / len(self.before) if self.before else 1.0


def _stands_for(new: str, old: str) -> bool:
    return misspelled(new, old) or synonymous(new, old)

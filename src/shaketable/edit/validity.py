"""Is a variation valid: another text of the kind it claims to be, that asks for the same?

A proxy for the judgement of people. Misspellings and orderings are valid by how they are made, as in paper 004; for the
others the thresholds were fitted to that paper's labels for ANTIQUE and to labels of our own, and tested on TREC DL
2019 and on other labels of our own (`evidence/validity.py`). A verdict depends on the case and on the evidence that
`Validity` was given, and on nothing else; `rankers.similarity.judge_for` gives it all that this machine and a
collection have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from numpy.typing import NDArray

from shaketable.edit.meaning import Shared, Swap, swap_of, words
from shaketable.edit.taxonomy import MISSPELLING, NATURALITY, ORDERING, PARAPHRASING
from shaketable.text.bigrams import Bigrams
from shaketable.text.distance import damerau_levenshtein
from shaketable.text.grammar import FUNCTION, known_parts, parts_at
from shaketable.text.words import word_set

Similarity: TypeAlias = Callable[[list[str], list[str]], NDArray[Any]]
"""Texts and as many others -> how alike each is to its partner, as a cosine."""

THESAURUS, SIMILARITY, BIGRAMS = "thesaurus", "similarity", "bigrams"
"""The sources of evidence that an edit may have been made with, and that must then not judge it."""

UNFINISHED = word_set(
    """
    a an the my your his her its our their this these those i we he she they and or but if because than that as of
    at by for with about between into from to in on is are was were be been has had do does did can could may might
    must should will would
    """
)
"""Words after which a query cannot end, unless the original did."""

UNJUDGED = (
    "Nothing but the thesaurus that it was made with speaks for it: "
    "install the extra 'neural', or name the collection, to have it judged."
)


class Case(NamedTuple):
    """What is to be judged: a variation of a kind, and the sources that it was made with, which are not asked."""

    category: str
    original: str
    text: str
    made_with: tuple[str, ...] = ()


class _Said(NamedTuple):
    """What the words alone say: why a variation is not valid, and whether an encoder is to be heard as well."""

    why: str
    unsettled: bool = False


@dataclass(frozen=True)
class Validity:
    """What a variation must keep, by its category, and the evidence to judge it by.

    misspelling    at most `letters` insertions, deletions, substitutions and swaps
    ordering       exactly the words of the original
    naturality     a share `kept` of the content words; at most `added` others; no end in the middle of a phrase
    paraphrasing   no word twice that was there once; where one word gave way to another: the part of speech of its
                   place, and no phrase broken that is fixed in the collection; a share `meant` of the content words, in
                   themselves or by a synonym, and no word that is neither

    A phrase is two content words side by side that `bigrams` counts `often` times or more, a share `fixed` or more of
    all occurrences of the rarer one; it is broken where the new pair never occurs.

    A `similarity` function, where there is one, is asked for the meaning of paraphrases, and of what words reject as a
    naturality: a query of n words whose similarity to the original is s has moved by (1 - s) n words. It may move by
    `drift`, and a paraphrase by `vouched` where the words speak for it too.

    What an edit was made with does not judge it: a swap by the thesaurus is judged by the others, and is not valid
    where there are neither a similarity function nor bigrams.
    """

    letters: int = 2
    kept: float = 0.5
    added: int = 1
    meant: float = 0.4
    often: int = 3
    fixed: float = 0.05
    drift: float = 0.7
    vouched: float = 1.5
    similarity: Similarity | None = None
    bigrams: Bigrams | None = None

    def judge(self, category: str, original: str, text: str, made_with: tuple[str, ...] = ()) -> str:
        """Why a variation is not valid, in a sentence; empty where it is."""
        return self.judge_all([Case(category, original, text, made_with)])[0]

    def judge_all(self, cases: Sequence[Case]) -> list[str]:
        """`judge` for many cases, the similarity function being asked once."""
        said = [self._by_words(case) for case in cases]
        asked = [
            i
            for i, case in enumerate(cases)
            if said[i].unsettled and self.similarity is not None and SIMILARITY not in case.made_with
        ]
        whys = [one.why for one in said]
        if asked and self.similarity is not None:
            alike = self.similarity([cases[i].original for i in asked], [cases[i].text for i in asked])
            for i, value in zip(asked, alike, strict=True):
                whys[i] = self._with_encoder(cases[i], said[i].why, float(value))
        for i in set(range(len(cases))).difference(asked):
            if said[i].unsettled and whys[i] and THESAURUS in cases[i].made_with:
                whys[i] = "" if self._phrases(cases[i]) else UNJUDGED
        return whys

    def _with_encoder(self, case: Case, why: str, similarity: float) -> str:
        moved = round((1 - similarity) * len(words(case.original)), 3)  # an encoder's last digits depend on the batch
        limit = self.drift if why else self.vouched
        return (
            ""
            if moved <= limit
            else f"{why} Its meaning moves by {moved:.2f} words; at most {limit} are allowed.".strip()
        )

    def _by_words(self, case: Case) -> _Said:
        category, original, text, _ = case
        if not text.strip():
            return _Said("The text is empty.")
        if text.split() == original.split():
            return _Said("It is the original.")
        if category == MISSPELLING:
            distance = damerau_levenshtein(original, text, self.letters)
            return _Said(f"More than {self.letters} letters are changed." if distance > self.letters else "")
        if category == ORDERING:
            same = Counter(text.split()) == Counter(original.split())
            return _Said("" if same else "Its words are not those of the original.")
        if category == NATURALITY:
            why = self._naturality(original, text)
            return _Said(why, bool(why) and words(text) not in ([], words(original)))
        if category == PARAPHRASING:
            return self._paraphrasing(case)
        return _Said("")  # the categories that change the meaning

    def _naturality(self, original: str, text: str) -> str:
        shared = Shared(original, text)
        if shared.kept < self.kept:
            return f"It loses {_listed(shared.lost)}."
        if len(shared.foreign) > self.added:
            return f"It brings in {_listed(shared.foreign)}."
        last, end = words(original)[-1:], words(text)[-1:]
        return (
            f"It ends in the middle of a phrase, in {end[0]!r}." if end != last and end and end[0] in UNFINISHED else ""
        )

    def _paraphrasing(self, case: Case) -> _Said:
        _, original, text, made_with = case
        if not words(text):
            return _Said("It has no words.")
        if words(original) == words(text):
            return _Said("Only case and punctuation differ from the original.")
        shared = Shared(original, text, THESAURUS not in made_with)
        if shared.doubled:
            return _Said(f"It repeats {_listed(shared.doubled)}.")
        if (swap := swap_of(original, text)) and (flaw := self._flaw(swap, self._phrases(case))):
            return _Said(flaw)
        if shared.foreign:
            return _Said(f"No word of the original is known to mean {_listed(shared.foreign, 'or')}.", unsettled=True)
        return _Said(f"It loses {_listed(shared.missing)}." if shared.meant < self.meant else "", unsettled=True)

    def _phrases(self, case: Case) -> Bigrams | None:
        """The counts of pairs, unless the variation was made with them."""
        return None if BIGRAMS in case.made_with else self.bigrams

    def _flaw(self, swap: Swap, bigrams: Bigrams | None) -> str:
        """Why the new words cannot stand in the place of the old one, as far as its neighbours tell."""
        parts = known_parts(swap.new[0]) if len(swap.new) == 1 and swap.old not in FUNCTION else frozenset()
        if parts and not parts & parts_at(swap.words, swap.place):
            return f"The word {swap.new[0]!r} is of another part of speech than {swap.old!r} is here."
        for old, new in _pairs(swap) if bigrams else ():
            assert bigrams is not None
            count = bigrams.pair(*old)
            if count >= max(self.often, self.fixed * min(map(bigrams.word, old))) and not bigrams.pair(*new):
                return f"The collection has the phrase {' '.join(old)!r}, and never {' '.join(new)!r}."
        return ""


def _pairs(swap: Swap) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """The pairs that the old word made with its neighbours, and those that the new ones make; content words only."""
    if swap.place:
        left = swap.words[swap.place - 1]
        if FUNCTION.isdisjoint((left, swap.old)):
            yield (left, swap.old), (left, swap.new[0])
    if swap.place + 1 < len(swap.words):
        right = swap.words[swap.place + 1]
        if FUNCTION.isdisjoint((swap.old, right)):
            yield (swap.old, right), (swap.new[-1], right)


def _listed(texts: Sequence[str], conjunction: str = "and") -> str:
    """The words in a row, as a sentence has them: a, b and c."""
    *head, last = map(repr, texts)
    return f"{', '.join(head)} {conjunction} {last}" if head else last

"""Is a variation valid: another text of the kind it claims to be, that asks for the same?

A proxy for the judgement of people, from what the words alone tell. Misspellings and orderings are valid by how they
are made, as in paper 004; for the others the thresholds were fitted to that paper's labels for ANTIQUE and tested on
TREC DL 2019 (`evidence/validity.py`). Whoever has an encoder may add the similarity that it sees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from numpy.typing import NDArray

from shaketable.edit.meaning import Shared, words
from shaketable.edit.taxonomy import MISSPELLING, NATURALITY, ORDERING, PARAPHRASING
from shaketable.text.distance import damerau_levenshtein
from shaketable.text.words import word_set

Similarity: TypeAlias = Callable[[list[str], list[str]], NDArray[Any]]
"""Texts and as many others -> how alike each is to its partner."""


UNFINISHED = word_set(
    """
    a an the my your his her its our their this these those i we he she they and or but if because than that as of
    at by for with about between into from to in on is are was were be been has had do does did can could may might
    must should will would
    """
)
"""Words after which a query cannot end, unless the original did."""


@dataclass(frozen=True)
class Validity:
    """What a variation must keep, by its category.

    misspelling    at most `letters` insertions, deletions, substitutions and swaps
    ordering       exactly the words of the original
    naturality     a share `kept` of the content words; at most `added` others; no end in the middle of a phrase
    paraphrasing   a share `meant` of the content words, in themselves or by a synonym; no word that is neither

    A similarity function has the last word where the words alone say that the meaning of a naturality or paraphrasing
    is lost: at `similar` and above it is not. (Either kind of evidence suffices: of the ways to join the two this one
    agreed best with people on ANTIQUE.)
    """

    letters: int = 2
    kept: float = 0.5
    added: int = 1
    meant: float = 0.4
    similarity: Similarity | None = None
    similar: float = 0.95

    def judge(self, category: str, original: str, text: str) -> str:
        """Why a variation is not valid, in a few words; empty where it is."""
        if not text.strip():
            return "empty"
        if text.split() == original.split():
            return "the original"
        if category == MISSPELLING:
            distance = damerau_levenshtein(original, text, self.letters)
            return f"more than {self.letters} letters changed" if distance > self.letters else ""
        if category == ORDERING:
            return "" if Counter(text.split()) == Counter(original.split()) else "other words"
        if category == NATURALITY:
            return self._naturality(original, text)
        if category == PARAPHRASING:
            return self._paraphrasing(original, text)
        return ""  # the categories that change the meaning

    def _naturality(self, original: str, text: str) -> str:
        shared = Shared(original, text)
        if shared.kept < self.kept:
            return f"lost {', '.join(shared.lost)}"
        if len(shared.foreign) > self.added:
            return f"brought in {', '.join(shared.foreign)}"
        last, end = words(original)[-1:], words(text)[-1:]
        return f"ends in {end[0]!r}" if end != last and end and end[0] in UNFINISHED else ""

    def _paraphrasing(self, original: str, text: str) -> str:
        if words(original) == words(text):
            return "the original but for case and punctuation"
        shared = Shared(original, text)
        if shared.foreign:
            return f"no synonym known: {', '.join(shared.foreign)}"
        return f"lost {', '.join(shared.missing)}" if shared.meant < self.meant else ""

    def judge_all(self, cases: Sequence[tuple[str, str, str]]) -> list[str]:
        """`judge` for many (category, original, text), the similarity function being asked once."""
        reasons = [self.judge(*case) for case in cases]
        if self.similarity is None:
            return reasons
        asked = [i for i, case in enumerate(cases) if reasons[i] and _meaning_at_stake(*case)]
        alike = self.similarity([cases[i][1] for i in asked], [cases[i][2] for i in asked]) if asked else ()
        for i, value in zip(asked, alike, strict=True):
            reasons[i] = "" if value >= self.similar else f"{reasons[i]}; similarity {value:.2f}"
        return reasons


def _meaning_at_stake(category: str, original: str, text: str) -> bool:
    return category in (NATURALITY, PARAPHRASING) and words(text) not in ([], words(original))

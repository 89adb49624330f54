"""Paraphrasing: the same in other words; here one word by a synonym, whole queries in `generated`.

A word is looked up as it stands; failing that, without its regular ending, which the synonym then gets. Where English
would not make the form so (begin + ed, information + s), the synonym is passed over, as is one that the query has
already ("a long period of time" does not become "a long time of time").
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, TypeAlias

from shaketable.chance import Draws
from shaketable.edit.meaning import STEMS
from shaketable.edit.oneword import CONTENT, TOPICAL, change_at
from shaketable.edit.question import CORE
from shaketable.edit.taxonomy import PARAPHRASING
from shaketable.edit.validity import THESAURUS
from shaketable.errors import BadInput, check_within
from shaketable.text.grammar import ANY as ANY_PART
from shaketable.text.grammar import parts_at
from shaketable.text.neighbours import neighbours
from shaketable.text.synonyms import inflected
from shaketable.text.thesaurus import bundled
from shaketable.text.tokens import Memo
from shaketable.text.wordnet import wordnet
from shaketable.text.words import Parts, like
from shaketable.types import Context

Synonyms: TypeAlias = Memo[tuple[tuple[str, str], ...]]
"""A lower-case word -> its synonyms, nearest first, each with its part of speech (empty where that is not known)."""


def _swapped(text: str, draws: Draws, synonyms: Synonyms, nearest: bool, among: Memo[Parts | None]) -> str | None:
    """Replace one word by its nearest, or a random, synonym that fits where the word stands."""

    def rewrite(tokens: Sequence[str], place: int, word: str, draws: Draws) -> str | None:
        found = synonyms[word.lower()]
        if not found:
            return None
        parts = parts_at([CORE[token] for token in tokens], place) if any(part for part, _ in found) else ANY_PART
        others = frozenset[str]().union(*(STEMS[token] for i, token in enumerate(tokens) if i != place))
        fitting = [new for part, new in found if (not part or part in parts) and others.isdisjoint(STEMS[new])]
        if not fitting:
            return None
        return like(fitting[0] if nearest else draws.choice(fitting), word)

    return change_at(text, draws, rewrite, among)


def _nearest(edit: str, choice: str, first: str) -> bool:
    if choice not in (first, "random"):
        raise BadInput(f"{edit}: the choice is {first} or random, not {choice!r}")
    return choice == first


@dataclass(frozen=True)
class SynSwap:
    """Replace a word by its nearest, or a random, synonym in the bundled thesaurus that fits its place."""

    choice: str = "nearest"
    category: ClassVar[str] = PARAPHRASING
    made_with: ClassVar[tuple[str, ...]] = (THESAURUS,)

    def __post_init__(self) -> None:
        _nearest("syn_swap", self.choice, "nearest")

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        return _swapped(text, draws, _from_thesaurus(), self.choice == "nearest", CONTENT)


@dataclass(frozen=True)
class WordNetSynSwap:
    """Replace a word by its first synonym in WordNet, or by a random one.

    The first is what paper 004 describes; its published code takes a random one.
    """

    choice: str = "first"
    category: ClassVar[str] = PARAPHRASING

    def __post_init__(self) -> None:
        _nearest("wordnet_syn_swap", self.choice, "first")

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        return _swapped(text, draws, _from_wordnet(_environment()), self.choice == "first", TOPICAL)


@dataclass(frozen=True)
class WordEmbedSynSwap:
    """Replace a word by its nearest neighbour in counter-fitted vectors, or by a random one.

    The nearest is what paper 004 describes; its published code takes a random one.
    Of vectors up to `neighbours` words with a cosine of `threshold` or more count; ready lists have no cosines.
    """

    choice: str = "nearest"
    neighbours: int = 15
    threshold: float = 0.8
    file: str = ""
    category: ClassVar[str] = PARAPHRASING

    def __post_init__(self) -> None:
        _nearest("word_embed_syn_swap", self.choice, "nearest")
        check_within("word_embed_syn_swap", self, neighbours=(1, 1000), threshold=(-1, 1))

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        synonyms = _from_neighbours(self.file, self.neighbours, self.threshold, _environment())
        return _swapped(text, draws, synonyms, self.choice == "nearest", TOPICAL)


@lru_cache(maxsize=1)
def _from_thesaurus() -> Synonyms:
    table = bundled()

    def of(word: str, parts: Sequence[str] | None) -> list[tuple[str, str]]:
        by_part = table.get(word, {})
        return [(part, other) for part in parts or by_part for other in by_part.get(part, ())]

    return Memo(lambda word: inflected(word, of, odd=False))


def _environment() -> tuple[str | None, ...]:
    """What decides where resources are looked for: where it changes, what was found before no longer counts."""
    return tuple(map(os.environ.get, ("HOME", "NLTK_DATA", "SHAKETABLE_HOME")))


@lru_cache(maxsize=1)
def _from_wordnet(environment: tuple[str | None, ...]) -> Synonyms:
    words = wordnet()

    def of(word: str, parts: Sequence[str] | None) -> list[tuple[str, str]]:
        return [("", other) for part in parts or (None,) for other in words.synonyms(word, part)]

    return Memo(lambda word: inflected(word, of, odd=False))


@lru_cache(maxsize=4)
def _from_neighbours(file: str, count: int, threshold: float, environment: tuple[str | None, ...]) -> Synonyms:
    near = neighbours(file)  # the vocabulary has inflected forms of its own
    return Memo(lambda word: tuple(("", other) for other in near.near(word, count, threshold)))

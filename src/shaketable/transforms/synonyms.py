"""Transforms that replace words by synonyms; `generated` rewrites whole queries.

A word is looked up unchanged, then without its regular ending, which the synonym then receives. A synonym is skipped
if its inflected form is irregular in English (begin + ed, information + s) or if the query already contains it ("a
long period of time" does not become "a long time of time").
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, TypeAlias

from shaketable.core.errors import BadInput, check_ranges
from shaketable.core.protocols import TransformContext
from shaketable.core.seeding import ItemRandom
from shaketable.nlp.analyzer import Memo
from shaketable.nlp.embedding_neighbours import open_neighbours
from shaketable.nlp.pos_context import ANY_PART as ANY_PART
from shaketable.nlp.pos_context import find_pos_in_context
from shaketable.nlp.synonyms import SynonymSource, find_inflected_synonyms
from shaketable.nlp.thesaurus import read_bundled_thesaurus
from shaketable.nlp.wordnet import open_wordnet
from shaketable.nlp.words import TokenParts, find_word_spans, match_case
from shaketable.transforms.categories import PARAPHRASING
from shaketable.transforms.content_words import CONTENT_STEMS
from shaketable.transforms.one_word import CONTENT_WORDS, NON_STOPWORDS, change_one_word_in_context
from shaketable.transforms.questions import CORE_WORDS
from shaketable.transforms.validity import THESAURUS


def substitute_synonyms(text: str, count: int, synonyms: SynonymSource, rng: ItemRandom) -> str:
    """Replace up to `count` random words that have synonyms by random synonyms.

    >>> from shaketable.core.seeding import make_item_rng
    >>> from shaketable.nlp.synonyms import ThesaurusSynonyms
    >>> substitute_synonyms("A boat, a boat!", 2, ThesaurusSynonyms(), make_item_rng(0))
    'A craft, a craft!'
    """
    options = {(a, b): others for a, b in find_word_spans(text) if (others := synonyms.lookup(text[a:b].lower()))}
    spans = sorted(rng.permutation(list(options))[:count])
    return replace_spans(text, {(a, b): match_case(rng.choice(options[a, b]), text[a:b]) for a, b in spans})


def replace_spans(text: str, replacements: Mapping[tuple[int, int], str]) -> str:
    """Replace character spans, given in text order; an empty replacement also removes the spaces before it.

    >>> replace_spans("a red, red boat", {(2, 5): "blue", (7, 10): ""})
    'a blue, boat'
    """
    pieces, last = [], 0
    for (start, end), new in replacements.items():
        pieces += [text[last:start] if new else text[last:start].rstrip(" "), new]
        last = end
    return "".join((*pieces, text[last:]))


SynonymMemo: TypeAlias = Memo[tuple[tuple[str, str], ...]]
"""A lower-case word -> its synonyms, nearest first, each with its part of speech ("" if unknown)."""


def _swap_synonym(
    text: str, rng: ItemRandom, synonyms: SynonymMemo, nearest: bool, eligible_words: Memo[TokenParts | None]
) -> str | None:
    """Replace one word by the nearest or a random synonym that fits its context."""

    def rewrite(tokens: Sequence[str], place: int, word: str, rng: ItemRandom) -> str | None:
        found = synonyms[word.lower()]
        if not found:
            return None
        parts = (
            find_pos_in_context([CORE_WORDS[token] for token in tokens], place)
            if any(part for part, _ in found)
            else ANY_PART
        )
        others = frozenset[str]().union(*(CONTENT_STEMS[token] for i, token in enumerate(tokens) if i != place))
        fitting = [new for part, new in found if (not part or part in parts) and others.isdisjoint(CONTENT_STEMS[new])]
        if not fitting:
            return None
        return match_case(fitting[0] if nearest else rng.choice(fitting), word)

    return change_one_word_in_context(text, rng, rewrite, eligible_words)


def _check_choice(transform: str, choice: str, first: str) -> bool:
    if choice not in (first, "random"):
        raise BadInput(f"{transform}: the choice is {first} or random, not {choice!r}")
    return choice == first


@dataclass(frozen=True)
class SynSwap:
    """Replace a word by the nearest or a random synonym of the bundled thesaurus that fits its context."""

    choice: str = "nearest"
    category: ClassVar[str] = PARAPHRASING
    sources: ClassVar[tuple[str, ...]] = (THESAURUS,)

    def __post_init__(self) -> None:
        _check_choice("syn_swap", self.choice, "nearest")

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        return _swap_synonym(text, rng, _from_thesaurus(), self.choice == "nearest", CONTENT_WORDS)


@dataclass(frozen=True)
class WordNetSynSwap:
    """Replace a word by its first synonym in WordNet, or by a random one.

    Paper 004 describes the first synonym; its published code takes a random one.
    """

    choice: str = "first"
    category: ClassVar[str] = PARAPHRASING

    def __post_init__(self) -> None:
        _check_choice("wordnet_syn_swap", self.choice, "first")

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        return _swap_synonym(text, rng, _from_wordnet(_read_environment()), self.choice == "first", NON_STOPWORDS)


@dataclass(frozen=True)
class WordEmbedSynSwap:
    """Replace a word by its nearest neighbour in counter-fitted vectors, or by a random one.

    Paper 004 describes the nearest neighbour; its published code takes a random one. With vectors, up to `neighbours`
    words with a cosine of at least `threshold` are candidates. Precomputed lists have no cosines.
    """

    choice: str = "nearest"
    neighbours: int = 15
    threshold: float = 0.8
    file: str = ""
    category: ClassVar[str] = PARAPHRASING

    def __post_init__(self) -> None:
        _check_choice("word_embed_syn_swap", self.choice, "nearest")
        check_ranges("word_embed_syn_swap", self, neighbours=(1, 1000), threshold=(-1, 1))

    @property
    def random_key(self) -> str:
        """The key of its random numbers, which is the same in whatever folder the file is; "" without a file."""
        settings = self.choice, self.neighbours, self.threshold, os.path.basename(self.file)
        return f"word_embed_syn_swap{settings}" if self.file else ""

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        synonyms = _from_neighbours(self.file, self.neighbours, self.threshold, _read_environment())
        return _swap_synonym(text, rng, synonyms, self.choice == "nearest", NON_STOPWORDS)


@lru_cache(maxsize=1)
def _from_thesaurus() -> SynonymMemo:
    table = read_bundled_thesaurus()

    def of(word: str, parts: Sequence[str] | None) -> list[tuple[str, str]]:
        by_part = table.get(word, {})
        return [(part, other) for part in parts or by_part for other in by_part.get(part, ())]

    return Memo(lambda word: find_inflected_synonyms(word, of, irregular=False))


def _read_environment() -> tuple[str | None, ...]:
    """Return the environment variables that locate resources, as a cache key."""
    return tuple(map(os.environ.get, ("HOME", "NLTK_DATA", "SHAKETABLE_HOME")))


@lru_cache(maxsize=1)
def _from_wordnet(environment: tuple[str | None, ...]) -> SynonymMemo:
    words = open_wordnet()

    def of(word: str, parts: Sequence[str] | None) -> list[tuple[str, str]]:
        return [("", other) for part in parts or (None,) for other in words.find_synonyms(word, part)]

    return Memo(lambda word: find_inflected_synonyms(word, of, irregular=False))


@lru_cache(maxsize=4)
def _from_neighbours(file: str, count: int, threshold: float, environment: tuple[str | None, ...]) -> SynonymMemo:
    near = open_neighbours(file)  # no inflection needed: the vocabulary contains inflected forms
    return Memo(lambda word: tuple(("", other) for other in near.find_nearest(word, count, threshold)))

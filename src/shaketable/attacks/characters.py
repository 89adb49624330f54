"""Recipes that respell words: misspellings, look-alike letters and invisible characters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from shaketable.attacks.constraints import open_constraints
from shaketable.attacks.knowledge import AttackerKnowledge
from shaketable.attacks.word_replacement import Rewrite, replace_words, replace_words_at_once
from shaketable.core.attack_types import AttackCase, AttackSteps, ConstraintCheck
from shaketable.core.errors import check_parameter, check_ranges
from shaketable.core.protocols import Transform, TransformContext
from shaketable.core.registries import TRANSFORMS
from shaketable.core.seeding import ItemRandom
from shaketable.nlp.characters import ZERO_WIDTH
from shaketable.nlp.words import match_case
from shaketable.transforms.categories import MISSPELLING
from shaketable.transforms.unicode import find_homoglyph_positions, insert_character, replace_with_homoglyphs

MISSPELLINGS = (
    *("neighb_char_swap", "random_char_sub", "qwerty_char_sub", "real_typo", "lookalike_char", "phonetic"),
    *("drop_letter", "double_letter"),
)
"""The transforms that misspell one word without splitting it."""


@dataclass(frozen=True)
class Misspellings:
    """Misspell words of title and body, starting with the words whose deletion serves the goal most.

    Each of the `transforms` misspells a word once, in the same way at all occurrences. All results are tried at once,
    and the best is kept if the rank strictly improves. A promotion thus misspells harmful words, and a demotion
    misspells query words. At most `words` words differ from the original. A misspelling that splits a word is skipped.

    The word order is that of `greedy`; changes of characters as in Gao, Lanchantin, Soffa, Qi. Black-box generation
    of adversarial text sequences to evade deep learning classifiers. IEEE Security and Privacy Workshops 2018.
    """

    words: int = 5
    transforms: tuple[str, ...] = MISSPELLINGS
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_ranges("characters", self, words=(1, 10_000))
        check_parameter("characters", bool(self.transforms), "transforms", "one transform or more", self.transforms)
        fine = all(getattr(one, "category", "") == MISSPELLING for one in map(TRANSFORMS.build, self.transforms))
        check_parameter("characters", fine, "transforms", "transforms that misspell a word", self.transforms)

    def open(self, knowledge: AttackerKnowledge) -> _Rewriting:
        transforms: list[Transform] = [TRANSFORMS.build(text) for text in self.transforms]

        def misspell(word: str, query: str, rng: ItemRandom) -> list[Rewrite]:
            texts = [transform.apply(word, rng, TransformContext(query=query)) for transform in transforms]
            return [partial(match_case, text) for text in texts if text and text.split() == [text]]

        return _Rewriting(misspell, self.words, open_constraints(self.constraints, knowledge))


@dataclass(frozen=True)
class Homoglyphs:
    """Replace letters by look-alike letters of other scripts, which readers cannot see.

    The recipe replaces one random letter of a word, or all letters in `nlp.characters.HOMOGLYPHS`, at all occurrences.
    Words are taken in the order of `greedy`, and changes that help are kept. At most `words` words differ. With
    `words` 0 there is no limit and no search: all words are replaced at once, all but those of the query, or only
    those.

    Boucher, Shumailov, Anderson, Papernot. Bad characters: imperceptible NLP attacks. IEEE S&P 2022. Boucher, Pajola,
    Shumailov, Anderson, Conti. Boosting big brother: attacking search engines with encodings. RAID 2023.
    """

    words: int = 5
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_ranges("homoglyphs", self, words=(0, 10_000))

    def open(self, knowledge: AttackerKnowledge) -> _Rewriting:
        return _Rewriting(_find_homoglyph_rewrites, self.words, open_constraints(self.constraints, knowledge))


@dataclass(frozen=True)
class InvisibleCharacters:
    """Insert zero-width characters into words, which readers cannot see.

    The recipe draws a position between two letters of a word and tries each of `nlp.characters.ZERO_WIDTH` there, at
    all occurrences. Words are taken in the order of `greedy`, and changes that help are kept. At most `words` words
    differ. With `words` 0 there is no limit and no search: all words are changed at once, all but those of the query,
    or only those. Rankers split a word at such a character, keep it in the word, or drop it.

    Boucher, Shumailov, Anderson, Papernot. Bad characters: imperceptible NLP attacks. IEEE S&P 2022. Boucher, Pajola,
    Shumailov, Anderson, Conti. Boosting big brother: attacking search engines with encodings. RAID 2023.
    """

    words: int = 5
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_ranges("invisible", self, words=(0, 10_000))

    def open(self, knowledge: AttackerKnowledge) -> _Rewriting:
        return _Rewriting(_find_invisible_rewrites, self.words, open_constraints(self.constraints, knowledge))


Rewrites: TypeAlias = Callable[[str, str, ItemRandom], Sequence[Rewrite]]
"""A function from a lower-case word, the query and a random number generator to rewrites of the word."""


@dataclass(frozen=True, eq=False)
class _Rewriting:
    find_rewrites: Rewrites
    max_words: int
    checks: Sequence[ConstraintCheck]

    def steps(self, case: AttackCase, rng: ItemRandom) -> AttackSteps:
        def find(word: str) -> Sequence[Rewrite]:
            return self.find_rewrites(word, case.query, rng)

        if self.max_words:
            yield from replace_words(self.checks, case, find, self.max_words)
        else:
            yield from replace_words_at_once(self.checks, case, find)


def _find_homoglyph_rewrites(word: str, query: str, rng: ItemRandom) -> list[Rewrite]:
    positions = find_homoglyph_positions(word)
    some = [[rng.choice(positions)], positions] if positions else []
    return [partial(replace_with_homoglyphs, positions=one) for one in some]


def _find_invisible_rewrites(word: str, query: str, rng: ItemRandom) -> list[Rewrite]:
    if len(word) < 2:
        return []
    position = 1 + rng.randbelow(len(word) - 1)
    return [partial(insert_character, character=character, position=position) for character in ZERO_WIDTH]

"""Recipes that respell words: misspellings, look-alike letters, invisible characters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from shaketable.attacks.constraints import open_constraints
from shaketable.attacks.knowledge import AttackerKnowledge
from shaketable.attacks.word_replacement import Rewrite, replace_words
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
"""The transforms that misspell one word and leave it one word."""


@dataclass(frozen=True)
class Misspellings:
    """Words of title and body are misspelled, those first whose deletion serves the goal most.

    Each transform of `edits` misspells a word once, the same way wherever it occurs. All results are tried at once, and
    the best is kept if the document then ranks strictly better. So the attack misspells words that hurt a document it
    promotes, and words of the query in a document it demotes. At most `words` words differ from the original. A
    misspelling that cuts a word in two is skipped.

    The order of words is that of `greedy`; changes of characters as in Gao, Lanchantin, Soffa, Qi. Black-box generation
    of adversarial text sequences to evade deep learning classifiers. IEEE Security and Privacy Workshops 2018.
    """

    words: int = 5
    edits: tuple[str, ...] = MISSPELLINGS
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_ranges("characters", self, words=(1, 10_000))
        check_parameter("characters", bool(self.edits), "edits", "one edit or more", self.edits)
        fine = all(getattr(one, "category", "") == MISSPELLING for one in map(TRANSFORMS.build, self.edits))
        check_parameter("characters", fine, "edits", "edits that misspell a word", self.edits)

    def open(self, knowledge: AttackerKnowledge) -> _Rewriting:
        transforms: list[Transform] = [TRANSFORMS.build(text) for text in self.edits]

        def misspell(word: str, query: str, rng: ItemRandom) -> list[Rewrite]:
            texts = [transform.apply(word, rng, TransformContext(query=query)) for transform in transforms]
            return [partial(match_case, text) for text in texts if text and text.split() == [text]]

        return _Rewriting(misspell, self.words, open_constraints(self.constraints, knowledge))


@dataclass(frozen=True)
class Homoglyphs:
    """Letters of words are replaced by letters of other scripts that look the same: a reader sees no difference.

    One such letter of a word, drawn at random, or all of them (`nlp.characters.HOMOGLYPHS`) are replaced wherever the
    word occurs; words are taken in the order of `greedy`, and changes that help are kept. At most `words` words differ.

    Boucher, Shumailov, Anderson, Papernot. Bad characters: imperceptible NLP attacks. IEEE S&P 2022. Boucher, Pajola,
    Shumailov, Anderson, Conti. Boosting big brother: attacking search engines with encodings. RAID 2023.
    """

    words: int = 5
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_ranges("homoglyphs", self, words=(1, 10_000))

    def open(self, knowledge: AttackerKnowledge) -> _Rewriting:
        return _Rewriting(_find_homoglyph_rewrites, self.words, open_constraints(self.constraints, knowledge))


@dataclass(frozen=True)
class InvisibleCharacters:
    """A character without width is put inside words: a reader sees no difference.

    A position between two letters of a word is drawn, and each of `nlp.characters.ZERO_WIDTH` is tried there, wherever
    the word occurs; words are taken in the order of `greedy`, and changes that help are kept. At most `words` words
    differ. Some rankers split a word at such a character, some keep it in the word, and some drop it.

    Boucher, Shumailov, Anderson, Papernot. Bad characters: imperceptible NLP attacks. IEEE S&P 2022. Boucher, Pajola,
    Shumailov, Anderson, Conti. Boosting big brother: attacking search engines with encodings. RAID 2023.
    """

    words: int = 5
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_ranges("invisible", self, words=(1, 10_000))

    def open(self, knowledge: AttackerKnowledge) -> _Rewriting:
        return _Rewriting(_find_invisible_rewrites, self.words, open_constraints(self.constraints, knowledge))


Rewrites: TypeAlias = Callable[[str, str, ItemRandom], Sequence[Rewrite]]
"""A word in lower case, the query and a random number generator -> ways to write the word."""


@dataclass(frozen=True, eq=False)
class _Rewriting:
    find_rewrites: Rewrites
    max_words: int
    checks: Sequence[ConstraintCheck]

    def steps(self, case: AttackCase, rng: ItemRandom) -> AttackSteps:
        yield from replace_words(
            self.checks, case, lambda word: self.find_rewrites(word, case.query, rng), self.max_words
        )


def _find_homoglyph_rewrites(word: str, query: str, rng: ItemRandom) -> list[Rewrite]:
    positions = find_homoglyph_positions(word)
    some = [[rng.choice(positions)], positions] if positions else []
    return [partial(replace_with_homoglyphs, positions=one) for one in some]


def _find_invisible_rewrites(word: str, query: str, rng: ItemRandom) -> list[Rewrite]:
    if len(word) < 2:
        return []
    position = 1 + rng.randbelow(len(word) - 1)
    return [partial(insert_character, character=character, position=position) for character in ZERO_WIDTH]

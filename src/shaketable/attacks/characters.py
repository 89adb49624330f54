"""Words that are written a little differently: misspelled, in letters that look alike, with what nobody sees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from shaketable.attacks.constraints import checks
from shaketable.attacks.knowledge import Knowledge
from shaketable.attacks.replacing import Rewrite, replace_words
from shaketable.chance import Draws
from shaketable.edit.taxonomy import MISSPELLING
from shaketable.errors import check, check_within
from shaketable.registry import EDITS
from shaketable.text.glyphs import LOOKALIKES, ZERO_WIDTH
from shaketable.text.words import like
from shaketable.types import Case, Check, Context, Edit, Steps

MISSPELLINGS = (
    *("neighb_char_swap", "random_char_sub", "qwerty_char_sub", "real_typo", "lookalike_char", "phonetic"),
    *("drop_letter", "double_letter"),
)
"""The edits that misspell one word and leave it one word."""


@dataclass(frozen=True)
class Characters:
    """Words of title and body are misspelled, those first whose deletion serves the goal most.

    A word is misspelled once by each edit, the same way wherever it occurs, and all results are tried at once; the best
    stays if the document then stands strictly better. So a document that is to rise has words misspelled that hurt it,
    one that is to fall the words of the query. At most `words` words differ from the original. A misspelling that cuts
    a word in two is passed over.

    The order of words is that of `greedy`; edits of characters as in Gao, Lanchantin, Soffa, Qi. Black-box generation
    of adversarial text sequences to evade deep learning classifiers. IEEE Security and Privacy Workshops 2018.
    """

    words: int = 5
    edits: tuple[str, ...] = MISSPELLINGS
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_within("characters", self, words=(1, 10_000))
        check("characters", bool(self.edits), "edits", "one edit or more", self.edits)
        fine = all(getattr(edit, "category", "") == MISSPELLING for edit in map(EDITS.build, self.edits))
        check("characters", fine, "edits", "edits that misspell a word", self.edits)

    def open(self, knowledge: Knowledge) -> _Rewriting:
        edits: list[Edit] = [EDITS.build(text) for text in self.edits]

        def misspelled(word: str, query: str, draws: Draws) -> list[Rewrite]:
            texts = [edit.apply(word, draws, Context(query=query)) for edit in edits]
            return [partial(like, text) for text in texts if text and text.split() == [text]]

        return _Rewriting(misspelled, self.words, checks(self.constraints, knowledge))


@dataclass(frozen=True)
class Homoglyphs:
    """Letters of words are replaced by letters of other scripts that look the same: a reader sees no difference.

    A word has one such letter replaced, which is drawn, or all of them (`text.glyphs.LOOKALIKES`), wherever the word
    occurs; words are taken in the order of `greedy`, and what helps stays. At most `words` words differ.

    Boucher, Shumailov, Anderson, Papernot. Bad characters: imperceptible NLP attacks. IEEE S&P 2022. Boucher, Pajola,
    Shumailov, Anderson, Conti. Boosting big brother: attacking search engines with encodings. RAID 2023.
    """

    words: int = 5
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_within("homoglyphs", self, words=(1, 10_000))

    def open(self, knowledge: Knowledge) -> _Rewriting:
        return _Rewriting(_in_other_scripts, self.words, checks(self.constraints, knowledge))


@dataclass(frozen=True)
class Invisible:
    """A character without width is put inside words: a reader sees no difference.

    The place between two letters of a word is drawn, and each of `text.glyphs.ZERO_WIDTH` is tried there, wherever the
    word occurs; words are taken in the order of `greedy`, and what helps stays. At most `words` words differ. To some
    rankers such a character ends a word, to others it is part of it, and others again drop it unread.

    Boucher, Shumailov, Anderson, Papernot. Bad characters: imperceptible NLP attacks. IEEE S&P 2022. Boucher, Pajola,
    Shumailov, Anderson, Conti. Boosting big brother: attacking search engines with encodings. RAID 2023.
    """

    words: int = 5
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_within("invisible", self, words=(1, 10_000))

    def open(self, knowledge: Knowledge) -> _Rewriting:
        return _Rewriting(_with_no_width, self.words, checks(self.constraints, knowledge))


Rewrites: TypeAlias = Callable[[str, str, Draws], Sequence[Rewrite]]
"""A word in lower case, the query and chance -> ways to write the word."""


@dataclass(frozen=True, eq=False)
class _Rewriting:
    rewrites: Rewrites
    words: int
    checks: Sequence[Check]

    def steps(self, case: Case, draws: Draws) -> Steps:
        yield from replace_words(self.checks, case, lambda word: self.rewrites(word, case.query, draws), self.words)


def _in_other_scripts(word: str, query: str, draws: Draws) -> list[Rewrite]:
    numbers = [number for number, letter in enumerate(word) if letter in LOOKALIKES]
    if not numbers:
        return []
    return [partial(_look_alike, numbers=[draws.choice(numbers)]), partial(_look_alike, numbers=numbers)]


def _look_alike(word: str, numbers: Sequence[int]) -> str:
    return "".join(LOOKALIKES.get(letter, letter) if i in numbers else letter for i, letter in enumerate(word))


def _with_no_width(word: str, query: str, draws: Draws) -> list[Rewrite]:
    if len(word) < 2:
        return []
    at = 1 + draws.below(len(word) - 1)
    return [partial(_put_inside, character=character, at=at) for character in ZERO_WIDTH]


def _put_inside(word: str, character: str, at: int) -> str:
    return word[:at] + character + word[at:]

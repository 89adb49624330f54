"""Misspelling: one spelling error, in one word (joining touches two).

The first three are those of paper 004: its stop-words are never edited, the word is drawn from the others, and an edit
that would change nothing is drawn again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from shaketable.chance import Draws
from shaketable.edit.oneword import ANY, change_one, pick
from shaketable.edit.taxonomy import MISSPELLING
from shaketable.text.keyboard import NEAR_KEYS
from shaketable.text.misspellings import bundled
from shaketable.text.tokens import Memo
from shaketable.text.words import like
from shaketable.types import Context

ASCII_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class NeighbCharSwap:
    """Swap two neighbouring letters of a word; the first and the last may be among them."""

    category: ClassVar[str] = MISSPELLING

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        return change_one(text, draws, _swap)


def _swap(word: str, draws: Draws) -> str | None:
    places = [i for i in range(len(word) - 1) if word[i] != word[i + 1]]
    if not places:
        return None
    i = draws.choice(places)
    return word[:i] + word[i + 1] + word[i] + word[i + 2 :]


@dataclass(frozen=True)
class RandomCharSub:
    """Replace a letter by a random ASCII letter, upper or lower case, that differs in more than case."""

    category: ClassVar[str] = MISSPELLING

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        return change_one(text, draws, _substitute)


def _substitute(word: str, draws: Draws) -> str:
    place = draws.below(len(word))
    old = word[place]
    while (new := draws.choice(ASCII_LETTERS)).lower() == old.lower():
        pass
    return word[:place] + new + word[place + 1 :]


@dataclass(frozen=True)
class QwertyCharSub:
    """Replace a letter by one on a key beside it, as fast typing does."""

    category: ClassVar[str] = MISSPELLING

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        return change_one(text, draws, _near_key)


def _near_key(word: str, draws: Draws) -> str | None:
    places = [i for i, letter in enumerate(word) if letter.lower() in NEAR_KEYS]
    if not places:
        return None
    place = draws.choice(places)
    new = draws.choice(NEAR_KEYS[word[place].lower()])
    return word[:place] + like(new, word[place]) + word[place + 1 :]


@dataclass(frozen=True)
class RealTypo:
    """Misspell a word as people really do: "receive" becomes "recieve". Stop-words may be hit too."""

    category: ClassVar[str] = MISSPELLING

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        return change_one(text, draws, pick(_typos.__getitem__), ANY)


def _known_typos(word: str) -> tuple[str, ...]:
    table, lower = bundled(), word.lower()
    found = table.get(lower) or tuple(f"{typo}s" for typo in table.get(lower.removesuffix("s"), ()))
    return tuple(like(typo, word) for typo in found)


_typos: Memo[tuple[str, ...]] = Memo(_known_typos)


LOOKALIKES = (
    *(("o", "0"), ("0", "o"), ("l", "1"), ("1", "l"), ("i", "1"), ("i", "l"), ("l", "i"), ("s", "5"), ("5", "s")),
    *(("z", "2"), ("b", "6"), ("g", "9"), ("g", "q"), ("q", "g"), ("n", "h"), ("c", "e")),
    *(("u", "v"), ("v", "u"), ("m", "rn"), ("rn", "m"), ("w", "vv"), ("vv", "w"), ("d", "cl"), ("cl", "d")),
)
"""Letters and what looks like them in ASCII."""

ACCENTED = (
    *(("a", "á"), ("c", "ç"), ("e", "é"), ("i", "í"), ("n", "ñ"), ("o", "ó"), ("u", "ü"), ("y", "ý")),
    *(("a", "а"), ("c", "с"), ("e", "е"), ("o", "о"), ("p", "р"), ("x", "х"), ("i", "і")),
)
"""The same beyond ASCII: accents, and letters of the Cyrillic alphabet."""

VOWEL = "[aeiou]"
SOUNDALIKES = (
    *(("ph", "f"), ("f", "ph", "", VOWEL), ("ie", "ei"), ("ei", "ie")),
    *(("ck", "k"), ("qu", "kw"), ("x", "ks"), ("z", "s")),
    *(("c", "k", "", "[aou]"), ("k", "c", "", "[aou]"), ("c", "s", "", "[eiy]"), ("s", "c", "", "[eiy]")),
    *(("sc", "s", "", "[ei]"), ("s", "z", VOWEL, VOWEL), ("y", "i", "", "[^aeiou]"), ("i", "y", "", "[^aeiou]")),
    *((seen, seen[1:], "^", "") for seen in ("kn", "wr", "ps", "pn")),
    *((seen, seen[:1], "^", "") for seen in ("wh", "rh")),
    *((seen, seen[:1], "", "$") for seen in ("mb", "mn")),
    *(("ght", "t"), ("dge", "ge"), ("tion", "sion"), ("sion", "tion"), ("tious", "cious"), ("cious", "tious")),
    *((seen, new, "", "$") for seen, new in (("ance", "ence"), ("ence", "ance"), ("ant", "ent"), ("able", "ible"))),
    *((seen, new, "", "$") for seen, new in (("ible", "able"), ("er", "or"), ("or", "er"), ("ar", "er"), ("le", "el"))),
    *((seen, new, "", "$") for seen, new in (("el", "le"), ("al", "le"), ("ous", "us"))),
    *(("ea", "ee"), ("ee", "ea"), ("ai", "ay"), ("ou", "ow"), ("ough", "uff")),
    *((2 * letter, letter) for letter in "bcdfglmnprstz"),
    *((letter, 2 * letter, VOWEL, VOWEL) for letter in "lmnprst"),
)
"""What sounds alike, or nearly so: (seen, written, what must stand before, what must follow)."""

Slips = tuple[tuple[int, int, str], ...]
"""From where, to where, by what: kept instead of whole words, for a word may be very long."""


def _slips(rules: Iterable[tuple[str, ...]]) -> Memo[Slips]:
    """word -> all ways in which one of the rules applies to it."""
    patterns = [(rule[0], _pattern(*rule), rule[1]) for rule in rules]

    def found(word: str) -> Slips:
        lower = word.lower()
        if len(lower) != len(word):
            return ()
        hits = ((pattern, new) for seen, pattern, new in patterns if seen in lower)  # far faster than trying all
        return tuple((match.start(), match.end(), new) for pattern, new in hits for match in pattern.finditer(lower))

    return Memo(found)


def _pattern(seen: str, new: str, before: str = "", after: str = "") -> re.Pattern[str]:
    return re.compile(f"{before and f'(?<={before})'}{seen}{after and f'(?={after})'}")


def _slip(text: str, draws: Draws, slips: Memo[Slips]) -> str | None:
    """Apply one rule at one place of one word."""

    def rewrite(word: str, draws: Draws) -> str | None:
        if not (found := slips[word]):
            return None
        start, end, new = draws.choice(found)
        return word[:start] + like(new, word[start:end]) + word[end:]

    return change_one(text, draws, rewrite)


_look = {True: _slips(LOOKALIKES), False: _slips(LOOKALIKES + ACCENTED)}
_sound = _slips(SOUNDALIKES)


@dataclass(frozen=True)
class LookalikeChar:
    """Replace a letter by what looks like it: o by 0, l by 1, m by rn; with ascii=False also é and Cyrillic letters."""

    ascii: bool = True
    category: ClassVar[str] = MISSPELLING

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        return _slip(text, draws, _look[self.ascii])


@dataclass(frozen=True)
class Phonetic:
    """Write a word as it sounds: ph as f, ei as ie, a double letter as one."""

    category: ClassVar[str] = MISSPELLING

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        return _slip(text, draws, _sound)


@dataclass(frozen=True)
class DropLetter:
    """Leave out a letter, though not the first, of a word of three letters or more."""

    category: ClassVar[str] = MISSPELLING

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        return change_one(text, draws, _drop)


def _drop(word: str, draws: Draws) -> str | None:
    places = [i for i in range(1, len(word)) if word[i].isalpha()]
    if len(word) < 3 or not places:
        return None
    place = draws.choice(places)
    return word[:place] + word[place + 1 :]


@dataclass(frozen=True)
class DoubleLetter:
    """Type a letter of a word twice."""

    category: ClassVar[str] = MISSPELLING

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        return change_one(text, draws, _double)


def _double(word: str, draws: Draws) -> str:
    place = draws.choice([i for i, letter in enumerate(word) if letter.isalpha()])
    return word[: place + 1] + word[place:]


@dataclass(frozen=True)
class SplitWord:
    """Put a space into a word, with two letters or more on both sides."""

    category: ClassVar[str] = MISSPELLING

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        return change_one(text, draws, _split)


def _split(word: str, draws: Draws) -> str | None:
    if len(word) < 4:
        return None
    place = 2 + draws.below(len(word) - 3)
    return f"{word[:place]} {word[place:]}"


@dataclass(frozen=True)
class JoinWords:
    """Leave out the space between two words."""

    category: ClassVar[str] = MISSPELLING

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        words = text.split()
        pairs = pairwise(ANY[word] for word in words)
        places = [i for i, (a, b) in enumerate(pairs) if a and b and not a.tail and not b.head]
        if not places:
            return None
        place = draws.choice(places)
        words[place : place + 2] = [words[place] + words[place + 1]]
        return " ".join(words)

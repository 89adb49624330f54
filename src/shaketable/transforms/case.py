"""Transforms of case and punctuation that keep the words."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import ClassVar

from shaketable.core.protocols import TransformContext
from shaketable.core.seeding import ItemRandom
from shaketable.nlp.words import TOKEN_PARTS
from shaketable.transforms.categories import NATURALITY
from shaketable.transforms.questions import is_question

_PUNCTUATION_TO_SPACE = str.maketrans(string.punctuation, " " * len(string.punctuation))


def blank_punctuation(text: str) -> str:
    """Replace each ASCII punctuation character by a space.

    >>> blank_punctuation("well-known, isn't it?")
    'well known  isn t it '
    """
    return text.translate(_PUNCTUATION_TO_SPACE)


@dataclass(frozen=True)
class ChangeCase:
    """Change the query to upper case, lower case, sentence case or title case."""

    category: ClassVar[str] = NATURALITY

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        words = text.split()
        plain = " ".join(words)
        titled = " ".join([word[:1].upper() + word[1:] for word in words])
        return _draw_other_text(plain, [plain.upper(), plain.lower(), plain.capitalize(), titled], rng)


@dataclass(frozen=True)
class ChangePunctuation:
    """Add or remove the final mark, put the query in quotes, or remove all punctuation; keep the words."""

    category: ClassVar[str] = NATURALITY

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        words = text.split()
        plain = " ".join(words)
        if not any(c.isalnum() for c in plain):
            return None
        bare = plain.rstrip("?!. ")
        stripped = [found.core if (found := TOKEN_PARTS[word]) else word for word in words]
        ends = [f"{bare}?"] if is_question(plain) else [f"{bare}.", f"{bare}!"]
        return _draw_other_text(plain, [bare, " ".join(stripped), f'"{bare}"', *ends], rng)


def _draw_other_text(text: str, choices: list[str], rng: ItemRandom) -> str | None:
    """Draw one of the choices that differ from the text, or return None."""
    others = [choice for choice in dict.fromkeys(choices) if choice != text and choice]
    return rng.choice(others) if others else None

"""Character changes that readers do not notice: look-alike letters of other scripts and zero-width characters."""

from __future__ import annotations

from collections.abc import Container

from shaketable.nlp.characters import HOMOGLYPHS


def find_homoglyph_positions(word: str) -> list[int]:
    """Return the positions of the letters that have a look-alike."""
    return [position for position, letter in enumerate(word) if letter in HOMOGLYPHS]


def replace_with_homoglyphs(word: str, positions: Container[int]) -> str:
    """Replace the letters at these positions by their look-alikes, if they have one.

    >>> ascii(replace_with_homoglyphs("cope", [0, 3]))
    "'\\\\u0441op\\\\u0435'"
    """
    return "".join(HOMOGLYPHS.get(letter, letter) if i in positions else letter for i, letter in enumerate(word))


def insert_character(word: str, character: str, position: int) -> str:
    """Insert a character before the letter at this position."""
    return word[:position] + character + word[position:]

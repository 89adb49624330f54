"""Names and fixed phrases, which a synonym of one of their words breaks: "world war", "black death"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from shaketable.files.reading import read_lines
from shaketable.nlp.pos_context import FUNCTION_WORDS

BUNDLED_PATH = Path(__file__).with_name("fixed_phrases.txt")

Phrase: TypeAlias = tuple[str, ...]


@lru_cache(maxsize=1)
def _index_phrases() -> Mapping[str, tuple[Phrase, ...]]:
    """Return word -> the bundled phrases that contain it."""
    found: dict[str, list[Phrase]] = {}
    for _, line in read_lines(BUNDLED_PATH):
        phrase = tuple(line.split())
        for word in () if line.startswith("#") else dict.fromkeys((*phrase, f"{phrase[-1]}s")):
            found.setdefault(word, []).append(phrase)
    return {word: tuple(phrases) for word, phrases in found.items()}


def find_fixed_phrase(words: Sequence[str], position: int) -> str:
    """Return the fixed phrase that the word at a position belongs to, or "".

    >>> find_fixed_phrase("causes of world war ii".split(), 3)
    'world war'
    >>> find_fixed_phrase("causes of the war".split(), 3)
    ''
    """
    return next((" ".join(phrase) for phrase in _iterate_phrases_at(words, position)), "")


def _iterate_phrases_at(words: Sequence[str], position: int) -> Iterator[Phrase]:
    for phrase in _index_phrases().get(words[position], ()):
        for start in range(max(0, position - len(phrase) + 1), position + 1):
            *head, last = words[start : start + len(phrase)]
            if tuple(head) == phrase[:-1] and last in (phrase[-1], f"{phrase[-1]}s"):
                yield phrase


def find_capitalised_name(words: Sequence[str], position: int) -> str:
    """Return the name that the word at a position belongs to, as the capital letters show it, or "".

    A capital at the beginning of the text shows no name by itself, and capitals of a text in title case show none.

    >>> find_capitalised_name("Who signed the Treaty of Versailles".split(), 3)
    'Treaty'
    >>> find_capitalised_name("United States history".split(), 0)
    'United States'
    >>> find_capitalised_name("Causes of the War".split(), 3)
    ''
    """
    if all(not word[:1].islower() or word.lower() in FUNCTION_WORDS for word in words):
        return ""
    start = end = position
    while start > 0 and words[start - 1][:1].isupper():
        start -= 1
    while end < len(words) and words[end][:1].isupper():
        end += 1
    return " ".join(words[start:end]) if position < end and (start > 0 or end - start > 1) else ""

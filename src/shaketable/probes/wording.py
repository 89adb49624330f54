"""Words and marks that manipulations leave out or write wrong."""

from __future__ import annotations

import re
import string
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from shaketable.chance import Draws
from shaketable.errors import BadInput
from shaketable.files import lines
from shaketable.text.misspellings import BUNDLED, Misspellings, bundled, read_misspellings
from shaketable.text.tokens import STOPWORDS
from shaketable.text.words import like, word_set

TAILS = word_set("n't n’t 's ’s 'll ’ll 're ’re 've ’ve 'd ’d 'm ’m")
"""What linguistic tools cut off contractions; our list has these as an index sees them, without the apostrophe."""
_SPACED = str.maketrans(string.punctuation, " " * len(string.punctuation))
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def stop_words(name: str) -> frozenset[str]:
    """Stop-words in lower case: "english", "none", or those of a file, any number a line.

    >>> "n't" in stop_words("english"), stop_words("none")
    (True, frozenset())
    """
    if name in STOPWORDS:
        return STOPWORDS[name] | TAILS if STOPWORDS[name] else frozenset()
    return _read_words(Path(name), _stamp(Path(name)))


@lru_cache(maxsize=4)
def _read_words(path: Path, stamp: int) -> frozenset[str]:
    found = frozenset(word.lower() for _, line in lines(path) for word in line.split())
    if not found:
        raise BadInput("a list of stop-words has at least one", path)
    return found


class Slips(NamedTuple):
    """A table of misspellings, and how many words an entry has at most."""

    table: Misspellings
    longest: int


def slips(file: str) -> Slips:
    """The misspellings of a file, or those of the package."""
    return _read_slips(Path(file), _stamp(Path(file))) if file else _read_slips(BUNDLED, 0)


@lru_cache(maxsize=4)
def _read_slips(path: Path, stamp: int) -> Slips:
    table = bundled() if path == BUNDLED else read_misspellings(path)
    return Slips(table, max((len(right.split()) for right in table), default=0))


def _stamp(path: Path) -> int:
    """When a file was written: one that has changed since is read again."""
    try:
        return path.stat().st_mtime_ns
    except (OSError, ValueError):  # whoever reads it says what is wrong
        return 0


def without_punctuation(text: str) -> str:
    """A text with a space for each ASCII punctuation character.

    >>> without_punctuation("well-known, isn't it?")
    'well known  isn t it '
    """
    return text.translate(_SPACED)


def misspelt(text: str, slips: Slips, spared: frozenset[str], draws: Draws) -> str:
    """A text with each word that the table has, but for those that are spared, written as somebody did by mistake.

    One pass from the left: what it wrote is not looked at again. An entry of several words comes before its parts.
    """
    table, most = slips
    words = list(_WORD.finditer(text))
    written: list[str] = []
    done = i = 0
    while i < len(words):
        taken = 1
        for n in range(min(most, len(words) - i), 0, -1):
            start, end = words[i].start(), words[i + n - 1].end()
            right = text[start:end] if n == 1 else " ".join(text[start:end].split())
            wrong = table.get(right) or table.get(right.lower())
            if wrong and right.lower() not in spared:
                slip = draws.choice(wrong)
                written += (text[done:start], slip if right in table else like(slip, right))
                done, taken = end, n
                break
        i += taken
    return "".join([*written, text[done:]])

"""The bundled thesaurus: the default source of synonyms.

The file has one group per line. The words of "verb: begin, start, commence" may replace each other. In
"adj: chilly > cool, cold" the words on the right may replace the left word, not the reverse.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from shaketable.core.errors import BadInput
from shaketable.files.reading import read_lines

PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")
MAX_GROUP_WORDS = 100
"""The most words of a group, on either side."""
BUNDLED_PATH = Path(__file__).with_name("thesaurus.txt")

Thesaurus = Mapping[str, Mapping[str, tuple[str, ...]]]
"""word -> part of speech -> synonyms, nearest first."""


def read_thesaurus(path: Path) -> Thesaurus:
    """Read a file of synonym groups.

    >>> read_thesaurus(BUNDLED_PATH)["quick"]["adj"][:2]
    ('fast', 'rapid')
    """
    heads: dict[str, dict[str, list[str]]] = {}
    for number, line in read_lines(path):
        pos, colon, group = line.partition(":")
        if not colon or pos not in PARTS_OF_SPEECH:
            raise BadInput(f"a group starts with one of {', '.join(PARTS_OF_SPEECH)} and a colon", path, number)
        left, one_way, right = group.partition(">")
        words = [word.strip() for word in left.split(",")]
        replacements = [word.strip() for word in right.split(",")] if one_way else words
        if not all([*words, *replacements]) or len({*words, *replacements}) < 2:
            raise BadInput("a group has at least two words, none of them empty", path, number)
        if max(len(words), len(replacements)) > MAX_GROUP_WORDS:
            raise BadInput(f"a group has at most {MAX_GROUP_WORDS} words", path, number)
        for word in words:
            known = heads.setdefault(word, {}).setdefault(pos, [])
            known += [other for other in replacements if other != word and other not in known]
    return {word: {pos: tuple(others) for pos, others in by_pos.items()} for word, by_pos in heads.items()}


@lru_cache(maxsize=1)
def read_bundled_thesaurus() -> Thesaurus:
    """Return the thesaurus of the package."""
    return read_thesaurus(BUNDLED_PATH)

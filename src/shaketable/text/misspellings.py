"""How people really misspell words: a table that comes with the package."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from shaketable.errors import BadInput, quoted
from shaketable.files import lines

BUNDLED = Path(__file__).with_name("misspellings.txt")

Misspellings = Mapping[str, tuple[str, ...]]
"""word -> how it is written by mistake."""


def read_misspellings(path: Path) -> Misspellings:
    """Read a table of "right>wrong,wrong" items, any number a line; lines that start with # are remarks.

    >>> read_misspellings(BUNDLED)["receive"]
    ('recieve', 'receve')
    """
    table: dict[str, tuple[str, ...]] = {}
    for number, line in lines(path):
        for item in [] if line.startswith("#") else line.split():
            right, _, wrong = item.partition(">")
            slips = tuple(wrong.split(","))
            if not all((right, *slips)) or right in slips or right in table:
                raise BadInput(f"{quoted(item)}: write right>wrong,wrong, each right word once", path, number)
            table[right] = slips
    return table


@lru_cache(maxsize=1)
def bundled() -> Misspellings:
    """The table of the package."""
    return read_misspellings(BUNDLED)

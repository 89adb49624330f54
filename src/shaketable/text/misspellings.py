"""How people really misspell words: a table that comes with the package."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from shaketable.errors import BadInput, quoted
from shaketable.files import lines, parsed

BUNDLED = Path(__file__).with_name("misspellings.txt")

Misspellings = Mapping[str, tuple[str, ...]]
"""word -> how it is written by mistake."""


def read_misspellings(path: Path) -> Misspellings:
    """Read a table of "right>wrong,wrong" items, any number a line; lines that start with # are remarks.

    >>> read_misspellings(BUNDLED)["receive"]
    ('recieve', 'receve')

    A file whose name ends in .jsonl has one misspelling a line, as {"a": "wrong", "b": "right"}; "choices" may list
    several right words in place of "b", and a right word may come again.
    """
    return _of_rows(path) if path.suffix == ".jsonl" else _of_items(path)


def _of_items(path: Path) -> Misspellings:
    table: dict[str, tuple[str, ...]] = {}
    for number, line in lines(path):
        for item in [] if line.startswith("#") else line.split():
            right, _, wrong = item.partition(">")
            slips = tuple(wrong.split(","))
            if not all((right, *slips)) or right in slips or right in table:
                raise BadInput(f"{quoted(item)}: write right>wrong,wrong, each right word once", path, number)
            table[right] = slips
    return table


def _of_rows(path: Path) -> Misspellings:
    table: dict[str, dict[str, None]] = {}
    for number, line in lines(path):
        row = parsed(line, path, number)
        row = row if isinstance(row, dict) else {}
        wrong, rights = row.get("a"), row.get("choices", [row.get("b")])
        words = [wrong, *rights] if isinstance(rights, list) and rights else [None]
        if not isinstance(wrong, str) or not all(isinstance(word, str) and word.strip() for word in words):
            raise BadInput('write a misspelling as {"a": "wrong", "b": "right"}, both of them texts', path, number)
        for right in rights:
            if right != wrong:
                table.setdefault(right, {})[wrong] = None
    return {right: tuple(slips) for right, slips in table.items()}


@lru_cache(maxsize=1)
def bundled() -> Misspellings:
    """The table of the package."""
    return read_misspellings(BUNDLED)

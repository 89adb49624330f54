"""Observed misspellings: the table of the package, and a reader of such tables."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from shaketable.core.errors import BadInput, quote_value
from shaketable.files.reading import parse_json, read_lines

BUNDLED_PATH = Path(__file__).with_name("misspellings.txt")

Misspellings = Mapping[str, tuple[str, ...]]
"""word -> its misspellings."""


def read_misspellings(path: Path) -> Misspellings:
    """Read a table of "right>wrong,wrong" items, any number per line; lines that start with # are comments.

    >>> read_misspellings(BUNDLED_PATH)["receive"]
    ('recieve', 'receve')

    A .jsonl file has one misspelling per line, as {"a": "wrong", "b": "right"}; "choices" may list several right words
    in place of "b", and a right word may repeat.
    """
    return _read_jsonl_items(path) if path.suffix == ".jsonl" else _read_items(path)


def _read_items(path: Path) -> Misspellings:
    table: dict[str, tuple[str, ...]] = {}
    for number, line in read_lines(path):
        for item in [] if line.startswith("#") else line.split():
            right, _, wrong = item.partition(">")
            slips = tuple(wrong.split(","))
            if not all((right, *slips)) or right in slips or right in table:
                raise BadInput(f"{quote_value(item)}: write right>wrong,wrong, each right word once", path, number)
            table[right] = slips
    return table


def _read_jsonl_items(path: Path) -> Misspellings:
    table: dict[str, dict[str, None]] = {}
    for number, line in read_lines(path):
        row = parse_json(line, path, number)
        row = row if isinstance(row, dict) else {}
        wrong, rights = row.get("a"), row.get("choices", [row.get("b")])
        words = [wrong, *rights] if isinstance(rights, list) and rights else [None]
        if not isinstance(wrong, str) or not all(isinstance(word, str) and word.strip() for word in words):
            raise BadInput('write a misspelling as {"a": "wrong", "b": "right"}, with two texts', path, number)
        for right in rights:
            if right != wrong:
                table.setdefault(right, {})[wrong] = None
    return {right: tuple(slips) for right, slips in table.items()}


@lru_cache(maxsize=1)
def read_bundled_misspellings() -> Misspellings:
    """Return the table of the package."""
    return read_misspellings(BUNDLED_PATH)

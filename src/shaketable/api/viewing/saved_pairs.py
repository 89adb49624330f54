"""Pairs that a live page saves, in the layout that `shaketable probe --pairs` reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from shaketable.core.documents import Doc
from shaketable.core.errors import BadInput
from shaketable.files.atomic import atomic_write
from shaketable.files.locking import exclusive_lock
from shaketable.files.reading import read_lines
from shaketable.probes.user_pairs import ExpectedPreference, parse_expectation, read_expectations
from shaketable.report import escape_controls


def append_pair(path: Path, query: str, first: Doc, second: Doc, expect: str) -> int:
    """Append a pair to a file and return the number of its pairs; raise `BadInput` if the pair or the file is invalid.

    The file appears with the new line or stays as it was.
    """
    titles = {"title_a": first.title, "title_b": second.title} if first.title or second.title else {}
    row: dict[str, Any] = {"query": query, "a": first.body, "b": second.body, "expect": expect, **titles}
    parse_expectation(row, path, 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(path.parent):
        known = list(read_expectations(path)) if path.exists() else []
        new = _name_pair(row, {one.id for one in known})
        if any(_is_same_pair(one, parse_expectation(new, path, 1)) for one in known):
            raise BadInput(f"this pair is already in {path}")
        lines = [line for _, line in read_lines(path)] if path.exists() else []
        with atomic_write(path) as out:
            for line in (*lines, escape_controls(json.dumps(new, ensure_ascii=False))):
                out.write(f"{line}\n")
    return len(known) + 1


def _name_pair(row: dict[str, Any], taken: set[str]) -> dict[str, Any]:
    """Return a row with an id that no other row has."""
    number = next(n for n in range(1, len(taken) + 2) if f"view-{n}" not in taken)
    return {"id": f"view-{number}", **row}


def _is_same_pair(one: ExpectedPreference, other: ExpectedPreference) -> bool:
    texts = [(pair.contrast.query, pair.contrast.first, pair.contrast.second, pair.expect) for pair in (one, other)]
    return texts[0] == texts[1]

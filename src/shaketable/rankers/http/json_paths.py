"""A small path language for JSON: '$.a.b[*]' selects a list, and dotted names select a field of an object."""

from __future__ import annotations

import re
from typing import Any

from shaketable.core.errors import BadInput

PATH_PATTERN = r"\$?((?:\.?[\w@-]+)(?:\.[\w@-]+|\[\*\])*)"
MAX_FIELD_DEPTH = 5
"""The depth of nested objects in which a text is looked for."""
MAX_TEXT_CHARS = 1_000_000
"""Maximum characters of a text that is made of the fields of a hit."""


def parse_path(path: str) -> list[str]:
    """Return the steps of a path: names, and "*" for all elements of a list.

    >>> parse_path("$.hits.hits[*]"), parse_path("results")
    (['hits', 'hits', '*'], ['results'])
    """
    match = re.fullmatch(PATH_PATTERN, path.strip())
    if match is None:
        if path.strip() in ("$", "$[*]"):
            return ["*"] if "*" in path else []
        raise BadInput(f"{path!r} is not a path: write names with dots, and [*] for a list, such as '$.results[*]'")
    return [step for step in match[1].replace("[*]", ".*").split(".") if step]


def select_rows(answer: Any, path: str) -> list[Any] | None:
    """Return the elements of the list at a path; None if there is no such list.

    >>> select_rows({"a": {"b": [1, 2]}}, "$.a.b[*]"), select_rows({"a": 1}, "$.a.b[*]")
    ([1, 2], None)
    """
    found: list[Any] = [answer]
    for step in parse_path(path):
        if step == "*":
            if not all(isinstance(value, list) for value in found):
                return None
            found = [row for value in found for row in value]
        else:
            if not all(isinstance(value, dict) and step in value for value in found):
                return None
            found = [value[step] for value in found]
    return found[0] if len(found) == 1 and isinstance(found[0], list) and not path.endswith("[*]") else found


def get_field(row: Any, name: str) -> Any:
    """Return a field of an object by its dotted name; None if it is absent. A field whose name has dots comes first.

    >>> get_field({"a": {"b": 1}}, "a.b"), get_field({"a.b": 2}, "a.b"), get_field({}, "a")
    (1, 2, None)
    """
    if isinstance(row, dict) and name in row:
        return row[name]
    for step in name.split("."):
        if not isinstance(row, dict) or step not in row:
            return None
        row = row[step]
    return row


def join_text(value: Any) -> str:
    """Return a field as a text; the values of a multi-valued field are joined with spaces.

    >>> join_text(["a boat", "a ship"]), join_text(7), join_text(None)
    ('a boat a ship', '7', '')
    """
    values = value if isinstance(value, list) else [value]
    plain = (str(one) for one in values if isinstance(one, str | int | float) and not isinstance(one, bool))
    return " ".join(filter(None, plain))[:MAX_TEXT_CHARS]


def list_string_fields(row: Any, prefix: str = "", depth: int = MAX_FIELD_DEPTH) -> dict[str, str]:
    """Return the dotted names of the fields of an object that hold texts, with these texts.

    >>> list_string_fields({"a": {"b": "x"}, "c": ["y", "z"], "d": 1})
    {'a.b': 'x', 'c': 'y z'}
    """
    found: dict[str, str] = {}
    for name, value in row.items() if isinstance(row, dict) else ():
        if isinstance(value, dict):
            found |= list_string_fields(value, f"{prefix}{name}.", depth - 1) if depth else {}
        elif isinstance(value, str) or (isinstance(value, list) and value and isinstance(value[0], str)):
            found[f"{prefix}{name}"] = join_text(value)
    return found

"""Reading and writing of TOML."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shaketable.core.errors import BadInput
from shaketable.files.reading import open_binary

MAX_BYTES = 1_000_000
"""The maximum size of a file; hand-written files are smaller."""


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file."""
    with open_binary(path) as raw:
        text = raw.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise BadInput(f"has more than {MAX_BYTES:,} bytes, which is too large for a settings file", path)
    try:
        return tomllib.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # from tomllib or from the decoder
        raise BadInput(f"is not a TOML file ({error})", path) from error


def to_toml(values: Mapping[str, Any]) -> str:
    """Return TOML lines for texts, numbers, booleans, and lists of these; None values are omitted.

    >>> print(to_toml({"ranker": ["bm25", "mine=./my.py:score"], "depth": 100, "keep-going": False, "limit": None}))
    ranker = [
      "bm25",
      "mine=./my.py:score",
    ]
    depth = 100
    keep-going = false
    """
    return "\n".join(f"{key} = {_format_value(value)}" for key, value in values.items() if value is not None)


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[\n{''.join(f'  {_format_value(one)},{chr(10)}' for one in value)}]" if value else "[]"
    # a JSON string is a TOML string, except that JSON does not escape DEL
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")

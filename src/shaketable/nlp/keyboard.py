"""Adjacent keys of a keyboard."""

from __future__ import annotations

QWERTY = (("qwertyuiop", 0.0), ("asdfghjkl", 0.25), ("zxcvbnm", 0.75))
"""The rows of letters, each with its offset to the right, in keys."""


def find_adjacent_keys(rows: tuple[tuple[str, float], ...] = QWERTY) -> dict[str, str]:
    """Return key -> its adjacent keys, left to right and top to bottom.

    >>> find_adjacent_keys()["s"], find_adjacent_keys()["p"]
    ('weadzx', 'ol')
    """
    places = {key: (row, left + i) for row, (keys, left) in enumerate(rows) for i, key in enumerate(keys)}
    return {
        key: "".join(
            other
            for other, (row, left) in places.items()
            if other != key and ((row == y and abs(left - x) == 1) or (abs(row - y) == 1 and abs(left - x) < 1))
        )
        for key, (y, x) in places.items()
    }


ADJACENT_KEYS = find_adjacent_keys()

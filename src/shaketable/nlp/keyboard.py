"""Adjacent keys of keyboards."""

from __future__ import annotations

from functools import cache

Rows = tuple[tuple[str, float], ...]
"""The rows of letters of a keyboard, each with its offset to the right, in keys."""
QWERTY: Rows = (("qwertyuiop", 0.0), ("asdfghjkl", 0.25), ("zxcvbnm", 0.75))
LAYOUTS: dict[str, Rows] = {
    "qwerty": QWERTY,
    "qwertz": (("qwertzuiop", 0.0), ("asdfghjkl", 0.25), ("yxcvbnm", 0.75)),
    "german": (("qwertzuiopü", 0.0), ("asdfghjklöä", 0.25), ("yxcvbnm", 0.75)),
    "azerty": (("azertyuiop", 0.0), ("qsdfghjklm", 0.25), ("wxcvbn", 0.75)),
    "spanish": (("qwertyuiop", 0.0), ("asdfghjklñ", 0.25), ("zxcvbnm", 0.75)),
    "nordic": (("qwertyuiopå", 0.0), ("asdfghjklöä", 0.25), ("zxcvbnm", 0.75)),
    "turkish": (("qwertyuıopğü", 0.0), ("asdfghjklşi", 0.25), ("zxcvbnmöç", 0.75)),
    "russian": (("йцукенгшщзхъ", 0.0), ("фывапролджэ", 0.25), ("ячсмитьбю", 0.75)),
    "ukrainian": (("йцукенгшщзхї", 0.0), ("фівапролджє", 0.25), ("ячсмитьбю", 0.75)),
    "arabic": (("ضصثقفغعهخحجد", 0.0), ("شسيبلاتنمكط", 0.25), ("ئءؤرىةوزظ", 0.75)),
    "inscript": (("ौैाीूबहगदजड", 0.0), ("ोे्िुपरकतचट", 0.25), ("ंमनवलसय", 1.75)),
}
"""Layout -> its rows of letters."""


def find_adjacent_keys(rows: Rows = QWERTY) -> dict[str, str]:
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


@cache
def get_adjacent_keys(layout: str) -> dict[str, str]:
    """Return the adjacent keys of a layout of `LAYOUTS`.

    >>> get_adjacent_keys("german")["z"], get_adjacent_keys("russian")["а"]
    ('tugh', 'кевпсм')
    """
    return find_adjacent_keys(LAYOUTS[layout])

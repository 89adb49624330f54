"""How far a document was changed: its words before and after."""

from __future__ import annotations

from difflib import SequenceMatcher

from shaketable.types import Doc


def words_changed(before: Doc, after: Doc) -> int:
    """The number of words that differ, title and body apart; words are what stands between white space.

    Where a text has as many words as before it is the Hamming distance. Otherwise it is what a word-by-word comparison
    replaces, adds and takes away.

    >>> words_changed(Doc("a red boat"), Doc("a blue ship")), words_changed(Doc("a red boat"), Doc("a very red boat"))
    (2, 1)
    """
    return _changed(before.title, after.title) + _changed(before.body, after.body)


def _changed(before: str, after: str) -> int:
    left, right = before.split(), after.split()
    if len(left) == len(right):
        return sum(a != b for a, b in zip(left, right, strict=True))
    codes = SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    return sum(max(b - a, d - c) for kind, a, b, c, d in codes if kind != "equal")

"""Word differences between two texts as escaped HTML."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from markupsafe import Markup, escape

from shaketable.report import clean

CONTEXT_WORDS = 12
"""Words shown on each side of a difference; longer common passages are shortened."""
MIN_SIMILARITY = 0.4
"""The similarity below which texts have no marks, because they are two different texts."""
MAX_WORDS = 400
"""The number of words that are compared."""


def mark_differences(before: str, after: str) -> tuple[Markup, Markup]:
    """Return both texts, with words only of the first in <del> and words only of the second in <ins>.

    >>> print(*mark_differences("one two three", "one 2 three"), sep="\\n")
    one <del>two</del> three
    one <ins>2</ins> three
    """
    left, right = (clean(text).split()[:MAX_WORDS] for text in (before, after))
    parts: tuple[list[Markup], list[Markup]] = ([], [])
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    if matcher.ratio() < MIN_SIMILARITY and min(len(left), len(right)) >= CONTEXT_WORDS:
        return escape(" ".join(left)), escape(" ".join(right))
    codes = matcher.get_opcodes()
    for number, (kind, a, b, c, d) in enumerate(codes):
        if kind == "equal":
            same = _shorten(left[a:b], first=number == 0, last=number == len(codes) - 1)
            for side in parts:
                side.append(same)
            continue
        if left[a:b]:
            parts[0].append(Markup("<del>{}</del>").format(" ".join(left[a:b])))
        if right[c:d]:
            parts[1].append(Markup("<ins>{}</ins>").format(" ".join(right[c:d])))
    gone, come = (Markup(" ").join(side) for side in parts)
    return gone, come


def _shorten(words: Sequence[str], *, first: bool, last: bool) -> Markup:
    """Return a common passage; if it is long, keep only the words next to differences."""
    head = words[:0] if first else words[:CONTEXT_WORDS]
    tail = words[:0] if last else words[-CONTEXT_WORDS:]
    if (first and last) or len(words) <= len(head) + len(tail) + CONTEXT_WORDS:
        return escape(" ".join(words))
    return escape(" ".join([*head, "…", *tail]))

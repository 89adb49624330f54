"""Two texts side by side, with what differs marked: as HTML, everything in it escaped."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from markupsafe import Markup, escape

from shaketable.report import clean

CONTEXT_WORDS = 12
"""Words that are shown on each side of a difference; longer stretches that are the same are cut short."""
MIN_SIMILARITY = 0.4
"""Texts that share less than this are two texts, not one that was changed: marks would say nothing."""
MAX_WORDS = 400
"""Words that are compared."""


def mark_differences(before: str, after: str) -> tuple[Markup, Markup]:
    """Both texts, word by word: what only the first has in <del>, what only the second has in <ins>.

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
    """A stretch that both texts have: its middle goes where it is long, and what leads up to nothing goes too."""
    head = words[:0] if first else words[:CONTEXT_WORDS]
    tail = words[:0] if last else words[-CONTEXT_WORDS:]
    if (first and last) or len(words) <= len(head) + len(tail) + CONTEXT_WORDS:
        return escape(" ".join(words))
    return escape(" ".join([*head, "…", *tail]))

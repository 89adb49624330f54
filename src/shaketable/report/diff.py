"""Word differences between two texts, as passages and as escaped HTML."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from markupsafe import Markup, escape

from shaketable.report import clean

CONTEXT_WORDS = 12
"""Words shown on each side of a difference; longer common passages are shortened."""
MIN_SIMILARITY = 0.4
"""The similarity below which texts have no marks, because they are two different texts."""
DIFFERENCE_CONTEXT_WORDS = 4
"""Words before the first difference in one line of text."""
MAX_WORDS = 400
"""The number of words that are compared."""


class Passage(NamedTuple):
    """A run of words of a text; `mark` is "del" or "ins" if only this text has them, and "" otherwise."""

    text: str
    mark: str = ""


def mark_differences(before: str, after: str) -> tuple[Markup, Markup]:
    """Return both texts, with words only of the first in <del> and words only of the second in <ins>.

    >>> print(*mark_differences("one two three", "one 2 three"), sep="\\n")
    one <del>two</del> three
    one <ins>2</ins> three
    """
    gone, come = (Markup(" ").join(map(_mark_passage, side)) for side in split_by_difference(before, after))
    return gone, come


def _mark_passage(passage: Passage) -> Markup:
    return Markup("<{0}>{1}</{0}>").format(passage.mark, passage.text) if passage.mark else escape(passage.text)


def split_by_difference(before: str, after: str) -> tuple[list[Passage], list[Passage]]:
    """Return the passages of both texts in order, for a page that sets texts by script.

    >>> [[tuple(passage) for passage in side] for side in split_by_difference("one two", "one 2")]
    [[('one', ''), ('two', 'del')], [('one', ''), ('2', 'ins')]]
    """
    left, right = (clean(text).split()[:MAX_WORDS] for text in (before, after))
    gone: list[Passage] = []
    come: list[Passage] = []
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    shorter = min(len(left), len(right))
    is_extended = _count_common_ends(left, right) >= MIN_SIMILARITY * shorter
    if matcher.ratio() < MIN_SIMILARITY and shorter >= CONTEXT_WORDS and not is_extended:
        return [Passage(" ".join(left))], [Passage(" ".join(right))]
    codes = matcher.get_opcodes()
    for number, (kind, a, b, c, d) in enumerate(codes):
        if kind == "equal":
            same = Passage(_shorten(left[a:b], first=number == 0, last=number == len(codes) - 1))
            gone.append(same)
            come.append(same)
            continue
        if left[a:b]:
            gone.append(Passage(" ".join(left[a:b]), "del"))
        if right[c:d]:
            come.append(Passage(" ".join(right[c:d]), "ins"))
    return gone, come


def _count_common_ends(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the number of words that both texts begin with and end with."""
    start = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    tail = zip(reversed(left[start:]), reversed(right[start:]), strict=False)
    return start + next((i for i, (a, b) in enumerate(tail) if a != b), min(len(left), len(right)) - start)


def _shorten(words: Sequence[str], *, first: bool, last: bool) -> str:
    """Return a common passage; if it is long, keep only the words next to differences."""
    head = words[:0] if first else words[:CONTEXT_WORDS]
    tail = words[:0] if last else words[-CONTEXT_WORDS:]
    if (first and last) or len(words) <= len(head) + len(tail) + CONTEXT_WORDS:
        return " ".join(words)
    return " ".join([*head, "…", *tail])


def describe_difference(before: str, after: str, max_chars: int) -> tuple[str, str]:
    """Return one line of each text around the first difference, with the changed words in brackets.

    >>> describe_difference("one two three", "one 2 three", 40)
    ('one [two] three', 'one [2] three')
    """
    left, right = (clean(text).split()[:MAX_WORDS] for text in (before, after))
    codes = [code for code in SequenceMatcher(None, left, right, autojunk=False).get_opcodes() if code[0] != "equal"]
    if not codes:
        return " ".join(left)[:max_chars], " ".join(right)[:max_chars]
    return (
        _cut_around(left, [(code[1], code[2]) for code in codes], max_chars),
        _cut_around(right, [(code[3], code[4]) for code in codes], max_chars),
    )


def _cut_around(words: Sequence[str], changes: Sequence[tuple[int, int]], max_chars: int) -> str:
    """Return the words around the first change that fit, with changed words in brackets."""
    shown = list(words)
    for start, stop in changes:
        if start < stop:
            shown[start] = f"[{shown[start]}"
            shown[stop - 1] = f"{shown[stop - 1]}]"
    first = changes[0][0]
    begin = max(first - DIFFERENCE_CONTEXT_WORDS, 0)
    text = " ".join(["…", *shown[begin:]] if begin else shown[begin:])
    return text if len(text) <= max_chars else f"{text[: max(max_chars - 2, 1)].rstrip()} …"

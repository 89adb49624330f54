"""Words of a document that give way to others: the search that recipes of word changes share, and its order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from shaketable.attacks.search import greedy
from shaketable.attacks.wording import Wording
from shaketable.types import Ask, Case, Check, Doc, Steps

Rewrite: TypeAlias = Callable[[str], str]
"""A word as it is spelled in the document -> the one word that is to stand in its place."""

AT_ONCE = 64
"""Texts of one question about deletions: each is a whole document, and many attacks advance together."""

_Changes: TypeAlias = Mapping[int, str]


def by_deletion(case: Case, wording: Wording, words: Sequence[str]) -> Generator[Ask, Any, list[str]]:
    """The words in the order of what the goal gains when all occurrences of one are deleted, most first.

    Words whose deletion changes no place keep the order of the text, between those that harm the goal and those that
    serve it. The texts with a word less are looked at only, never offered.

    Jin, Jin, Zhou, Szolovits. Is BERT really robust? A strong baseline for natural language attack on text
    classification and entailment. AAAI 2020 (equation 2, with the place of a document for the score of a class).
    """
    if len(words) < 2:
        return list(words)
    gains: dict[str, float] = {}
    for start in range(0, len(words), AT_ONCE):
        some = words[start : start + AT_ONCE]
        places = yield Ask([wording.put(dict.fromkeys(wording.places[word], "")) for word in some], offered=False)
        gains |= {word: case.goal.worth(now) for word, now in zip(some, places, strict=True)}
    return sorted(words, key=lambda word: -gains[word])


def replace_words(
    checks: Sequence[Check], case: Case, rewrites: Callable[[str], Sequence[Rewrite]], most: int
) -> Steps:
    """Rewrite one word after the other, in the order of `by_deletion`; of a word's rewrites the best stays if it helps.

    `rewrites` has the ways to rewrite a word, which is given in lower case; words without any are not asked about. A
    rewrite changes all occurrences of the word, or the first of them that the limit leaves room for: no more than
    `most` words of the text differ from the original.
    """
    wording = Wording(case.doc)
    ways = {word: found for word in wording.places if (found := rewrites(word))}
    order = yield from by_deletion(case, wording, list(ways))
    start: _Changes = {}
    yield from greedy(checks, case, start, (partial(_offers, wording, word, ways[word], most) for word in order))


def _offers(
    wording: Wording, word: str, ways: Sequence[Rewrite], most: int, changes: _Changes
) -> list[tuple[_Changes, Doc]]:
    """The document so far with the word rewritten in each way; nothing where the limit is reached."""
    numbers = wording.places[word][: most - len(changes)]
    if not numbers:
        return []
    new = [{**changes, **{number: way(wording.words[number]) for number in numbers}} for way in ways]
    return [(state, wording.put(state, as_is=True)) for state in new]

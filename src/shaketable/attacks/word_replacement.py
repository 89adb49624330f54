"""Words of a document that give way to others: the search that recipes of word changes share, and its order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from shaketable.attacks.search import search_greedily
from shaketable.attacks.tokenized_document import TokenizedDocument
from shaketable.core.attack_types import AttackCase, AttackSteps, ConstraintCheck, RankQuery
from shaketable.core.documents import Doc

Rewrite: TypeAlias = Callable[[str], str]
"""A word as it is spelled in the document -> the one word that is to stand in its place."""

MAX_DELETIONS_PER_REQUEST = 64
"""Texts of one question about deletions: each is a whole document, and many attacks advance together."""

_Changes: TypeAlias = Mapping[int, str]


def rank_words_by_deletion(
    case: AttackCase, tokenized: TokenizedDocument, words: Sequence[str]
) -> Generator[RankQuery, Any, list[str]]:
    """The words in the order of what the goal gains when all occurrences of one are deleted, most first.

    Words whose deletion changes no place keep the order of the text, between those that harm the goal and those that
    serve it. The texts with a word less are looked at only, never offered.

    Jin, Jin, Zhou, Szolovits. Is BERT really robust? A strong baseline for natural language attack on text
    classification and entailment. AAAI 2020 (equation 2, with the place of a document for the score of a class).
    """
    if len(words) < 2:
        return list(words)
    gains: dict[str, float] = {}
    for start in range(0, len(words), MAX_DELETIONS_PER_REQUEST):
        some = words[start : start + MAX_DELETIONS_PER_REQUEST]
        places = yield RankQuery(
            [tokenized.substitute(dict.fromkeys(tokenized.occurrences[word], "")) for word in some],
            may_be_outcome=False,
        )
        gains |= {word: case.goal.utility(now) for word, now in zip(some, places, strict=True)}
    return sorted(words, key=lambda word: -gains[word])


def replace_words(
    checks: Sequence[ConstraintCheck],
    case: AttackCase,
    find_rewrites: Callable[[str], Sequence[Rewrite]],
    max_words: int,
) -> AttackSteps:
    """Rewrite one word after the other, in the order of `rank_words_by_deletion`; of a word's rewrites the best stays
    if it helps.

    `find_rewrites` has the ways to rewrite a word, which is given in lower case; words without any are not asked about.
    A rewrite changes all occurrences of the word, or the first of them that the limit leaves room for: no more than
    `most` words of the text differ from the original.
    """
    tokenized = TokenizedDocument(case.doc)
    ways = {word: found for word in tokenized.occurrences if (found := find_rewrites(word))}
    order = yield from rank_words_by_deletion(case, tokenized, list(ways))
    start: _Changes = {}
    yield from search_greedily(
        checks, case, start, (partial(_rewrite_word, tokenized, word, ways[word], max_words) for word in order)
    )


def _rewrite_word(
    tokenized: TokenizedDocument, word: str, rewrites: Sequence[Rewrite], max_words: int, changes: _Changes
) -> list[tuple[_Changes, Doc]]:
    """The document so far with the word rewritten in each way; nothing where the limit is reached."""
    numbers = tokenized.occurrences[word][: max_words - len(changes)]
    if not numbers:
        return []
    new = [{**changes, **{number: way(tokenized.words[number]) for number in numbers}} for way in rewrites]
    return [(state, tokenized.substitute(state, keep_spelling=True)) for state in new]

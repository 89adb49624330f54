"""The greedy search shared by recipes that replace words, and its word order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from shaketable.attacks.search import search_greedily
from shaketable.attacks.tokenized_document import TokenizedDocument
from shaketable.core.attack_types import AttackCase, AttackSteps, ConstraintCheck, RankQuery
from shaketable.core.documents import Doc

Rewrite: TypeAlias = Callable[[str], str]
"""A function from a word as spelled in the document to its replacement."""

MAX_DELETIONS_PER_REQUEST = 64
"""Deletions tried in one request, limited because each is a whole document and many attacks run together."""

_Changes: TypeAlias = Mapping[int, str]


def rank_words_by_deletion(
    case: AttackCase, tokenized: TokenizedDocument, words: Sequence[str]
) -> Generator[RankQuery, Any, list[str]]:
    """Return the words sorted by the utility of the goal after deleting all their occurrences, highest first.

    Words with equal utility keep the order of the text. The shortened texts never become the outcome.

    Jin, Jin, Zhou, Szolovits. Is BERT really robust? A strong baseline for natural language attack on text
    classification and entailment. AAAI 2020 (equation 2, with the rank of a document instead of the score of a class).
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
    """Rewrite words in the order of `rank_words_by_deletion` and keep the best rewrite of each word if it helps.

    `find_rewrites` maps a lower-case word to its rewrites; words without rewrites are skipped. A rewrite changes all
    occurrences of the word, or the first ones within the limit of `max_words` changed words.
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
    """Return the current document with the word rewritten in each way; nothing if the limit is reached."""
    numbers = tokenized.occurrences[word][: max_words - len(changes)]
    if not numbers:
        return []
    new = [{**changes, **{number: way(tokenized.words[number]) for number in numbers}} for way in rewrites]
    return [(state, tokenized.substitute(state, keep_spelling=True)) for state in new]

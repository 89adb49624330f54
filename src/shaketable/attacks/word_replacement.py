"""The searches shared by recipes that replace words, and their word order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from shaketable.attacks.search import search_greedily, try_all
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
    is_preferred: Callable[[str], bool] | None = None,
) -> AttackSteps:
    """Rewrite words one by one and keep the best rewrite of each word if it helps.

    `find_rewrites` maps a lower-case word to its rewrites; words without rewrites are skipped. A rewrite changes all
    occurrences of the word, or the first ones within the limit of `max_words` changed words. The order of the words is
    that of `rank_words_by_deletion`, or, with `is_preferred`, that of the text with preferred words first, which takes
    no trials.
    """
    tokenized = TokenizedDocument(case.doc)
    ways = {word: found for word in tokenized.occurrences if (found := find_rewrites(word))}
    if is_preferred is None:
        order = yield from rank_words_by_deletion(case, tokenized, list(ways))
    else:
        order = sorted(ways, key=lambda word: not is_preferred(word))
    start: _Changes = {}
    yield from search_greedily(
        checks, case, start, (partial(_rewrite_word, tokenized, word, ways[word], max_words) for word in order)
    )


def replace_words_at_once(
    checks: Sequence[ConstraintCheck], case: AttackCase, find_rewrites: Callable[[str], Sequence[Rewrite]]
) -> AttackSteps:
    """Try to rewrite all words, all words that are not in the query, and all words of the query, in one request.

    Each rewrite of a word, the first, the second and so on, is a separate trial. A document that has no word of the
    query, or no other, has fewer trials.
    """
    tokenized = TokenizedDocument(case.doc)
    ways = {word: found for word in tokenized.occurrences if (found := find_rewrites(word))}
    asked = {word.lower() for one in case.lists for word in TokenizedDocument(Doc(one.query)).words}
    groups = (list(ways), [word for word in ways if word not in asked], [word for word in ways if word in asked])
    docs = [
        tokenized.substitute(
            {
                number: ways[word][k](tokenized.words[number])
                for word in words
                if k < len(ways[word])
                for number in tokenized.occurrences[word]
            },
            keep_spelling=True,
        )
        for words in groups
        for k in range(max((len(ways[word]) for word in words), default=0))
    ]
    yield from try_all(checks, case, docs)


def _rewrite_word(
    tokenized: TokenizedDocument, word: str, rewrites: Sequence[Rewrite], max_words: int, changes: _Changes
) -> list[tuple[_Changes, Doc]]:
    """Return the current document with the word rewritten in each way; nothing if the limit is reached."""
    numbers = tokenized.occurrences[word][: max_words - len(changes)]
    if not numbers:
        return []
    new = [{**changes, **{number: way(tokenized.words[number]) for number in numbers}} for way in rewrites]
    return [(state, tokenized.substitute(state, keep_spelling=True)) for state in new]

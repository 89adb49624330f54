"""Functions that insert text: the query, its keywords, a sentence or boilerplate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from shaketable.core.seeding import ItemRandom
from shaketable.nlp.sentences import split_sentences
from shaketable.nlp.words import NLTK_STOPWORDS, find_word_spans

InsertionPosition = Literal["start", "middle", "end"]

BOILERPLATE = (
    "We use cookies to keep this site running and to understand how it is visited. You can change your settings at "
    "any time. All content is provided as it is, without any warranty. Please read our terms of use and our privacy "
    "notice, or contact us if you have questions. Copyright by the publisher. All rights reserved."
)
"""A paragraph of a web page without a topic."""

_WORD_GAP = re.compile(r"(?<=\S)\s+(?=\S)")


def prepend_text(text: str, addition: str) -> str:
    """Return the addition, a space and the text; blank parts are dropped."""
    return " ".join(filter(str.strip, (addition, text)))


def append_text(text: str, addition: str) -> str:
    """Return the text, a space and the addition; blank parts are dropped."""
    return " ".join(filter(str.strip, (text, addition)))


def insert_text(text: str, addition: str, position: InsertionPosition, rng: ItemRandom) -> str:
    """Insert a text at the start, at the end, or in a random gap between two words.

    A text of fewer than two words has no gap, so "middle" appends the addition.
    """
    gaps = [gap.start() for gap in _WORD_GAP.finditer(text)] if position == "middle" else []
    if gaps:
        at = gaps[rng.randbelow(len(gaps))]
        return f"{text[:at]} {addition}{text[at:]}"
    return prepend_text(text, addition) if position == "start" else append_text(text, addition)


def select_keywords(query: str) -> list[str]:
    """Return the words of a query that are not stop-words, in query order.

    >>> select_keywords("What is the weight of a (cargo) boat?")
    ['weight', 'cargo', 'boat']
    """
    words = (query[start:end] for start, end in find_word_spans(query))
    return [word for word in words if word.lower() not in NLTK_STOPWORDS]


def stuff_keywords(
    text: str, words: Sequence[str], max_times: int, position: InsertionPosition, rng: ItemRandom
) -> list[str]:
    """Return the text with the words inserted 0, 1, ... `max_times` times; each text extends the previous one.

    >>> stuff_keywords("A boat.", ["cargo"], 2, "end", ItemRandom(bytes(64)))
    ['A boat.', 'A boat. cargo', 'A boat. cargo cargo']
    """
    texts = [text]
    for _ in range(max_times):
        texts.append(insert_text(texts[-1], " ".join(words), position, rng))
    return texts


def prepend_query_lines(text: str, queries: Sequence[str]) -> str:
    """Return the text with one line for each query before it.

    >>> prepend_query_lines("Boats float.", ["boats", "ships"])
    'Query: boats\\nQuery: ships\\nBoats float.'
    """
    return "".join(f"Query: {query}\n" for query in queries) + text


def insert_sentence(text: str, sentence: str, position: int) -> str:
    """Insert a sentence before the sentence at this position, or after the last sentence.

    >>> insert_sentence("It rains.  It pours.", "It drips.", 1)
    'It rains. It drips.  It pours.'
    """
    if position == 0:
        return prepend_text(text, sentence)
    end = 0
    for before in split_sentences(text)[:position]:
        end = text.index(before, end) + len(before)
    return f"{text[:end]} {sentence}{text[end:]}"

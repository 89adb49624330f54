"""Changes of documents that occur beyond English: a foreign sentence, marks of direction, and Unicode forms."""

from __future__ import annotations

import unicodedata

from shaketable.transforms.insertion import append_text

RIGHT_TO_LEFT_MARK = "\u200f"
_EMBEDDING, _END_OF_EMBEDDING = "\u202b", "\u202c"
WORDS_PER_MARK = 2
"""A mark of direction follows every second word."""
ENGLISH_SENTENCE = "The rest of the afternoon was calm."
"""A sentence without a topic, which mixed documents have at their end."""


def mix_languages(text: str) -> str:
    """Append an English sentence without a topic.

    >>> mix_languages("Il pleut.")
    'Il pleut. The rest of the afternoon was calm.'
    """
    return append_text(text, ENGLISH_SENTENCE)


def add_direction_marks(text: str) -> str:
    """Add the marks that word processors leave in a text that runs from right to left: an embedding, and marks.

    >>> ascii(add_direction_marks("a b c"))
    "'\\\\u202ba b\\\\u200f c\\\\u202c'"
    """
    words = text.split(" ")
    marked = [
        word + RIGHT_TO_LEFT_MARK if number % WORDS_PER_MARK == 0 else word for number, word in enumerate(words, 1)
    ]
    return _EMBEDDING + " ".join(marked) + _END_OF_EMBEDDING


def decompose(text: str) -> str:
    """Return a text in the decomposed Unicode form (NFD), as macOS and PDF files have it.

    >>> ascii(decompose("é"))
    "'e\\\\u0301'"
    """
    return unicodedata.normalize("NFD", text)

"""Question words and question frames of English."""

from __future__ import annotations

import re

from shaketable.nlp.analyzer import Memo
from shaketable.nlp.words import TOKEN_PARTS, word_set

AUXILIARIES = word_set(
    """
    am is are was were be been do does did have has had can could may might must shall should will would
    """
)
QUESTION_WORDS = word_set("what which who whom whose when where why how")

_FRAME = re.compile(
    r"(?:please )?"
    r"(?:(?:can|could|would|will) (?:you|someone|somebody|anyone|anybody) (?:please )?)?"
    r"(?:(?:tell me|explain to me|explain|show me|help me (?:find|understand|with)|give me"
    r"|i (?:want|need|would like|d like) to know|i wonder|do you know|does (?:anyone|anybody|someone) know)"
    r"(?: please)?(?: about)? )?"
)
_FRAME_STARTS = word_set("please can could would will tell explain show help give i do does")


def _extract_core_word(token: str) -> str:
    found = TOKEN_PARTS[token]
    return found.core.lower() if found else token


CORE_WORDS: Memo[str] = Memo(_extract_core_word)
"""token -> its word in lower case, or the token itself if it has no word."""


def split_core_words(text: str) -> list[str]:
    """Return the words in lower case without surrounding punctuation; other tokens stay unchanged."""
    return [CORE_WORDS[token] for token in text.split()]


def count_frame_words(plain: list[str]) -> int:
    """Return the number of words before the question itself.

    >>> count_frame_words("can you please tell me how tides work".split()), count_frame_words("how tides work".split())
    (5, 0)
    """
    if plain[0] not in _FRAME_STARTS:
        return 0
    found = _FRAME.match(" ".join(plain) + " ")
    return len(found[0].split()) if found else 0


def is_question(text: str) -> bool:
    """Return True if the text is phrased as a question or as a request.

    >>> is_question("how do tides work"), is_question("tides explained"), is_question("please tell me about tides")
    (True, False, True)
    """
    plain = split_core_words(text)
    if not plain:
        return False
    return (
        text.rstrip().endswith("?")
        or plain[0] in QUESTION_WORDS
        or plain[0] in AUXILIARIES
        or count_frame_words(plain) > 0
    )

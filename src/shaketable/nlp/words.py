"""Helpers for words: tokens and their punctuation, letter case, and the NLTK stop-words."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from shaketable.nlp.analyzer import Memo


def word_set(words: str) -> frozenset[str]:
    """Return the space-separated words of a string as a set.

    >>> sorted(word_set("an a the"))
    ['a', 'an', 'the']
    """
    return frozenset(words.split())


NLTK_STOPWORDS = word_set(
    """
    a an the i me my myself we our ours ourselves you your yours yourself yourselves you're you've you'll you'd
    he him his himself she she's her hers herself it it's its itself they them their theirs themselves this that
    that'll these those here there what which who whom when where why how am is are was were be been being have
    has had having do does did doing can will just should should've now and but if or because as until while
    than so nor of at by for with about against between into through during before after above below to from up
    down in out on off over under again further then once all any both each few more most other some such no not
    only own same too very don don't ain aren aren't couldn couldn't didn didn't doesn doesn't hadn hadn't hasn
    hasn't haven haven't isn isn't ma mightn mightn't mustn mustn't needn needn't shan shan't shouldn shouldn't
    wasn wasn't weren weren't won won't wouldn wouldn't d ll m o re s t ve y
    """
)
"""The stop-words of paper 004: NLTK's English list, grouped by grammatical class."""

_TOKEN_PATTERN = re.compile(r"([\W_]*)([^\W_](?:[\w'’.&-]*[^\W_])?)([\W_]*)")
_LATIN_LETTER = re.compile("[A-Za-z]")
_CORE_PATTERN = re.compile(r"[^\W_](?:\S*[^\W_])?")


class TokenParts(NamedTuple):
    """The word in a token, and the marks around it: quotes, brackets, a question mark."""

    head: str
    core: str
    tail: str


def split_token(token: str) -> TokenParts | None:
    """Return the word in a token and the marks around it, or None if it has no word in Latin letters.

    >>> split_token("(don't?")
    TokenParts(head='(', core="don't", tail='?')
    >>> split_token("1984"), split_token("東京"), split_token("🙂")
    (None, None, None)
    """
    match = _TOKEN_PATTERN.fullmatch(token)
    return TokenParts(*match.groups()) if match and _LATIN_LETTER.search(match[2]) else None


TOKEN_PARTS: Memo[TokenParts | None] = Memo(split_token)
"""token -> its parts, cached."""


def find_word_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of a text's words, in any script.

    The span of a space-separated token extends from its first to its last letter or digit, with its combining marks.

    >>> text = "(Don't read/write 東京 --- 1984!"
    >>> [text[start:end] for start, end in find_word_spans(text)]
    ["Don't", 'read/write', '東京', '1984']
    """
    found = []
    for match in _CORE_PATTERN.finditer(text):
        end = match.end()
        while end < len(text) and unicodedata.category(text[end]).startswith("M"):
            end += 1
        found.append((match.start(), end))
    return found


def match_case(word: str, reference: str) -> str:
    """Return the word in the case of another: all capitals, capitalised, or unchanged.

    >>> match_case("fast", "QUICK"), match_case("fast", "Quick"), match_case("fast", "quick"), match_case("fast", "I")
    ('FAST', 'Fast', 'fast', 'Fast')
    """
    if len(reference) > 1 and reference.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if reference[:1].isupper() else word

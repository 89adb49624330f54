"""What a typed word is made of, and which words carry no topic."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from shaketable.text.tokens import Memo


def word_set(words: str) -> frozenset[str]:
    """Words written one after the other, as a set.

    >>> sorted(word_set("an a the"))
    ['a', 'an', 'the']
    """
    return frozenset(words.split())


NLTK = word_set(
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
"""The stop-words of paper 004: those of NLTK's English list, here in the order of grammar."""

_SHAPE = re.compile(r"([\W_]*)([^\W_](?:[\w'’.&-]*[^\W_])?)([\W_]*)")
_LATIN = re.compile("[A-Za-z]")
_CORE = re.compile(r"[^\W_](?:\S*[^\W_])?")


class Parts(NamedTuple):
    """A token and what stands around the word in it: quotes, brackets, a question mark."""

    head: str
    core: str
    tail: str


def parts(token: str) -> Parts | None:
    """The word inside a token, or None where there is none that is written in Latin letters.

    >>> parts("(don't?")
    Parts(head='(', core="don't", tail='?')
    >>> parts("1984"), parts("東京"), parts("🙂")
    (None, None, None)
    """
    match = _SHAPE.fullmatch(token)
    return Parts(*match.groups()) if match and _LATIN.search(match[2]) else None


PARTS: Memo[Parts | None] = Memo(parts)
"""token -> its parts, remembered."""


def spans(text: str) -> list[tuple[int, int]]:
    """The places of a text's words: of each token between spaces that has a letter or a digit, from the first of these
    to the last one and the marks upon it. The words may be of any script.

    >>> text = "(Don't read/write 東京 --- 1984!"
    >>> [text[start:end] for start, end in spans(text)]
    ["Don't", 'read/write', '東京', '1984']
    """
    found = []
    for match in _CORE.finditer(text):
        end = match.end()
        while end < len(text) and unicodedata.category(text[end]).startswith("M"):
            end += 1
        found.append((match.start(), end))
    return found


def like(word: str, model: str) -> str:
    """The word in the case of another: capitals, a capital first, or as it is.

    >>> like("fast", "QUICK"), like("fast", "Quick"), like("fast", "quick"), like("fast", "I")
    ('FAST', 'Fast', 'fast', 'Fast')
    """
    if len(model) > 1 and model.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if model[:1].isupper() else word

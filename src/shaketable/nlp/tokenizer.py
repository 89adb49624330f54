"""A tokenizer of English text.

It splits ordinary text like spaCy's English tokeniser: punctuation marks and hyphens are tokens, contractions are split
("do n't", "it 's"), abbreviations keep their stop, and numbers, times and addresses stay whole.
"""

from __future__ import annotations

import re

from shaketable.nlp.analyzer import Memo
from shaketable.nlp.words import word_set

NON_FINAL_ABBREVIATIONS = word_set(
    """
    mr. mrs. ms. mx. dr. prof. st. mt. ft. rev. fr. hon. gen. col. maj. capt. cmdr. lt. sgt. cpl. gov. sen. rep. pres.
    supt.
    messrs. mme. mlle. vs. v. no. nos. fig. figs. eq. eqs. sec. ch. vol. pp. p. cf. al. ca. viz. approx. e.g. i.e. eg.
    ie.
    """
)
"""Abbreviations that never end a sentence."""
FINAL_ABBREVIATIONS = word_set(
    """
    etc. inc. ltd. co. corp. bros. jr. sr. dept. est. ave. blvd. rd. jan. feb. mar. apr. jun. jul. aug. sep. sept. oct.
    nov. dec. mon. tue. tues. wed. thu. thurs. fri. sat. sun. a.m. p.m. am. pm. ph.d. d.c. u.s. u.k. b.c. a.d. univ.
    assn.
    ed. eds. esq. lb. lbs. oz. ft. hr. hrs. min. max. mph. temp.
    """
)
"""Abbreviations that may end a sentence, if the next token looks like the start of one."""
AMBIGUOUS_ABBREVIATIONS = word_set(
    "no. co. sat. sun. mar. dec. am. pm. min. max. ed. temp. sec. fr. ch. st. al. mon. wed. fig. p. v. col. ca."
)
"""Abbreviations that are also words: they keep their stop only with a number or a capital."""
_UNITS = "km|kg|mg|ml|cm|mm|ft|lbs?|oz|mph|[kmgt]b|[kmg]hz|hrs?|mins?|secs?|am|pm|[aApP]\\.[mM]\\.|m|g|s|k|x"
_WORD_CHARACTERS = r"[\w\u0300-\u036f]*"
_ADDRESS_ALTERNATIVES = r"""
    (?:https?://|www\.)[^\s<>"]*[^\s<>".,;:!?)\]}'’”]
    | [\w.+-]+@[\w-]+(?:\.[\w-]+)+
    | (?:[\w-]+\.)+(?:com|org|net|edu|gov|io|uk|de|fr|eu|info|co)\b(?!\.\w)
    |
"""
_TOKEN_ALTERNATIVES = rf"""
    (?:[^\W\d_]\.){{2,}}
    | Ph\.D\.?
    | [+-]?\d+(?:[.,:/]\d+)*(?:st|nd|rd|th|s)\b(?!['’]\w)
    | \d+(?:[.,:/]\d+)*(?=(?:{_UNITS})\b)
    | \d+(?:[.,:/]\d+)*(?![^\W_])
    | \.\d+
    | [aApP]\.[mM]\.
    | ['’](?:s|S|ll|LL|re|RE|ve|VE|d|D|m|M|em|cause|til)\b
    | ['’]\d\ds?\b
    | \w{_WORD_CHARACTERS}(?:['’](?:[^\W\d_](?=['’])|(?!(?:s|S|ll|LL|re|RE|ve|VE|d|D|m|M)\b)\w){_WORD_CHARACTERS})*
    | \.{{2,}} | -{{2,}} | ``|''
    | .
"""
_TOKEN_PATTERN = re.compile(_ADDRESS_ALTERNATIVES + _TOKEN_ALTERNATIVES, re.VERBOSE | re.DOTALL)
_TOKEN_PATTERN_NO_ADDRESSES = re.compile(_TOKEN_ALTERNATIVES, re.VERBOSE | re.DOTALL)
MAX_ADDRESS_CHARACTERS = 1000
"""The longest run of characters without a space in which addresses are searched; longer runs take too long."""
_NEGATION_PATTERN = re.compile(r"(\w+?)(n['’]t)", re.IGNORECASE)
_CONTRACTION_SPLITS = {"cannot": 3, "gonna": 3, "gotta": 3, "wanna": 3, "dunno": 2}


def _split_chunk(chunk: str) -> tuple[str, ...]:
    if chunk.isalpha() and chunk.lower() not in _CONTRACTION_SPLITS:
        return (chunk,)
    pieces: list[str] = []
    for match in (_TOKEN_PATTERN if len(chunk) <= MAX_ADDRESS_CHARACTERS else _TOKEN_PATTERN_NO_ADDRESSES).finditer(
        chunk
    ):
        piece = match.group()
        if found := _NEGATION_PATTERN.fullmatch(piece):
            pieces += found.groups()
        elif half := _CONTRACTION_SPLITS.get(piece.lower()):
            pieces += (piece[:half], piece[half:])
        elif piece == "." and pieces and len(chunk) > 1 and _keeps_stop(pieces[-1], chunk, match.end()):
            pieces[-1] += "."
        else:
            pieces.append(piece)
    return tuple(pieces)


def _keeps_stop(word: str, chunk: str, end: int) -> bool:
    """Return True if the stop after a word is part of it, as in initials and abbreviations."""
    if len(word) == 1:
        return word.isupper() and word != "I"
    short = word.lower() + "."
    if short in AMBIGUOUS_ABBREVIATIONS:
        return word[0].isupper() and short in ("st.", "col.", "sec.", "fig.", "fr.", "mar.", "dec.", "co.")
    return (short in NON_FINAL_ABBREVIATIONS or short in FINAL_ABBREVIATIONS) and (
        end == len(chunk) or not chunk[end].isalnum()
    )


_CHUNK_TOKENS: Memo[tuple[str, ...]] = Memo(_split_chunk, 200_000)


def tokenize(text: str) -> list[str]:
    """Return the words and punctuation marks of a text.

    >>> tokenize("He didn't pay $3.50.")
    ['He', 'did', "n't", 'pay', '$', '3.50', '.']
    """
    return [token for chunk in text.split() for token in _CHUNK_TOKENS[chunk]]

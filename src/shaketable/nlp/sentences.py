"""Sentence splitting of English texts: a plain rule for texts, and a token-based rule for the parser."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shaketable.nlp.tokenizer import AMBIGUOUS_ABBREVIATIONS, NON_FINAL_ABBREVIATIONS, tokenize
from shaketable.nlp.words import word_set

SENTENCE_STARTERS = word_set(
    """
    the a an this that these those it its he she they we you i his her their our my your there here in on at by for from
    with after before when while if as although though because since but and or so however then what who where why how
    which is are was were do does did can could will would should one some many most all each every no not yes to
    it's that's he's she's there's i'm
    """
)
"""Words that often start a sentence and rarely a name."""
SENTENCE_STOPS = frozenset((".", "!", "?", "…"))
CLOSING_MARKS = frozenset(('"', "”", "’", "'", "''", ")", "]", "}", "»"))
OPENING_MARKS = frozenset(('"', "“", "‘", "``", "(", "[", "{", "«", "'"))
_BLANK_LINE = re.compile(r"\n\s*\n")


def split_sentences(text: str) -> list[str]:
    """Split a text after . ! ? followed by a space and no lower-case letter.

    >>> split_sentences("It shook, e.g. twice. Was it safe? Yes.")
    ['It shook, e.g. twice.', 'Was it safe?', 'Yes.']
    """
    return [part for part in re.split(r"(?<=[.!?])\s+(?![a-z])", text.strip()) if part]


def tokenize_sentences(text: str) -> list[list[str]]:
    """Return the tokens of each sentence of a text.

    >>> tokenize_sentences("Dr. Hill paid $3.50. He didn't say why...  Odd!")
    [['Dr.', 'Hill', 'paid', '$', '3.50', '.'], ['He', 'did', "n't", 'say', 'why', '...'], ['Odd', '!']]
    """
    found: list[list[str]] = []
    for paragraph in _BLANK_LINE.split(text) if "\n" in text else (text,):
        tokens = tokenize(paragraph)
        start = 0
        for end in _find_sentence_ends(tokens):
            found.append(tokens[start:end])
            start = end
        if start < len(tokens):
            found.append(tokens[start:])
    return found


def _find_sentence_ends(tokens: Sequence[str]) -> list[int]:
    """Return the ends of sentences: after a stop and closing marks, if the next token can start a sentence."""
    ends: list[int] = []
    last = len(tokens)
    i = 0
    while i < last:
        token = tokens[i]
        i += 1
        if token[-1] not in ".!?…" or (len(token) > 1 and token.isalnum()):
            continue
        if token in SENTENCE_STOPS or not token.strip(".…"):
            while i < last and tokens[i] in SENTENCE_STOPS:
                i += 1
            inside = i
            while i < last and tokens[i] in CLOSING_MARKS and not _opens_quotation(tokens, i):
                i += 1
            if i >= last:
                break
            if i == inside > 1 and _continues_sentence(tokens[i - 2], tokens[i]):
                continue
            if i == inside == (ends[-1] if ends else 0) + 2 and tokens[i - 2].isdigit() and token == ".":
                continue  # the number of an item
            if _starts_sentence(tokens, i, token, quoted=i > inside):
                ends.append(i)
        elif i < last and _abbreviation_ends_sentence(token, tokens[i]):
            ends.append(i)
    return ends


def _continues_sentence(word: str, following: str) -> bool:
    """Return True if the stop belongs to an abbreviation that is also a word, as in "fig. 3" and "et al. in"."""
    short = word.lower() + "."
    return short in AMBIGUOUS_ABBREVIATIONS and (
        following[0].islower() or (short in NON_FINAL_ABBREVIATIONS and following[0].isdigit())
    )


def _opens_quotation(tokens: Sequence[str], i: int) -> bool:
    """Return True if a straight quotation mark opens a quotation: an even number of such marks precedes it."""
    mark = tokens[i]
    if mark not in ('"', "'"):
        return False
    return sum(token == mark for token in tokens[max(0, i - 80) : i]) % 2 == 0


def _starts_sentence(tokens: Sequence[str], i: int, stop: str, quoted: bool) -> bool:
    token = tokens[i]
    if token in OPENING_MARKS and i + 1 < len(tokens):
        token = tokens[i + 1]
    head = token[0]
    if head.islower():
        return (
            stop == "."
            and not quoted
            and token not in ("and", "or", "but")
            and len(token) > 1
            and tokens[i] not in OPENING_MARKS
        )
    if stop in ("!", "?") and quoted:
        return (head.isupper() and token.lower() in SENTENCE_STARTERS) or not head.isalpha()
    return head.isalnum() or tokens[i] in OPENING_MARKS or head in "-–—•*#$£€"


def _abbreviation_ends_sentence(token: str, following: str) -> bool:
    lower = token.lower()
    if lower in NON_FINAL_ABBREVIATIONS or not token.endswith("."):
        return False
    return following[0].isupper() and following.lower() in SENTENCE_STARTERS

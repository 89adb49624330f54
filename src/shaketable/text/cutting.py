"""Where words, marks and sentences of an English text begin and end.

Words are cut as spaCy's English tokeniser cuts ordinary text: marks stand alone, contractions fall in two ("do n't",
"it 's"), hyphens are marks, an abbreviation keeps its stop, and numbers, times and addresses stay whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from shaketable.text.tokens import Memo
from shaketable.text.words import word_set

TITLES = word_set(
    """
    mr. mrs. ms. mx. dr. prof. st. mt. ft. rev. fr. hon. gen. col. maj. capt. cmdr. lt. sgt. cpl. gov. sen. rep. pres.
    supt.
    messrs. mme. mlle. vs. v. no. nos. fig. figs. eq. eqs. sec. ch. vol. pp. p. cf. al. ca. viz. approx. e.g. i.e. eg.
    ie.
    """
)
"""Abbreviations after which a sentence goes on, whatever follows."""
OTHERS = word_set(
    """
    etc. inc. ltd. co. corp. bros. jr. sr. dept. est. ave. blvd. rd. jan. feb. mar. apr. jun. jul. aug. sep. sept. oct.
    nov. dec. mon. tue. tues. wed. thu. thurs. fri. sat. sun. a.m. p.m. am. pm. ph.d. d.c. u.s. u.k. b.c. a.d. univ.
    assn.
    ed. eds. esq. lb. lbs. oz. ft. hr. hrs. min. max. mph. temp.
    """
)
"""Abbreviations with which a sentence may end, if what follows looks like the start of one."""
REAL_WORDS = word_set(
    "no. co. sat. sun. mar. dec. am. pm. min. max. ed. temp. sec. fr. ch. st. al. mon. wed. fig. p. v. col. ca."
)
"""Such as are words too: these keep their stop only where a number or a capital calls for it."""
STARTERS = word_set(
    """
    the a an this that these those it its he she they we you i his her their our my your there here in on at by for from
    with after before when while if as although though because since but and or so however then what who where why how
    which is are was were do does did can could will would should one some many most all each every no not yes to
    it's that's he's she's there's i'm
    """
)
"""Words that start a sentence and hardly ever a name."""
STOPS = frozenset((".", "!", "?", "…"))
CLOSING = frozenset(('"', "”", "’", "'", "''", ")", "]", "}", "»"))
OPENING = frozenset(('"', "“", "‘", "``", "(", "[", "{", "«", "'"))

_UNITS = "km|kg|mg|ml|cm|mm|ft|lbs?|oz|mph|[kmgt]b|[kmg]hz|hrs?|mins?|secs?|am|pm|[aApP]\\.[mM]\\.|m|g|s|k|x"
_MARKED = r"[\w\u0300-\u036f]*"
_ADDRESSES = r"""
    (?:https?://|www\.)[^\s<>"]*[^\s<>".,;:!?)\]}'’”]
    | [\w.+-]+@[\w-]+(?:\.[\w-]+)+
    | (?:[\w-]+\.)+(?:com|org|net|edu|gov|io|uk|de|fr|eu|info|co)\b(?!\.\w)
    |
"""
_SHAPES = rf"""
    (?:[^\W\d_]\.){{2,}}
    | Ph\.D\.?
    | [+-]?\d+(?:[.,:/]\d+)*(?:st|nd|rd|th|s)\b(?!['’]\w)
    | \d+(?:[.,:/]\d+)*(?=(?:{_UNITS})\b)
    | \d+(?:[.,:/]\d+)*(?![^\W_])
    | \.\d+
    | [aApP]\.[mM]\.
    | ['’](?:s|S|ll|LL|re|RE|ve|VE|d|D|m|M|em|cause|til)\b
    | ['’]\d\ds?\b
    | \w{_MARKED}(?:['’](?:[^\W\d_](?=['’])|(?!(?:s|S|ll|LL|re|RE|ve|VE|d|D|m|M)\b)\w){_MARKED})*
    | \.{{2,}} | -{{2,}} | ``|''
    | .
"""
_SHAPE = re.compile(_ADDRESSES + _SHAPES, re.VERBOSE | re.DOTALL)
_PLAIN = re.compile(_SHAPES, re.VERBOSE | re.DOTALL)
LONGEST = 1000
"""Characters without a space that may be an address: in what is longer none is looked for, for it would take ages."""
_NEGATED = re.compile(r"(\w+?)(n['’]t)", re.IGNORECASE)
_TWO = {"cannot": 3, "gonna": 3, "gotta": 3, "wanna": 3, "dunno": 2}
_BLANK = re.compile(r"\n\s*\n")


def _pieces(chunk: str) -> tuple[str, ...]:
    if chunk.isalpha() and chunk.lower() not in _TWO:
        return (chunk,)
    pieces: list[str] = []
    for match in (_SHAPE if len(chunk) <= LONGEST else _PLAIN).finditer(chunk):
        piece = match.group()
        if found := _NEGATED.fullmatch(piece):
            pieces += found.groups()
        elif half := _TWO.get(piece.lower()):
            pieces += (piece[:half], piece[half:])
        elif piece == "." and pieces and len(chunk) > 1 and _keeps_stop(pieces[-1], chunk, match.end()):
            pieces[-1] += "."
        else:
            pieces.append(piece)
    return tuple(pieces)


def _keeps_stop(word: str, chunk: str, end: int) -> bool:
    """Is the stop after a word part of it? An initial's and an abbreviation's are."""
    if len(word) == 1:
        return word.isupper() and word != "I"
    short = word.lower() + "."
    if short in REAL_WORDS:
        return word[0].isupper() and short in ("st.", "col.", "sec.", "fig.", "fr.", "mar.", "dec.", "co.")
    return (short in TITLES or short in OTHERS) and (end == len(chunk) or not chunk[end].isalnum())


_PIECES: Memo[tuple[str, ...]] = Memo(_pieces, 200_000)


def cut(text: str) -> list[list[str]]:
    """The tokens of each sentence of a text.

    >>> cut("Dr. Hill paid $3.50. He didn't say why...  Odd!")
    [['Dr.', 'Hill', 'paid', '$', '3.50', '.'], ['He', 'did', "n't", 'say', 'why', '...'], ['Odd', '!']]
    """
    found: list[list[str]] = []
    pieces = _PIECES
    for paragraph in _BLANK.split(text) if "\n" in text else (text,):
        tokens = [piece for chunk in paragraph.split() for piece in pieces[chunk]]
        start = 0
        for end in _ends(tokens):
            found.append(tokens[start:end])
            start = end
        if start < len(tokens):
            found.append(tokens[start:])
    return found


def _ends(tokens: Sequence[str]) -> list[int]:
    """Where sentences end: after a stop and what closes with it, where the next token can start a sentence."""
    ends: list[int] = []
    last = len(tokens)
    i = 0
    while i < last:
        token = tokens[i]
        i += 1
        if token[-1] not in ".!?…" or (len(token) > 1 and token.isalnum()):
            continue
        if token in STOPS or not token.strip(".…"):
            while i < last and tokens[i] in STOPS:
                i += 1
            inside = i
            while i < last and tokens[i] in CLOSING and not _opens(tokens, i):
                i += 1
            if i >= last:
                break
            if i == inside > 1 and _goes_on(tokens[i - 2], tokens[i]):
                continue
            if i == inside == (ends[-1] if ends else 0) + 2 and tokens[i - 2].isdigit() and token == ".":
                continue  # the number of an item
            if _starts(tokens, i, token, quoted=i > inside):
                ends.append(i)
        elif i < last and _abbreviation_ends(token, tokens[i]):
            ends.append(i)
    return ends


def _goes_on(word: str, following: str) -> bool:
    """Was the stop that of an abbreviation that is a word too, as in "fig. 3" and "et al. in"?"""
    short = word.lower() + "."
    return short in REAL_WORDS and (following[0].islower() or (short in TITLES and following[0].isdigit()))


def _opens(tokens: Sequence[str], i: int) -> bool:
    """Does a straight quotation mark open what follows? It does where as many came before as make it odd."""
    mark = tokens[i]
    if mark not in ('"', "'"):
        return False
    return sum(token == mark for token in tokens[max(0, i - 80) : i]) % 2 == 0


def _starts(tokens: Sequence[str], i: int, stop: str, quoted: bool) -> bool:
    token = tokens[i]
    if token in OPENING and i + 1 < len(tokens):
        token = tokens[i + 1]
    head = token[0]
    if head.islower():
        return (
            stop == "."
            and not quoted
            and token not in ("and", "or", "but")
            and len(token) > 1
            and tokens[i] not in OPENING
        )
    if stop in ("!", "?") and quoted:
        return (head.isupper() and token.lower() in STARTERS) or not head.isalpha()
    return head.isalnum() or tokens[i] in OPENING or head in "-–—•*#$£€"


def _abbreviation_ends(token: str, following: str) -> bool:
    lower = token.lower()
    if lower in TITLES or not token.endswith("."):
        return False
    return following[0].isupper() and following.lower() in STARTERS

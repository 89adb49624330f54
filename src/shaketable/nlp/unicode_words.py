"""Words of any script: Unicode forms, case and accents folded, and bigrams for scripts without spaces.

A word is a run of letters, digits and combining marks, which are the categories L, N and M of Unicode. This is Unicode
Standard Annex 29 without its exceptions for apostrophes and full stops inside words: "l'école" is two words. Scripts
that put no space between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese), and Korean, whose words carry particles,
give overlapping pairs of characters, as in Lucene's CJK analysis.
"""

from __future__ import annotations

import re
import unicodedata

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")
_LATIN_OR_GREEK_MARKS = re.compile("(?<=[A-Za-z\u0370-\u03ff])[\u0300-\u036f]+")
_OMITTED_MARKS = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u0652\u0670\u093c]")
"""Marks that writers leave out: Hebrew points, Arabic vowel signs, and the nukta of Devanagari."""
_PLAIN_LETTERS = str.maketrans(
    {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "þ": "th", "Þ": "Th"}
    | dict(zip("łŁøØđĐðÐıĦħёЁأإآٱ", "lLoOdDdDiHhеЕاااا", strict=True))
)
"""Letters that no decomposition of Unicode reduces to the plain letter that people type instead."""


def strip_accents(text: str) -> str:
    """Return a text as it is typed without accents, points and vowel signs; letters of their own, such as й, stay.

    >>> strip_accents("Größe, façade, łódź, ёлка, йод, naïve")
    'Grosse, facade, lodz, елка, йод, naive'
    >>> strip_accents("がぎ") == "がぎ"
    True
    """
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFD", unicodedata.normalize("NFC", text).translate(_PLAIN_LETTERS))
    return unicodedata.normalize("NFC", _OMITTED_MARKS.sub("", _LATIN_OR_GREEK_MARKS.sub("", plain)))


def remove_invisible(text: str) -> str:
    """Return a text without format characters, such as marks of direction and joiners.

    >>> remove_invisible("a\\u200fb\\u202bc")
    'abc'
    """
    return "".join(c for c in text if unicodedata.category(c) != "Cf") if not text.isascii() else text


def fold_text(text: str, lower: bool = True) -> str:
    """Return a text in compatible Unicode form (NFKC), without case, accents and invisible characters.

    >>> fold_text("Ｃａｆé"), fold_text("ﾆﾝｼﾞﾝ")
    ('cafe', 'ニンジン')
    """
    plain = remove_invisible(unicodedata.normalize("NFKC", text))
    return strip_accents(plain.casefold() if lower else plain)


def has_unspaced_script(text: str) -> bool:
    """Return True if a text has characters of a script without spaces between words."""
    return bool(_UNSPACED_CHARACTER.search(text))


def split_bigrams(word: str) -> list[str]:
    """Return the word, with the runs of scripts without spaces as overlapping pairs of characters.

    >>> split_bigrams("東京都2024年"), split_bigrams("haus"), split_bigrams("猫")
    (['東京', '京都', '2024', '年'], ['haus'], ['猫'])
    """
    found: list[str] = []
    for run in _UNSPACED_RUN.findall(word):
        pairs = len(run) > 1 and _UNSPACED_CHARACTER.match(run)
        found += [run[i : i + 2] for i in range(len(run) - 1)] if pairs else [run]
    return found

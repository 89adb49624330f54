"""Letters of other scripts that look Latin, and invisible characters."""

from __future__ import annotations

import re
import unicodedata

from shaketable.nlp.analyzer import Memo

_HOMOGLYPH_PAIRS = (
    (
        "acdehijlopqsvwxy",
        "\u0430\u0441\u0501\u0435\u04bb\u0456\u0458\u04cf\u043e\u0440\u051b\u0455\u0475\u051d\u0445\u0443",
    ),
    ("ABCEGHIJKM", "\u0410\u0412\u0421\u0415\u050c\u041d\u0406\u0408\u041a\u041c"),
    ("OPQSTVWXY", "\u041e\u0420\u051a\u0405\u0422\u0474\u051c\u0425\u04ae"),
    ("NZ", "\u039d\u0396"),
)
HOMOGLYPHS: dict[str, str] = {
    letter: stranger for latin, others in _HOMOGLYPH_PAIRS for letter, stranger in zip(latin, others, strict=True)
}
"""Latin letter -> a Cyrillic (for N and Z: Greek) letter that looks the same in most typefaces."""

ZERO_WIDTH = ("\u200b", "\u200c", "\u200d", "\u2060")
"""Zero width space, non-joiner, joiner, and the word joiner: they have no width, and are not white space."""

INVISIBLE_CHARACTERS = frozenset(
    chr(code)
    for first, last in (
        (0x0000, 0x0008),  # controls that are not white space
        (0x000E, 0x001B),
        (0x007F, 0x0084),
        (0x0086, 0x009F),
        (0x00AD, 0x00AD),  # soft hyphen
        (0x180E, 0x180E),  # Mongolian vowel separator
        (0x200B, 0x200F),  # zero width, and marks of direction
        (0x202A, 0x202E),  # embeddings and overrides of direction
        (0x2060, 0x2064),  # word joiner, invisible operators
        (0x2066, 0x206F),  # isolates, and deprecated controls
        (0xFEFF, 0xFEFF),  # byte order mark
        (0xFE00, 0xFE0F),  # variation selectors
        (0xE0000, 0xE007F),  # tags
        (0xE0100, 0xE01EF),  # more variation selectors
    )
    for code in range(first, last + 1)
)
"""Characters that are invisible, or change how others are drawn."""

_INVISIBLE_CLASS = f"[{re.escape(''.join(sorted(INVISIBLE_CHARACTERS)))}]"
_INVISIBLE_RUN = re.compile(f"{_INVISIBLE_CLASS}+")
_WORD = re.compile(rf"[^\W\d_](?:[^\W\d_]|{_INVISIBLE_CLASS}|[\u0300-\u036f])*")
_JOINERS = "\u200c\u200d"


def count_suspicious_characters(text: str) -> int:
    """Count the invisible characters, and the letters of other scripts in words with a Latin letter.

    >>> count_suspicious_characters("a naïve β-test of 5 μmol"), count_suspicious_characters("p\\u0430ss\\u200bword")
    (0, 2)

    The two joiners count beside a Latin letter only, because emoji and scripts such as Persian use them. A Greek letter
    at either end of a word is usual in science (kΩ, TNFα), and does not count. A word wholly in another script does
    not count. Controls count as invisible, white space does not.
    """
    if text.isascii() and text.isprintable():
        return 0
    return sum(map(_count_foreign_letters, _WORD.findall(text))) + sum(
        _count_invisible_characters(text, run) for run in _INVISIBLE_RUN.finditer(text)
    )


def _count_foreign_letters(word: str) -> int:
    """Count the letters of other scripts in a word with a Latin letter."""
    strange = [_IS_FOREIGN[letter] for letter in word]
    if not any(strange) or not any(_IS_LATIN[letter] for letter in word):
        return 0
    ends = sum(strange[at] and _IS_GREEK[word[at]] for at in {0, len(word) - 1})
    return sum(strange) - ends


def _count_invisible_characters(text: str, run: re.Match[str]) -> int:
    beside = text[max(0, run.start() - 1) : run.start()] + text[run.end() : run.end() + 1]
    if any(_IS_LATIN[letter] for letter in beside):
        return len(run[0])
    return sum(character not in _JOINERS for character in run[0])


def _is_foreign_letter(letter: str) -> bool:
    """Return True for a cased letter of another script, except the μ of units."""
    return unicodedata.category(letter) in ("Lu", "Ll", "Lt") and not (_IS_LATIN[letter] or letter in "µμ")


_IS_LATIN: Memo[bool] = Memo(lambda letter: unicodedata.name(letter, "").startswith("LATIN"))
_IS_GREEK: Memo[bool] = Memo(lambda letter: unicodedata.name(letter, "").startswith("GREEK"))
_IS_FOREIGN: Memo[bool] = Memo(_is_foreign_letter)

"""Changes of queries in other languages: accents, scripts, keyboards, compounds, and words of another language.

They read the language of the query, and the same query in other languages, from the `TransformContext`. Those that
need either do not apply without it, so none of them belongs to the default variations of English queries.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from shaketable.core.errors import MissingExtra
from shaketable.core.languages import ENGLISH, LANGUAGES, get_language
from shaketable.core.protocols import TransformContext
from shaketable.core.seeding import ItemRandom
from shaketable.nlp.compounds import join_compound, split_compound
from shaketable.nlp.keyboard import get_adjacent_keys
from shaketable.nlp.stopwords import ENGLISH_STOPWORDS
from shaketable.nlp.unicode_words import has_unspaced_script, strip_accents
from shaketable.nlp.words import find_word_spans, match_case
from shaketable.transforms.categories import MISSPELLING, MIXED_LANGUAGES, SCRIPT, TRANSLATION

MIN_TYPED_LETTERS = 4
"""The length of the shortest word that gets a keyboard slip, so that it stays recognisable."""
SCRIPTS_WITH_VOWELS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "GEORGIAN", "CJK", "HIRAGANA", "KATAKANA", "HANGUL")
"""The scripts that transliteration can read, as the names of their letters begin in Unicode."""
GERMAN = "de"
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_FULL_WIDTH = {chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F)} | {" ": "\u3000"}
_HALF_WIDTH = {
    unicodedata.normalize("NFKC", chr(code)): chr(code)
    for code in (*range(0xFF66, 0xFF9E), 0xFF9E, 0xFF9F)  # katakana, then the two marks of voice
}
_MARKS_OF_VOICE = {"\u3099": "\uff9e", "\u309a": "\uff9f"}


@dataclass(frozen=True)
class StripAccents:
    """Leave out accents, points and vowel signs, as people type without them: "Größe" is "Grosse"."""

    category: ClassVar[str] = SCRIPT

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        changed = strip_accents(text)
        return changed if changed.split() not in ([], unicodedata.normalize("NFC", text).split()) else None


@dataclass(frozen=True)
class Transliterate:
    """Write the query in plain Latin letters: "рынок" is "rynok", "Größe" is "Groesse" (extra: transliteration).

    It applies to scripts that write vowels. Arabic, Hebrew and Indian scripts leave vowels out, and a letter for letter
    copy is not what people type. Japanese queries with Chinese characters are left out too, because the characters
    alone do not show how they are read.
    """

    category: ClassVar[str] = SCRIPT

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        if text.isascii() or (context.language == "ja" and _HAN.search(text)):
            return None
        letters = [letter for letter in unicodedata.normalize("NFKC", text) if letter.isalpha()]
        readable = all(unicodedata.name(letter, "").startswith(SCRIPTS_WITH_VOWELS) for letter in letters)
        changed = romanise(text, context.language) if readable else ""
        return changed if changed.split() not in ([], text.split()) else None


def romanise(text: str, language: str = "") -> str:
    """Return a text in plain Latin letters and single spaces; German umlauts become two letters.

    >>> romanise("Küche", "de"), romanise("рынок с мёдом"), romanise("图书馆")
    ('Kueche', 'rynok s medom', 'tushuguan')
    """
    try:
        from anyascii import anyascii
    except ModuleNotFoundError as error:
        raise MissingExtra("transliteration", "transliterate") from error
    plain = text.translate(_UMLAUTS) if language == GERMAN else text
    latin: str = anyascii(plain)
    return " ".join((latin.lower() if has_unspaced_script(text) else latin).split())


@dataclass(frozen=True)
class KeyboardSlip:
    """Replace a letter by the letter of an adjacent key, on the keyboard of the query's language."""

    category: ClassVar[str] = MISSPELLING
    needs_language: ClassVar[bool] = True

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        known = LANGUAGES.get(context.language)
        if known is None or not known.layout:
            return None
        adjacent = get_adjacent_keys(known.layout)

        def slip(word: str) -> str | None:
            places = [i for i, letter in enumerate(word) if letter.lower() in adjacent]
            if len(word) < MIN_TYPED_LETTERS or not places:
                return None
            place = rng.choice(places)
            new = rng.choice(adjacent[word[place].lower()])
            return word[:place] + match_case(new, word[place]) + word[place + 1 :]

        return _change_one_span(text, rng, slip)


def _change_one_span(text: str, rng: ItemRandom, change: Callable[[str], str | None]) -> str | None:
    """Return the text with one random word changed, in any script; None if the change applies to no word."""
    spans = find_word_spans(text)
    while spans:
        start, end = spans.pop(rng.randbelow(len(spans)))
        changed = change(text[start:end])
        if changed is not None and changed != text[start:end]:
            return text[:start] + changed + text[end:]
    return None


@dataclass(frozen=True)
class SplitCompound:
    """Write a German compound as two words: "Zahnarzt" is "Zahn Arzt"."""

    category: ClassVar[str] = MISSPELLING
    needs_language: ClassVar[bool] = True

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        if context.language != GERMAN:
            return None

        def split(word: str) -> str | None:
            parts = split_compound(word)
            return " ".join(parts) if parts else None

        return _change_one_span(text, rng, split)


@dataclass(frozen=True)
class JoinCompound:
    """Write two German nouns as one compound: "Zahn Arzt" is "Zahnarzt"."""

    category: ClassVar[str] = MISSPELLING
    needs_language: ClassVar[bool] = True

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        words = text.split()
        joined = [(i, join_compound(*pair)) for i, pair in enumerate(pairwise(words))]
        known = [(i, word) for i, word in joined if word is not None]
        if context.language != GERMAN or not known:
            return None
        place, word = rng.choice(known)
        return " ".join([*words[:place], word, *words[place + 2 :]])


@dataclass(frozen=True)
class ChangeWidth:
    """Write Latin letters and digits in full width and katakana in half width, as Asian keyboards type them."""

    category: ClassVar[str] = SCRIPT
    needs_language: ClassVar[bool] = True

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        known = LANGUAGES.get(context.language)
        if known is None or not known.full_width:
            return None
        changed = change_width(text)
        return changed if changed != text else None


def change_width(text: str) -> str:
    """Return a text with Latin letters, digits and spaces in full width, and katakana in half width.

    >>> change_width("PCの修理"), change_width("ニンジン")
    ('ＰＣの修理', 'ﾆﾝｼﾞﾝ')
    """
    return "".join(_FULL_WIDTH.get(letter) or _narrow(letter) for letter in text)


def _narrow(letter: str) -> str:
    """Return a katakana letter in half width, its mark of voice apart; other characters stay."""
    parts = unicodedata.normalize("NFD", letter)
    base, marks = parts[:1], parts[1:]
    if base not in _HALF_WIDTH or any(mark not in _MARKS_OF_VOICE for mark in marks):
        return letter
    return _HALF_WIDTH[base] + "".join(_MARKS_OF_VOICE[mark] for mark in marks)


@dataclass(frozen=True)
class MixLanguage:
    """Add a word of another language: a content word of the same query in English."""

    category: ClassVar[str] = MIXED_LANGUAGES
    needs_language: ClassVar[bool] = True

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        if context.language == ENGLISH or not (other := context.translations.get(ENGLISH)):
            return None
        spans = [other[start:end] for start, end in find_word_spans(other)]
        words = [word for word in spans if word.lower() not in ENGLISH_STOPWORDS and word not in text]
        return f"{text} {rng.choice(words)}" if words else None


@dataclass(frozen=True)
class OtherLanguage:
    """Ask the same query in another language: a parallel query of the collection, English by default."""

    language: str = ENGLISH

    category: ClassVar[str] = TRANSLATION
    needs_language: ClassVar[bool] = True

    def __post_init__(self) -> None:
        get_language(self.language)

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        return context.translations.get(self.language) if self.language != context.language else None

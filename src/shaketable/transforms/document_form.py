"""Changes of a document's form that keep its meaning, for tests of whether a ranker keeps its rank.

Each function takes a text and a query and returns the changed text. It returns the text unchanged where the change does
not apply: to a text without years, or if the added words would match the query.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, cycle, islice

from shaketable.core.documents import Doc
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.sentences import split_sentences
from shaketable.nlp.words import find_word_spans
from shaketable.transforms.case import blank_punctuation
from shaketable.transforms.insertion import BOILERPLATE, append_text, prepend_text
from shaketable.transforms.unicode import find_homoglyph_positions, insert_character, replace_with_homoglyphs
from shaketable.transforms.word_order import move_sentence_to_end

NEUTRAL_SENTENCES = (
    "The rest of the afternoon was calm.",
    "A few people had already gone home.",
    "It was neither early nor late.",
    "Several chairs stood along the wall.",
    "A window was opened and closed again.",
    "There was nothing else to say about that.",
    "The others nodded and went on as before.",
    "Most of them came back a little later.",
)
"""Sentences without a topic, which make a text longer."""
RECENT_YEAR, OLD_YEAR = 2026, 1996
YEARS_MOVED = 10
WORDS_PER_CHANGE = 5

_ANALYZER = Analyzer()
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_BLANK_LINES = re.compile(r"\n\s*\n")
_ACCENTED_VOWELS = str.maketrans("aeiouAEIOU", "áéíóúÁÉÍÓÚ")
_LATIN_ACCENT = re.compile("(?<=[A-Za-z])[\u0300-\u036f]+")
_VOWEL = re.compile("[aeiouAEIOU]")
_COMPATIBLE_FORMS = {"ffi": "\ufb03", "ffl": "\ufb04", "ff": "\ufb00", "fi": "\ufb01", "fl": "\ufb02", "...": "\u2026"}
_COMPATIBLE_FORM = re.compile("|".join(map(re.escape, _COMPATIBLE_FORMS)))
_NON_BREAKING_SPACE = "\u00a0"
_ZERO_WIDTH_SPACE = "\u200b"

TextChange = Callable[[str, str], str]
"""A function of a text and a query that returns the changed text."""


@dataclass(frozen=True)
class FormChange:
    """A change of a document's form, by a function of a document and a query.

    `tests_fall` is False if a worse rank is no fault, and `tests_rise` is False if a better rank is no fault.
    """

    name: str
    change: Callable[[Doc, str], Doc]
    tests_fall: bool = True
    tests_rise: bool = True

    def apply(self, doc: Doc, query: str) -> Doc | None:
        """Return the changed document, or None if the change does not apply."""
        changed = self.change(doc, query)
        return changed if changed != doc and changed.text.strip() else None


def change_accents(text: str, query: str) -> str:
    """Remove the accents of Latin letters; if there are none, accent a vowel of every fifth word.

    The words of the query keep their spelling: a ranker that matches words does not know rare spellings of them.

    >>> change_accents("A café in Nîmes", ""), change_accents("one two three four six boats eight", "boat six")
    ('A cafe in Nimes', 'one two three four six boats éight')
    """
    composed = unicodedata.normalize("NFC", text)
    plain = unicodedata.normalize("NFC", _LATIN_ACCENT.sub("", unicodedata.normalize("NFD", text)))
    if plain != composed:
        return plain
    return _change_some_words(
        text, query, lambda word: _VOWEL.sub(lambda vowel: vowel[0].translate(_ACCENTED_VOWELS), word, count=1)
    )


def use_homoglyphs(text: str, query: str) -> str:
    """Replace a letter of every fifth word by its look-alike of another script; words of the query stay.

    >>> ascii(use_homoglyphs("one two three four cope", ""))
    "'one two three four \\\\u0441ope'"
    """
    return _change_some_words(
        text, query, lambda word: replace_with_homoglyphs(word, find_homoglyph_positions(word)[:1])
    )


def insert_zero_width_spaces(text: str, query: str) -> str:
    """Insert a zero-width space into every fifth word, as web pages have them for line breaks; words of the query stay.

    >>> ascii(insert_zero_width_spaces("one two three four boats", ""))
    "'one two three four b\\\\u200boats'"
    """
    return _change_some_words(text, query, lambda word: insert_character(word, _ZERO_WIDTH_SPACE, 1))


def _change_some_words(text: str, query: str, change: Callable[[str], str]) -> str:
    """Change every fifth word that is not a word of the query."""
    words = [span for span in find_word_spans(text) if not _has_query_word(text[slice(*span)], query)]
    parts: list[str] = []
    done = 0
    for start, end in words[WORDS_PER_CHANGE - 1 :: WORDS_PER_CHANGE]:
        parts += (text[done:start], change(text[start:end]))
        done = end
    return "".join([*parts, text[done:]])


def use_compatible_forms(text: str, query: str) -> str:
    """Write ligatures, an ellipsis in one character, and accents apart from their letters, as PDF files have them.

    Normalisation to NFKC restores the text.

    >>> ascii(use_compatible_forms("The file...", "")), ascii(use_compatible_forms("café", ""))
    ("'The \\\\ufb01le\\\\u2026'", "'cafe\\\\u0301'")
    """
    joined = _COMPATIBLE_FORM.sub(lambda match: _COMPATIBLE_FORMS[match[0]], text)
    return unicodedata.normalize("NFD", joined)


def use_non_breaking_spaces(text: str, query: str) -> str:
    """Replace all spaces by non-breaking spaces, as HTML has them."""
    return text.replace(" ", _NON_BREAKING_SPACE)


def bury_answer(text: str, query: str) -> str:
    """Move the sentence with the most words of the query to the end; the first such sentence if several tie.

    >>> bury_answer("Boats float. Trees grow. It rains.", "do boats float")
    'Trees grow. It rains. Boats float.'
    """
    sentences = split_sentences(text)
    shared = [len(_list_query_terms(query).intersection(_ANALYZER(sentence))) for sentence in sentences]
    if len(sentences) < 2 or not max(shared):
        return text
    best = shared.index(max(shared))
    return text if best == len(sentences) - 1 else move_sentence_to_end(sentences, best)


def reverse_sentences(text: str, query: str) -> str:
    """Reverse the order of the sentences."""
    sentences = split_sentences(text)
    return " ".join(sentences[::-1]) if len(sentences) > 1 else text


def move_years(text: str, query: str, years: int) -> str:
    """Move all years of a text; a query with a year makes them part of the meaning.

    >>> move_years("It sank in 1912, 41 km off.", "when did it sink", 10), move_years("In 1912.", "ships of 1912", 10)
    ('It sank in 1922, 41 km off.', 'In 1912.')
    """
    return text if _YEAR.search(query) else _YEAR.sub(lambda year: str(int(year[0]) + years), text)


def append_date(text: str, query: str, year: int) -> str:
    """Append the year of an update, unless the query has a year."""
    return text if _YEAR.search(query) else _add(text, f"Updated: {year}.", query, append_text)


def wrap_in_paragraph_tags(text: str, query: str) -> str:
    """Put HTML tags around each paragraph.

    >>> wrap_in_paragraph_tags("One.\\n\\nTwo.", "")
    '<p>One.</p>\\n<p>Two.</p>'
    """
    return "\n".join(f"<p>{part}</p>" for part in map(str.strip, _BLANK_LINES.split(text)) if part)


def pad_to_double_length(text: str, query: str) -> str:
    """Append neutral sentences until the text has at least twice as many words."""
    count = len(text.split())
    lengths = accumulate(len(sentence.split()) for sentence in cycle(NEUTRAL_SENTENCES))
    needed = 1 + next(i for i, length in enumerate(lengths) if length >= count)
    return _add(text, " ".join(islice(cycle(NEUTRAL_SENTENCES), needed)), query, append_text)


def keep_unrelated_sentence(doc: Doc, query: str) -> Doc:
    """Keep the first sentence without a word of the query; a title with such a word is removed.

    A ranker that ranks this text higher prefers short texts. A text cut in half is no such test: one half may have all
    words of the query, and length normalisation then rightly ranks it higher.

    >>> keep_unrelated_sentence(Doc("Boats float. Trees grow. It rains."), "do boats float").body
    'Trees grow.'
    """
    sentences = split_sentences(doc.body)
    unrelated = [sentence for sentence in sentences if not _has_query_word(sentence, query)]
    if not unrelated or len(sentences) < 2:
        return doc
    return replace(doc, body=unrelated[0], title="" if _has_query_word(doc.title, query) else doc.title)


def _add(text: str, addition: str, query: str, join: Callable[[str, str], str]) -> str:
    """Return the text with the addition, or unchanged if a word of the query is in the addition."""
    return text if _has_query_word(addition, query) else join(text, addition)


def _has_query_word(text: str, query: str) -> bool:
    """Return True if the text has a word of the query, in any of its forms."""
    return not _list_query_terms(query).isdisjoint(_ANALYZER(text))


@lru_cache(maxsize=1000)
def _list_query_terms(query: str) -> frozenset[str]:
    return frozenset(_ANALYZER(query))


def _in_body(change_text: TextChange) -> Callable[[Doc, str], Doc]:
    """Return the change of a document whose body is changed."""
    return lambda doc, query: replace(doc, body=change_text(doc.body, query)) if doc.body.strip() else doc


def _in_title_and_body(change_text: TextChange) -> Callable[[Doc, str], Doc]:
    """Return the change of a document whose title and body are changed."""
    return lambda doc, query: replace(doc, title=change_text(doc.title, query), body=change_text(doc.body, query))


FORM_CHANGES = (
    FormChange("upper_case", _in_title_and_body(lambda text, query: text.upper())),
    FormChange("lower_case", _in_title_and_body(lambda text, query: text.lower())),
    FormChange("accents", _in_title_and_body(change_accents)),
    FormChange("compatible_forms", _in_title_and_body(use_compatible_forms)),
    FormChange("homoglyphs", _in_title_and_body(use_homoglyphs)),
    FormChange("zero_width_spaces", _in_title_and_body(insert_zero_width_spaces)),
    FormChange("non_breaking_spaces", _in_title_and_body(use_non_breaking_spaces)),
    FormChange("no_punctuation", _in_title_and_body(lambda text, query: blank_punctuation(text))),
    FormChange("paragraph_tags", _in_body(wrap_in_paragraph_tags)),
    FormChange("append_boilerplate", _in_body(lambda text, query: _add(text, BOILERPLATE, query, append_text))),
    FormChange("prepend_boilerplate", _in_body(lambda text, query: _add(text, BOILERPLATE, query, prepend_text))),
    FormChange("bury_answer", _in_body(bury_answer)),
    FormChange("reverse_sentences", _in_body(reverse_sentences)),
    FormChange("later_years", _in_title_and_body(lambda text, query: move_years(text, query, YEARS_MOVED))),
    FormChange("earlier_years", _in_title_and_body(lambda text, query: move_years(text, query, -YEARS_MOVED))),
    FormChange("recent_date", _in_body(lambda text, query: append_date(text, query, RECENT_YEAR))),
    FormChange("old_date", _in_body(lambda text, query: append_date(text, query, OLD_YEAR))),
    FormChange("duplicate", _in_body(lambda text, query: append_text(text, text)), tests_rise=False),
    FormChange("double_length", _in_body(pad_to_double_length)),
    FormChange("unrelated_sentence", keep_unrelated_sentence, tests_fall=False),
)
"""The changes of form that the task document-form applies.

A document that is written twice has each word of the query twice, and every axiomatic ranker may rank it higher; so its
rise is no fault. A text of one sentence has less content, so its fall is no fault.
"""

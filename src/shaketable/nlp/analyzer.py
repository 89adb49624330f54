"""The analyzer: splits a text into words, folds case, removes stop-words, and stems."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TypeVar

from shaketable.core.errors import BadInput
from shaketable.core.languages import ENGLISH, LANGUAGES, get_language
from shaketable.nlp.stopwords import ENGLISH_STOPWORDS
from shaketable.nlp.unicode_words import fold_text, split_bigrams

STOPWORD_LISTS: dict[str, frozenset[str]] = {"english": ENGLISH_STOPWORDS, "none": frozenset()}
KROVETZ = "krovetz"
STEMMERS = {
    **{one.stemmer: one.stemmer for one in LANGUAGES.values()},
    "porter": "porter",
    "snowball": "english",
    KROVETZ: KROVETZ,
    "none": "",
}
"""Stemmer name -> its name in the Snowball library, whose "english" is Porter2. Krovetz is our own and needs WordNet
(`nlp.krovetz`)."""
UNICODE_SPLIT = "unicode"
SPLITS = ("words", "space", "terrier", UNICODE_SPLIT)
TERRIER_WORD = re.compile(r"[A-Za-z0-9]+")
TERRIER_DROPPED = re.compile(r".{21,}|(?:\D*\d){5}.*|.*(.)\1\1\1.*")
MEMO_SIZE = 1_000_000  # words whose term is cached
Value = TypeVar("Value")


@dataclass(frozen=True)
class Analyzer:
    """An analyzer that splits a text into terms.

    >>> Analyzer()("The shake-table's motors WERE tested, twice.")
    ['shake', 'tabl', 'motor', 'test', 'twice']

    With `split="words"` a word is a letter or digit and the letters, digits and combining marks that follow. All other
    characters separate words, including apostrophes, hyphens and underscores: "don't" is "don" and "t", both of them
    stop-words. A script without spaces therefore gives long words. Canonically equivalent texts (é in one code point or
    in two) have the same terms.

    With `split="unicode"`, which other languages than English use, the text is folded first: compatible Unicode forms
    (NFKC), no case, no accents, no invisible characters. Words are those of `split="words"`, and scripts without spaces
    give overlapping pairs of characters (`nlp.unicode_words`).

    >>> Analyzer.for_language("de")("Die Öffnungszeiten der Läden"), Analyzer.for_language("zh")("图书馆")
    (['die', 'offnungszeit', 'der', 'lad'], ['图书', '书馆'])

    With `split="terrier"` a word is a run of ASCII letters and digits, as in Terrier. Words of more than 20 characters,
    of more than 4 digits or with the same character more than 3 times in a row are dropped.
    """

    lower: bool = True
    split: str = "words"
    stopwords: str = "english"
    stemmer: str = "porter"

    def __post_init__(self) -> None:
        for field, known in (("split", SPLITS), ("stopwords", STOPWORD_LISTS), ("stemmer", STEMMERS)):
            if getattr(self, field) not in known:
                raise BadInput(f"the {field} is one of {', '.join(known)}, not {getattr(self, field)!r}")

    @classmethod
    def for_language(cls, code: str) -> Analyzer:
        """Return the analyzer of a language: the default for English, else Unicode words and the language's stemmer.

        There are no stop-words of other languages: words that occur everywhere have little weight in a formula.
        """
        language = get_language(code)
        if code == ENGLISH:
            return cls()
        return cls(split=UNICODE_SPLIT, stopwords="none", stemmer=language.stemmer)

    @property
    def fingerprint(self) -> str:
        """The identity of the analyzer: its settings, and the dictionary of its stemmer if there is one."""
        if self.stemmer != KROVETZ:
            return repr(self)
        from shaketable.nlp.krovetz import open_krovetz

        return f"{self!r} with {open_krovetz().fingerprint}"

    def __call__(self, text: str) -> list[str]:
        terms = self._term_memo
        return [term for word in self.split_words(text) if (term := terms[word])]

    def split_words(self, text: str) -> list[str]:
        """Return the words of a text, including stop-words, not stemmed."""
        if self.split == "words":
            plain = text if text.isascii() else _compile_sign_pattern().sub(" ", text)
            if plain.isascii():  # much faster than a regular expression
                return plain.encode().translate(_build_ascii_table(self.lower)).decode().split()
        if self.split == UNICODE_SPLIT:
            words = _compile_word_pattern().findall(fold_text(text, self.lower))
            return [part for word in words for part in (split_bigrams(word) if not word.isascii() else (word,))]
        text = unicodedata.normalize("NFC", text)
        if self.lower:
            text = text.lower()
        if self.split == "terrier":
            return [word for word in TERRIER_WORD.findall(text) if not TERRIER_DROPPED.fullmatch(word)]
        return text.split() if self.split == "space" else _compile_word_pattern().findall(text)

    def join_words(self, texts: Iterable[str]) -> tuple[bytes, list[int]]:
        """Return the words of all texts as UTF-8, separated by spaces, and the number of bytes of each text."""
        quick = self.split == "words"
        parts = [
            text.encode()
            if quick and text.isascii()
            else " ".join(self.split_words(text)).encode("utf-8", "surrogatepass")
            for text in texts
        ]
        joined = b" ".join([*parts, b""])
        return joined.translate(_build_ascii_table(self.lower)) if quick else joined, [len(part) + 1 for part in parts]

    def to_term(self, word: str) -> str:
        """Return the stem of a word, or "" if it is a stop-word."""
        if word.lower() in STOPWORD_LISTS[self.stopwords]:
            return ""
        try:
            return self._stem(word)
        except UnicodeEncodeError:  # a lone surrogate
            return word

    @cached_property
    def _stem(self) -> Callable[[str], str]:
        return _open_stemmer(STEMMERS[self.stemmer])

    @cached_property
    def _term_memo(self) -> Memo[str]:
        return Memo(self.to_term)


class Memo(dict[str, Value]):
    """A cache of a function of a word; it is cleared when it is full."""

    def __init__(self, function: Callable[[str], Value], max_size: int = MEMO_SIZE):
        self._function, self._limit = function, max_size

    def __missing__(self, word: str) -> Value:
        if len(self) >= self._limit:
            self.clear()
        answer = self[word] = self._function(word)
        return answer


def _open_stemmer(algorithm: str) -> Callable[[str], str]:
    if not algorithm:
        return str
    if algorithm == KROVETZ:
        from shaketable.nlp.krovetz import open_krovetz

        return open_krovetz()
    from Stemmer import Stemmer

    try:
        stem: Callable[[str], str] = Stemmer(algorithm, 0).stemWord  # 0: no cache of its own
    except KeyError as error:
        raise BadInput(f"the installed PyStemmer has no stemmer for {algorithm}; upgrade it to 3.1 or later") from error
    return stem


@cache
def _build_ascii_table(lower: bool) -> bytes:
    """Return a byte table that keeps letters, digits and non-ASCII bytes, and maps all others to a space."""
    ascii = "".join(c if c.isalnum() else " " for c in map(chr, range(128)))
    return (ascii.lower() if lower else ascii).encode() + bytes(range(128, 256))


@cache
def _compile_word_pattern() -> re.Pattern[str]:
    """Return the pattern of a word, with combining marks, which Python's \\w leaves out."""
    return re.compile(f"[^\\W_]+(?:[{_list_combining_marks()}]+[^\\W_]*)*")


@cache
def _compile_sign_pattern() -> re.Pattern[str]:
    """Return the pattern of non-ASCII characters outside words, such as a curly quote or a long dash."""
    return re.compile(f"[^\\w\\x00-\\x7f{_list_combining_marks()}]")


@cache
def _list_combining_marks() -> str:
    codes = [*range(0x300, 0x1F000), *range(0xE0100, 0xE01F0)]  # the ranges with combining marks
    return "".join(c for c in map(chr, codes) if unicodedata.category(c).startswith("M"))

"""From a text to its terms: cut into words, fold case, drop stop-words, stem."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TypeVar

from shaketable.core.errors import BadInput
from shaketable.nlp.stopwords import ENGLISH_STOPWORDS

STOPWORD_LISTS: dict[str, frozenset[str]] = {"english": ENGLISH_STOPWORDS, "none": frozenset()}
KROVETZ = "krovetz"
STEMMERS = {"porter": "porter", "snowball": "english", KROVETZ: KROVETZ, "none": ""}
"""Our names for stemmers -> those of the Snowball library, whose "english" is also known as Porter2; but for Krovetz's,
which is ours and needs WordNet (`nlp.krovetz`)."""
MEMO_SIZE = 1_000_000  # words whose term is remembered
Value = TypeVar("Value")


@dataclass(frozen=True)
class Analyzer:
    """Cuts a text into terms.

    >>> Analyzer()("The shake-table's motors WERE tested, twice.")
    ['shake', 'tabl', 'motor', 'test', 'twice']

    With `split="words"` a word is a letter or digit and the letters, digits and combining marks that follow. All else
    separates, apostrophes, hyphens and underscores included: "don't" is "don" and "t", both of them stop-words. A
    script written without spaces therefore gives long words; cut such texts before and use `split="space"`.
    Canonically equivalent texts (é in one code point or in two) have the same terms.
    """

    lower: bool = True
    split: str = "words"
    stopwords: str = "english"
    stemmer: str = "porter"

    def __post_init__(self) -> None:
        for field, known in (("split", ("words", "space")), ("stopwords", STOPWORD_LISTS), ("stemmer", STEMMERS)):
            if getattr(self, field) not in known:
                raise BadInput(f"the {field} is one of {', '.join(known)}, not {getattr(self, field)!r}")

    @property
    def fingerprint(self) -> str:
        """Names all that the terms depend on: the settings, and the dictionary of a stemmer that has one."""
        if self.stemmer != KROVETZ:
            return repr(self)
        from shaketable.nlp.krovetz import open_krovetz

        return f"{self!r} with {open_krovetz().fingerprint}"

    def __call__(self, text: str) -> list[str]:
        terms = self._term_memo
        return [term for word in self.split_words(text) if (term := terms[word])]

    def split_words(self, text: str) -> list[str]:
        """The words of a text, stop-words among them, not stemmed."""
        if self.split == "words":
            plain = text if text.isascii() else _compile_sign_pattern().sub(" ", text)
            if plain.isascii():  # much faster than a pattern
                return plain.encode().translate(_build_ascii_table(self.lower)).decode().split()
        text = unicodedata.normalize("NFC", text)
        if self.lower:
            text = text.lower()
        return text.split() if self.split == "space" else _compile_word_pattern().findall(text)

    def join_words(self, texts: Iterable[str]) -> tuple[bytes, list[int]]:
        """The words of many texts in UTF-8 with at least one space after each, and how many bytes each text takes."""
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
        """What a word is counted as: its stem, or nothing if it is a stop-word."""
        if word.lower() in STOPWORD_LISTS[self.stopwords]:
            return ""
        try:
            return self._stem(word)
        except UnicodeEncodeError:  # half a surrogate pair, which no stemmer knows
            return word

    @cached_property
    def _stem(self) -> Callable[[str], str]:
        return _open_stemmer(STEMMERS[self.stemmer])

    @cached_property
    def _term_memo(self) -> Memo[str]:
        return Memo(self.to_term)


class Memo(dict[str, Value]):
    """A function of a word that remembers its answers; when it is full it forgets all of them."""

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

    stem: Callable[[str], str] = Stemmer(algorithm, 0).stemWord  # 0: no memo of its own
    return stem


@cache
def _build_ascii_table(lower: bool) -> bytes:
    """Letters and digits stay (in lower case), as do bytes that are not ASCII; any other becomes a space."""
    ascii = "".join(c if c.isalnum() else " " for c in map(chr, range(128)))
    return (ascii.lower() if lower else ascii).encode() + bytes(range(128, 256))


@cache
def _compile_word_pattern() -> re.Pattern[str]:
    """A letter or digit, then letters, digits and marks, which Python's \\w leaves out."""
    return re.compile(f"[^\\W_]+(?:[{_list_combining_marks()}]+[^\\W_]*)*")


@cache
def _compile_sign_pattern() -> re.Pattern[str]:
    """What is neither ASCII nor of a word, such as a curly quote or a long dash."""
    return re.compile(f"[^\\w\\x00-\\x7f{_list_combining_marks()}]")


@cache
def _list_combining_marks() -> str:
    codes = [*range(0x300, 0x1F000), *range(0xE0100, 0xE01F0)]  # the planes that have marks
    return "".join(c for c in map(chr, codes) if unicodedata.category(c).startswith("M"))

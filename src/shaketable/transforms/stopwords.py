"""Stop-word lists and transforms that remove stop-words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from shaketable.core.errors import BadInput
from shaketable.core.protocols import TransformContext
from shaketable.core.seeding import ItemRandom
from shaketable.files.reading import read_lines
from shaketable.nlp.analyzer import STOPWORD_LISTS
from shaketable.nlp.parser import Token
from shaketable.nlp.words import NLTK_STOPWORDS, word_set
from shaketable.transforms.case import blank_punctuation
from shaketable.transforms.categories import NATURALITY
from shaketable.transforms.questions import CORE_WORDS

CONTRACTION_SUFFIXES = word_set("n't n’t 's ’s 'll ’ll 're ’re 've ’ve 'd ’d 'm ’m")
"""Contraction parts that parsers split off; the stop-word list of the index has them without the apostrophe."""


def load_stopwords(name: str) -> frozenset[str]:
    """Return lower-case stop-words: the list "english", "none", or a file of words separated by white space.

    >>> "n't" in load_stopwords("english"), load_stopwords("none")
    (True, frozenset())
    """
    if name in STOPWORD_LISTS:
        return STOPWORD_LISTS[name] | CONTRACTION_SUFFIXES if STOPWORD_LISTS[name] else frozenset()
    return _read_words(Path(name), get_mtime_ns(Path(name)))


@lru_cache(maxsize=4)
def _read_words(path: Path, mtime_ns: int) -> frozenset[str]:
    found = frozenset(word.lower() for _, line in read_lines(path) for word in line.split())
    if not found:
        raise BadInput("a list of stop words must not be empty", path)
    return found


def get_mtime_ns(path: Path) -> int:
    """Return the modification time of a file, used in cache keys so that a changed file is read again."""
    try:
        return path.stat().st_mtime_ns
    except (OSError, ValueError):  # the file reader reports the error
        return 0


def remove_stopwords_and_punctuation(words: Sequence[str], stopwords: frozenset[str]) -> list[str]:
    """Return the words that are not stop-words, with punctuation replaced by spaces."""
    return [blank_punctuation(word) for word in words if word.lower() not in stopwords]


def lemmatize(tokens: Sequence[Token], stopwords: frozenset[str]) -> list[str]:
    """Return the lemma of each token, or its text if it is a stop-word."""
    return [token.text if token.text.lower() in stopwords else token.lemma for token in tokens]


@dataclass(frozen=True)
class RemoveStopWords:
    """Remove all stop-words of NLTK's list; needs at least one stop-word and one other word."""

    category: ClassVar[str] = NATURALITY

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        words = text.split()
        kept = [word for word in words if CORE_WORDS[word] not in NLTK_STOPWORDS]
        return " ".join(kept) if 0 < len(kept) < len(words) else None

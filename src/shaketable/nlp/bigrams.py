"""Counts of words and of pairs of neighbouring words in texts."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shaketable.nlp.analyzer import Analyzer

_split_words = Analyzer().split_words


@dataclass(frozen=True)
class Bigrams:
    """Counts of words and of pairs of neighbouring words; the texts are read on first use.

    >>> counts = Bigrams(lambda: ["The red boat.", "A red boat, a red tea"])
    >>> counts.count_word("red"), counts.count_pair("red", "boat")
    (3, 2)
    >>> counts.count_pair("boat", "red"), counts.count_pair("tea", "the")
    (0, 0)

    Words are those of `Analyzer.split_words`, in lower case. Pairs do not cross texts.
    """

    texts: Callable[[], Iterable[str]]

    def count_word(self, word: str) -> int:
        """Return the number of occurrences of a word."""
        return int(self._counts.words[self._counts.ids.get(word, 0)])

    def count_pair(self, left: str, right: str) -> int:
        """Return how often `left` occurs directly before `right`."""
        ids = self._counts.ids
        code = ids.get(left, 0) * len(self._counts.words) + ids.get(right, 0)
        place = int(np.searchsorted(self._counts.codes, code))
        found = place < len(self._counts.codes) and self._counts.codes[place] == code
        return int(self._counts.pairs[place]) if found else 0

    @cached_property
    def _counts(self) -> _Counts:
        ids: dict[str, int] = {}
        stream = array("q", [0])
        for text in self.texts():
            stream.extend([ids.setdefault(word, len(ids) + 1) for word in _split_words(text)])
            stream.append(0)  # between two texts
        numbers = np.frombuffer(stream, dtype=np.int64)
        words = np.bincount(numbers, minlength=len(ids) + 1)
        words[0] = 0
        left, right = numbers[:-1], numbers[1:]
        inside = (left > 0) & (right > 0)
        codes, pairs = np.unique(left[inside] * (len(ids) + 1) + right[inside], return_counts=True)
        return _Counts(ids, words, codes, pairs)


@dataclass(frozen=True)
class _Counts:
    """word -> its number, from 1; the count of each number; the sorted codes of pairs, and the count of each."""

    ids: Mapping[str, int]
    words: NDArray[np.int64]
    codes: NDArray[np.int64]
    pairs: NDArray[np.int64]

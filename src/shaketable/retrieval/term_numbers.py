"""Conversion of texts to arrays of term numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shaketable.core.documents import Doc
from shaketable.nlp.analyzer import Analyzer

Item = TypeVar("Item")
STOP_TERM, UNKNOWN_TERM = -1, -2
"""The numbers of a stop-word, which is dropped, and of a term outside the collection, which counts towards the length.
"""
NumberTerms = Callable[[list[str]], Iterable[int | np.int64]]
"""A function from terms to their numbers."""
BLOCK_TEXTS = 4096  # texts read at a time
MAX_WORDS = 1_000_000  # words that a vocabulary holds before it is cleared
MAX_CACHED_TERMS = 8_000_000  # some 130,000 texts of 60 terms


class TermNumbering:
    """A converter from texts to term numbers that calls `number_terms` once for each distinct word.

    The words are in a hash table of numpy arrays that a kernel reads and extends. It needs no Python object per word
    and is a few times faster than splitting a string and looking up its words in a dictionary. Threads take turns.
    """

    def __init__(self, analyzer: Analyzer, number_terms: NumberTerms, max_words: int = MAX_WORDS):
        self._analyzer, self._number_terms, self._max_words = analyzer, number_terms, max_words
        self._lock = Lock()
        self._clear()

    def _clear(self) -> None:
        self._count: int = 0
        self._terms: NDArray[np.int32] = np.zeros(512, np.int32)  # the term of each word
        self._ends: NDArray[np.int64] = np.zeros(513, np.int64)  # 0, then the end of each word in _letters
        self._letters: NDArray[np.uint8] = np.zeros(4096, np.uint8)
        self._slots: NDArray[np.int64] = np.zeros((1024, 2), np.int64)

    def __call__(self, texts: Iterable[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the concatenated term numbers of all texts, and the number of terms of each text."""
        spaced, lengths = self._analyzer.join_words(texts)
        with self._lock:
            return self._number_words(spaced, lengths)

    def _number_words(self, spaced: bytes, lengths: Sequence[int]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the term numbers of texts whose words are separated by spaces."""
        from shaketable.retrieval import kernels

        if self._count > self._max_words:
            self._clear()
        data, ends = np.frombuffer(spaced, np.uint8), np.cumsum([0, *lengths])
        words, sizes = np.empty(len(data) // 2, np.int32), np.empty(len(lengths), np.int64)
        done = filled = 0
        while True:
            known = self._count
            done, filled, self._count = kernels.number_words(
                data, ends, done, words, filled, sizes, self._slots, self._letters, self._ends, known
            )
            self._number_new_words(known)
            if done == len(lengths):
                break
            self._grow(lengths[done])
        terms = self._terms[words[:filled]]
        kept = terms != STOP_TERM
        before = np.concatenate(([0], np.cumsum(kept)))
        return terms[kept], np.diff(before[np.cumsum(np.concatenate(([0], sizes)))])

    def _number_new_words(self, known: int) -> None:
        """Look up the terms of the new words."""
        ends = self._ends[known : self._count + 1].tolist()
        letters = self._letters.data
        words = (str(letters[start:end], "utf-8", "surrogatepass") for start, end in pairwise(ends))
        terms = [self._analyzer.to_term(word) for word in words]
        numbers = iter(self._number_terms(list(filter(None, terms))))
        self._terms[known : self._count] = [next(numbers) if term else STOP_TERM for term in terms]

    def _grow(self, size: int) -> None:
        """Enlarge the arrays for the words of another `size` bytes."""
        from shaketable.retrieval import kernels

        capacity = 2 * max(len(self._terms), size)
        self._terms = np.resize(self._terms, capacity)
        self._ends = np.resize(self._ends, capacity + 1)
        self._letters = np.resize(self._letters, 2 * max(len(self._letters), size))
        self._slots = kernels.rehash(self._slots, 1 << (2 * capacity - 1).bit_length())


class TextRows(NamedTuple):
    """Texts as term numbers: the terms of text i are `tokens[starts[rows[i]] : starts[rows[i] + 1]]`."""

    rows: NDArray[np.int64]
    tokens: NDArray[np.int32]
    starts: NDArray[np.int64]


class TextCache:
    """A cache of the term numbers of texts. Threads take turns, and the arrays of an answer never change.

    If the cache holds more than `max_terms` terms, the next new text clears it.
    """

    def __init__(self, numbering: TermNumbering, max_terms: int = MAX_CACHED_TERMS):
        self._numbering, self._max_terms = numbering, max_terms
        self._lock = Lock()
        self._clear()

    def _clear(self) -> None:
        self._rows: dict[tuple[str, str], int] = {}
        self._tokens = GrowingArray(np.int32)
        self._starts = GrowingArray(np.int64)
        self._starts.extend([0])

    def read(self, docs: Sequence[Doc]) -> TextRows:
        """Return the terms of each text, from the cache where possible."""
        with self._lock:
            rows = self._add_rows(docs)
            return TextRows(rows, self._tokens.values, self._starts.values)

    def _add_rows(self, docs: Sequence[Doc]) -> NDArray[np.int64]:
        """Return the row of each text, and add those that are new."""
        contents = [(doc.title, doc.body) for doc in docs]
        if self._starts.values[-1] > self._max_terms and not self._rows.keys() >= set(contents):
            self._clear()
        rows = self._rows
        fresh = {content: doc for content, doc in zip(contents, docs, strict=True) if content not in rows}
        for block in split_blocks(fresh.items(), BLOCK_TEXTS):
            tokens, sizes = self._numbering(doc.text for _, doc in block)
            self._tokens.extend(tokens)
            self._starts.extend(self._starts.values[-1] + np.cumsum(sizes))
            rows.update((content, row) for row, (content, _) in enumerate(block, len(rows)))
        return np.fromiter(map(rows.__getitem__, contents), np.int64, len(contents))


class GrowingArray:
    """An array that grows at its end; views of it stay valid, because a larger array replaces a full one.

    A bytearray cannot grow while a view exists, and numba keeps the arguments of a kernel alive after compiling it.
    """

    def __init__(self, dtype: type[np.generic]):
        self._data: NDArray[Any] = np.empty(1024, dtype)
        self._size = 0

    def extend(self, values: ArrayLike) -> None:
        """Append values."""
        new = np.asarray(values, self._data.dtype)
        size = self._size + len(new)
        if size > len(self._data):
            grown = np.empty(2 * size, self._data.dtype)
            grown[: self._size] = self._data[: self._size]
            self._data = grown
        self._data[self._size : size] = new
        self._size = size

    @property
    def values(self) -> NDArray[Any]:
        """A view of all values."""
        return self._data[: self._size]


def split_blocks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield the items in lists of at most this size.

    >>> list(split_blocks("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    remaining = iter(items)
    while block := list(islice(remaining, size)):
        yield block

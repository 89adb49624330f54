"""Texts as arrays of term numbers."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from shaketable.text.tokens import Tokenizer
from shaketable.types import Doc

Item = TypeVar("Item")
STOP, UNKNOWN = -1, -2
"""For a stop-word, which is dropped, and for a term that the collection does not have, which adds to a length."""
Numbers = Callable[[list[str]], Iterable[int | np.int64]]
"""From terms to their numbers."""
BLOCK = 4096  # texts read at a time
WORDS = 1_000_000  # that a vocabulary remembers before it starts anew
REMEMBERED = 8_000_000  # terms; some 130,000 texts of 60


class Vocabulary:
    """Turns texts into term numbers, asking `numbers` once for the term of each distinct word.

    The words lie in a hash table of numpy arrays that a kernel reads and adds to: no Python object for each word, and
    a few times as fast as splitting a string and looking its words up in a dictionary.
    """

    def __init__(self, tokenizer: Tokenizer, numbers: Numbers, limit: int = WORDS):
        self._tokenizer, self._numbers, self._limit = tokenizer, numbers, limit
        self._forget()

    def _forget(self) -> None:
        self._count: int = 0
        self._terms: NDArray[np.int32] = np.zeros(512, np.int32)  # of each word
        self._ends: NDArray[np.int64] = np.zeros(513, np.int64)  # of each word in _letters, and a 0 before
        self._letters: NDArray[np.uint8] = np.zeros(4096, np.uint8)
        self._slots: NDArray[np.int64] = np.zeros((1024, 2), np.int64)

    def __call__(self, texts: Iterable[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The term numbers of all the texts one after the other, and how many each text has."""
        from shaketable.index import kernels

        if self._count > self._limit:
            self._forget()
        spaced, lengths = self._tokenizer.spaced(texts)
        data, ends = np.frombuffer(spaced, np.uint8), np.cumsum([0, *lengths])
        words, sizes = np.empty(len(data) // 2, np.int32), np.empty(len(lengths), np.int64)
        done = filled = 0
        while True:
            known = self._count
            done, filled, self._count = kernels.number_words(
                data, ends, done, words, filled, sizes, self._slots, self._letters, self._ends, known
            )
            self._name(known)
            if done == len(lengths):
                break
            self._grow(lengths[done])
        terms = self._terms[words[:filled]]
        kept = terms != STOP
        before = np.concatenate(([0], np.cumsum(kept)))
        return terms[kept], np.diff(before[np.cumsum(np.concatenate(([0], sizes)))])

    def _name(self, known: int) -> None:
        """Find out the terms of the words that are new."""
        ends = self._ends[known : self._count + 1].tolist()
        letters = self._letters.data
        words = (str(letters[start:end], "utf-8", "surrogatepass") for start, end in pairwise(ends))
        terms = [self._tokenizer.term(word) for word in words]
        numbers = iter(self._numbers(list(filter(None, terms))))
        self._terms[known : self._count] = [next(numbers) if term else STOP for term in terms]

    def _grow(self, size: int) -> None:
        """Make room for the words of another `size` bytes."""
        from shaketable.index import kernels

        room = 2 * max(len(self._terms), size)
        self._terms = np.resize(self._terms, room)
        self._ends = np.resize(self._ends, room + 1)
        self._letters = np.resize(self._letters, 2 * max(len(self._letters), size))
        self._slots = kernels.rehash(self._slots, 1 << (2 * room - 1).bit_length())


class Texts:
    """The term numbers of texts that were asked for, so that a text scored again is not read again.

    When more than `limit` terms are held, the next new text makes it forget all the others.
    """

    def __init__(self, vocabulary: Vocabulary, limit: int = REMEMBERED):
        self._vocabulary, self._limit = vocabulary, limit
        self._forget()

    def _forget(self) -> None:
        self._rows: dict[tuple[str, str], int] = {}
        self._tokens = bytearray()
        self._ends = array("q", [0])

    def rows(self, docs: Sequence[Doc]) -> NDArray[np.int64]:
        """The row of each text; its terms are `tokens[starts[row] : starts[row + 1]]` until the next call."""
        contents = [(doc.title, doc.body) for doc in docs]
        if self._ends[-1] > self._limit and not self._rows.keys() >= set(contents):
            self._forget()
        rows = self._rows
        fresh = {content: doc for content, doc in zip(contents, docs, strict=True) if content not in rows}
        for block in blocks(fresh.items(), BLOCK):
            tokens, sizes = self._vocabulary(doc.text for _, doc in block)
            self._tokens += tokens.data
            self._ends.frombytes((self._ends[-1] + np.cumsum(sizes)).tobytes())
            rows.update((content, row) for row, (content, _) in enumerate(block, len(rows)))
        return np.fromiter(map(rows.__getitem__, contents), np.int64, len(contents))

    @property
    def tokens(self) -> NDArray[np.int32]:
        return np.frombuffer(self._tokens, np.int32)

    @property
    def starts(self) -> NDArray[np.int64]:
        return np.frombuffer(self._ends, np.int64)


def blocks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items in lists of at most this size.

    >>> list(blocks("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    remaining = iter(items)
    while block := list(islice(remaining, size)):
        yield block

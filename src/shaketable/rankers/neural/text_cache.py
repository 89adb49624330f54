"""A bounded cache of arrays computed from texts: tokens and vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from shaketable.core.seeding import make_item_rng

Array = TypeVar("Array", bound=NDArray[Any])


class ArrayCache(Generic[Array]):
    """A cache of arrays by text, of at most `max_bytes` bytes.

    >>> cache = ArrayCache(max_bytes=1000)
    >>> cache.get_or_make(["ab", "abc", "ab"], lambda texts: [np.array([len(text)]) for text in texts])
    [array([2]), array([3]), array([2])]

    A full cache evicts random entries. Audits read the same texts repeatedly in the same order, and a cache that evicts
    the oldest entry would evict each text just before its next use.
    """

    def __init__(self, max_bytes: int):
        self.max_bytes = max_bytes
        self.size_bytes = 0
        self._texts: list[str] = []
        self._arrays: dict[str, Array] = {}
        self._rng = make_item_rng(0, "memory")

    def __len__(self) -> int:
        return len(self._texts)

    def get_or_make(self, texts: Sequence[str], make: Callable[[list[str]], Sequence[Array]]) -> list[Array]:
        """Return the array of each text; call `make` once, for the distinct texts that are not cached."""
        distinct = dict.fromkeys(texts)
        found = {text: self._arrays[text] for text in distinct if text in self._arrays}
        fresh = [text for text in distinct if text not in found]
        for text, array in zip(fresh, make(fresh) if fresh else (), strict=True):
            found[text] = array
            self._keep(text, array)
        return [found[text] for text in texts]

    def _keep(self, text: str, array: Array) -> None:
        cost = _count_bytes(text, array)
        if cost > self.max_bytes:
            return
        while self.size_bytes + cost > self.max_bytes:
            at = self._rng.randbelow(len(self._texts))
            self._texts[at], self._texts[-1] = self._texts[-1], self._texts[at]
            self.size_bytes -= _count_bytes(gone := self._texts.pop(), self._arrays.pop(gone))
        self._texts.append(text)
        self._arrays[text] = array
        self.size_bytes += cost


def _count_bytes(text: str, array: NDArray[np.generic]) -> int:
    return array.nbytes + len(text)

"""A bounded cache for what is made of texts: their tokens, their vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from shaketable.chance import draws_for

Array = TypeVar("Array", bound=NDArray[Any])


class Memory(Generic[Array]):
    """Arrays by text, `limit` bytes at most.

    >>> memory = Memory(limit=1000)
    >>> memory.of(["ab", "abc", "ab"], lambda texts: [np.array([len(text)]) for text in texts])
    [array([2]), array([3]), array([2])]

    What comes when it is full takes the place of something at random. Audits go over the same texts again and again
    in the same order, and there a cache that gives up the oldest gives up each text just before it is asked for.
    """

    def __init__(self, limit: int):
        self.limit = limit
        self.size = 0
        self._texts: list[str] = []
        self._kept: dict[str, Array] = {}
        self._draws = draws_for(0, "memory")

    def __len__(self) -> int:
        return len(self._texts)

    def of(self, texts: Sequence[str], make: Callable[[list[str]], Sequence[Array]]) -> list[Array]:
        """The array of each text; `make` is asked once, for the distinct texts that are not there."""
        distinct = dict.fromkeys(texts)
        found = {text: self._kept[text] for text in distinct if text in self._kept}
        fresh = [text for text in distinct if text not in found]
        for text, array in zip(fresh, make(fresh) if fresh else (), strict=True):
            found[text] = array
            self._keep(text, array)
        return [found[text] for text in texts]

    def _keep(self, text: str, array: Array) -> None:
        cost = _cost(text, array)
        if cost > self.limit:
            return
        while self.size + cost > self.limit:
            at = self._draws.below(len(self._texts))
            self._texts[at], self._texts[-1] = self._texts[-1], self._texts[at]
            self.size -= _cost(gone := self._texts.pop(), self._kept.pop(gone))
        self._texts.append(text)
        self._kept[text] = array
        self.size += cost


def _cost(text: str, array: NDArray[np.generic]) -> int:
    return array.nbytes + len(text)

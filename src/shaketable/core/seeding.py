"""Random numbers seeded per item, so that no result depends on processing order, batches or workers."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from struct import unpack
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")


def make_numpy_rng(seed: int, *item: str | int) -> np.random.Generator:
    """Return a numpy generator seeded by the item, for arrays of random numbers.

    >>> bool(make_numpy_rng(1, "bootstrap", "q7").integers(100) == make_numpy_rng(1, "bootstrap", "q7").integers(100))
    True
    """
    return np.random.default_rng(int.from_bytes(_hash_item(seed, item, 16), "little"))


def make_item_rng(seed: int, *item: str | int) -> ItemRandom:
    """Return a light generator seeded by the item, for transforms, which draw a few numbers for each of many texts.

    Parameters
    ----------
    seed
        The seed of the experiment.
    item
        The names and numbers that identify the item, such as the transform, the query id and the draw.

    Returns
    -------
    ItemRandom
        A generator whose draws depend on the seed and the item alone.

    Examples
    --------
    >>> make_item_rng(0, "q1").randbelow(100) == make_item_rng(0, "q1").randbelow(100)
    True
    """
    return ItemRandom(_hash_item(seed, item, 64))


class ItemRandom:
    """A random number generator based on a 64-byte hash and a counter; it starts ten times faster than numpy's.

    >>> draws = make_item_rng(1, "typo", "q7")
    >>> draws.randbelow(6) in range(6), draws.choice("abc") in "abc", sorted(draws.permutation("cab"))
    (True, True, ['a', 'b', 'c'])
    """

    __slots__ = ("_block", "_name", "_numbers")

    def __init__(self, name: bytes):
        self._name = name
        self._block = 0
        self._numbers: list[int] = list(unpack("<8Q", name))

    def random_bits(self) -> int:
        """Return 64 random bits."""
        if not self._numbers:
            block = blake2b(self._name + self._block.to_bytes(8, "little"), digest_size=64).digest()
            self._numbers = list(unpack("<8Q", block))
            self._block += 1
        return self._numbers.pop()

    def randbelow(self, n: int) -> int:
        """Return a uniform random integer in 0..n-1."""
        if n < 1:
            raise ValueError("nothing to draw from")
        return (self.random_bits() * n) >> 64

    def random(self) -> float:
        """Return a random number in [0, 1)."""
        return (self.random_bits() >> 11) * 2.0**-53

    def choice(self, items: Sequence[Item]) -> Item:
        """Return a random item."""
        return items[self.randbelow(len(items))]

    def permutation(self, items: Sequence[Item]) -> list[Item]:
        """Return the items in random order."""
        order = list(items)
        for i in range(len(order) - 1, 0, -1):
            j = self.randbelow(i + 1)
            order[i], order[j] = order[j], order[i]
        return order


def _hash_item(seed: int, item: tuple[str | int, ...], size: int) -> bytes:
    return blake2b(repr((seed, *item)).encode("utf-8", "surrogatepass"), digest_size=size).digest()

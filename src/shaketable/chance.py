"""Chance, tied to the item it decides about."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np


def rng_for(seed: int, *item: str | int) -> np.random.Generator:
    """A generator of its own for each item, so that no result depends on visiting order, batches or workers.

    >>> rng_for(1, "typo", "q7").integers(100) == rng_for(1, "typo", "q7").integers(100)
    True
    """
    digest = blake2b(repr((seed, *item)).encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))

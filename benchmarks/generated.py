"""Texts of Zipf-distributed words, for benchmarks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

VOCABULARY = 100_000


def zipf_texts(seed: int, count: int, low: int, high: int) -> Iterator[str]:
    """Texts of low..high words; the r-th word of the vocabulary comes up with a probability proportional to 1/r."""
    rng = np.random.default_rng(seed)
    cumulated = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    words = np.array([spelled(number) for number in range(VOCABULARY)], dtype=object)
    for start in range(0, count, 1000):
        sizes = rng.integers(low, high + 1, size=min(1000, count - start))
        drawn = words[cumulated.searchsorted(rng.random(sizes.sum()) * cumulated[-1])].tolist()
        end = 0
        for size in sizes.tolist():
            yield " ".join(drawn[end : end + size])
            end += size


def spelled(number: int) -> str:
    """A word of at least two letters for a number; small numbers, which are the frequent ones, have short words."""
    number += 26
    letters = ""
    while number:
        number, letter = divmod(number, 26)
        letters += chr(ord("a") + letter)
    return letters

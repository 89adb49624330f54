"""Generated texts with Zipf-distributed words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

VOCABULARY = 100_000


def zipf_texts(seed: int, count: int, low: int, high: int) -> Iterator[str]:
    """Yield texts of `low` to `high` words; the probability of word r of the vocabulary is proportional to 1/r."""
    rng = np.random.default_rng(seed)
    cumulative = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    words = np.array([spell(number) for number in range(VOCABULARY)], dtype=object)
    for start in range(0, count, 1000):
        sizes = rng.integers(low, high + 1, size=min(1000, count - start))
        drawn = words[cumulative.searchsorted(rng.random(sizes.sum()) * cumulative[-1])].tolist()
        end = 0
        for size in sizes.tolist():
            yield " ".join(drawn[end : end + size])
            end += size


def spell(number: int) -> str:
    """Return a word of at least two letters for a number; frequent words (small numbers) are short."""
    number += 26
    letters = ""
    while number:
        number, letter = divmod(number, 26)
        letters += chr(ord("a") + letter)
    return letters

"""Chunks of work for an executor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat


def split_chunks(
    items: list[int], weights: list[int], size: int, groups: Sequence[str] | None = None
) -> Iterator[list[int]]:
    """Split items in order into chunks of at most `size` weight; a heavier item is a chunk of its own.

    >>> list(split_chunks([0, 1, 2, 3], [2, 2, 9, 1], size=4))
    [[0, 1], [2], [3]]

    With groups, one for each item, no chunk has items of two groups.

    >>> list(split_chunks([0, 1, 2, 3], [1, 1, 1, 1], size=4, groups=["a", "b", "b", "b"]))
    [[0], [1, 2, 3]]
    """
    part: list[int] = []
    total = 0
    last: str | None = None
    for item, weight, group in zip(items, weights, groups or repeat(None, len(items)), strict=True):
        if part and (total + weight > size or group != last):
            yield part
            part, total = [], 0
        part.append(item)
        total += weight
        last = group
    if part:
        yield part


def fit_chunk_size(size: int, total: int, workers: int) -> int:
    """Return the chunk size, reduced if there is too little work to give each worker four chunks.

    >>> fit_chunk_size(512, 600, 1), fit_chunk_size(512, 600, 2), fit_chunk_size(512, 1_000_000, 64)
    (512, 75, 512)
    """
    return size if workers == 1 else max(1, min(size, -(-total // (4 * workers))))

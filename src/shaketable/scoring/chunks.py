"""Chunks of work for an executor, sized by the measured speed of a ranker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TypeVar

from shaketable.scoring.traits import RankerTraits
from shaketable.scoring.units import PairUnits, Unit, WorkUnit

T = TypeVar("T")

CHUNK_SECONDS = 2.0
"""The time that a chunk should take: progress moves, and a kill loses little work."""
FIRST_CHUNK = 8
"""The weight of the first chunk of a ranker, before its speed is known."""
MAX_GROWTH = 4
"""The largest ratio of a chunk's size to that of a measured one, because small chunks measure the speed badly."""


@dataclass
class ChunkPace:
    """The size of a ranker's next chunk, in the weight of its units.

    >>> pace = ChunkPace(size=8)
    >>> pace.record(8, seconds=0.001), pace.size  # fast, but only four times as much is tried next
    (None, 32)
    >>> pace.record(32, seconds=16.0), pace.size
    (None, 4)
    """

    size: int = FIRST_CHUNK

    def record(self, weight: int, seconds: float) -> None:
        """Adapt the size to the duration of a finished chunk."""
        fitting = round(weight * CHUNK_SECONDS / max(seconds, 1e-6))
        if fitting >= self.size:
            self.size = max(self.size, min(fitting, MAX_GROWTH * weight))
        elif 2 * weight >= self.size or seconds > CHUNK_SECONDS:  # a remainder is mostly overhead and says little
            self.size = max(1, fitting)


def plan_calls(
    traits: RankerTraits,
    unit_type: WorkUnit[Unit],
    units: list[Unit],
    todo: list[int],
    max_size: int,
    pace: ChunkPace,
    workers: int,
) -> Iterator[list[list[int]]]:
    """Yield the calls of each chunk, as the indices of their units; a chunk is planned when it is requested."""
    weights = [unit_type.weight(units[i]) for i in todo]
    most = traits.chunk or max_size
    # a ranker that takes several chunks at a time is a server: a chunk is one request, for one query, and may cost
    # money, so it is never made smaller to keep more workers busy
    served = traits.max_concurrency > 1
    queries = [unit_type.query(units[i]) for i in todo] if served else None
    most = most if served else fit_chunk_size(most, sum(weights), workers)
    fixed = served or traits.chunk > 0

    def next_size() -> int:
        return most if fixed else min(most, pace.size)

    if traits.batch_chars and isinstance(unit_type, PairUnits):
        lengths = [len(units[i][1].text) for i in todo]
        blocks = make_blocks(todo, lengths, traits.batch_chars, by_length=traits.pads_texts)
        yield from split_chunks(blocks, list(map(len, blocks)), next_size)
    else:
        yield from ([part] for part in split_chunks(todo, weights, next_size, queries))


def split_chunks(
    items: Sequence[T], weights: Sequence[int], next_size: Callable[[], int], groups: Sequence[str] | None = None
) -> Iterator[list[T]]:
    """Split items in order into chunks of at most `next_size()` weight; a heavier item is a chunk of its own.

    >>> list(split_chunks([0, 1, 2, 3], [2, 2, 9, 1], lambda: 4))
    [[0, 1], [2], [3]]

    The size is requested when a chunk begins. With groups, one for each item, no chunk has items of two groups.

    >>> list(split_chunks([0, 1, 2, 3], [1, 1, 1, 1], lambda: 4, groups=["a", "b", "b", "b"]))
    [[0], [1, 2, 3]]
    """
    part: list[T] = []
    total, size = 0, 0
    last: str | None = None
    for item, weight, group in zip(items, weights, groups or repeat(None, len(items)), strict=True):
        if part and (total + weight > size or group != last):
            yield part
            part, total = [], 0
        if not part:
            size = next_size()
        part.append(item)
        total += weight
        last = group
    if part:
        yield part


def make_blocks(items: list[int], lengths: Sequence[int], max_chars: int, *, by_length: bool) -> list[list[int]]:
    """Group items, in their order or longest first, in blocks of at most `max_chars` characters, padding included.

    >>> make_blocks([7, 8, 9, 10], [5, 9, 6, 1], 12, by_length=True)
    [[8], [9, 7], [10]]
    """
    order = sorted(range(len(items)), key=lambda i: -lengths[i]) if by_length else range(len(items))
    blocks: list[list[int]] = []
    longest = 0
    for i in order:
        longest = max(longest, lengths[i])
        if not blocks or (len(blocks[-1]) + 1) * longest > max_chars:
            blocks.append([])
            longest = lengths[i]
        blocks[-1].append(items[i])
    return blocks


def fit_chunk_size(size: int, total: int, workers: int) -> int:
    """Return the chunk size, reduced if there is too little work to give each worker four chunks.

    >>> fit_chunk_size(512, 600, 1), fit_chunk_size(512, 600, 2), fit_chunk_size(512, 1_000_000, 64)
    (512, 75, 512)
    """
    return size if workers == 1 else max(1, min(size, -(-total // (4 * workers))))

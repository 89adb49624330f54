"""A list of distinct strings, such as docnos, stored in a few arrays instead of one object per string."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from shaketable.core.errors import BadInput, quote_value

BLOCK_STRINGS = 8192  # strings decoded at a time by an iteration


@dataclass(frozen=True, eq=False)
class PackedStrings:
    """Distinct strings in a fixed order: number -> string by offset, string -> number by a sorted list of hashes.

    >>> ids = PackedStrings.build(["d7", "d10", "café"])
    >>> len(ids), ids[2], ids.find("d10"), ids.find("d8"), list(ids)
    (3, 'café', 1, -1, ['d7', 'd10', 'café'])

    The arrays may be memory-mapped files. Each string costs 20 bytes in addition to its text.
    """

    blob: NDArray[np.uint8]
    """The concatenated strings in UTF-8."""
    offsets: NDArray[np.int64]
    """The start of each string, then the end of the last one."""
    hashes: NDArray[np.uint64]
    """The hash of each string, sorted."""
    places: NDArray[np.uint32]
    """The string number of each entry of `hashes`."""

    @classmethod
    def build(cls, strings: Iterable[str]) -> PackedStrings:
        """Return the strings packed in the given order; refuse duplicates."""
        blob, ends, digests = bytearray(), array("q", [0]), bytearray()
        for string in strings:
            text = string.encode() if string.isascii() else string.encode("utf-8", "surrogatepass")  # speed
            blob += text
            digests += _hash_string(text)
            ends.append(len(blob))
        hashes = np.frombuffer(digests, dtype="<u8")
        places = np.argsort(hashes, kind="stable").astype(np.uint32)
        ids = cls(np.frombuffer(blob, np.uint8), np.array(ends, np.int64), hashes[places].astype(np.uint64), places)
        ids._refuse_duplicates()
        return ids

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the arrays to write to disk; `from_arrays` reads them."""
        return {"blob": self.blob, "offsets": self.offsets, "hashes": self.hashes, "places": self.places}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> PackedStrings:
        return cls(**arrays)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, number: int) -> str:
        if not 0 <= number < len(self):
            raise IndexError(number)
        start, end = self.offsets[number : number + 2].tolist()
        return self.blob[start:end].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), BLOCK_STRINGS):
            yield from self.take(np.arange(start, min(start + BLOCK_STRINGS, len(self))))

    def __contains__(self, string: object) -> bool:
        return isinstance(string, str) and self.find(string) >= 0

    def take(self, numbers: NDArray[np.integer]) -> list[str]:
        """Return the strings with these numbers, several times faster than one by one."""
        blob = self.blob.data
        spans = zip(self.offsets[numbers].tolist(), self.offsets[numbers + 1].tolist(), strict=True)
        return [str(blob[start:end], "utf-8", "surrogatepass") for start, end in spans]

    def find(self, string: str) -> int:
        """Return the number of a string; -1 if it is absent."""
        hashed = np.frombuffer(_hash_string(string.encode("utf-8", "surrogatepass")), dtype="<u8")[0]
        at = int(self.hashes.searchsorted(hashed))
        while at < len(self) and self.hashes[at] == hashed:  # repeats only if two hashes collide
            if self[number := int(self.places[at])] == string:
                return number
            at += 1
        return -1

    def find_many(self, strings: Sequence[str]) -> NDArray[np.int64]:
        """Return `find` of each string, several times faster than one by one."""
        if not len(self):
            return np.full(len(strings), -1)
        hashed = np.frombuffer(
            b"".join([_hash_string(s.encode("utf-8", "surrogatepass")) for s in strings]), dtype="<u8"
        )
        at = np.minimum(self.hashes.searchsorted(hashed), len(self) - 1)
        hits = np.flatnonzero(self.hashes[at] == hashed)
        numbers = np.full(len(strings), -1)
        numbers[hits] = self.places[at[hits]]
        for hit, known in zip(hits.tolist(), self.take(numbers[hits]), strict=True):
            if known != strings[hit]:  # two hashes collide
                numbers[hit] = self.find(strings[hit])
        return numbers

    def _refuse_duplicates(self) -> None:
        for at in np.flatnonzero(self.hashes[1:] == self.hashes[:-1]):
            start = self.hashes.searchsorted(self.hashes[at])
            group = self.take(self.places[start : at + 2])
            if group[-1] in group[:-1]:
                raise BadInput(f"the id {quote_value(group[-1])} occurs twice; each document needs an id of its own")


def _hash_string(text: bytes) -> bytes:
    return blake2b(text, digest_size=8).digest()

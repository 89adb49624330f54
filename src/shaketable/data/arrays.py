"""Folders of arrays: written whole, each array with its checksum, mapped into memory when they are opened.

    about.json      what its owner says of the folder; type, shape and checksum of each array
    NAME.bin        the numbers of an array, one after the other

Such folders hold what can be made again, so a damaged one is told (`Damaged`), not repaired.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from shaketable.errors import BadInput, Damaged
from shaketable.files import read_sealed, sealed, settle, staged, sweep

ABOUT = "about.json"
BLOCK = 1 << 20  # bytes read at a time
THREADS = 4  # files read at a time

Array = NDArray[Any]


class Writer:
    """Takes arrays, whole or a few rows at a time, and writes them as they come."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._arrays: dict[str, dict[str, Any]] = {}

    def append(self, name: str, rows: Array) -> None:
        """Add rows to an array; the first ones say what type and shape the others have."""
        rows = np.ascontiguousarray(rows)
        told = self._arrays.setdefault(
            name, {"dtype": rows.dtype.str, "shape": [0, *rows.shape[1:]], "size": 0, "crc32": 0}
        )
        assert (told["dtype"], told["shape"][1:]) == (rows.dtype.str, list(rows.shape[1:])), name
        # Not through a mapping: there a full disk ends the process instead of raising an error.
        with _file(self._folder, name).open("ab") as out:
            out.write(rows.data)
        told["shape"][0] += len(rows)
        told["size"] += rows.nbytes
        told["crc32"] = crc32(rows.data, told["crc32"])

    def finish(self, about: Mapping[str, Any]) -> None:
        """Write down what the folder holds."""
        (self._folder / ABOUT).write_text(sealed({**about, "arrays": self._arrays}), encoding="utf-8")
        settle(self._folder)


@contextmanager
def kept(folder: Path, about: Mapping[str, Any]) -> Iterator[Writer]:
    """A folder that appears when the block ends well, with all arrays that it wrote; whoever came first, stays.

    What the disk has to say against it is raised as it comes (OSError), and nothing is left behind.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with staged(folder.parent, home=True) as new:
        writer = Writer(new)
        yield writer
        writer.finish(about)
        try:
            os.rename(new, folder)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise


def read_arrays(folder: Path, *, written: bool = False) -> tuple[dict[str, Any], dict[str, Array]]:
    """What the owner said of a folder, and its arrays, mapped. Every byte is checked, unless it was just written."""
    sweep(folder.parent, home=True)  # whoever was killed after this folder was in its place left another one
    about = read_sealed(folder / ABOUT)
    arrays: dict[str, Any] = about.pop("arrays")
    with ThreadPoolExecutor(THREADS) as pool:
        found = pool.map(lambda name: _mapped(_file(folder, name), arrays[name], written), arrays)
        return about, dict(zip(arrays, found, strict=True))


def discard(folder: Path) -> None:
    """Remove a damaged folder, if that is possible."""
    shutil.rmtree(folder, ignore_errors=True)


def _mapped(path: Path, told: Mapping[str, Any], written: bool) -> Array:
    """The file is asked for its size first: to read beyond the end of a mapping ends the process."""
    dtype, shape = np.dtype(told["dtype"]), tuple(told["shape"])
    try:
        with path.open("rb", buffering=0) as raw:
            if not os.fstat(raw.fileno()).st_size == told["size"] == dtype.itemsize * prod(shape):
                raise Damaged("is longer or shorter than it was written", path)
            if not written and _checksum(raw) != told["crc32"]:
                raise Damaged("is not as it was written", path)
            array: Array = np.memmap(raw, dtype, "r", shape=shape) if told["size"] else np.empty(shape, dtype)
    except FileNotFoundError as error:
        raise Damaged("is missing", path) from error
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", path) from error
    array.setflags(write=False)
    return array


def _checksum(raw: IO[bytes]) -> int:
    """CRC-32: four times as fast as a cryptographic hash, and it misses no flipped bit."""
    value, block = 0, memoryview(bytearray(BLOCK))
    while size := raw.readinto(block):  # type: ignore[attr-defined]
        value = crc32(block[:size], value)
    return value


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.bin"

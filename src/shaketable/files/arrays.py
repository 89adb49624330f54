"""Folders of arrays with checksums; they are written atomically and memory-mapped when opened.

    about.json      metadata of the folder's owner; type, shape and checksum of each array
    NAME.bin        the numbers of an array, in order

Such folders can be created again, so damage raises `Damaged` and is not repaired.
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
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from shaketable.core.errors import BadInput, Damaged
from shaketable.files.checksums import compute_crc32, read_sealed_json, seal_json
from shaketable.files.staging import remove_abandoned_folders, staging_folder, sync_folder

ABOUT_FILE = "about.json"
READ_THREADS = 4

Array = NDArray[Any]


class ArrayWriter:
    """A writer of arrays, whole or a few rows at a time."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._arrays: dict[str, dict[str, Any]] = {}

    def append(self, name: str, rows: Array) -> None:
        """Append rows to an array; the first rows set its type and shape."""
        rows = np.ascontiguousarray(rows)
        header = self._arrays.setdefault(
            name, {"dtype": rows.dtype.str, "shape": [0, *rows.shape[1:]], "size": 0, "crc32": 0}
        )
        assert (header["dtype"], header["shape"][1:]) == (rows.dtype.str, list(rows.shape[1:])), name
        # no memory map: on a full disk it kills the process instead of raising an error
        with _array_path(self._folder, name).open("ab") as out:
            out.write(rows.data)
        header["shape"][0] += len(rows)
        header["size"] += rows.nbytes
        header["crc32"] = crc32(rows.data, header["crc32"])

    def finish(self, about: Mapping[str, Any]) -> None:
        """Write the metadata of the folder."""
        (self._folder / ABOUT_FILE).write_text(seal_json({**about, "arrays": self._arrays}), encoding="utf-8")
        sync_folder(self._folder)


@contextmanager
def atomic_array_folder(folder: Path, about: Mapping[str, Any]) -> Iterator[ArrayWriter]:
    """Create a folder that appears, with all its arrays, when the block succeeds; an existing folder stays.

    Disk errors are raised as OSError, and no partial folder remains.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with staging_folder(folder.parent, in_home=True) as new:
        writer = ArrayWriter(new)
        yield writer
        writer.finish(about)
        try:
            os.rename(new, folder)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise


def read_arrays(folder: Path, *, just_written: bool = False) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the metadata and the memory-mapped arrays; every byte is checked unless the folder is `just_written`."""
    remove_abandoned_folders(
        folder.parent, in_home=True
    )  # folders of processes that were killed after this folder appeared
    about = read_sealed_json(folder / ABOUT_FILE)
    arrays: dict[str, Any] = about.pop("arrays")
    with ThreadPoolExecutor(READ_THREADS) as pool:
        found = pool.map(lambda name: _map_array(_array_path(folder, name), arrays[name], just_written), arrays)
        return about, dict(zip(arrays, found, strict=True))


def discard_array_folder(folder: Path) -> None:
    """Remove a damaged folder, ignoring errors."""
    shutil.rmtree(folder, ignore_errors=True)


def _map_array(path: Path, header: Mapping[str, Any], just_written: bool) -> Array:
    """Return a memory-mapped array; check the size first, because reading past the end of a map kills the process."""
    dtype, shape = np.dtype(header["dtype"]), tuple(header["shape"])
    try:
        with path.open("rb", buffering=0) as raw:
            if not os.fstat(raw.fileno()).st_size == header["size"] == dtype.itemsize * prod(shape):
                raise Damaged("does not have the size with which it was written", path)
            if not just_written and compute_crc32(raw) != header["crc32"]:
                raise Damaged("does not match its checksum", path)
            array: Array = np.memmap(raw, dtype, "r", shape=shape) if header["size"] else np.empty(shape, dtype)
    except FileNotFoundError as error:
        raise Damaged("is missing", path) from error
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", path) from error
    array.setflags(write=False)
    return array


def _array_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.bin"

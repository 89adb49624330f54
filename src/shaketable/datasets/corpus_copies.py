"""Copies of corpora in the home folder: unpacked or converted once, and made again if they are damaged.

corpora/HASH.jsonl      the documents; HASH is a digest of the user's file
corpora/HASH.json       the size and the checksum of the copy
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol
from zlib import crc32

from shaketable.core.errors import BadInput, Damaged
from shaketable.core.home import home_folder
from shaketable.files.atomic import atomic_write, atomic_write_binary
from shaketable.files.checksums import compute_crc32, read_sealed_json, seal_json
from shaketable.files.scratch import find_writable_path


@dataclass(frozen=True)
class CorpusCopy:
    """A sound copy of a corpus, and a remark if it had to be made again or cannot be kept."""

    path: Path
    remark: str = ""

    def remove(self) -> None:
        """Remove the copy of a file that is not a corpus."""
        for path in (_checksum_path(self.path), self.path):
            path.unlink(missing_ok=True)


class Output(Protocol):
    """A binary file to write to."""

    def write(self, data: bytes, /) -> object: ...


def open_copy(source: Path, digest: str, write: Callable[[Output], None]) -> CorpusCopy:
    """Return the copy of a user's file; `write` makes it if it is missing or damaged. `digest` identifies the content.

    Where the home folder cannot be written, the copy lasts as long as the process.
    """
    kept = home_folder() / "corpora" / f"{digest}.jsonl"
    remark = ""
    try:
        if _is_sound(kept):
            return CorpusCopy(kept)
    except BadInput as error:
        remark = f"the copy of {source.name} in {kept.parent} was damaged, and was made again from that file ({error})"
    path, unwritable = find_writable_path(kept)
    if not (unwritable and _is_sound(path)):
        with atomic_write_binary(path) as out:
            summed = _SummingOutput(out)
            write(summed)
        with atomic_write(_checksum_path(path)) as text:
            text.write(seal_json({"size": summed.size, "crc32": summed.crc32}))
    return CorpusCopy(path, remark or unwritable)


def _is_sound(path: Path) -> bool:
    """Return True if the copy is as it was written, and False if there is none; raise `Damaged` otherwise."""
    if not (path.is_file() and _checksum_path(path).is_file()):
        return False
    about = read_sealed_json(_checksum_path(path))
    try:
        with path.open("rb", buffering=0) as raw:
            if path.stat().st_size == about["size"] and compute_crc32(raw) == about["crc32"]:
                return True
    except OSError as error:
        raise Damaged(f"cannot be read ({error.strerror})", path) from error
    raise Damaged("is not as it was written", path)


def _checksum_path(path: Path) -> Path:
    return path.with_suffix(".json")


class _SummingOutput:
    """A binary output that computes the checksum of its bytes."""

    def __init__(self, out: IO[bytes]):
        self._out = out
        self.size = self.crc32 = 0

    def write(self, data: bytes, /) -> int:
        self.size += len(data)
        self.crc32 = crc32(data, self.crc32)
        return self._out.write(data)

"""Atomic writing: a file or folder appears under its name only when it is complete."""

from __future__ import annotations

import gzip
import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, TextIO, cast

from shaketable.core.errors import BadInput, quote_value
from shaketable.core.redaction import has_secrets, redact
from shaketable.files.locking import is_open_at, try_lock
from shaketable.files.reading import _refuse_nul
from shaketable.files.staging import staging_folder, sync_folder, sync_path

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

DRAFT_MARK = ".shaketable-"
"""Part of the names of files that are being written."""


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Convert write errors in the block, such as a full disk, to `BadInput`."""
    _refuse_nul(path)
    try:
        yield
    except OSError as error:
        raise BadInput(f"cannot be written ({error.strerror or error})", path) from error


@contextmanager
def atomic_write(path: Path) -> Iterator[TextIO]:
    """Open a text file that appears under its name only when the block succeeds; gzipped if the name ends in .gz."""
    with atomic_write_binary(path) as raw:
        stream = cast(IO[bytes], gzip.GzipFile(fileobj=raw, mode="wb", mtime=0)) if path.suffix == ".gz" else raw
        text_class = _RedactingWriter if has_secrets() else io.TextIOWrapper
        text = text_class(stream, encoding="utf-8", newline="\n")
        try:
            yield text
            text.flush()
        except UnicodeEncodeError as error:
            half = quote_value(error.object[error.start])
            raise BadInput(f"cannot be written: UTF-8 cannot encode {half}, half of a surrogate pair", path) from error
        if stream is raw:
            text.detach()
        else:
            text.close()


@contextmanager
def atomic_write_binary(path: Path) -> Iterator[IO[bytes]]:
    """Open a binary file that appears under its name, synced to disk, only when the block succeeds.

    Until then it is a locked draft in the same folder; drafts of killed processes are removed.
    """
    with explain_write_errors(path):
        _refuse_folder(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned_drafts(path)
        handle, temporary = _create_locked_draft(path)
    try:
        with io.BufferedWriter(_Target(handle, path), 1 << 17) as raw:
            yield raw
            raw.flush()
            with explain_write_errors(path):
                os.fsync(handle)  # a rename alone may leave an empty file after a power failure
        with explain_write_errors(path):
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
            sync_path(path.parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def check_file_writable(path: Path) -> None:
    """Raise an error if a file cannot be written, before long work starts; no file is created."""
    with explain_write_errors(path):
        _refuse_folder(path)
        there = next(parent for parent in path.absolute().parents if parent.exists())
        with tempfile.TemporaryFile(dir=there):
            pass


def _refuse_folder(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise BadInput(f"is {'a folder' if path.is_dir() else 'not a regular file'}; name a file to write to", path)


def _create_locked_draft(path: Path) -> tuple[int, Path]:
    """Create a draft file and lock it; retry if another process removes it before it is locked."""
    while True:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=_draft_prefix(path))
        if try_lock(handle) is not False and is_open_at(handle, Path(name)):
            return handle, Path(name)
        os.close(handle)


def _remove_abandoned_drafts(path: Path) -> None:
    """Remove drafts that no process is writing; a lock ends with its process."""
    begin = _draft_prefix(path)
    with suppress(OSError):
        for entry in os.scandir(path.parent):
            if entry.name.startswith(begin) and entry.is_file(follow_symlinks=False):
                with open(entry.path, "rb+") as draft:
                    if try_lock(draft):
                        os.unlink(entry.path)


def _draft_prefix(path: Path) -> str:
    """Return the prefix of the names of a file's drafts."""
    return f".{path.name[:50]}{DRAFT_MARK}"


class _RedactingWriter(io.TextIOWrapper):
    """A text file without API keys, if each is within one call of `write`."""

    def write(self, text: str, /) -> int:
        return super().write(redact(text))


class _Target(io.FileIO):
    """A file that raises `BadInput` if the disk is full."""

    def __init__(self, handle: int, path: Path):
        super().__init__(handle, "wb")
        self._path = path

    def write(self, data: ReadableBuffer, /) -> int:
        with explain_write_errors(self._path):
            return super().write(data)


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """Create a folder that appears under its name, with all its files, only when the block succeeds."""
    with ExitStack() as stack:
        with explain_write_errors(folder):
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise BadInput("exists already; name a new folder", folder)
            folder.parent.mkdir(parents=True, exist_ok=True)
            draft = stack.enter_context(staging_folder(folder.parent))
        yield draft
        with explain_write_errors(folder):
            sync_folder(draft)
            if folder.exists():
                folder.rmdir()
            os.replace(draft, folder)
            sync_path(folder.parent)

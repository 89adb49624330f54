"""Files: where Shaketable keeps things, reading plain or gzipped text, writing whole or not at all."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TextIO, cast

from shaketable.errors import BadInput


def home() -> Path:
    """The folder for scores, indexes and models: $SHAKETABLE_HOME, or ~/.cache/shaketable."""
    return Path(os.environ.get("SHAKETABLE_HOME") or Path.home() / ".cache" / "shaketable")


def open_binary(path: Path) -> IO[bytes]:
    """Open for reading, through gzip where the name ends in .gz; a missing file is the user's error."""
    try:
        return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")
    except FileNotFoundError as error:
        raise BadInput("there is no such file", path) from error
    except IsADirectoryError as error:
        raise BadInput("is a folder, a file was expected", path) from error
    except PermissionError as error:
        raise BadInput("may not be read (permission denied)", path) from error


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is not blank, without its end."""
    with open_binary(path) as raw:
        number = 0
        try:
            for number, line in enumerate(raw, 1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                if text.strip():
                    yield number, text
        except UnicodeDecodeError as error:
            raise BadInput("is not UTF-8 text", path, number) from error
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise BadInput(f"is not a whole gzip file ({error})", path) from error


@contextmanager
def written_whole(path: Path) -> Iterator[TextIO]:
    """A text file that appears under its name only when the block ends well; gzipped if the name says so."""
    with written_whole_binary(path) as raw:
        stream = cast(IO[bytes], gzip.GzipFile(fileobj=raw, mode="wb", mtime=0)) if path.suffix == ".gz" else raw
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
        yield text
        text.flush()
        if stream is raw:
            text.detach()
        else:
            text.close()


@contextmanager
def written_whole_binary(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that appears under its name only when the block ends well."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise BadInput(f"cannot be written ({error.strerror})", path) from error
    try:
        with os.fdopen(handle, "wb") as raw:
            yield raw
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


@contextmanager
def folder_whole(folder: Path) -> Iterator[Path]:
    """A folder that appears under its name, with all that was put into it, only when the block ends well.

    Whoever came first, stays: of two that make the same folder at once the second one's is dropped.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".building-"))
    try:
        yield temporary
        temporary.chmod(0o755)
        try:
            os.rename(temporary, folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)

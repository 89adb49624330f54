"""Files: where Shaketable keeps things, reading plain or gzipped text, writing whole or not at all.

What a file may come to is bounded here, for every reader: a line has at most `LONGEST` bytes; what is gzipped unpacks
to at most `UNPACKED` bytes, and to at most `RATIO` times its own size where that is more than `SMALL` bytes. Text
becomes 4 to 10 times smaller; what becomes a thousand times smaller was made to fill a disk.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

from shaketable.errors import BadInput, quoted

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

LONGEST = 64 << 20
UNPACKED = 256 << 30
RATIO = 100
SMALL = 64 << 20

BLOCK = 1 << 20  # bytes read at a time
BOM = b"\xef\xbb\xbf"
NUL = b"\0"


def home() -> Path:
    """The folder for scores, indexes and models: $SHAKETABLE_HOME, or ~/.cache/shaketable."""
    return Path(os.environ.get("SHAKETABLE_HOME") or Path.home() / ".cache" / "shaketable")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """A block that reads a file or a folder: what the system has against it is said in one sentence."""
    _refuse_nul(path)
    try:
        yield
    except FileNotFoundError as error:
        raise BadInput("there is no such file", path) from error
    except IsADirectoryError as error:
        raise BadInput("is a folder, a file was expected", path) from error
    except PermissionError as error:
        raise BadInput("may not be read (permission denied)", path) from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(f"is not a whole gzip file ({error})", path) from error
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror or error})", path) from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """A block that writes a file or a folder; a full disk is said in one sentence as well."""
    _refuse_nul(path)
    try:
        yield
    except OSError as error:
        raise BadInput(f"cannot be written ({error.strerror or error})", path) from error


def _refuse_nul(path: Path) -> None:
    if "\0" in str(path):
        raise BadInput(f"{quoted(str(path))} cannot be the name of a file")


def open_binary(path: Path) -> IO[bytes]:
    """Open for reading, through gzip where the name ends in .gz; a missing file is the user's error."""
    with reading(path):
        return io.BufferedReader(_Source(path), 1 << 17)


class _Source(io.RawIOBase):
    """The bytes of a file, unpacked if need be, as long as they keep the bounds."""

    def __init__(self, path: Path):
        self._path = path
        self._file = path.open("rb")
        self._stream: Any = self._file
        self._left: float = float("inf")
        if path.suffix == ".gz":
            self._stream = gzip.GzipFile(fileobj=self._file)
            self._left = self._bound = min(UNPACKED, max(SMALL, RATIO * os.fstat(self._file.fileno()).st_size))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        with reading(self._path):
            count: int = self._stream.readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise BadInput(
                f"unpacks to more than {self._bound:,} bytes, far more than text of its size does", self._path
            )
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def lines(path: Path, never: bytes = NUL) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is not blank, without its end. Bytes that may `never` occur are refused."""
    for first, rows in blocks(path, never):
        for at, row in enumerate(rows, first):
            if row and not row.isspace():
                yield at, row


def blocks(path: Path, never: bytes = NUL) -> Iterator[tuple[int, list[str]]]:
    """The same lines, blank ones too, many at a time: the number of the first, and their texts.

    What is done once for many lines costs little.
    """
    number = 1
    with open_binary(path) as raw:
        for block in _whole_lines(raw, path):
            if number == 1:
                block = block.removeprefix(BOM)
            if never in block if len(never) == 1 else len(block.translate(None, never)) < len(block):
                at = next(at for at, byte in enumerate(block) if byte in never)
                what = quoted(chr(block[at]))
                raise BadInput(f"has the control character {what}", path, number + block.count(b"\n", 0, at))
            try:
                text = block.decode()
            except UnicodeDecodeError as error:
                raise BadInput("is not UTF-8 text", path, number + block.count(b"\n", 0, error.start)) from error
            rows = text.split("\n")
            if "\r" in text:
                rows = [row.rstrip("\r") for row in rows]
                if (at := next((at for at, row in enumerate(rows) if "\r" in row), -1)) >= 0:
                    raise BadInput("has a carriage return in a line; lines end in \\n or \\r\\n", path, number + at)
            yield number, rows
            number += len(rows) - 1


def _whole_lines(raw: IO[bytes], path: Path) -> Iterator[bytes]:
    """Bytes up to the end of a line, about a million at a time."""
    begun: list[bytes] = []
    size = 0
    while chunk := raw.read(BLOCK):
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join([*begun, chunk[:end]])
            begun, size = [], 0
        begun.append(chunk[end:])
        size += len(chunk) - end
        if size > LONGEST:
            raise BadInput(f"has a line of more than {LONGEST:,} bytes", path)
    if size:
        yield b"".join(begun)


def columns(line: str, most: int = -1) -> list[str]:
    """The columns of a line, parted `most` times by white space of ASCII, as C parts them.

    >>> columns("q1  Q0\\td\\xa01"), columns("q1 Q0 d1", 1)
    (['q1', 'Q0', 'd\\xa01'], ['q1', 'Q0 d1'])

    `str.split` parts at any space there is, and would cut an id that has one of the others in it.
    """
    return line.split(None, most) if line.isascii() else [cell.decode() for cell in line.encode().split(None, most)]


def whole_number(text: str) -> int:
    """The whole number that a text is in our files: Python's `int` without its liberties.

    >>> whole_number("-12")
    -12

    Underscores, white space around it and the digits of other scripts are a ValueError.
    """
    if "_" in text or not text.isascii() or text.strip() is not text:
        raise ValueError(f"{quoted(text)} is not a whole number")
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{quoted(text)} is not a whole number") from None


def number(text: str) -> float:
    """The number that a text is in our files; as strict as `whole_number`.

    >>> number("-1e-3")
    -0.001
    """
    if "_" in text or not text.isascii() or text.strip() is not text:
        raise ValueError(f"{quoted(text)} is not a number")
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{quoted(text)} is not a number") from None


def numbers(texts: Sequence[str]) -> list[float]:
    """`number` of each text; the ValueError names the first that is none."""
    together = "".join(texts)
    if together.isascii() and not together.encode().translate(None, b"+-.0123456789Ee"):
        with suppress(ValueError):
            return list(map(float, texts))
    return list(map(number, texts))


def parsed(text: str, path: Path, line: int | None = None) -> Any:
    """The value that a text in JSON is.

    Escapes may spell half a character (text cut in an emoji does); no UTF-8 can hold that, so it becomes U+FFFD.
    """
    try:
        value = json.loads(text)
        if "\\u" in text and ("\\ud" in text or "\\uD" in text):
            whole = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
            value = json.loads(whole.decode("utf-16-le", "replace"))
    except json.JSONDecodeError as error:
        raise BadInput(f"is not JSON ({error.msg}, column {error.colno})", path, line) from error
    except RecursionError as error:
        raise BadInput("is not JSON that can be read (it is nested too deeply)", path, line) from error
    except ValueError as error:
        raise BadInput(f"is not JSON that can be read ({error})", path, line) from error
    return value


def read_json(path: Path) -> Any:
    """The value that a whole file in JSON is."""
    with open_binary(path) as raw:
        try:
            return parsed(raw.read().decode("utf-8-sig"), path)
        except UnicodeDecodeError as error:
            raise BadInput("is not UTF-8 text", path) from error


@contextmanager
def written_whole(path: Path) -> Iterator[TextIO]:
    """A text file that appears under its name only when the block ends well; gzipped if the name says so."""
    with written_whole_binary(path) as raw:
        stream = cast(IO[bytes], gzip.GzipFile(fileobj=raw, mode="wb", mtime=0)) if path.suffix == ".gz" else raw
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
        try:
            yield text
            text.flush()
        except UnicodeEncodeError as error:
            half = quoted(error.object[error.start])
            raise BadInput(f"cannot be written: UTF-8 has no place for {half}, half a character", path) from error
        if stream is raw:
            text.detach()
        else:
            text.close()


@contextmanager
def written_whole_binary(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that appears under its name only when the block ends well, and is on the disk by then."""
    with writing(path):
        if path.exists() and not path.is_file():
            raise BadInput(f"is {'a folder' if path.is_dir() else 'no ordinary file'}; name a file to write to", path)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:50]}.")
    try:
        with io.BufferedWriter(_Target(handle, path), 1 << 17) as raw:
            yield raw
            raw.flush()
            with writing(path):
                os.fsync(handle)  # a rename alone may leave an empty file after a power cut
        with writing(path):
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
            _sync(path.parent)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


class _Target(io.FileIO):
    """A file that says in one sentence that the disk is full."""

    def __init__(self, handle: int, path: Path):
        super().__init__(handle, "wb")
        self._path = path

    def write(self, data: ReadableBuffer, /) -> int:
        with writing(self._path):
            return super().write(data)


@contextmanager
def written_whole_folder(folder: Path) -> Iterator[Path]:
    """A new folder that appears under its name only when the block that fills it ends well, whole and on the disk."""
    with writing(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise BadInput("is there already; give the name of a new folder", folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name[:50]}."))
    try:
        yield draft
        with writing(folder):
            for path in (*draft.rglob("*"), draft):
                _sync(path)
            draft.chmod(0o755)
            if folder.exists():
                folder.rmdir()
            os.replace(draft, folder)
            _sync(folder.parent)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _sync(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk, where the system lets it be opened for that."""
    with suppress(PermissionError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

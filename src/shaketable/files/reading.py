"""Reading of text files, plain or gzipped, with limits on line length and unpacked size."""

from __future__ import annotations

import gzip
import io
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from shaketable.core.errors import BadInput, quote_value

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_LINE_BYTES = 64 << 20
MAX_UNPACKED_BYTES = 256 << 30
MAX_UNPACK_RATIO = 100
UNCHECKED_UNPACKED_BYTES = 64 << 20
READ_BLOCK_BYTES = 1 << 20
BOM = b"\xef\xbb\xbf"
NUL = b"\0"


@contextmanager
def explain_read_errors(path: Path) -> Iterator[None]:
    """Convert read errors in the block to `BadInput`."""
    _refuse_nul(path)
    try:
        yield
    except FileNotFoundError as error:
        raise BadInput("there is no such file", path) from error
    except IsADirectoryError as error:
        raise BadInput("is a folder; a file was expected", path) from error
    except PermissionError as error:
        raise BadInput("cannot be read (permission denied)", path) from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(f"is not a complete gzip file ({error})", path) from error
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror or error})", path) from error


def _refuse_nul(path: Path) -> None:
    if "\0" in str(path):
        raise BadInput(f"{quote_value(str(path))} is not a valid file name")


def open_binary(path: Path) -> IO[bytes]:
    """Open a file for reading, gunzipped if its name ends in .gz; a missing file raises `BadInput`."""
    with explain_read_errors(path):
        return io.BufferedReader(_Source(path), 1 << 17)


class _Source(io.RawIOBase):
    """The bytes of a file, unpacked if gzipped, up to the size limits."""

    def __init__(self, path: Path):
        self._path = path
        self._file = path.open("rb")
        self._stream: Any = self._file
        self._bytes_left: float = float("inf")
        if path.suffix == ".gz":
            self._stream = gzip.GzipFile(fileobj=self._file)
            self._bytes_left = self._max_bytes = min(
                MAX_UNPACKED_BYTES,
                max(UNCHECKED_UNPACKED_BYTES, MAX_UNPACK_RATIO * os.fstat(self._file.fileno()).st_size),
            )

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        with explain_read_errors(self._path):
            count: int = self._stream.readinto(buffer)
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise BadInput(
                f"unpacks to more than {self._max_bytes:,} bytes, far more than a compressed text of its size",
                self._path,
            )
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def read_lines(path: Path, forbidden_bytes: bytes = NUL) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each non-blank line, without its end; refuse `forbidden_bytes`."""
    for first, rows in read_line_blocks(path, forbidden_bytes):
        for at, row in enumerate(rows, first):
            if row and not row.isspace():
                yield at, row


def read_line_blocks(path: Path, forbidden_bytes: bytes = NUL) -> Iterator[tuple[int, list[str]]]:
    """Yield blocks of lines, including blank ones: the number of the first line, and the texts.

    Processing many lines at once is faster.
    """
    number = 1
    with open_binary(path) as raw:
        for block in _read_whole_lines(raw, path):
            if number == 1:
                block = block.removeprefix(BOM)
            if (
                forbidden_bytes in block
                if len(forbidden_bytes) == 1
                else len(block.translate(None, forbidden_bytes)) < len(block)
            ):
                at = next(at for at, byte in enumerate(block) if byte in forbidden_bytes)
                what = quote_value(chr(block[at]))
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


def _read_whole_lines(raw: IO[bytes], path: Path) -> Iterator[bytes]:
    """Yield whole lines as bytes, about 1 MB at a time."""
    begun: list[bytes] = []
    size = 0
    while chunk := raw.read(READ_BLOCK_BYTES):
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join([*begun, chunk[:end]])
            begun, size = [], 0
        begun.append(chunk[end:])
        size += len(chunk) - end
        if size > MAX_LINE_BYTES:
            raise BadInput(f"has a line of more than {MAX_LINE_BYTES:,} bytes", path)
    if size:
        yield b"".join(begun)


def split_columns(line: str, max_splits: int = -1) -> list[str]:
    """Split a line at ASCII white space, as C does, at most `max_splits` times, and return the columns.

    >>> split_columns("q1  Q0\\td\\xa01"), split_columns("q1 Q0 d1", 1)
    (['q1', 'Q0', 'd\\xa01'], ['q1', 'Q0 d1'])

    `str.split` would also split at Unicode spaces, which may be part of an id.
    """
    return (
        line.split(None, max_splits)
        if line.isascii()
        else [cell.decode() for cell in line.encode().split(None, max_splits)]
    )


def parse_int(text: str) -> int:
    """Parse a whole number, more strictly than `int`.

    >>> parse_int("-12")
    -12

    Underscores, surrounding white space and non-ASCII digits raise a ValueError.
    """
    if "_" in text or not text.isascii() or text.strip() is not text:
        raise ValueError(f"{quote_value(text)} is not a whole number")
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{quote_value(text)} is not a whole number") from None


def parse_float(text: str) -> float:
    """Parse a number, as strictly as `parse_int`.

    >>> parse_float("-1e-3")
    -0.001
    """
    if "_" in text or not text.isascii() or text.strip() is not text:
        raise ValueError(f"{quote_value(text)} is not a number")
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{quote_value(text)} is not a number") from None


def parse_floats(texts: Sequence[str]) -> list[float]:
    """Parse each text with `parse_float`; the ValueError names the first invalid text."""
    together = "".join(texts)
    if together.isascii() and not together.encode().translate(None, b"+-.0123456789Ee"):
        with suppress(ValueError):
            return list(map(float, texts))
    return list(map(parse_float, texts))


def parse_json(text: str, path: Path, line: int | None = None) -> Any:
    """Parse JSON.

    Escaped lone surrogates, as in text cut inside an emoji, cannot be encoded in UTF-8 and become U+FFFD.
    """
    try:
        value = json.loads(text)
        if "\\u" in text and ("\\ud" in text or "\\uD" in text):
            whole = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
            value = json.loads(whole.decode("utf-16-le", "replace"))
    except json.JSONDecodeError as error:
        raise BadInput(f"is not JSON ({error.msg}, column {error.colno})", path, line) from error
    except RecursionError as error:
        raise BadInput("is not valid JSON (it is nested too deeply)", path, line) from error
    except ValueError as error:
        raise BadInput(f"is not valid JSON ({error})", path, line) from error
    return value


def read_json(path: Path) -> Any:
    """Parse a JSON file."""
    with open_binary(path) as raw:
        try:
            return parse_json(raw.read().decode("utf-8-sig"), path)
        except UnicodeDecodeError as error:
            raise BadInput("is not UTF-8 text", path) from error

"""Files: where Shaketable keeps things, reading plain or gzipped text, writing whole or not at all, telling damage.

What a file may come to is bounded here, for every reader: a line has at most `LONGEST` bytes; what is gzipped unpacks
to at most `UNPACKED` bytes, and to at most `RATIO` times its own size where that is more than `SMALL` bytes. Text
becomes 4 to 10 times smaller; what becomes a thousand times smaller was made to fill a disk.
"""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

from shaketable.errors import BadInput, Damaged, quoted

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

LONGEST = 64 << 20
UNPACKED = 256 << 30
RATIO = 100
SMALL = 64 << 20

BLOCK = 1 << 20  # bytes read at a time
BOM = b"\xef\xbb\xbf"
NUL = b"\0"

try:
    import fcntl
except ImportError:  # Windows: no folder is locked there, so none is swept
    fcntl = None  # type: ignore[assignment]

STAGE = ".building-"
"""How the names of folders begin in which others are built."""
DRAFT = ".shaketable-"
"""What stands in the names of files that are being written."""
LOCK, SEAL = "lock", "checksum"
PATIENCE = 3600.0  # seconds before a folder without a lock counts as left behind


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
    """A binary file that appears under its name only when the block ends well, and is on the disk by then.

    Until then it is a draft beside it, locked; drafts of this file whose processes were killed are removed.
    """
    with writing(path):
        _refuse_folder(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep_drafts(path)
        handle, temporary = _drafted(path)
    try:
        with io.BufferedWriter(_Target(handle, path), 1 << 17) as raw:
            yield raw
            raw.flush()
            with writing(path):
                os.fsync(handle)  # a rename alone may leave an empty file after a power cut
        with writing(path):
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
            sync(path.parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def check_file(path: Path) -> None:
    """Refuse a file that cannot be written, before hours of work are done. Nothing is left there."""
    with writing(path):
        _refuse_folder(path)
        there = next(parent for parent in path.absolute().parents if parent.exists())
        with tempfile.TemporaryFile(dir=there):
            pass


def _refuse_folder(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise BadInput(f"is {'a folder' if path.is_dir() else 'no ordinary file'}; name a file to write to", path)


def _drafted(path: Path) -> tuple[int, Path]:
    """A new file beside the one that is to be written, with a lock that is held; should it be swept, another one."""
    while True:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=_draft(path))
        if _free(handle) is not False and _is_at(handle, Path(name)):
            return handle, Path(name)
        os.close(handle)


def _sweep_drafts(path: Path) -> None:
    """Remove the drafts of a file that nobody is writing: a lock ends with its process."""
    begin = _draft(path)
    with suppress(OSError):
        for entry in os.scandir(path.parent):
            if entry.name.startswith(begin) and entry.is_file(follow_symlinks=False):
                with open(entry.path, "rb+") as draft:
                    if _free(draft):
                        os.unlink(entry.path)


def _draft(path: Path) -> str:
    """How the names of the drafts of a file begin."""
    return f".{path.name[:50]}{DRAFT}"


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
    """A new folder that appears under its name, with what the block wrote into it, only when the block ends well."""
    with ExitStack() as stack:
        with writing(folder):
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise BadInput("is there already; give the name of a new folder", folder)
            folder.parent.mkdir(parents=True, exist_ok=True)
            draft = stack.enter_context(staged(folder.parent))
        yield draft
        with writing(folder):
            settle(draft)
            if folder.exists():
                folder.rmdir()
            os.replace(draft, folder)
            sync(folder.parent)


@contextmanager
def staged(parent: Path, *, home: bool = False) -> Iterator[Path]:
    """A new folder to write into, inside `parent` and under a name of its own, that goes when the block ends.

    Whoever has filled it renames it, or what is in it, to where it belongs. It is locked meanwhile, and what processes
    that were killed left there is removed first (see `sweep`).
    """
    sweep(parent, home=home)
    stage, lock = _claimed(parent)
    try:
        (stage / "new").mkdir()
        yield stage / "new"
    finally:
        _remove(stage)
        lock.close()


def _claimed(parent: Path) -> tuple[Path, IO[bytes]]:
    """A folder with a lock that is held; should somebody sweep it before that, another one."""
    while True:
        stage = Path(tempfile.mkdtemp(dir=parent, prefix=STAGE))
        with suppress(FileNotFoundError):
            try:
                lock = (stage / LOCK).open("wb")
            except OSError:
                with suppress(OSError):
                    stage.rmdir()
                raise
            if _free(lock) is not False and _is_at(lock, stage / LOCK):
                return stage, lock
            lock.close()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """A block that one process at a time is in: others wait. Where there are no locks, nobody does."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        if fcntl is not None:
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _free(lock: IO[bytes] | int) -> bool | None:
    """Take a lock: False if another process has it, None if there are no locks here, as on some network disks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_at(file: IO[bytes] | int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file if isinstance(file, int) else file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def sweep(parent: Path, *, home: bool = False) -> bool:
    """Remove what `staged` left behind in processes that were killed; False if one that lives is building there.

    A lock ends with its process, so a folder whose lock can be had has no owner. In a home, where all is ours, folders
    that have no lock go too, when they are old.
    """
    swept = [_swept(stage, home) for stage in parent.glob(f"{STAGE}*")]
    return all(swept)


def _swept(stage: Path, home: bool) -> bool:
    """Remove a folder that nobody owns; False if somebody does, or may."""
    with suppress(OSError):
        stage.rmdir()  # if it is empty: killed before it had a lock
        return True
    with suppress(OSError):
        if not (stage / LOCK).exists():
            old = home and time.time() - stage.stat().st_mtime > PATIENCE
            if old:
                _remove(stage)
            return old
        with (stage / LOCK).open("rb+") as lock:
            if _free(lock):
                _remove(stage)  # while the lock is held, so that nobody claims it
                return True
    return False


def _remove(stage: Path) -> None:
    """The lock goes last: whoever is killed on the way leaves something that can be swept."""
    with suppress(OSError):
        for path in stage.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != LOCK:
                path.unlink()
    shutil.rmtree(stage, ignore_errors=True)


def settle(folder: Path) -> None:
    """Wait until all that a folder holds is on the disk: renamed afterwards, it is whole even if the power fails."""

    with ThreadPoolExecutor(8) as pool:  # those who wait together are written together
        list(pool.map(sync, (*folder.rglob("*"), folder)))


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:  # a folder that may be written and not read
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some disks do not know this of folders
            raise
    finally:
        os.close(handle)


def digest(path: Path) -> str:
    """Names the content of a file."""
    with path.open("rb") as raw:
        return file_digest(raw, lambda: blake2b(digest_size=16)).hexdigest()


def digests(paths: Iterable[Path]) -> list[str]:
    """Names the content of files, in the order of their paths; one that cannot be read is refused in a sentence."""
    found = []
    for path in sorted(set(paths)):
        with reading(path):
            found.append(digest(path))
    return found


def sealed(about: Mapping[str, Any]) -> str:
    """An object as JSON, with a checksum of all that it says."""
    return json.dumps({**about, SEAL: _checksum(about)}, indent=1) + "\n"


def read_sealed(path: Path) -> dict[str, Any]:
    """The object that `sealed` made the text of; `Damaged` if the file says anything else by now."""
    try:
        about = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise Damaged("is missing", path) from error
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", path) from error
    except (ValueError, RecursionError) as error:
        raise Damaged(f"is not JSON that can be read ({error})", path) from error
    if not isinstance(about, dict) or about.pop(SEAL, None) != _checksum(about):
        raise Damaged("has no checksum, or another one than what it says: it was damaged, or changed by hand", path)
    return about


def _checksum(about: Mapping[str, Any]) -> str:
    plain = json.loads(json.dumps(about))  # tuples become lists and keys become strings, as they do on the disk
    return blake2b(json.dumps(plain, sort_keys=True).encode(), digest_size=16).hexdigest()

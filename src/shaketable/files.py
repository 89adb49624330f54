"""Files: where Shaketable keeps things, reading plain or gzipped text, writing whole or not at all, telling damage."""

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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import IO, Any, TextIO, cast

from shaketable.errors import BadInput, Damaged

try:
    import fcntl
except ImportError:  # Windows: no folder is locked there, so none is swept
    fcntl = None  # type: ignore[assignment]

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The disk, or the share of it that we may use, is full."""
STAGE = ".building-"
"""How the names of folders begin in which others are built."""
LOCK, SEAL = "lock", "checksum"
PATIENCE = 3600.0  # seconds before a folder without a lock counts as left behind


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
    """A binary file that appears under its name, and is on the disk, only when the block ends well."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise BadInput(f"cannot be written ({error.strerror})", path) from error
    try:
        with os.fdopen(handle, "wb") as raw:
            yield raw
            raw.flush()
            os.fsync(raw.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
        sync(path.parent)
    except BaseException as error:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno in FULL:
            raise BadInput(f"cannot be written ({error.strerror})", path) from error
        raise


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
            lock = (stage / LOCK).open("wb")
            if _free(lock) is not False and _is_at(lock, stage / LOCK):
                return stage, lock
            lock.close()


def _free(lock: IO[bytes]) -> bool | None:
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


def _is_at(file: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
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
    from concurrent.futures import ThreadPoolExecutor

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

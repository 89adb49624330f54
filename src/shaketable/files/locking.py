"""File locks that end with their process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows: folders are not locked, so none is removed as abandoned
    fcntl = None  # type: ignore[assignment]

LOCK_FILE = "lock"


@contextmanager
def exclusive_lock(folder: Path) -> Iterator[None]:
    """Run the block in one process at a time; where locks are not supported, processes do not wait."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        if fcntl is not None:
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def try_lock(lock: IO[bytes] | int) -> bool | None:
    """Take a lock and return True; False if another process has it, None if the disk does not support locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def is_open_at(file: IO[bytes] | int, path: Path) -> bool:
    """Return True if the open file is still the file at the path, which another process may have replaced."""
    try:
        return os.path.samestat(os.fstat(file if isinstance(file, int) else file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def describe_lock_holder(path: Path) -> str:
    """Return the process that holds a write lock on a file: "process 123 (suspended)", or "another process".

    Only Linux lists the locks of other processes.
    """
    with suppress(OSError, ValueError, IndexError):
        inode = path.stat().st_ino
        for line in Path("/proc/locks").read_text().splitlines():
            _, _, _, access, pid, file, *_ = line.split()
            if access == "WRITE" and int(file.rpartition(":")[2]) == inode and int(pid) > 0:
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
                return f"process {pid}" + (" (suspended)" if state in "Tt" else "")
    return "another process"

"""Counts each call of ours that changes the disk, and can break one of them.

Python's audit events tell of files that are opened, and of names that are made, changed and removed; what they do not
tell of, writing and `os.fsync`, is wrapped. A *site* is the innermost line of the package on the stack, and the call.
What SQLite does is its own affair, and is not seen here.

An injector stays for the life of its process, so it is meant for one that was forked for it.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import shaketable
from shaketable.files import atomic

PACKAGE = str(Path(shaketable.__file__).parent) + os.sep
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
NAMES = {
    "os.rename": "rename",
    "os.remove": "unlink",
    "os.mkdir": "mkdir",
    "os.rmdir": "rmdir",
    "os.chmod": "chmod",
    "os.link": "link",
    "os.symlink": "symlink",
    "os.truncate": "truncate",
    "os.utime": "utime",
}
SPACE_TAKING = ("open", "write", "fsync", "mkdir")
"""What a full disk refuses; names can still be changed and removed."""


@dataclass(frozen=True)
class Site:
    """A code location in the package that changes the disk."""

    file: str
    line: int
    call: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.call}"


@dataclass
class Injector:
    """Breaks the call number `at`, counted from 1, of those on paths below `below`; 0 breaks none.

    kill         the process ends there (SIGKILL); half of what was to be written is
    full         no space is left, there and for all later writes
    read-only    nothing can be changed, neither there nor later
    """

    below: Path
    mode: str = ""
    at: int = 0
    calls: list[Site] = field(default_factory=list)
    hasty: list[str] = field(default_factory=list)
    """Names that were given to files before their content was on the disk."""
    broken: Site | None = None
    _lock: Any = field(default_factory=Lock)
    _unsettled: set[tuple[int, int]] = field(default_factory=set)

    def install(self) -> None:
        self._prefix = str(self.below.resolve()) + os.sep
        self._write, self._fsync, self._open = io.FileIO.write, os.fsync, io.open
        kind = type("Faulty", (io.FileIO,), {"write": lambda file, data: self._write_half_first(file, data)})
        atomic._Target.__bases__ = (kind,)
        os.fsync = self._sync
        io.open = builtins.open = self._opener(kind)  # type: ignore[assignment]
        sys.addaudithook(self._heard)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & WRITING and self._is_ours(path):
                self._point("open", path)
        elif event in NAMES:
            if not (self._is_ours(arguments[0]) or _is_relative(event, arguments)):
                return
            if event == "os.rename":
                self._look(arguments[0], arguments[1])
            self._point(NAMES[event], arguments[0])

    def _is_ours(self, path: Any) -> bool:
        try:
            return os.path.abspath(os.fsdecode(path)).startswith(self._prefix)
        except TypeError:  # a descriptor: what was opened has been counted
            return False

    def _write_half_first(self, file: io.FileIO, data: Any) -> int:
        view = memoryview(data).cast("B")
        self._mark(file.fileno())
        self._point("write", "", lambda: self._write(file, view[: len(view) // 2]))
        return self._write(file, data)

    def _sync(self, handle: int) -> None:
        if os.readlink(f"/proc/self/fd/{handle}").startswith(self._prefix.rstrip(os.sep)):
            self._point("fsync", "")
        self._fsync(handle)
        about = os.fstat(handle)
        self._unsettled.discard((about.st_dev, about.st_ino))

    def _opener(self, kind: type[io.FileIO]) -> Any:
        def open_file(file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, errors: Any = None,
                      newline: Any = None, closefd: bool = True, opener: Any = None) -> Any:  # fmt: skip
            plain = mode.replace("b", "").replace("t", "")
            if plain not in ("w", "a", "x") or opener or not isinstance(file, str | os.PathLike) or not self._site(""):
                return self._open(file, mode, buffering, encoding, errors, newline, closefd, opener)
            if not self._is_ours(file):
                return self._open(file, mode, buffering, encoding, errors, newline, closefd, opener)
            raw = kind(os.fspath(file), plain)
            self._mark(raw.fileno())
            whole = raw if buffering == 0 else io.BufferedWriter(raw)
            return whole if "b" in mode else io.TextIOWrapper(whole, encoding, errors, newline)  # type: ignore[arg-type]

        return open_file

    def _mark(self, handle: int) -> None:
        about = os.fstat(handle)
        self._unsettled.add((about.st_dev, about.st_ino))

    def _look(self, source: Any, target: Any) -> None:
        """Record files that get their name before they are synced to the disk."""
        if Path(os.fsdecode(target)).name in ("old", "new") or ".building-" in str(target):
            return  # out of the way, not into place
        for path in _files(Path(os.fsdecode(source))):
            about = path.stat()
            if (about.st_dev, about.st_ino) in self._unsettled:
                self.hasty.append(f"{self._site('rename')} of {path.name}")

    def _point(self, call: str, path: Any, begin: Any = lambda: None) -> None:
        site = self._site(call)
        if site is None:
            return
        with self._lock:
            self.calls.append(site)
            number = len(self.calls)
            if number == self.at:
                self.broken = site
        if not self.at or number < self.at:
            return
        if number == self.at:
            begin()
            if self.mode == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
        code = {"full": errno.ENOSPC, "read-only": errno.EROFS}[self.mode]
        if number == self.at or (call in SPACE_TAKING if self.mode == "full" else call != "fsync"):
            raise OSError(code, os.strerror(code), os.fsdecode(path) if isinstance(path, str | bytes) else None)

    def _site(self, call: str) -> Site | None:
        """Return the innermost line of the package; None if the call does not come from the package."""
        frame: Any = sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith(PACKAGE):
                return Site(name.removeprefix(PACKAGE), frame.f_lineno, call)
            frame = frame.f_back
        return None


def _is_relative(event: str, arguments: tuple[Any, ...]) -> bool:
    """Is this a name in a folder that is open? `shutil.rmtree` works like that, on folders that were counted."""
    return event in ("os.remove", "os.rmdir") and arguments[-1] != -1


def _files(path: Path) -> Iterator[Path]:
    return (one for one in path.rglob("*") if one.is_file()) if path.is_dir() else iter((path,))

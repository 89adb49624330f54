"""Staging folders, in which other folders are built, and removal of those that killed processes left."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO

from shaketable.files.locking import LOCK_FILE, is_open_at, try_lock

STAGE_PREFIX = ".building-"
"""The prefix of the names of staging folders."""
ABANDONED_AFTER_S = 3600.0  # age at which a folder without a lock counts as abandoned


@contextmanager
def staging_folder(parent: Path, *, in_home: bool = False) -> Iterator[Path]:
    """Create a temporary folder inside `parent` and remove it when the block ends.

    The caller fills the folder and renames it, or its files, to the final path. It is locked in the block, and folders
    of killed processes are removed first (see `remove_abandoned_folders`).
    """
    remove_abandoned_folders(parent, in_home=in_home)
    stage, lock = _create_locked_stage(parent)
    try:
        (stage / "new").mkdir()
        yield stage / "new"
    finally:
        _remove_stage(stage)
        lock.close()


def _create_locked_stage(parent: Path) -> tuple[Path, IO[bytes]]:
    """Create a staging folder and lock it; retry if another process removes it before it is locked."""
    while True:
        stage = Path(tempfile.mkdtemp(dir=parent, prefix=STAGE_PREFIX))
        with suppress(FileNotFoundError):
            try:
                lock = (stage / LOCK_FILE).open("wb")
            except OSError:
                with suppress(OSError):
                    stage.rmdir()
                raise
            if try_lock(lock) is not False and is_open_at(lock, stage / LOCK_FILE):
                return stage, lock
            lock.close()


def remove_abandoned_folders(parent: Path, *, in_home: bool = False) -> bool:
    """Remove staging folders of killed processes; return False if a running process is building there.

    A lock ends with its process, so a folder whose lock is free has no owner. In a home folder, old folders without a
    lock are removed too.
    """
    swept = [_remove_if_abandoned(stage, in_home) for stage in parent.glob(f"{STAGE_PREFIX}*")]
    return all(swept)


def _remove_if_abandoned(stage: Path, in_home: bool) -> bool:
    """Remove a folder without an owner; return False if a process owns it or may own it."""
    with suppress(OSError):
        stage.rmdir()  # an empty folder: its process was killed before it created a lock
        return True
    with suppress(OSError):
        if not (stage / LOCK_FILE).exists():
            # a clock that was set back leaves folders from the future; these are as old as those of the past
            old = in_home and abs(time.time() - stage.stat().st_mtime) > ABANDONED_AFTER_S
            if old:
                _remove_stage(stage)
            return old
        with (stage / LOCK_FILE).open("rb+") as lock:
            if try_lock(lock):
                _remove_stage(stage)  # while holding the lock, so that no process claims it
                return True
    return False


def _remove_stage(stage: Path) -> None:
    """Remove a staging folder, its lock last, so that an interrupted removal can be resumed."""
    with suppress(OSError):
        for path in stage.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != LOCK_FILE:
                path.unlink()
    shutil.rmtree(stage, ignore_errors=True)


def set_aside(path: Path) -> Path:
    """Rename a damaged file or folder to a free name beside it, and return the new path."""
    aside = next(
        free for number in count(1) if not os.path.lexists(free := path.with_name(f"{path.name}.damaged-{number}"))
    )
    os.rename(path, aside)
    return aside


def sync_folder(folder: Path) -> None:
    """Wait until a folder's files are on disk, so that a later rename is safe against power failure."""
    with ThreadPoolExecutor(8) as pool:  # the disk combines concurrent syncs
        list(pool.map(sync_path, (*folder.rglob("*"), folder)))


def sync_path(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on disk."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:  # a folder that is writable but not readable
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems cannot sync folders
            raise
    finally:
        os.close(handle)

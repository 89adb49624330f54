"""Staging folders: build a folder under a temporary name, and remove those that killed processes left."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from shaketable.files.locking import LOCK_FILE, is_open_at, try_lock

if TYPE_CHECKING:
    pass

STAGE_PREFIX = ".building-"
"""How the names of folders begin in which others are built."""
ABANDONED_AFTER_S = 3600.0  # seconds before a folder without a lock counts as left behind


@contextmanager
def staging_folder(parent: Path, *, in_home: bool = False) -> Iterator[Path]:
    """A new folder to write into, inside `parent` and under a name of its own, that goes when the block ends.

    Whoever has filled it renames it, or what is in it, to where it belongs. It is locked meanwhile, and what processes
    that were killed left there is removed first (see `remove_abandoned_folders`).
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
    """A folder with a lock that is held; another one if it is swept before that."""
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
    """Remove what `staging_folder` left behind in processes that were killed; False if one that lives is building
    there.

    A lock ends with its process, so a folder whose lock can be had has no owner. In a home, where all is ours, folders
    that have no lock go too, when they are old.
    """
    swept = [_remove_if_abandoned(stage, in_home) for stage in parent.glob(f"{STAGE_PREFIX}*")]
    return all(swept)


def _remove_if_abandoned(stage: Path, in_home: bool) -> bool:
    """Remove a folder without an owner; False if a process owns it, or may."""
    with suppress(OSError):
        stage.rmdir()  # if it is empty: killed before it had a lock
        return True
    with suppress(OSError):
        if not (stage / LOCK_FILE).exists():
            old = in_home and time.time() - stage.stat().st_mtime > ABANDONED_AFTER_S
            if old:
                _remove_stage(stage)
            return old
        with (stage / LOCK_FILE).open("rb+") as lock:
            if try_lock(lock):
                _remove_stage(stage)  # while the lock is held, so that no process claims it
                return True
    return False


def _remove_stage(stage: Path) -> None:
    """Remove the lock last: a process that is killed on the way leaves something that can be swept."""
    with suppress(OSError):
        for path in stage.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != LOCK_FILE:
                path.unlink()
    shutil.rmtree(stage, ignore_errors=True)


def sync_folder(folder: Path) -> None:
    """Wait until all that a folder holds is on the disk: renamed afterwards, it is whole even if the power fails."""

    with ThreadPoolExecutor(8) as pool:  # those who wait together are written together
        list(pool.map(sync_path, (*folder.rglob("*"), folder)))


def sync_path(path: Path) -> None:
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

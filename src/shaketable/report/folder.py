"""The folder of an audit: all of its files are new or all are old, and what others put there stays.

    manifest.json    the names of the files that are ours, with their sizes and checksums

New files are written beside the old ones first. Then the old report and results go, the others are swapped, and the
manifest comes last: whatever stops the program, no new table ever stands beside an old report.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b, file_digest
from pathlib import Path, PurePosixPath
from typing import Any

from shaketable.errors import BadInput
from shaketable.files import written_whole

MANIFEST = "manifest.json"
STAGING = ".shaketable-new-"
FIRST_GONE = ("report.html", "results.json")
"""What an old audit is read by: it is removed before anything else changes."""


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written to, before hours of work go into filling it; nothing is left there."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise BadInput(f"cannot be written to ({error.strerror}); name another folder", folder) from error


def replace_files(folder: Path, fill: Callable[[Path], None]) -> None:
    """Put the files that `fill` writes into the folder, in the place of those that an earlier call put there."""
    check_writable(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob(f"{STAGING}*"):  # by a program that was killed
        shutil.rmtree(left, ignore_errors=True)
    try:
        staging = Path(tempfile.mkdtemp(dir=folder, prefix=STAGING))
        try:
            fill(staging)
            _swap(folder, staging)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise BadInput(f"cannot be written ({error.strerror or error})", folder) from error


def _swap(folder: Path, staging: Path) -> None:
    new = {path.relative_to(staging).as_posix(): path for path in sorted(staging.rglob("*")) if path.is_file()}
    ours = _ours(folder)
    if foreign := [name for name in new if (folder / name).exists() and name not in ours and name != MANIFEST]:
        raise BadInput(
            f"has a file {foreign[0]} that no audit wrote, and this one would replace it; name another folder", folder
        )
    about = {name: {"bytes": path.stat().st_size, "blake2b": _checksum(path)} for name, path in new.items()}
    for name in FIRST_GONE:
        if name in ours:
            (folder / name).unlink(missing_ok=True)
    for name in sorted(ours - new.keys()):
        (folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # a folder of ours that is empty now; one with other files stays
            (folder / name).parent.rmdir() if (folder / name).parent != folder else None
    for name in sorted(new, key=lambda name: (name in FIRST_GONE, name)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.replace(new[name], folder / name)
    with written_whole(folder / MANIFEST) as out:
        json.dump({"schema": "shaketable.manifest/1", "files": about}, out, indent=1)


def _ours(folder: Path) -> set[str]:
    """The files that an earlier audit wrote; names that would lead out of the folder are nobody's."""
    try:
        about: Any = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        names = {str(name) for name in about["files"]} if about["schema"] == "shaketable.manifest/1" else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    return {name for name in names if not PurePosixPath(name).is_absolute() and ".." not in PurePosixPath(name).parts}


def _checksum(path: Path) -> str:
    with path.open("rb") as raw:
        return file_digest(raw, lambda: blake2b(digest_size=16)).hexdigest()

"""The folder of an audit: all of its files are new or all are old, and what others put there stays.

    manifest.json    the names of the files that are ours, with their sizes and checksums

New files are written beside the old ones first. Then the manifest names old and new ones, the old ones go, report and
results first, the new ones come, report and results last, and the manifest names what is left: whatever stops the
program, no new file ever stands beside an old one, and the next audit knows which files are ours.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from hashlib import blake2b, file_digest
from pathlib import Path, PurePosixPath
from typing import Any

from shaketable.errors import BadInput
from shaketable.files import alone, sync, writing, written_whole

MANIFEST = "manifest.json"
SCHEMA = "shaketable.manifest/1"
STAGING = ".shaketable-new-"
READ_BY = ("report.html", "results.json")
"""What an audit is read by: it goes before all others and comes after them."""


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written to, or has a report of somebody else's, before hours of work are done.

    Nothing is left there.
    """
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise BadInput(f"cannot be written to ({error.strerror}); name another folder", folder) from error
    _refuse_foreign(folder, (MANIFEST, *READ_BY), _ours(folder))


def replace_files(folder: Path, fill: Callable[[Path], None]) -> None:
    """Put the files that `fill` writes into the folder, in the place of those that an earlier call put there.

    Of two that do so at the same time, one waits for the other.
    """
    check_writable(folder)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with alone(folder):
            for left in folder.glob(f"{STAGING}*"):  # by a program that was killed
                shutil.rmtree(left, ignore_errors=True)
            staging = Path(tempfile.mkdtemp(dir=folder, prefix=STAGING))
            try:
                (staging / "new").mkdir()
                fill(staging / "new")
                _swap(folder, staging)
            finally:
                shutil.rmtree(staging, ignore_errors=True)


def replace_one(folder: Path, name: str, text: str) -> None:
    """Put a new text in the place of one file that an audit wrote into the folder; the others stay."""
    with writing(folder), alone(folder):
        ours = _ours(folder)
        if name not in ours:
            raise BadInput(f"has no {name} that an audit wrote; name the folder of an audit", folder)
        about = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        _write_manifest(folder / MANIFEST, about | {name: {}})  # ours, whatever is in it if we are stopped here
        with written_whole(folder / name) as out:
            out.write(text)
        path = folder / name
        _write_manifest(folder / MANIFEST, about | {name: {"bytes": path.stat().st_size, "blake2b": _checksum(path)}})


def _swap(folder: Path, staging: Path) -> None:
    """All that needs room on the disk is written first; then only names change, and change back should one fail."""
    inside = {path.relative_to(staging / "new").as_posix(): path for path in sorted((staging / "new").rglob("*"))}
    new = {name: path for name, path in inside.items() if path.is_file()}
    ours = _ours(folder)
    _refuse_foreign(folder, new, ours)
    about = {name: {"bytes": path.stat().st_size, "blake2b": _checksum(path)} for name, path in new.items()}
    old = {name: staging / "old" / name for name in ours - {MANIFEST} if (folder / name).is_file()}
    for place in old.values():
        place.parent.mkdir(parents=True, exist_ok=True)
    _write_manifest(staging / "both.json", {name: {} for name in ours} | about)
    _write_manifest(staging / "last.json", about)
    with ExitStack() as undo:
        if MANIFEST in ours:
            shutil.copyfile(folder / MANIFEST, staging / "was.json")
            undo.callback(os.replace, staging / "was.json", folder / MANIFEST)
        else:
            undo.callback(os.unlink, folder / MANIFEST)
        os.replace(staging / "both.json", folder / MANIFEST)
        for name in sorted(old, key=_last):
            _moved(folder / name, old[name], undo)
        for name in sorted(new, key=_last, reverse=True):
            _moved(new[name], folder / name, undo)
        os.replace(staging / "last.json", folder / MANIFEST)
        undo.pop_all()
    for name in old:
        _remove_empty((folder / name).parent, folder)
    for place in {folder, *((folder / name).parent for name in new)}:
        sync(place)


def _last(name: str) -> tuple[bool, str]:
    """What an audit is read by comes last, and goes first."""
    return name not in READ_BY, name


def _moved(source: Path, target: Path, undo: ExitStack) -> None:
    if not target.parent.exists():
        target.parent.mkdir(parents=True)
        undo.callback(_remove_empty, target.parent)
    os.replace(source, target)
    undo.callback(os.replace, target, source)


def _remove_empty(place: Path, but: Path | None = None) -> None:
    """Remove a folder of ours that is empty now; one with other files stays."""
    if place != but:
        with suppress(OSError):
            place.rmdir()


def _write_manifest(path: Path, about: Mapping[str, Any]) -> None:
    with written_whole(path) as out:
        json.dump({"schema": SCHEMA, "files": dict(about)}, out, indent=1)


def _refuse_foreign(folder: Path, names: Iterable[str], ours: set[str]) -> None:
    """Refuse to put files where somebody else's are."""
    for name in names:
        places = [path.as_posix() for path in PurePosixPath(name).parents if path.name]
        taken = [place for place in places if (folder / place).is_file()]
        taken += [name] if (folder / name).exists() and name not in ours else []
        if taken:
            raise BadInput(
                f"has a file {taken[0]} that no audit wrote, and this one would replace it; name another folder", folder
            )


def _ours(folder: Path) -> set[str]:
    """The files that an earlier audit wrote; names that would lead out of the folder are nobody's."""
    try:
        about: Any = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        names = {MANIFEST, *map(str, about["files"])} if about["schema"] == SCHEMA else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    return {name for name in names if not PurePosixPath(name).is_absolute() and ".." not in PurePosixPath(name).parts}


def _checksum(path: Path) -> str:
    with path.open("rb") as raw:
        return file_digest(raw, lambda: blake2b(digest_size=16)).hexdigest()

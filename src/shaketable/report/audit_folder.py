"""The folder of an audit: replacing all files of an earlier audit at once, without touching other files.

    manifest.json    the names of the audit's files, with their sizes and checksums

New files are written to a staging folder first. Then the manifest lists old and new files, the old files are removed
(report and results first), the new files are moved in (report and results last), and the manifest lists the new files.
If the program stops at any point, the folder never mixes old and new files, and the manifest lists all files of audits.

A file belongs to an audit only if its content has the checksum of the manifest; all other files stay as they are.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from datetime import date
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any

from shaketable.core.errors import BadInput
from shaketable.files.atomic import atomic_write, explain_write_errors
from shaketable.files.checksums import digest_file
from shaketable.files.locking import exclusive_lock
from shaketable.files.staging import sync_path

MANIFEST_FILE = "manifest.json"
MANIFEST_SCHEMA = "shaketable.manifest/1"
STAGING_PREFIX = ".shaketable-new-"
EARLIER_KEY = "earlier blake2b"
"""The key of the checksum of a file that is being replaced."""
ENTRY_FILES = ("report.html", "results.json")
"""The main files; they are removed before all others and moved in after them."""


def check_writable(folder: Path) -> None:
    """Refuse a folder that is not writable or has a report that no audit wrote; leave the folder unchanged."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise BadInput(f"cannot be written to ({error.strerror}); name another folder", folder) from error
    records = _read_manifest(folder)
    listed = () if records is None else records
    _refuse_foreign(folder, (MANIFEST_FILE, *ENTRY_FILES, *listed), _list_own_files(folder))


def replace_files(folder: Path, fill: Callable[[Path], None], written: str = "") -> None:
    """Replace the files of an earlier call by the files that `fill` writes; the manifest keeps the date.

    Concurrent calls wait for each other.
    """
    check_writable(folder)
    with explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with exclusive_lock(folder):
            for left in folder.glob(f"{STAGING_PREFIX}*"):  # from a killed process
                shutil.rmtree(left, ignore_errors=True)
            staging = Path(tempfile.mkdtemp(dir=folder, prefix=STAGING_PREFIX))
            try:
                (staging / "new").mkdir()
                fill(staging / "new")
                _swap_files(folder, staging, written)
            finally:
                shutil.rmtree(staging, ignore_errors=True)


def replace_file(folder: Path, name: str, text: str) -> None:
    """Replace the text of one file that an audit wrote into the folder."""
    with explain_write_errors(folder), exclusive_lock(folder):
        records = _read_manifest(folder) or {}
        if name not in records:
            raise BadInput(f"has no {name} that an audit wrote; name the folder of an audit", folder)
        content = text.encode()
        record = {"bytes": len(content), "blake2b": _digest(content)}
        both = record | {EARLIER_KEY: records[name].get("blake2b", "")}
        # if the program stops between the two, the manifest lists either version of the file
        written = read_date(folder)
        _write_manifest(folder / MANIFEST_FILE, records | {name: both}, written)
        with atomic_write(folder / name) as out:
            out.write(text)
        _write_manifest(folder / MANIFEST_FILE, records | {name: record}, written)


def check_unedited(path: Path, content: bytes) -> None:
    """Raise `BadInput` unless the manifest beside a file of an audit has the checksum of its content."""
    records = _read_manifest(path.parent)
    if records is None:
        message = f"cannot be checked, because its folder has no {MANIFEST_FILE}; copy the whole folder of the audit"
    elif _digest(content) not in _list_checksums(records.get(path.name, {})):
        message = "was edited or damaged after the audit wrote it; run the audit again, into another folder"
    else:
        return
    raise BadInput(f"{message}, or use the file as it is with --allow-edited", path)


def _swap_files(folder: Path, staging: Path, written: str) -> None:
    """Swap old and new files: do all writes first, then rename, and undo all renames if one fails."""
    inside = {path.relative_to(staging / "new").as_posix(): path for path in sorted((staging / "new").rglob("*"))}
    new = {name: path for name, path in inside.items() if path.is_file()}
    ours = _list_own_files(folder)
    _refuse_foreign(folder, new, ours)
    about = {name: {"bytes": path.stat().st_size, "blake2b": digest_file(path)} for name, path in new.items()}
    records = _read_manifest(folder) or {}
    earlier = (ours - {MANIFEST_FILE}) | {name for name in records if not (folder / name).exists()}
    both = {name: dict(records[name]) for name in earlier}
    for name, record in about.items():
        both[name] = record | ({EARLIER_KEY: digest_file(folder / name)} if name in ours else {})
    old = {name: staging / "old" / name for name in ours - {MANIFEST_FILE} if (folder / name).is_file()}
    for path in old.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    _write_manifest(staging / "both.json", both, written)
    _write_manifest(staging / "last.json", about, written)
    with ExitStack() as undo:
        if MANIFEST_FILE in ours:
            shutil.copyfile(folder / MANIFEST_FILE, staging / "was.json")
            undo.callback(os.replace, staging / "was.json", folder / MANIFEST_FILE)
        else:
            undo.callback(os.unlink, folder / MANIFEST_FILE)
        os.replace(staging / "both.json", folder / MANIFEST_FILE)
        for name in sorted(old, key=_removal_key):
            _move(folder / name, old[name], undo)
        for name in sorted(new, key=_removal_key, reverse=True):
            _move(new[name], folder / name, undo)
        for name in earlier - new.keys():  # while the manifest names them: after a kill, the next audit removes them
            _remove_empty((folder / name).parent, folder)
        os.replace(staging / "last.json", folder / MANIFEST_FILE)
        undo.pop_all()
    for path in {folder, *((folder / name).parent for name in new)}:
        sync_path(path)


def _removal_key(name: str) -> tuple[bool, str]:
    """Return the key that sorts `ENTRY_FILES` first."""
    return name not in ENTRY_FILES, name


def _move(source: Path, target: Path, undo: ExitStack) -> None:
    if not target.parent.exists():
        target.parent.mkdir(parents=True)
        undo.callback(_remove_empty, target.parent)
    os.replace(source, target)
    undo.callback(_move_back, target, source)


def _move_back(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    os.replace(source, target)


def _remove_empty(folder: Path, except_folder: Path | None = None) -> None:
    """Remove the folder, and those above it up to `except_folder`, as far as they are empty."""
    with suppress(OSError):
        while folder != except_folder:
            folder.rmdir()
            if except_folder is None:
                break
            folder = folder.parent


def read_date(path: Path) -> str:
    """Return the date of the audit in a folder, or of that beside its results.json; "" if it is not known."""
    folder = path if path.is_dir() else path.parent
    try:
        about = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
        return date.fromisoformat(str(about["date"])).isoformat()
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


def _write_manifest(path: Path, about: Mapping[str, Any], written: str = "") -> None:
    with atomic_write(path) as out:
        dated = {"date": written} if written else {}
        json.dump({"schema": MANIFEST_SCHEMA, **dated, "files": dict(about)}, out, indent=1)


def _refuse_foreign(folder: Path, names: Iterable[str], ours: set[str]) -> None:
    """Refuse to overwrite files that no audit wrote."""
    for name in names:
        parents = [path.as_posix() for path in PurePosixPath(name).parents if path.name]
        taken = [parent for parent in parents if (folder / parent).is_file()]
        taken += [name] if (folder / name).exists() and name not in ours else []
        if taken:
            raise BadInput(
                f"has a file {taken[0]} that no audit wrote, or that was changed since; move it or name another folder",
                folder,
            )


def _list_own_files(folder: Path) -> set[str]:
    """Return the manifest, if there is one, and the files that are as an earlier audit wrote them."""
    records = _read_manifest(folder)
    if records is None:
        return set()
    own = {MANIFEST_FILE}
    for name, record in records.items():
        with suppress(OSError):
            if digest_file(folder / name) in _list_checksums(record):
                own.add(name)
    return own


def _read_manifest(folder: Path) -> dict[str, dict[str, Any]] | None:
    """Return the record of each file in the manifest, without names that point outside the folder; None if none."""
    try:
        about: Any = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
        records = {str(name): dict(record) for name, record in about["files"].items()}
        known = about["schema"] == MANIFEST_SCHEMA
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if not known:
        return None
    inside = folder.resolve()
    return {name: one for name, one in records.items() if (inside / name).resolve().is_relative_to(inside)}


def _list_checksums(record: Mapping[str, Any]) -> set[str]:
    """Return the checksums that a file may have: that of the new file and, while files are replaced, of the old one."""
    return {str(record[key]) for key in ("blake2b", EARLIER_KEY) if record.get(key)}


def _digest(content: bytes) -> str:
    """Return the digest that `digest_file` returns for a file of this content."""
    return blake2b(content, digest_size=16).hexdigest()

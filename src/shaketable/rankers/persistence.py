"""Reading and writing of model folders, for linear models, trees and neural models.

    model.json                  the model's metadata, and the size and checksum of each of its files
    files-0123456789abcdef/     those files; the name is a digest of their content
    training/                   the state for resuming an interrupted training; see `training.loop`

model.json is written last and atomically: after a crash the folder holds the old model or the new one, never a mixture.
Only files that a model.json of Shaketable lists are replaced or removed; other files in the folder stay.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any

from shaketable.core.documents import fingerprint
from shaketable.core.errors import BadInput, Damaged
from shaketable.files.checksums import digest_file, read_sealed_json, seal_json
from shaketable.files.locking import LOCK_FILE
from shaketable.files.staging import STAGE_PREFIX, remove_abandoned_folders, staging_folder, sync_folder, sync_path

SCHEMA = "shaketable.model/2"
MODEL_FILE, TRAINING_FOLDER, STATE_FILE = "model.json", "training", "state.safetensors"
FILES_FOLDER_PATTERN = re.compile(r"files-([0-9a-f]{16})(-[0-9]+)?")
TRAINING_FILE_PATTERN = re.compile(r"(state|best-[0-9]+)\.safetensors|\.(state|best-[0-9]+)\.safetensors\..*")
MAX_MODEL_FILE_BYTES = 1 << 28
REMEDY = "train the model again, or copy it again"

FileWriter = Callable[[Path], None]
"""Writes the files of a model into an existing empty folder."""


@dataclass(frozen=True)
class StoredModel:
    """The content of a model.json."""

    folder: Path
    metadata: Mapping[str, Any]
    """The part that the model type defines."""
    files_folder_name: str
    """The name of the folder of the files; "" if the model has none."""
    file_records: Mapping[str, Mapping[str, Any]]
    """File name -> size and checksum."""

    @property
    def files_folder(self) -> Path:
        """The path of the folder of the files."""
        return self.folder / self.files_folder_name

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the content of all files."""
        return _fingerprint_files(self.file_records)

    def verify(self) -> None:
        """Compare every file with its checksum, and raise an error if there are other files."""
        for name, told in self.file_records.items():
            path = self.files_folder / name
            try:
                same = path.stat().st_size == told["size"] and digest_file(path) == told["blake2b"]
            except OSError as error:
                raise Damaged(f"cannot be read ({error.strerror}); {REMEDY}", path) from error
            if not same:
                raise Damaged(f"is damaged, or was changed by hand; {REMEDY}", path)
        if self.files_folder_name and (strangers := _list_files(self.files_folder) - self.file_records.keys()):
            raise Damaged("is not a file of this model; remove it", self.files_folder / min(strangers))


def read_manifest(folder: str | Path) -> StoredModel:
    """Return the model.json of a folder without checking the files."""
    folder = Path(folder)
    path = folder / MODEL_FILE
    if not path.is_file():
        raise BadInput(f"has no saved model: there is no {MODEL_FILE}", folder)
    if path.stat().st_size > MAX_MODEL_FILE_BYTES:
        raise BadInput(f"has more than {MAX_MODEL_FILE_BYTES:,} bytes, so it is not the description of a model", path)
    try:
        about = read_sealed_json(path)
    except Damaged as error:
        raise Damaged(f"{error}; {REMEDY}") from error
    if about.pop("schema", None) != SCHEMA or not isinstance(about.get("kind"), str):
        raise BadInput(f"is not a saved model of this version ({SCHEMA}); train the model again", path)
    place, listed = about.pop("place", None), about.pop("files", None)
    if not _is_valid_listing(place, listed):
        raise BadInput("has an invalid list of files", path)
    return StoredModel(folder, about, place, listed)


def read_verified(folder: str | Path) -> StoredModel:
    """Return the model.json of a folder after checking every file."""
    stored = read_manifest(folder)
    stored.verify()
    return stored


def refuse_taken(folder: str | Path, *, overwrite: bool = False) -> None:
    """Raise an error if the folder holds a model that may not be overwritten, or foreign files.

    Leftovers of an earlier attempt are accepted.
    """
    folder = Path(folder)
    if not folder.exists():
        return
    if not folder.is_dir():
        raise BadInput("is a file; name a folder for the model", folder)
    if not os.path.lexists(folder / MODEL_FILE):
        if strangers := [entry.name for entry in folder.iterdir() if not _is_leftover(entry)]:
            raise BadInput(f"exists and is not a model (it has {min(strangers)}); name a new folder", folder)
        return
    try:
        read_manifest(folder)
    except BadInput as error:
        message = f"exists and is not a model that can be replaced ({error}); name a new folder"
        raise BadInput(message, folder) from error
    if not overwrite:
        raise BadInput("already has a model; name another folder, or use --overwrite", folder)


def write_model(
    folder: str | Path, metadata: Mapping[str, Any], write_files: FileWriter | None = None, *, overwrite: bool = False
) -> None:
    """Write a model atomically: its metadata, and the files that `write_files` creates."""
    folder = Path(folder)
    refuse_taken(folder, overwrite=overwrite)
    fresh = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _replace_model(folder, metadata, write_files, overwrite)
    except OSError as error:
        raise BadInput(f"cannot be written ({error.strerror})", folder) from error
    finally:
        if fresh and not os.path.lexists(folder / MODEL_FILE):
            with suppress(OSError):
                folder.rmdir()  # fails if other files are there


def _replace_model(folder: Path, metadata: Mapping[str, Any], write_files: FileWriter | None, overwrite: bool) -> None:
    remove_leftovers(folder)
    with staging_folder(folder) as new:
        stage = new.parent
        if write_files:
            write_files(new)
        listed = {name: _describe_file(new / name) for name in sorted(_list_files(new))}
        place = _choose_free_name(folder, listed) if listed else ""
        said = {"schema": SCHEMA, **metadata, "place": place, "files": listed}
        (stage / MODEL_FILE).write_text(seal_json(said), encoding="utf-8")
        sync_folder(stage)
        refuse_taken(folder, overwrite=overwrite)  # another process may have written a model meanwhile
        old = read_manifest(folder) if (folder / MODEL_FILE).exists() else None
        if place:
            os.rename(new, folder / place)
        try:
            os.replace(stage / MODEL_FILE, folder / MODEL_FILE)
        except BaseException:
            if place:
                os.rename(folder / place, new)
            raise
        sync_path(folder)
        if old:
            _remove_replaced_files(old, stage)


def _remove_replaced_files(old: StoredModel, stage: Path) -> None:
    """Remove the files of a replaced model, and no others."""
    with suppress(OSError):
        if not old.files_folder_name or old.files_folder.is_symlink():
            return
        if _list_files(old.files_folder, hidden=True) == old.file_records.keys():
            os.rename(old.files_folder, stage / "old")  # atomic; removed with the staging folder
            return
        for name in old.file_records:
            (old.files_folder / name).unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Remove the leftovers of killed writers, unless a live writer may need them."""
    if not remove_abandoned_folders(folder):
        return
    used = read_manifest(folder).files_folder_name if (folder / MODEL_FILE).exists() else ""
    for entry in folder.iterdir():
        if entry.name != used and _is_files_folder(entry):
            shutil.rmtree(entry, ignore_errors=True)


def _is_leftover(entry: Path) -> bool:
    """Return True if an interrupted write or training left this entry."""
    if entry.is_symlink() or not entry.is_dir():
        return False
    if entry.name == TRAINING_FOLDER:
        return all(TRAINING_FILE_PATTERN.fullmatch(path.name) for path in entry.iterdir())
    if entry.name.startswith(STAGE_PREFIX):
        return (entry / LOCK_FILE).exists() or not any(entry.iterdir())
    return _is_files_folder(entry)


def _is_files_folder(entry: Path) -> bool:
    """Return True if this is a folder of a model's files: its name is a digest of its content."""
    name = FILES_FOLDER_PATTERN.fullmatch(entry.name)
    if not name or entry.is_symlink() or not entry.is_dir():
        return False
    with suppress(OSError):
        return (
            _fingerprint_files({file: _describe_file(entry / file) for file in _list_files(entry, hidden=True)})
            == name[1]
        )
    return False


def _choose_free_name(folder: Path, listed: Mapping[str, Mapping[str, Any]]) -> str:
    name = f"files-{_fingerprint_files(listed)}"
    names = (name if number == 0 else f"{name}-{number}" for number in count())
    return next(name for name in names if not os.path.lexists(folder / name))


def _fingerprint_files(listed: Mapping[str, Mapping[str, Any]]) -> str:
    return fingerprint(sorted((name, told["size"], told["blake2b"]) for name, told in listed.items()))[:16]


def _describe_file(path: Path) -> dict[str, Any]:
    return {"size": path.stat().st_size, "blake2b": digest_file(path)}


def _list_files(folder: Path, hidden: bool = False) -> set[str]:
    """Return the names of all files in a folder and below, without hidden files unless `hidden`."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir())
    return {path.as_posix() for path in paths if hidden or not path.name.startswith(".")}


def _is_valid_listing(place: object, listed: object) -> bool:
    """Return True if the folder name and the file names are valid and stay inside the model folder."""
    if not isinstance(place, str) or not isinstance(listed, dict):
        return False
    plain = all(
        PurePosixPath(name).as_posix() == name and not {"..", "/"} & set(PurePosixPath(name).parts) and name != "."
        and isinstance(told, dict) and told.keys() == {"size", "blake2b"}
        for name, told in listed.items()
    )  # fmt: skip
    return plain and bool(FILES_FOLDER_PATTERN.fullmatch(place)) if listed else place == ""

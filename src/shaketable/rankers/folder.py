"""Model folders: the one place that writes and reads them, for linear models, trees and nets alike.

    model.json                  what the model is, and the size and checksum of each of its files
    files-0123456789abcdef/     those files; their content decides the name
    training/                   what a training needs to go on after it was cut off; see `learners.loop`

model.json comes last and in one stroke: whoever is stopped on the way leaves the model that was there before, or the
new one. Nothing is replaced or removed but what a model.json of ours lists; whatever else lies in the folder stays.
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

from shaketable.errors import BadInput, Damaged
from shaketable.files import LOCK, STAGE, digest, read_sealed, sealed, settle, staged, sweep, sync
from shaketable.types import fingerprint

SCHEMA = "shaketable.model/2"
MODEL, WORK, STATE = "model.json", "training", "state.safetensors"
FILES = re.compile(r"files-([0-9a-f]{16})(-[0-9]+)?")
WORK_FILES = re.compile(r"(state|best-[0-9]+)\.safetensors|\.(state|best-[0-9]+)\.safetensors\..*")
REMEDY = "train the model again, or copy it again"

Fill = Callable[[Path], None]
"""Writes the files of a model into a folder that is there and empty."""


@dataclass(frozen=True)
class Stored:
    """What a model.json says."""

    folder: Path
    about: Mapping[str, Any]
    """The owner's part of it."""
    place: str
    """The folder of the files; "" if the model has none."""
    listed: Mapping[str, Mapping[str, Any]]
    """The files, by their names in that folder."""

    @property
    def files(self) -> Path:
        """Where the files are."""
        return self.folder / self.place

    @cached_property
    def fingerprint(self) -> str:
        """Names the content of all files."""
        return _named(self.listed)

    def check(self) -> None:
        """Compare every file with what was written, and see that no other has come among them."""
        for name, told in self.listed.items():
            path = self.files / name
            try:
                same = path.stat().st_size == told["size"] and digest(path) == told["blake2b"]
            except OSError as error:
                raise Damaged(f"cannot be read ({error.strerror}); {REMEDY}", path) from error
            if not same:
                raise Damaged(f"is not as it was written: it was damaged, or changed by hand; {REMEDY}", path)
        if self.place and (strangers := _inside(self.files) - self.listed.keys()):
            raise Damaged("is not among the files that were written; remove it", self.files / min(strangers))


def read(folder: str | Path) -> Stored:
    """What the model.json of a folder says; its files are not looked at."""
    folder = Path(folder)
    path = folder / MODEL
    if not path.is_file():
        raise BadInput(f"holds no saved model: it has no {MODEL}", folder)
    try:
        about = read_sealed(path)
    except Damaged as error:
        raise Damaged(f"{error}; {REMEDY}") from error
    if about.pop("schema", None) != SCHEMA or not isinstance(about.get("kind"), str):
        raise BadInput(f"is no saved model of this version ({SCHEMA}); train the model again", path)
    place, listed = about.pop("place", None), about.pop("files", None)
    if not _is_list(place, listed):
        raise BadInput("has a list of files that cannot be", path)
    return Stored(folder, about, place, listed)


def opened(folder: str | Path) -> Stored:
    """What a folder says, every file of it checked."""
    stored = read(folder)
    stored.check()
    return stored


def refuse_taken(folder: str | Path, *, overwrite: bool = False) -> None:
    """Refuse a folder where no model can be written: one that holds a model, unless it may be overwritten, or others.

    What an earlier attempt left there is no hindrance.
    """
    folder = Path(folder)
    if not folder.exists():
        return
    if not folder.is_dir():
        raise BadInput("is a file; name a folder for the model", folder)
    if not os.path.lexists(folder / MODEL):
        if strangers := [entry.name for entry in folder.iterdir() if not _is_leftover(entry)]:
            raise BadInput(f"is there already and is no model (it has {min(strangers)}); name a new folder", folder)
        return
    try:
        read(folder)
    except BadInput as error:
        message = f"is there already, and is no model that could be replaced ({error}); name a new folder"
        raise BadInput(message, folder) from error
    if not overwrite:
        raise BadInput("holds a model already; name another folder, or ask for it to be overwritten", folder)


def write(folder: str | Path, about: Mapping[str, Any], fill: Fill | None = None, *, overwrite: bool = False) -> None:
    """Write a model, whole or not at all: what it is, and the files that `fill` makes."""
    folder = Path(folder)
    refuse_taken(folder, overwrite=overwrite)
    fresh = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder, about, fill, overwrite)
    except OSError as error:
        raise BadInput(f"cannot be written ({error.strerror})", folder) from error
    finally:
        if fresh and not os.path.lexists(folder / MODEL):
            with suppress(OSError):
                folder.rmdir()  # unless somebody has put something there


def _replace(folder: Path, about: Mapping[str, Any], fill: Fill | None, overwrite: bool) -> None:
    tidy(folder)
    with staged(folder) as new:
        stage = new.parent
        if fill:
            fill(new)
        listed = {name: _told(new / name) for name in sorted(_inside(new))}
        place = _free_name(folder, listed) if listed else ""
        said = {"schema": SCHEMA, **about, "place": place, "files": listed}
        (stage / MODEL).write_text(sealed(said), encoding="utf-8")
        settle(stage)
        refuse_taken(folder, overwrite=overwrite)  # somebody may have been faster
        old = read(folder) if (folder / MODEL).exists() else None
        if place:
            os.rename(new, folder / place)
        try:
            os.replace(stage / MODEL, folder / MODEL)
        except BaseException:
            if place:
                os.rename(folder / place, new)
            raise
        sync(folder)
        if old:
            _retire(old, stage)


def _retire(old: Stored, stage: Path) -> None:
    """Remove the files of a model that was replaced, and nothing beside them."""
    with suppress(OSError):
        if not old.place or old.files.is_symlink():
            return
        if _inside(old.files, hidden=True) == old.listed.keys():
            os.rename(old.files, stage / "old")  # at one stroke; it goes with the stage
            return
        for name in old.listed:
            (old.files / name).unlink(missing_ok=True)


def tidy(folder: Path) -> None:
    """Remove what writers that were killed left behind, unless one that lives may need it."""
    if not sweep(folder):
        return
    used = read(folder).place if (folder / MODEL).exists() else ""
    for entry in folder.iterdir():
        if entry.name != used and _is_written(entry):
            shutil.rmtree(entry, ignore_errors=True)


def _is_leftover(entry: Path) -> bool:
    """Is this what a write or a training of ours leaves when it is stopped?"""
    if entry.is_symlink() or not entry.is_dir():
        return False
    if entry.name == WORK:
        return all(WORK_FILES.fullmatch(path.name) for path in entry.iterdir())
    if entry.name.startswith(STAGE):
        return (entry / LOCK).exists() or not any(entry.iterdir())
    return _is_written(entry)


def _is_written(entry: Path) -> bool:
    """Is this a folder of a model's files? Its name says what is in it, so nobody else can have made it."""
    name = FILES.fullmatch(entry.name)
    if not name or entry.is_symlink() or not entry.is_dir():
        return False
    with suppress(OSError):
        return _named({file: _told(entry / file) for file in _inside(entry, hidden=True)}) == name[1]
    return False


def _free_name(folder: Path, listed: Mapping[str, Mapping[str, Any]]) -> str:
    name = f"files-{_named(listed)}"
    names = (name if number == 0 else f"{name}-{number}" for number in count())
    return next(name for name in names if not os.path.lexists(folder / name))


def _named(listed: Mapping[str, Mapping[str, Any]]) -> str:
    return fingerprint(sorted((name, told["size"], told["blake2b"]) for name, told in listed.items()))[:16]


def _told(path: Path) -> dict[str, Any]:
    return {"size": path.stat().st_size, "blake2b": digest(path)}


def _inside(folder: Path, hidden: bool = False) -> set[str]:
    """The names of all files in a folder and below; those that begin with a dot are the system's."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir())
    return {path.as_posix() for path in paths if hidden or not path.name.startswith(".")}


def _is_list(place: object, listed: object) -> bool:
    """Are these names of files of ours, and not of others elsewhere?"""
    if not isinstance(place, str) or not isinstance(listed, dict):
        return False
    plain = all(
        PurePosixPath(name).as_posix() == name and not {"..", "/"} & set(PurePosixPath(name).parts) and name != "."
        and isinstance(told, dict) and told.keys() == {"size", "blake2b"}
        for name, told in listed.items()
    )  # fmt: skip
    return plain and bool(FILES.fullmatch(place)) if listed else place == ""

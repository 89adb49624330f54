"""A collection on its way to machines that do not share our disk: its files in pieces, written there once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

from shaketable.core.home import home_folder
from shaketable.executors.base import RemoteSpec
from shaketable.files.atomic import atomic_write_binary

PIECE_BYTES = 64 << 20
"""Bytes of a file that travel together; a worker holds one piece at a time."""
BUNDLED_SUFFIXES = (".jsonl", ".tsv", ".csv", ".txt", ".gz", ".json", ".parquet", ".run", ".safetensors", ".trees")
"""What belongs to a collection or a model: a folder may hold other things too, and those stay here."""

Fetch = Callable[[Any], bytes]


@dataclass(frozen=True)
class FileBundle:
    """The files of a path: for each its name below the path ("" for the path itself) and its pieces."""

    path: str
    fingerprint: str
    files: Mapping[str, Sequence[Any]]

    def write_local(self, fetch: Fetch) -> str:
        """The path on this machine: itself where it is seen, otherwise a copy below the home folder, made once."""
        if Path(self.path).exists():
            return self.path
        copy = home_folder() / "shipped" / self.fingerprint / Path(self.path).name
        for name, pieces in self.files.items():
            target = copy / name if name else copy
            if not target.exists():
                with atomic_write_binary(target) as out:
                    out.writelines(fetch(piece) for piece in pieces)
        return str(copy)


def bundle_files(path: str, fingerprint: str, put: Callable[[bytes], Any]) -> FileBundle:
    """The files of a path, each piece handed to `put`."""
    root = Path(path)
    names = [""] if root.is_file() else sorted(str(file.relative_to(root)) for file in _find_files(root))
    return FileBundle(path, fingerprint, {name: [put(piece) for piece in _read_pieces(root / name)] for name in names})


def _find_files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.is_file() and file.name.endswith(BUNDLED_SUFFIXES))


def _read_pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as raw:
        while piece := raw.read(PIECE_BYTES):
            yield piece


def localize(remote_spec: RemoteSpec, bundles: Sequence[FileBundle], fetch: Fetch) -> RemoteSpec:
    """The origin as this machine can open it."""
    collection, model = remote_spec.collection, remote_spec.model
    for one in bundles:
        place = one.write_local(fetch)
        model = model.replace(one.path, place)
        for told in (one.path, quote_plus(one.path, safe="/")):  # as it stands before and after the question mark
            collection = collection.replace(told, place)
    return replace(remote_spec, collection=collection, model=model)

"""Transfer of a collection's files to machines without a shared disk; each machine stores one copy."""

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
"""Bytes of a file per piece; a worker holds one piece at a time."""
BUNDLED_SUFFIXES = (".jsonl", ".tsv", ".csv", ".txt", ".gz", ".json", ".parquet", ".run", ".safetensors", ".trees")
"""File types of collections and models; other files in a folder are not sent."""

Fetch = Callable[[Any], bytes]


@dataclass(frozen=True)
class FileBundle:
    """The files of a path: relative name ("" for the path itself) -> pieces."""

    path: str
    fingerprint: str
    files: Mapping[str, Sequence[Any]]

    def write_local(self, fetch: Fetch) -> str:
        """Return the path on this machine: the original if it exists, or one copy in the home folder."""
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
    """Return the files of a path; `put` stores each piece."""
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
    """Return the spec with paths of this machine."""
    collection, model = remote_spec.collection, remote_spec.model
    for one in bundles:
        place = one.write_local(fetch)
        model = model.replace(one.path, place)
        for told in (one.path, quote_plus(one.path, safe="/")):  # options after the question mark are URL-encoded
            collection = collection.replace(told, place)
    return replace(remote_spec, collection=collection, model=model)

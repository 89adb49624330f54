"""A collection on its way to machines that do not share our disk: its files in pieces, written there once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

from shaketable.files import home, written_whole_binary
from shaketable.score.executor import Origin

PIECE = 64 << 20
"""Bytes of a file that travel together; a worker holds one piece at a time."""
ENDINGS = (".jsonl", ".tsv", ".csv", ".txt", ".gz", ".json", ".parquet", ".run", ".safetensors", ".trees")
"""What belongs to a collection or a model: a folder may hold other things too, and those stay here."""

Fetch = Callable[[Any], bytes]


@dataclass(frozen=True)
class Shipment:
    """The files of a path: for each its name below the path ("" for the path itself) and its pieces."""

    path: str
    mark: str
    files: Mapping[str, Sequence[Any]]

    def here(self, fetch: Fetch) -> str:
        """The path on this machine: itself where it is seen, otherwise a copy below the home folder, made once."""
        if Path(self.path).exists():
            return self.path
        copy = home() / "shipped" / self.mark / Path(self.path).name
        for name, pieces in self.files.items():
            target = copy / name if name else copy
            if not target.exists():
                with written_whole_binary(target) as out:
                    out.writelines(fetch(piece) for piece in pieces)
        return str(copy)


def shipped(path: str, mark: str, put: Callable[[bytes], Any]) -> Shipment:
    """The files of a path, each piece handed to `put`."""
    root = Path(path)
    names = [""] if root.is_file() else sorted(str(file.relative_to(root)) for file in _files(root))
    return Shipment(path, mark, {name: [put(piece) for piece in _pieces(root / name)] for name in names})


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.is_file() and file.name.endswith(ENDINGS))


def _pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as raw:
        while piece := raw.read(PIECE):
            yield piece


def arrived(origin: Origin, shipments: Sequence[Shipment], fetch: Fetch) -> Origin:
    """The origin as this machine can open it."""
    collection, model = origin.collection, origin.model
    for one in shipments:
        place = one.here(fetch)
        model = model.replace(one.path, place)
        for told in (one.path, quote_plus(one.path, safe="/")):  # as it stands before and after the question mark
            collection = collection.replace(told, place)
    return replace(origin, collection=collection, model=model)

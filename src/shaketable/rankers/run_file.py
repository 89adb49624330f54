"""A TREC run file as a ranker: recorded scores, for tasks that need no new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shaketable.core.documents import Collection, Run, Scores, Slate
from shaketable.core.errors import BadInput, RankerFailed
from shaketable.core.protocols import Ranker
from shaketable.datasets.trec import read_run, write_run
from shaketable.rankers import persistence as folders

KIND = "recorded"
RUN_FILE = "lists.run"
"""The run file in a folder of recorded lists."""


@dataclass(frozen=True)
class RunFile:
    """A TREC run file, plain or gzipped: measured as it is; it cannot score a changed text.

    It is a `core.protocols.RecordedRanker`: a task that needs no new scores uses the recorded lists.
    """

    path: str = field(metadata={"says": "The run file, in the format of TREC.", "example": "bm25.run"})

    def open(self, collection: Collection) -> Ranker:
        """Read the file. A run without any query of the collection is an error, not a very bad ranker."""
        return _make_recorded(read_run(Path(self.path)), self.path, collection)


def save(run: Run, folder: str | Path, card: Mapping[str, Any], *, overwrite: bool = False) -> None:
    """Write lists into a folder whose path can be used as a ranker."""
    about = {"kind": KIND, "card": dict(card)}
    folders.write_model(
        folder, about, lambda new: write_run(run, new / RUN_FILE, tag="out-of-fold"), overwrite=overwrite
    )


def open_folder(folder: str | Path, collection: Collection) -> Ranker:
    """Return the recorded lists of a folder, such as those of a cross-validated training."""
    return _make_recorded(read_run(folders.read_verified(folder).files_folder / RUN_FILE), str(folder), collection)


def _make_recorded(run: Run, path: str, collection: Collection) -> Ranker:
    if collection.queries and run.keys().isdisjoint(collection.queries):
        ours, theirs = next(iter(run)), next(iter(collection.queries))
        raise BadInput(
            f"no query of this run is in {collection.name}: it has {ours!r}, the collection {theirs!r}",
            path,
        )
    return RecordedRun(path, run)


@dataclass
class RecordedRun:
    """A run that is already read, with the interface of a ranker."""

    name: str
    recorded: Run = field(repr=False)

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        raise RankerFailed(
            f"{self.name} is a run file and cannot give new scores; name the ranker that made it, or leave out tasks "
            "that change queries or texts"
        )

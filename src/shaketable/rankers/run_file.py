"""A TREC run file among rankers: scores that were given once, for what needs no new ones."""

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
"""The file of a folder of recorded lists."""


@dataclass(frozen=True)
class RunFile:
    """A TREC run file, plain or gzipped: measured as it is, never asked to score a changed text.

    It is a `core.protocols.RecordedRanker`: a task that needs no new scores takes the lists as they are.
    """

    path: str

    def open(self, collection: Collection) -> Ranker:
        """Read the file; a run of which the collection knows no query is a mistake, not a very bad ranker."""
        return _make_recorded(read_run(Path(self.path)), self.path, collection)


def save(run: Run, folder: str | Path, card: Mapping[str, Any], *, overwrite: bool = False) -> None:
    """Write lists into a folder that is a ranker by its path."""
    about = {"kind": KIND, "card": dict(card)}
    folders.write_model(
        folder, about, lambda new: write_run(run, new / RUN_FILE, tag="out-of-fold"), overwrite=overwrite
    )


def open_folder(folder: str | Path, collection: Collection) -> Ranker:
    """The lists in a folder: for instance those that a training in folds left."""
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
    """A run that has been read. It has the face of a ranker so that it can stand beside one."""

    name: str
    recorded: Run = field(repr=False)

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        raise RankerFailed(
            f"{self.name} is a run file: it holds scores and cannot give new ones; "
            "name the ranker that made it, or leave out the tasks that change queries or texts"
        )

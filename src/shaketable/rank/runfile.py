"""A TREC run file among rankers: scores that were given once, for what needs no new ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shaketable.data.trec import read_run
from shaketable.errors import BadInput, RankerFailed
from shaketable.types import Collection, Ranker, Run, Scores, Slate

RUN = "out-of-fold.run"
"""The file of a folder of recorded lists."""


@dataclass(frozen=True)
class RunFile:
    """A TREC run file, plain or gzipped: measured as it is, never asked to score a changed text.

    It is `types.Recorded`: a task that needs no new scores takes the lists as they are.
    """

    path: str

    def open(self, collection: Collection) -> Ranker:
        """Read the file; a run of which the collection knows no query is a mistake, not a very bad ranker."""
        return _opened(read_run(Path(self.path)), self.path, collection)


def open_folder(folder: Path, collection: Collection) -> Ranker:
    """The joined out-of-fold lists of a folder that a training in folds left."""
    return _opened(read_run(folder / RUN), str(folder), collection)


def _opened(run: Run, path: str, collection: Collection) -> Ranker:
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

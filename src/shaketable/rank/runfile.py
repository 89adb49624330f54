"""A TREC run file among rankers: scores that were given once, for what needs no new ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shaketable.data.trec import read_run
from shaketable.errors import BadInput, RankerFailed
from shaketable.types import Collection, Ranker, Run, Scores, Slate


@dataclass(frozen=True)
class RunFile:
    """A TREC run file, plain or gzipped: measured as it is, never asked to score a changed text.

    A task that needs no new scores takes a ranker's `run` (qid -> docno -> score) where it has one.
    """

    path: str

    def open(self, collection: Collection) -> Ranker:
        """Read the file; a run of which the collection knows no query is a mistake, not a very bad ranker."""
        run = read_run(Path(self.path))
        if collection.queries and run.keys().isdisjoint(collection.queries):
            ours, theirs = next(iter(run)), next(iter(collection.queries))
            raise BadInput(
                f"no query of this run is in {collection.name}: it has {ours!r}, the collection {theirs!r}",
                self.path,
            )
        return Recorded(self.path, run)


@dataclass
class Recorded:
    """A run that has been read. It has the face of a ranker so that it can stand beside one."""

    name: str
    run: Run = field(repr=False)

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        raise RankerFailed(
            f"{self.name} is a run file: it holds scores and cannot give new ones; "
            "name the ranker that made it, or leave out the tasks that change queries or texts"
        )

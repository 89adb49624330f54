"""What holds for every executor that hands jobs to other processes: those of this machine, and those of a cluster."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shaketable.bench import Bench
from shaketable.data.load import load
from shaketable.door.audit import audit
from shaketable.door.names import named_models
from shaketable.score.executor import Executor
from shaketable.score.road import Road
from shaketable.types import Run
from tests import watched

RANKERS = ("bm25", "watched=tests.watched:Watched", "listwise=tests.watched:Listwise")
TASKS = (
    "effectiveness",
    "query_attack(draws=1)",
    "substitution(recipes=('query_line',), targets=2, queries=3, detectors=())",
)


def results(executor: Executor | None, rankers: Sequence[str] = RANKERS, tasks: Sequence[str] = TASKS) -> Any:
    """results.json of a small audit, without the command that this process was started by."""
    found = audit("sample", list(rankers), list(tasks), depth=20, limit=6, executor=executor).json()
    del found["provenance"]["command"], found["provenance"]["versions"]
    return json.loads(json.dumps(found))


def pairs(lines: Sequence[str]) -> list[str]:
    """What was asked for, whoever was asked."""
    return sorted(line.partition(" ")[2] for line in lines)


def hands(lines: Sequence[str]) -> set[str]:
    """The processes that did it."""
    return {line.partition(" ")[0] for line in lines}


def bench(executor: Executor, *rankers: str, **more: Any) -> Bench:
    return Bench(
        load("sample"), named_models(list(rankers)), Road(executor=executor, chunk=20, **more), depth=20, limit=6
    )


def learned(executor: Executor, folder: Path) -> Run:
    """The lists of a learner in folds."""
    model = bench(executor).fit_folds("prank(epochs=2)", 3, folder=folder)
    ranker: Any = model.open(load("sample"))
    run: Run = ranker.recorded
    return run


def forget(home: Path) -> None:
    """As if nothing had been scored yet."""
    for path in (*home.glob("scores.sqlite*"), home / watched.ASKED):
        path.unlink(missing_ok=True)

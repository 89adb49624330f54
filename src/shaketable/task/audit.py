"""Run tasks one after the other, and say which could not apply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shaketable.bench import Bench
from shaketable.errors import BadInput
from shaketable.registry import TASKS
from shaketable.types import Result, Task


def run_tasks(bench: Bench, tasks: Sequence[Task]) -> tuple[list[Result], dict[str, str]]:
    """Results of the tasks that apply, and for each that does not, why."""
    skipped = {
        TASKS.spec(task): f"{TASKS.spec(task)}: skipped, {bench.collection.name} has no judgements"
        for task in tasks
        if task.needs_judgements and not bench.qrels
    }
    applicable = [task for task in tasks if TASKS.spec(task) not in skipped]
    if not applicable:
        raise BadInput(f"no task applies: {bench.collection.name} has no judgements, and every task named needs them")
    return [_with_failures(task, bench) for task in applicable], skipped


def _with_failures(task: Task, bench: Bench) -> Result:
    """The task's result, and what rankers failed on while it ran."""
    before = len(bench.road.failures)
    result = task.run(bench)
    return replace(result, failures=(*result.failures, *bench.road.failures[before:]))

"""Run tasks one after the other, and say which could not apply."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from shaketable.bench import Bench
from shaketable.errors import BadInput, NotApplicable
from shaketable.extras import python_strings
from shaketable.registry import TASKS
from shaketable.task.shifted import compared
from shaketable.types import Model, Result, Task, beside

LOG = logging.getLogger(__name__)

UNJUDGED = (
    "There are no judgements, so every number here says how far rankings move or agree, not how good they are. Whether "
    "a list got better or worse, which ranker is best (effectiveness), and who loses more than a baseline (variance, "
    "risk) only judgements can tell: --qrels, or a folder with qrels/, brings some."
)
"""What a reader of an audit without judgements should know."""


def usual_tasks(models: Iterable[Model] = ()) -> list[str]:
    """The names of the tasks that an audit of these models runs where none is named.

    That is all but those that are `asked_only`, and those that are for models of a kind (`is_for`) of which there is
    none.
    """
    known = list(models)
    classes = {name: TASKS.class_of(name) for name in TASKS}
    return [
        name
        for name, make in classes.items()
        if not getattr(make, "asked_only", False)
        and (not hasattr(make, "is_for") or any(make.is_for(model) for model in known))
    ]


@python_strings()
def run_tasks(bench: Bench, tasks: Sequence[Task]) -> tuple[list[Result], dict[str, str]]:
    """Results of the tasks that apply, and for each that does not, why."""
    skipped = {TASKS.spec(task): reason for task in tasks if (reason := _idle(bench, task))}
    todo = [task for task in tasks if TASKS.spec(task) not in skipped]
    results = []
    with bench.road.watch("in all", len(todo), "tasks") as advance:
        for number, task in enumerate(todo, 1):
            spec, started = TASKS.spec(task), time.perf_counter()
            beside(advance, lambda: f"task {number} of {len(todo)}, {spec}")  # noqa: B023 - the one that is under way
            try:
                results.append(_complete(task, bench))
            except NotApplicable as error:
                if len(tasks) == 1:
                    raise
                skipped[spec] = str(error)
            LOG.info("The task %s took %.1f seconds.", spec, time.perf_counter() - started)
            advance(1)
    if not results:
        raise BadInput(f"no task applies: {'; '.join(f'{task}: {reason}' for task, reason in skipped.items())}")
    return compared(results), skipped


def _idle(bench: Bench, task: Task) -> str:
    """Why a task cannot run here, or an empty text."""
    if task.needs_judgements and not bench.qrels:
        return f"it needs judgements, and {bench.collection.name} has none"
    if task.needs_scoring and not bench.scoring:
        return "it asks rankers for new scores, and a run file has none to give"
    return ""


def _complete(task: Task, bench: Bench) -> Result:
    """The task's result, its findings marked with the task's own text, and what rankers failed on while it ran."""
    before = len(bench.road.failures)
    result = task.run(bench)
    findings = tuple(replace(finding, task=TASKS.spec(task)) for finding in result.findings)
    return replace(result, findings=findings, failures=(*result.failures, *bench.road.failures[before:]))

"""Functions that run the tasks of an audit in sequence and report those that do not apply."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from shaketable.core.errors import BadInput, NotApplicable
from shaketable.core.extras import use_python_strings
from shaketable.core.progress import set_status
from shaketable.core.protocols import Model, Task
from shaketable.core.registries import TASKS
from shaketable.core.results import Result
from shaketable.experiment import Experiment
from shaketable.tasks._domain_shift import add_shift_comparison

LOG = logging.getLogger(__name__)

UNJUDGED_NOTE = (
    "There are no judgements, so the numbers show how far rankings change or agree, not how good they are. "
    "Effectiveness, variance and risk need judgements: add them with --qrels, or use a folder with qrels/."
)
"""The note of an audit without judgements."""


def list_default_tasks(models: Iterable[Model] = ()) -> list[str]:
    """Return the names of the tasks that an audit of these models runs by default.

    Tasks that are `opt_in`, and tasks that apply to none of the models (`applies_to`), are left out.
    """
    known = list(models)
    classes = {name: TASKS.get_class(name) for name in TASKS}
    return [
        name
        for name, make in classes.items()
        if not getattr(make, "opt_in", False)
        and (not hasattr(make, "applies_to") or any(make.applies_to(model) for model in known))
    ]


@use_python_strings()
def run_tasks(
    experiment: Experiment, tasks: Sequence[Task], names: Mapping[Task, str] | None = None
) -> tuple[list[Result], dict[str, str]]:
    """Return the results of the tasks that apply, and the reasons for those that do not.

    Progress, findings and reasons name a task by its spec, or by its entry in `names`.
    """
    names = {task: TASKS.spec(task) for task in tasks} | dict(names or {})
    skipped = {names[task]: reason for task in tasks if (reason := explain_inapplicable(experiment, task))}
    todo = [task for task in tasks if names[task] not in skipped]
    results = []
    with experiment.engine.progress("in all", len(todo), "tasks") as advance:
        for number, task in enumerate(todo, 1):
            spec, started = names[task], time.perf_counter()
            set_status(advance, lambda: f"task {number} of {len(todo)}, {spec}")  # noqa: B023 - the current task
            try:
                results.append(_run_task(task, spec, experiment))
            except NotApplicable as error:
                if len(tasks) == 1:
                    raise
                skipped[spec] = str(error)
            LOG.info("The task %s took %.1f seconds.", spec, time.perf_counter() - started)
            advance(1)
    if not results:
        raise BadInput(f"no task applies: {'; '.join(f'{task}: {reason}' for task, reason in skipped.items())}")
    return add_shift_comparison(results), skipped


def explain_inapplicable(experiment: Experiment, task: Task) -> str:
    """Return the reason why a task cannot run, or ""."""
    if task.needs_judgements and not experiment.qrels:
        return f"it needs judgements, and {experiment.collection.name} has none"
    if task.needs_scoring and not experiment.live_rankers:
        return "it needs new scores, and run files have none"
    if task.needs_scoring and not experiment.scoring_rankers and not getattr(task, "accepts_search", False):
        return "a search engine cannot score a text that is not in its index"
    return ""


def _run_task(task: Task, name: str, experiment: Experiment) -> Result:
    """Return the task's result, with the task's name in its findings, and the failures of rankers during the task."""
    before = len(experiment.engine.failures)
    result = task.run(experiment)
    findings = tuple(replace(finding, task=name) for finding in result.findings)
    return replace(result, findings=findings, failures=(*result.failures, *experiment.engine.failures[before:]))

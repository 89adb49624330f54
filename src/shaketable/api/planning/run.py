"""Run the tasks of an audit within its budget."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import floor, inf, log10
from typing import Any

from shaketable.api.options import Notify
from shaketable.api.planning.budget import AUTO, DEFAULT_SECONDS, NONE, Budget
from shaketable.api.planning.costs import estimate_costs
from shaketable.api.planning.effort import FULL, LOW
from shaketable.api.planning.looks import run_in_looks
from shaketable.api.planning.pace import count_pairs_of_lists, list_costly_rankers, measure_pace
from shaketable.api.planning.plan import FIRST_SIZE, AuditPlan, make_plan
from shaketable.core.protocols import Task
from shaketable.core.results import Result
from shaketable.experiment import Experiment
from shaketable.scoring.work_limit import WorkLimit
from shaketable.tasks.runner import run_tasks

LISTS_PER_QUERY = 50
"""A default audit ranks about so many lists for each query."""
SCORING_SHARE = 0.85
"""The share of a time budget for scoring; the rest is for drawing samples, tables and the report."""
MIN_PACE = 1e-6
OVERTIME = 1.05
"""The share of a time budget after which rankers get no more work, so that the audit ends before 110 %."""


@dataclass(frozen=True)
class BudgetedRun:
    """The results of an audit, and its plan if the budget limits it.

    `setting` is the budget that repeats the audit: a number of pairs, or "none".
    """

    experiment: Experiment
    results: tuple[Result, ...]
    skipped: Mapping[str, str]
    setting: str = NONE
    plan: AuditPlan | None = None
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pairs: int = 0

    def collect_provenance(self) -> dict[str, Any]:
        """Return the plan and what was used of it, for the provenance of the audit; empty without a plan."""
        if self.plan is None:
            return {}
        left_out = {facet: list(tests) for facet, tests in self.left_out.items()}
        return {"plan": {**self.plan.to_dict(), "used pairs": self.pairs, "left out": left_out}}


def run_within_budget(
    experiment: Experiment,
    tasks: Sequence[Task],
    budget: Budget,
    named: bool,
    price_per_1k: float | None,
    notify: Notify,
    started_s: float,
) -> BudgetedRun:
    """Run all tasks, or as much of them as the budget allows.

    `named` is True if the user chose the tasks; `started_s` is the `time.monotonic()` at which the audit began.
    """
    costly = list_costly_rankers(experiment) if budget.kind != NONE and experiment.models else []
    limit = convert_budget(experiment, tasks, budget, costly, named, price_per_1k) if costly else WorkLimit()
    if limit.max_pairs == inf:
        results, skipped = run_tasks(experiment, tasks)
        return BudgetedRun(experiment, tuple(results), skipped)
    if budget.kind in (AUTO, "time"):
        limit.deadline_s = started_s + OVERTIME * (budget.amount or DEFAULT_SECONDS)
    plan = make_plan(experiment, tasks, costly, int(limit.max_pairs), named=named)
    notify(plan.describe())
    sample = plan.queries if plan.queries < len(experiment.queries) else None
    planned = replace(experiment, depth=plan.depth, sample=sample)
    experiment.engine.limit = limit
    try:
        done = run_in_looks(planned, plan, limit)
    finally:
        experiment.engine.limit = WorkLimit()
    return BudgetedRun(planned, done.results, done.skipped, str(int(limit.max_pairs)), plan, done.left_out, limit.pairs)


def convert_budget(
    experiment: Experiment,
    tasks: Sequence[Task],
    budget: Budget,
    costly: Collection[str],
    named: bool,
    price_per_1k: float | None,
) -> WorkLimit:
    """Return the limit of pairs and requests of a budget; a fast ranker without a budget gets no limit.

    A time is converted once, by the pace of the rankers in a pilot, so that equal paces give equal plans.
    """
    limit, first = WorkLimit(frozenset(costly)), min(FIRST_SIZE, len(experiment.queries))
    if budget.kind == "pairs":
        limit.max_pairs = budget.amount
    elif budget.kind == "money":
        assert price_per_1k
        limit.max_requests = floor(1000 * budget.amount / price_per_1k)
        costs = estimate_costs(experiment, tasks, LOW, first, costly, named=named)
        limit.max_pairs = floor(limit.max_requests / costs.requests_per_pair) if costs.requests_per_pair else inf
    else:
        seconds = budget.amount or DEFAULT_SECONDS
        pace = sum(measure_pace(experiment, name) for name in costly) / len(costly)
        if budget.kind == "time" or _count_seconds(experiment, tasks, costly, pace, seconds, named) > seconds:
            limit.max_pairs = round_down(SCORING_SHARE * seconds / max(pace, MIN_PACE))
    return limit


def _count_seconds(
    experiment: Experiment, tasks: Sequence[Task], costly: Collection[str], pace: float, enough: float, named: bool
) -> float:
    """Return the seconds of the rankers in a full audit: a rough upper bound if that is enough, or by a dry run."""
    pairs = count_pairs_of_lists(experiment, costly)
    if pairs * LISTS_PER_QUERY * pace <= enough:
        return pairs * LISTS_PER_QUERY * pace
    first = min(FIRST_SIZE, len(experiment.queries))
    costs = estimate_costs(experiment, tasks, FULL, first, costly, named=named)
    return (costs.lists + costs.tests) * len(experiment.queries) / first * pace


def round_down(number: float) -> int:
    """Return the number rounded down to two digits, because it is an estimate.

    >>> round_down(7384.2), round_down(0.3), round_down(12)
    (7300, 0, 12)
    """
    if number < 1:
        return 0
    unit = 10 ** max(0, floor(log10(number)) - 1)
    return int(number // unit * unit)

"""The plan of an audit with a budget: its effort, the queries of its lists, and the tests of the first look."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from math import ceil, sqrt
from typing import Any

from shaketable.api.planning.costs import SAMPLED_FACETS, AuditCosts, TaskCost, Test, estimate_costs
from shaketable.api.planning.effort import EFFORTS, FULL, LOW, Effort
from shaketable.api.planning.pace import count_pairs_of_lists
from shaketable.core.errors import BadInput
from shaketable.core.protocols import Task
from shaketable.core.registries import TASKS
from shaketable.experiment import Experiment

FIRST_SIZE = 24
"""Queries of each test in the first look: a few more than a status needs, because no test applies to every query."""
LIST_SHARE = 0.4
"""The largest share of the budget for ranking each query once; the rest is for tests."""
RESERVE = 0.9
"""The share of the budget that the first look may use by estimate; requests of attacks depend on the scores."""
MIN_REQUESTED_LISTS = 20
"""A full audit ranks at least so many lists per query, so a smaller budget need not be compared with its exact cost."""
BUDGET_REASON = "it does not fit into the budget"


@dataclass(frozen=True)
class AuditPlan:
    """A plan for a number of pairs, which depends on the data, the rankers' traits and the tasks, but on no speed.

    Parameters
    ----------
    max_pairs
        The largest number of query-document pairs of all rankers that the budget covers.
    effort
        The settings of the tasks.
    depth
        The number of documents in each list.
    queries
        The number of queries whose lists are ranked.
    first_size
        The number of queries of each test in the first look; all queries if it equals `queries`.
    tasks
        The requested tasks, each with the task that runs.
    sizes
        The number of queries of each test in the first look; 0 for a test that does not fit.
    skipped
        The tasks that do not run, with the reasons.
    """

    max_pairs: int
    effort: Effort
    depth: int
    queries: int
    first_size: int
    tasks: Mapping[Task, Task]
    sizes: Mapping[Test, int] = field(default_factory=dict)
    skipped: Mapping[Task, str] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """True if the budget covers everything."""
        return self.effort is FULL

    def describe(self) -> str:
        """Return sentences on the plan and the precision that it buys."""
        if self.is_full:
            return f"The budget of {self.max_pairs:,} pairs covers the whole audit."
        tests = sum(size > 0 for size in self.sizes.values())
        left = len(self.sizes) - tests
        out = f" {left} of {len(self.sizes)} tests do not fit and make their facets inconclusive." if left else ""
        return (
            f"The plan for {self.max_pairs:,} pairs, effort {self.effort.name}: {self.effort.description}. Lists for "
            f"{self.queries} queries; {tests} tests on {self.first_size} queries each, and on more where the status is "
            f"open. A share of documents is then known to ±{_get_half_width(self.first_size):.0f} points or better, "
            f"with all {self.queries} queries to ±{_get_half_width(self.queries):.0f}.{out}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return {
            "pairs": self.max_pairs,
            "effort": self.effort.name,
            "depth": self.depth,
            "queries": self.queries,
            "first size": self.first_size,
            "tasks": {TASKS.spec(task): TASKS.spec(reduced) for task, reduced in self.tasks.items()},
        }


def _get_half_width(queries: int) -> float:
    """Return half the width of the 95 % interval of a share of 50 %, in points."""
    return 100 * 1.96 * sqrt(0.25 / queries)


def make_plan(
    experiment: Experiment, tasks: Sequence[Task], rankers: Collection[str], max_pairs: int, *, named: bool
) -> AuditPlan:
    """Return the plan that uses a number of pairs best.

    More queries help a status most. So the plan takes the highest effort with which the first look covers every test,
    and later looks add queries. The lowest effort leaves out lists, then tests, until the first look fits.

    Raises
    ------
    BadInput
        If the budget is too small for one facet.
    """
    total = len(experiment.queries)
    first = min(FIRST_SIZE, total)
    least_full = MIN_REQUESTED_LISTS * count_pairs_of_lists(experiment, rankers)
    for effort in EFFORTS:
        if effort is FULL and least_full > max_pairs:
            continue
        costs = estimate_costs(experiment, tasks, effort, first, rankers, named=named)
        if plan := _fit_plan(experiment, costs, max_pairs, total):
            return plan
    raise AssertionError("the lowest effort always has a plan or an error")


def _fit_plan(experiment: Experiment, costs: AuditCosts, max_pairs: int, total: int) -> AuditPlan | None:
    """Return a plan with this effort, or None if a lower one is better."""
    per_list = costs.lists / costs.queries
    if costs.effort is FULL:
        fits = (costs.lists + costs.tests) * total / costs.queries <= RESERVE * max_pairs
        return _build_plan(experiment, costs, max_pairs, total, total, {}) if fits else None
    lists = per_list * total
    if lists <= LIST_SHARE * max_pairs and lists + costs.tests <= RESERVE * max_pairs:
        sizes = {test: costs.queries for one in costs.tasks for test in one.tests}
        return _build_plan(experiment, costs, max_pairs, total, costs.queries, sizes)
    if costs.effort is not LOW:
        return None
    share = LIST_SHARE if costs.tests else RESERVE
    queries = min(total, max(costs.queries, int(share * max_pairs / max(per_list, 1))))
    chosen = _choose_tests(costs.tasks, RESERVE * max_pairs - per_list * queries)
    if per_list * queries > RESERVE * max_pairs or (chosen and not any(chosen.values())):
        cheapest = min((one.pairs / len(one.tests) for one in costs.tasks if one.tests), default=0.0)
        least = ceil((costs.lists + cheapest) / RESERVE)
        raise BadInput(
            f"the budget of {max_pairs:,} pairs is too small for one facet: the lists of {costs.queries} queries and "
            f"the cheapest test need {least:,} pairs; give --budget {least} or more"
        )
    sizes = {test: costs.queries * taken for test, taken in chosen.items()}
    return _build_plan(experiment, costs, max_pairs, queries, costs.queries, sizes)


def _choose_tests(tasks: Sequence[TaskCost], pairs: float) -> dict[Test, bool]:
    """Return which tests fit: the first test of each facet, then the second of each, and so on."""
    price = {test: one.pairs / len(one.tests) for one in tasks for test in one.tests}
    panels = [[test for test in price if test[0] == facet] for facet in SAMPLED_FACETS]
    chosen = dict.fromkeys(price, False)
    for test in (test for turn in zip_longest(*panels) for test in turn if test is not None):
        if price[test] <= pairs:
            chosen[test] = True
            pairs -= price[test]
    return chosen


def _build_plan(
    experiment: Experiment,
    costs: AuditCosts,
    max_pairs: int,
    queries: int,
    first_size: int,
    sizes: Mapping[Test, int],
) -> AuditPlan:
    excluded = {one.task for one in costs.tasks if one.tests and sizes and not any(map(sizes.get, one.tests))}
    return AuditPlan(
        max_pairs,
        costs.effort,
        costs.effort.select_depth(experiment),
        queries,
        first_size,
        {one.task: one.reduced for one in costs.tasks if one.task not in excluded},
        sizes,
        {**costs.left_out, **dict.fromkeys(excluded, BUDGET_REASON)},
    )

"""Looks at growing samples: a test whose status is decided asks no more, and leaves its share to the others."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shaketable.api.planning.costs import SAMPLED_FACETS, Test, list_tests
from shaketable.api.planning.plan import BUDGET_REASON, AuditPlan
from shaketable.core.errors import BadInput, LimitReached
from shaketable.core.protocols import Task
from shaketable.core.registries import TASKS
from shaketable.core.results import Finding, Result
from shaketable.experiment import Experiment
from shaketable.experiment.sampling import SampleSizes
from shaketable.measures.facets import find_test, get_facet
from shaketable.measures.significance import MIN_QUERIES
from shaketable.measures.status import FAIL, find_decided
from shaketable.scoring.work_limit import WorkLimit
from shaketable.tasks.runner import run_tasks

LOG = logging.getLogger(__name__)
GROWTH = 2.0
"""The factor by which the sample of an undecided test grows from look to look."""
MIN_NEW_QUERIES = 4


@dataclass
class _TaskState:
    """A task in the looks so far: its last result, its tests, and the pairs that it has used."""

    task: Task
    reduced: Task
    result: Result | None = None
    skipped_reason: str = ""
    tests: tuple[Test, ...] = ()
    pairs: int = 0


@dataclass(frozen=True)
class LooksResult:
    """The results of an audit with a budget.

    `left_out` has the tests of each facet that the budget does not cover; such a facet cannot pass.
    """

    results: tuple[Result, ...]
    skipped: Mapping[str, str]
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sizes: Mapping[Test, int] = field(default_factory=dict)


def run_in_looks(experiment: Experiment, plan: AuditPlan, limit: WorkLimit) -> LooksResult:
    """Run the tasks of a plan: all tests on the first sample, then those that are undecided on larger ones.

    A look that does not fit into the limit is dropped, and the task keeps its result of the look before.
    """
    sized = dict(plan.sizes)
    states = [_TaskState(task, reduced) for task, reduced in plan.tasks.items()]
    for state in states:
        _run_task(experiment, state, sized, plan.first_size, limit)
        for test in state.tests:  # the dry run does not find every test, because its scores are made up
            sized.setdefault(test, plan.first_size)
    while wanted := _choose_next(experiment, states, sized, limit):
        grown = {**sized, **wanted}
        LOG.info(
            "Look at %s tests with up to %s queries; %s pairs are left.",
            len(wanted),
            max(wanted.values()),
            limit.remaining_pairs,
        )
        for state in states:
            mine = {test: size for test, size in wanted.items() if test in state.tests}
            if mine and _run_task(experiment, state, grown, plan.first_size, limit):
                sized |= mine
            elif mine:
                return _collect(experiment, plan, states, sized)
    return _collect(experiment, plan, states, sized)


def _run_task(
    experiment: Experiment, state: _TaskState, sizes: Mapping[Test, int], default: int, limit: WorkLimit
) -> bool:
    """Run a task on samples of these sizes; return False, and keep its earlier result, if the limit is reached."""
    before, spec = limit.pairs, TASKS.spec(state.task)
    sized = experiment.with_sizes(SampleSizes(default, sizes))
    try:
        # findings of all plans of one task have the same name, so that audits can be compared
        (state.result,), _ = run_tasks(sized, [state.reduced], {state.reduced: spec})
    except LimitReached as reason:
        state.skipped_reason = f"{BUDGET_REASON}: {reason}"
        return False
    except BadInput as error:  # a task that does not apply, or has nothing to work on
        if state.result is None:
            state.skipped_reason = str(error)
        return True
    finally:
        state.pairs += limit.pairs - before
        LOG.info("%s: %s pairs.", spec, limit.pairs - before)
    state.tests = list_tests(state.result.findings)
    return True


def _choose_next(
    experiment: Experiment, states: Sequence[_TaskState], sizes: Mapping[Test, int], limit: WorkLimit
) -> dict[Test, int]:
    """Return the tests of the next look and their numbers of queries; empty if there is nothing to ask.

    A facet counts only as a whole, so those that cost least come first. The last look takes as many queries as fit.
    """
    total = len(experiment.queries)
    pairs = limit.remaining_pairs
    price = {test: _estimate_price(state, test, sizes) for state in states for test in state.tests}
    chosen: dict[Test, int] = {}
    opens = _find_open_tests(states, sizes, limit.rankers, total)
    for facet in sorted(opens, key=lambda name: (sum(price[test] for test in opens[name]), SAMPLED_FACETS.index(name))):
        tests = opens[facet]
        each = sum(price[test] for test in tests)
        size = max(sizes[test] for test in tests)
        new = min(int(size * GROWTH), total) - size
        if each * new > pairs:
            new = int(pairs / each)
        if new >= min(MIN_NEW_QUERIES, total - size):
            chosen |= dict.fromkeys(tests, size + new)
            pairs -= each * new
    return chosen


def _estimate_price(state: _TaskState, test: Test, sizes: Mapping[Test, int]) -> float:
    """Return the pairs of a test per query, from what its task has used so far."""
    return max(1.0, state.pairs / max(1, sum(sizes[one] for one in state.tests)))


def _find_open_tests(
    states: Iterable[_TaskState], sizes: Mapping[Test, int], rankers: Collection[str], total: int
) -> dict[str, list[Test]]:
    """Return facet -> tests that are undecided for a ranker and could use more queries."""
    findings = [one for state in states if state.result for one in state.result.findings if one.ranker in rankers]
    opens: dict[str, dict[Test, None]] = {}
    for ranker in rankers:
        for facet in SAMPLED_FACETS:
            own = [one for one in findings if one.ranker == ranker and one.facet == facet]
            for test in _find_undecided(own, facet):
                if 0 < sizes.get((facet, test), 0) < total:
                    opens.setdefault(facet, {})[facet, test] = None
    return {facet: list(tests) for facet, tests in opens.items()}


def _find_undecided(findings: Sequence[Finding], name: str) -> list[str]:
    """Return the tests of a ranker and facet without a final status; none if one of them fails for certain."""
    facet = get_facet(name)
    decided = find_decided(findings, facet)
    # a failure counts only if the ranker is worse than the first stage, which more queries may show
    final = {key: status for key, status in decided.items() if status != FAIL or not facet.fails_beside}
    if FAIL in final.values():
        return []
    return list(dict.fromkeys(find_test(one.name) for one in findings if one.name not in final))


def _collect(
    experiment: Experiment, plan: AuditPlan, states: Sequence[_TaskState], sizes: Mapping[Test, int]
) -> LooksResult:
    results = tuple(state.result for state in states if state.result is not None)
    skipped = {TASKS.spec(task): reason for task, reason in plan.skipped.items()}
    skipped |= {TASKS.spec(state.task): state.skipped_reason for state in states if state.result is None}
    if not results:
        raise BadInput(f"no task fits into the budget: {'; '.join(dict.fromkeys(skipped.values()))}")
    total = len(experiment.queries)
    tested = {test for state in states for test in state.tests}
    small = {
        (one.facet, find_test(one.name))
        for result in results
        for one in result.findings
        if one.facet in SAMPLED_FACETS and one.n < MIN_QUERIES <= total
    }
    left_out: dict[str, list[str]] = {}
    for (facet, test), size in sizes.items():
        if size == 0 or ((facet, test) in tested and (facet, test) in small and size < total):
            left_out.setdefault(facet, []).append(test)
    return LooksResult(results, skipped, {facet: tuple(tests) for facet, tests in left_out.items()}, sizes)

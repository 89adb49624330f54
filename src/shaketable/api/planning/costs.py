"""Estimates of the pairs that an audit requests: a dry run of its tasks on a few queries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from shaketable.api.dry_experiment import OpenedModel, RequestCount, make_dry_experiment
from shaketable.api.planning.effort import Effort, select_tasks
from shaketable.core.errors import ShaketableError
from shaketable.core.protocols import Task
from shaketable.core.results import Finding
from shaketable.experiment import Experiment
from shaketable.experiment.sampling import SampleSizes
from shaketable.measures.facets import (
    ATTACK,
    DOCUMENT_FORM,
    INPUT_ORDER,
    PROBES_FACET,
    REPEATABILITY,
    TYPOS,
    WORDING,
    find_test,
)
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.network_guard import block_network
from shaketable.tasks.runner import explain_inapplicable, run_tasks

SAMPLED_FACETS = (TYPOS, WORDING, REPEATABILITY, INPUT_ORDER, DOCUMENT_FORM, PROBES_FACET, ATTACK)
"""The facets whose tests may use a sample of the queries; all other facets use the lists of all queries."""
Test = tuple[str, str]
"""A facet and the name of a test of its panel."""


@dataclass(frozen=True)
class TaskCost:
    """The cost of a task: the pairs that it requests, and its tests, in the order of their findings."""

    task: Task
    reduced: Task
    pairs: int
    tests: tuple[Test, ...]


@dataclass(frozen=True)
class AuditCosts:
    """The cost of an audit on a sample of the queries; `lists` is the cost of ranking each query once.

    `left_out` has the tasks that the effort leaves out, with the reasons.
    """

    effort: Effort
    queries: int
    lists: int
    requests_per_pair: float
    tasks: tuple[TaskCost, ...]
    left_out: Mapping[Task, str] = field(default_factory=dict)

    @property
    def tests(self) -> int:
        """The pairs of all tasks besides the lists."""
        return sum(one.pairs for one in self.tasks)


def estimate_costs(
    experiment: Experiment,
    tasks: Iterable[Task],
    effort: Effort,
    queries: int,
    rankers: Collection[str],
    *,
    named: bool,
) -> AuditCosts:
    """Return the pairs that `rankers` would score for a sample of the queries; nothing is sent.

    `named` is True if the user chose the tasks.
    """
    kept, left_out = select_tasks(tasks, effort, named)
    counts = {name: RequestCount() for name in experiment.models}
    models = {name: OpenedModel(experiment.get_ranker(name)) for name in experiment.models}
    sampled = replace(experiment, sample=queries, depth=effort.select_depth(experiment), sizes=SampleSizes())
    with block_network():
        # without the store: the plan must not depend on what earlier audits have cached
        dry = replace(make_dry_experiment(sampled, models, counts), engine=ScoringEngine(keep_going=True))

        def count() -> int:
            return sum(counts[name].pairs for name in rankers)

        dry.get_runs()
        lists = count()
        costs = []
        for task, reduced in kept.items():
            if reason := explain_inapplicable(dry, reduced):
                left_out[task] = reason
                continue
            before = count()
            try:
                results, _ = run_tasks(dry, [reduced])
            except ShaketableError:  # the audit itself reports it
                continue
            findings = [finding for result in results for finding in result.findings]
            pairs = count() - before
            costs.append(TaskCost(task, reduced, pairs, list_tests(findings) if pairs else ()))
    requests = sum(counts[name].requests for name in rankers)
    return AuditCosts(effort, queries, lists, requests / max(count(), 1), tuple(costs), left_out)


def list_tests(findings: Iterable[Finding]) -> tuple[Test, ...]:
    """Return the tests of findings whose number of queries can be chosen."""
    tests = ((one.facet, find_test(one.name)) for one in findings if one.facet in SAMPLED_FACETS)
    return tuple(dict.fromkeys(tests))

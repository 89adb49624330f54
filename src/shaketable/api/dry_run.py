"""A dry run: the cost of an audit for each ranker (pairs, requests, minutes, money); nothing is sent.

A dry run executes the tasks in an experiment whose rankers count requests and make up scores (`dry_experiment`). So it
needs no formula for each task. Its numbers are exact if they do not depend on scores; otherwise, as for attacks, they
are estimates.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from shaketable.api.audit import choose_default_models, open_experiment, prepare_audit
from shaketable.api.dry_experiment import (
    DryExperiment,
    RequestCount,
    UntrainedModel,
    is_cheap_to_run,
    make_dry_experiment,
)
from shaketable.api.languages import add_languages
from shaketable.api.options import CollectionLike, ExperimentOptions, ignore_message
from shaketable.api.planning.budget import AUTO, DEFAULT_SECONDS, Budget, parse_budget
from shaketable.api.planning.pace import list_costly_rankers
from shaketable.api.planning.plan import make_plan
from shaketable.api.planning.run import convert_budget
from shaketable.api.ranker_names import Rankers, as_list
from shaketable.core.documents import Slate
from shaketable.core.errors import ShaketableError
from shaketable.core.protocols import Model, Task, can_score_texts
from shaketable.core.registries import TASKS
from shaketable.core.results import Result
from shaketable.experiment import Experiment
from shaketable.rankers.python import AdaptedRanker
from shaketable.report.scorecard import sort_facets
from shaketable.scoring.network_guard import block_network
from shaketable.scoring.traits import RankerTraits
from shaketable.tasks.runner import run_tasks

if TYPE_CHECKING:
    import pandas as pd

TIMED_PAIRS = 32
"""Query-document pairs on which a local ranker is timed."""
REQUEST_LATENCY_S = 0.2
NO_FACET = "no facet"
LISTS_TITLE = "the lists of all queries"


@dataclass(frozen=True)
class DryRunRow:
    """The cost of a task for a ranker; `seconds` and `money` are NaN if unknown, `exact` is False for an estimate."""

    task: str
    ranker: str
    pairs: int
    requests: int
    seconds: float
    money: float
    exact: bool
    tests: Mapping[str, int] = field(default_factory=dict)
    """The facets of the verdict that the task decides, with the number of tests of each."""


@dataclass(frozen=True)
class DryRun:
    """The cost of an audit by task and ranker, in the order of the tasks."""

    rows: tuple[DryRunRow, ...]
    notes: tuple[str, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def pairs(self) -> int:
        return sum(row.pairs for row in self.rows)

    @property
    def requests(self) -> int:
        return sum(row.requests for row in self.rows)

    @property
    def minutes(self) -> float:
        """The sum of the minutes of all rankers, without those of unknown time."""
        return float(np.nansum([row.seconds for row in self.rows])) / 60

    @property
    def money(self) -> float:
        """The price of all requests; NaN without a price."""
        known = [row.money for row in self.rows if not np.isnan(row.money)]
        return sum(known) if known else nan

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row for each task and ranker."""
        import pandas as pd

        rows = [
            {
                "task": row.task,
                "ranker": row.ranker,
                "pairs": row.pairs,
                "requests": row.requests,
                "minutes": row.seconds / 60,
                "money": row.money,
                "": "" if row.exact else "estimate",
            }
            for row in self.rows
        ]
        frame = pd.DataFrame(rows, columns=["task", "ranker", "pairs", "requests", "minutes", "money", ""])
        return frame.drop(columns="money") if np.isnan(self.money) else frame

    def count_by_facet(self) -> pd.DataFrame:
        """Return the pairs of each ranker by facet; a task's pairs are divided evenly among its tests."""
        import pandas as pd

        facets = sort_facets({facet for row in self.rows for facet in row.tests})
        pairs: dict[str, dict[str, float]] = {facet: {} for facet in facets}
        for row in self.rows:
            for facet, tests in (row.tests or {NO_FACET: 1}).items():
                of = pairs.setdefault(facet, {})
                of[row.ranker] = of.get(row.ranker, 0.0) + row.pairs * tests / max(1, sum(row.tests.values()))
        frame = pd.DataFrame.from_dict(pairs, orient="index").fillna(0).round().astype(int)
        return frame.rename_axis("facet").reset_index()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; unknown values are None."""

        def known(number: float) -> float | None:
            return None if np.isnan(number) else number

        rows = [{**vars(row), "seconds": known(row.seconds), "money": known(row.money)} for row in self.rows]
        total = {"pairs": self.pairs, "requests": self.requests, "minutes": self.minutes, "money": known(self.money)}
        return {
            "schema": "shaketable.dry-run/2",
            "rows": rows,
            "total": total,
            "pairs by facet": self.count_by_facet().to_dict("records"),
            "notes": list(self.notes),
            "skipped": dict(self.skipped),
        }

    def __str__(self) -> str:
        unknown = sorted({row.ranker for row in self.rows if np.isnan(row.seconds)})
        beside = f", plus the unknown time of {', '.join(unknown)}" if unknown else ""
        money = "" if np.isnan(self.money) else f", price {self.money:,.2f}"
        return f"total: {self.pairs:,} pairs, {self.requests:,} requests, {self.minutes:,.1f} minutes{money}{beside}"


def dry_run(
    data: CollectionLike | Sequence[CollectionLike] = "sample",
    rankers: Rankers = (),
    tasks: str | Task | Iterable[str | Task] = (),
    languages: str | Iterable[str] = (),
    *,
    budget: str | int | None = AUTO,
    price_per_1k: float | None = None,
    seconds_per_request: float = REQUEST_LATENCY_S,
    runs: bool = True,
    **options: Unpack[ExperimentOptions],
) -> DryRun:
    """Return the cost of `audit` with these arguments by task and ranker; nothing is sent or cached.

    Cached scores are not counted, nor are pairs that an earlier task scores. `price_per_1k` is the price of 1,000
    requests; `seconds_per_request` is the latency of one, divided by the number of concurrent requests. The rows are
    the cost without a budget; for a budget in pairs or money, the notes have the plan.
    """
    allowed = parse_budget(budget, price_per_1k)
    with block_network():
        models, chosen, first = prepare_audit(data, rankers, tasks)
        opened = open_experiment(first, models, **options)
        models = dict(opened.models)  # an engine that finds the documents is one of them
        chosen = add_languages(chosen, languages, opened.queries, named=bool(as_list(tasks)))
        if not models:
            notify = options.get("notify", ignore_message)
            models = choose_default_models(opened, notify, lambda experiment: UntrainedModel("knrm"))
        counts = {name: RequestCount() for name in models}
        experiment = make_dry_experiment(opened, models, counts)
        pace = {name: _estimate_pace(experiment, name, model, seconds_per_request) for name, model in models.items()}
        started = time.perf_counter()
        asked, skipped = _count_by_task(experiment, chosen, counts, runs)
        seconds = time.perf_counter() - started
        planned = _describe_plan(experiment, chosen, allowed, price_per_1k, bool(as_list(tasks)))
    rows = tuple(
        DryRunRow(
            title,
            name,
            pairs,
            requests,
            pace[name](pairs, requests),
            nan if price_per_1k is None else price_per_1k * requests / 1000,
            exact,
            tests,
        )
        for title, name, pairs, requests, exact, tests in asked
    )
    notes = _list_notes(experiment, rows, counts, seconds, seconds_per_request, price_per_1k)
    return DryRun(rows, (*notes, planned), skipped)


def _describe_plan(
    experiment: Experiment, tasks: Sequence[Task], budget: Budget, price_per_1k: float | None, named: bool
) -> str:
    """Return a sentence on the budget; a plan for a time needs the pace of the ranker, which a dry run cannot know."""
    costly = list_costly_rankers(experiment)
    if not costly or budget.kind == "none":
        return "No budget limits this audit."
    if budget.kind in ("auto", "time"):
        seconds = budget.amount or DEFAULT_SECONDS
        limited = "The audit itself" if budget.amount else "Without --budget, an audit of a slow ranker"
        return f"{limited} measures the pace of its rankers and plans for {seconds / 60:g} minutes."
    limit = convert_budget(experiment, tasks, budget, costly, named, price_per_1k)
    return make_plan(experiment, tasks, costly, int(limit.max_pairs), named=named).describe()


def _count_by_task(
    experiment: DryExperiment, tasks: Sequence[Task], counts: Mapping[str, RequestCount], runs: bool
) -> tuple[list[tuple[str, str, int, int, bool, Mapping[str, int]]], dict[str, str]]:
    """Return rows of task, ranker, pairs, requests, exactness and tests, and why other tasks have no count."""
    asked: list[tuple[str, str, int, int, bool, Mapping[str, int]]] = []
    skipped: dict[str, str] = {}
    parts: list[tuple[str, Task | None]] = [(TASKS.spec(task), task) for task in tasks]
    for title, task in [*parts, *([(LISTS_TITLE, None)] if runs else [])]:
        before = _take_snapshot(experiment, counts)
        results: list[Result] = []
        try:
            if task is None:
                experiment.get_runs()
            else:
                results, _ = run_tasks(experiment, [task])
        except ShaketableError as error:
            skipped[title] = str(error)
        after = _take_snapshot(experiment, counts)
        marked = {(one.facet, one.name) for result in results for one in result.findings if one.facet}
        tests = Counter(facet for facet, _ in marked)
        for name in counts:
            pairs, requests = (new - old for new, old in zip(after[name], before[name], strict=True))
            exact = not getattr(task, "adaptive", False)
            asked += [(title, name, pairs, requests, exact, tests)] if pairs else []
    return asked, skipped


def _take_snapshot(experiment: Experiment, counts: Mapping[str, RequestCount]) -> dict[str, tuple[int, int]]:
    """Return the pairs and requests of each ranker so far; for real rankers, these are the counts of the engine."""
    spent = experiment.engine.usage
    return {
        name: (count.pairs, count.requests)
        if not is_cheap_to_run(experiment.get_ranker(name))
        else (spent[name].scored if name in spent else 0, 0)
        for name, count in counts.items()
    }


def _estimate_pace(experiment: DryExperiment, name: str, model: Model, latency: float) -> Callable[[int, int], float]:
    """Return a function that estimates the seconds for numbers of pairs and requests.

    It times local rankers of this package on a few pairs; it calls no endpoint and no code of the user.
    """
    ranker = experiment.get_ranker(name)
    if is_cheap_to_run(ranker):
        return lambda pairs, requests: (
            experiment.engine.usage[name].seconds * pairs / max(experiment.engine.usage[name].scored, 1)
        )
    if ranker.remote:  # type: ignore[attr-defined]
        at_once = RankerTraits.from_ranker(ranker).max_concurrency
        return lambda pairs, requests: requests * latency / at_once
    module = type(ranker.ranker).__module__  # type: ignore[attr-defined]
    if isinstance(model, UntrainedModel) or not module.startswith("shaketable.") or module == AdaptedRanker.__module__:
        return lambda pairs, requests: nan if pairs else 0.0
    qid, found = next(iter(experiment.candidates.items()))
    slate = Slate(experiment.texts[qid], experiment.get_documents([*found][:TIMED_PAIRS]))
    started = time.perf_counter()
    try:
        ranker.ranker.score([slate])  # type: ignore[attr-defined]
    except ShaketableError:
        return lambda pairs, requests: nan if pairs else 0.0
    each = (time.perf_counter() - started) / max(len(slate.docs), 1)
    return lambda pairs, requests: pairs * each


def _list_notes(
    experiment: DryExperiment,
    rows: Sequence[DryRunRow],
    counts: Mapping[str, RequestCount],
    seconds: float,
    latency: float,
    price: float | None,
) -> Iterable[str]:
    yield (
        "'pairs' counts the distinct query-document pairs that each task would send to a ranker, without those that "
        "are cached or that an earlier task has sent. The dry run sent nothing."
    )
    remote = [name for name in counts if getattr(experiment.get_ranker(name), "remote", False)]
    if remote:
        yield (
            f"'requests' counts requests to {', '.join(remote)}. 'minutes' assumes {latency:g} seconds per request "
            "(--seconds-per-request), divided by the number of concurrent requests; retries and rate limits add to it."
        )
        yield (
            "Cached scores of an endpoint are counted again if only its answers can show that it is unchanged. The "
            "count assumes that an endpoint scores each text alone, unless pointwise=False is given."
        )
        if price is not None:
            yield f"'money' assumes a price of {price:g} for 1,000 requests."
    if assumed := [name for name in counts if getattr(experiment.get_ranker(name), "assumed_pointwise", False)]:
        yield (
            f"The count assumes that {', '.join(assumed)} scores each text alone. The audit checks that; if the scores "
            "depend on the list, it needs many times as many pairs, which pointwise=False counts."
        )
    if engines := [name for name in counts if not can_score_texts(experiment.get_ranker(name))]:
        yield f"A search by {', '.join(engines)} counts as one pair and one request."
    if not all(row.exact for row in rows):
        yield "An 'estimate' is for an attack: its requests depend on the scores, which the dry run made up."
    yield f"All other work took {seconds / 60:.1f} minutes in the dry run, and will take as long in the audit."

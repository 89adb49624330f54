"""The main job: rankers on a collection, every task that applies, one result."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shaketable.bench import Bench
from shaketable.data.kinds import told
from shaketable.data.load import load
from shaketable.data.splits import TEST, TRAIN
from shaketable.data.trec import write_run
from shaketable.door.names import named_models, several
from shaketable.door.settings import SETTINGS, settings_of, write_settings
from shaketable.door.workers import refuse_homebound
from shaketable.errors import BadInput, UnknownName
from shaketable.extras import has
from shaketable.files import home, written_whole
from shaketable.registry import LEXICAL, TASKS
from shaketable.report.answer import DEFAULT_GATE, Answer, answer
from shaketable.report.files import audit_json, file_names, read_document, safe_name, write_results
from shaketable.report.folder import replace_files, replace_one
from shaketable.report.gates import Gate, Ruling, Seen, all_held, rulings
from shaketable.report.page import page
from shaketable.report.rules import check_rankers, gates_of
from shaketable.score.executor import Executor, Here
from shaketable.score.road import Road
from shaketable.score.store import Store
from shaketable.task.audit import UNJUDGED, run_tasks, usual_tasks
from shaketable.task.first_stage import FirstStage
from shaketable.types import Collection, Finding, Model, Result, Run, Task, Watch, unwatched

if TYPE_CHECKING:
    import pandas as pd

Say = Callable[[str], None]

SECONDS = "seconds"
"""The fact that no two audits have in common."""

SMALL = "knrm(teacher='dense', sentences=400, steps=200)"
"""A small ranker that learns the margins of `dense`, on the train queries and on sentences of the passages."""
TRAINING = "That takes about three minutes"
FEW = 5_000
"""Documents that an encoder reads in a few minutes without a GPU. Of more than these nobody asked it to."""


@dataclass(frozen=True)
class Audit:
    """What an audit, or an evaluation of runs, came to.

    `audit["risk"]` is the result of a task, `audit.findings` are the numbers of all of them. `queries` has the texts of
    the queries, and `settings` the flags that make the same audit; none where something of it is in memory only.
    """

    title: str
    facts: Mapping[str, str]
    results: tuple[Result, ...]
    provenance: Mapping[str, Any]
    runs: Mapping[str, Run] = field(default_factory=dict, repr=False)
    skipped: Mapping[str, str] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)
    queries: Mapping[str, str] = field(default_factory=dict, repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    ruled: tuple[Ruling, ...] = ()
    """What became of the gates that somebody set; the default gate's rulings are the answer's."""

    def __getitem__(self, task: str) -> Result:
        known = {result.task: result for result in self.results}
        if (name := task.replace("_", "-")) not in known:
            raise UnknownName("result", task, known)
        return known[name]

    def table(self, name: str) -> tuple[str, pd.DataFrame]:
        """The table of a name, such as "risk"; the task may stand before it, as in "risk: per query"."""
        full = {f"{result.task}: {title}": frame for result in self.results for title, frame in result.tables.items()}
        found = [(title, frame) for title, frame in full.items() if name in (title, title.partition(": ")[2])]
        if not found:
            plain = {title.partition(": ")[2] for title in full}
            shown = {f"{result.task}: {title}" for result in self.results for title in (result.brief or result.tables)}
            raise UnknownName("table", name, [*full, *plain] if get_close_matches(name, [*full, *plain]) else shown)
        return found[0]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The numbers of all tasks."""
        return tuple(finding for result in self.results for finding in result.findings)

    @cached_property
    def seen(self) -> Seen:
        """What gates look at."""
        return Seen.of(self.results, self.answer().standings, self.provenance)

    def rulings(self, *rules: str | Path | Gate) -> list[Ruling]:
        """What becomes of rules: texts such as "bm25.nDCG@10>=0.4", files of rules, or gates.

        A rule without a ranker is about all that are under test.
        """
        return rulings(gates_of(rules), self.seen)

    def check(self, *rules: str | Path | Gate) -> bool:
        """Do all of the rules hold? A warning is no failure."""
        return all_held(self.rulings(*rules))

    def answer(self) -> Answer:
        """What it comes to: a word for each ranker and facet, the worst findings, and what became of gates."""
        return answer(self.results, self.provenance, self.ruled)

    def json(self) -> dict[str, Any]:
        """All of it as plain values that strict JSON can hold."""
        return audit_json(self.results, self.provenance, self.ruled, self._beside())

    def _beside(self) -> dict[str, Any]:
        """What a page and a comparison need beside the results, and nothing that depends on the time it took."""
        facts = {name: fact for name, fact in self.facts.items() if name != SECONDS}
        about = {"title": self.title, "facts": facts, "skipped": self.skipped, "remarks": self.remarks}
        return {"about": about, "queries": self.queries}

    def report(self) -> str:
        """The page, as HTML that needs nothing else."""
        facts = {**self.facts, **self.remarks}
        return page(self.title, facts, self.results, self.provenance, self.answer())

    def save(self, folder: str | Path) -> None:
        """Write report.html, results.json, a CSV file for each table, and the runs; see `report.folder`."""

        def fill(staging: Path) -> None:
            write_results(staging, self.results, self.provenance, self.ruled, self._beside())
            if self.settings:
                write_settings(staging / SETTINGS, self.settings)
            for (name, run), file in zip(self.runs.items(), file_names(self.runs, ".run"), strict=True):
                write_run(run, staging / "runs" / file, tag=safe_name(name))
            with written_whole(staging / "report.html") as out:
                out.write(self.report())

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
    gated: bool = False,
) -> Audit:
    """Put rankers on the table: every task that applies, or those that are named.

    Rankers and tasks are texts or objects, one or several; a mapping gives rankers their names. Where the collection
    has a split called test, that is what is measured on, unless another is named; "all" is every query. `kinds` says
    what kind each query is of: "rules", a file, or the folder of a model that `train_kinds` wrote. Without rankers
    there are default ones, and `say` is told which. The lists of all queries are part of the result, unless `runs` is
    False: then rankers are asked for nothing but what the tasks want. Of several collections the first is what rankers
    are put on; the others are for the task corpus-shift. `gated` adds to tasks that are named the one that the default
    gate needs, a comparison with the first stage. The `executor` does the work; `st.workers` makes one.
    """
    started = time.perf_counter()
    models, chosen, first = set_up(data, rankers, tasks)
    if gated and not any(isinstance(task, FirstStage) for task in chosen):
        chosen = [FirstStage(), *chosen]
    bench = open_bench(
        first, models, split, candidates, cut, depth, limit, seed, first_stage, keep_going, watch, executor, kinds
    )
    if not models and any(getattr(task, "needs_rankers", True) for task in chosen):
        bench = replace(bench, models=default_models(bench, say))
    settings = settings_of(
        first,
        rankers,
        bench.models,
        chosen,
        {
            "split": split,
            "cut": cut,
            "kinds": kinds,
            "candidates": candidates,
            "first-stage": first_stage,
            "depth": depth,
            "limit": limit,
            "seed": seed,
            "keep-going": keep_going,
        },
    )
    count = f"{len(bench.collection.docs):,} documents, {len(bench.queries):,} queries"
    kinds_told = told(bench.queries) if kinds or any(query.kind for query in bench.queries.values()) else ""
    if kinds:
        say(f"The kinds of queries by {kinds}: {kinds_told}.")
    say(
        f"The collection {bench.collection.name} has {count}."
        + (f" The rankers are {', '.join(bench.models)}." if bench.models else "")
    )
    results, skipped = run_tasks(bench, chosen)
    lists = {name: bench.run(name) for name in bench.models} if runs else {}
    seconds = {SECONDS: f"{time.perf_counter() - started:.1f}"}
    provenance = bench.provenance() | {"tasks": [TASKS.spec(task) for task in chosen], "command": sys.argv[1:]}
    provenance |= {"queries": dict(bench.texts)}
    return Audit(
        f"Robustness of {f'{len(bench.models)} ' if bench.models else ''}rankers on {bench.collection.name}",
        bench.summary() | ({"kinds of queries": kinds_told} if kinds_told else {}) | seconds,
        tuple(results),
        provenance | ({"skipped": skipped} if skipped else {}),
        lists,
        skipped,
        bench.remarks() | ({} if bench.qrels else {"without judgements": UNJUDGED}),
        dict(bench.texts),
        settings,
    )


def read_audit(path: str | Path) -> Audit:
    """The audit that was saved in a folder, or that a results.json holds; without its runs, which stay there."""
    document = read_document(Path(path))
    try:
        about = document["about"]
        facts, skipped, remarks = ({**about[part]} for part in ("facts", "skipped", "remarks"))
        ruled = tuple(Ruling(**gate) for gate in document["gates"] if gate["rule"] not in DEFAULT_GATE)
        results, queries = tuple(document["results"]), {**document["queries"]}
        return Audit(about["title"], facts, results, document["provenance"], {}, skipped, remarks, queries, ruled=ruled)
    except (KeyError, TypeError) as error:
        raise BadInput(f"is not a whole audit ({type(error).__name__}: {error}); run the audit again", path) from error


def read_gates(rules: Iterable[str | Path | Gate], rankers: Any = ()) -> list[Gate]:
    """The gates of rules, for an audit of these rankers: what is wrong with one should be known before it begins."""
    gates = gates_of(rules)
    if models := named_models(rankers):
        check_rankers(gates, models)
    return gates


def save_ruled(audit: Audit, folder: Path, gates: Sequence[Gate], flags: Mapping[str, Any]) -> Audit:
    """Save an audit with what becomes of gates, and with the flags that set them.

    A gate that names nothing is an error; but the audit is saved before anybody hears of it.
    """
    settings = {**audit.settings, **{name: flag for name, flag in flags.items() if flag}} if audit.settings else {}
    audit = replace(audit, settings=settings)
    try:
        audit = replace(audit, ruled=tuple(audit.rulings(*gates)))
    finally:
        audit.save(folder)
    return audit


def renew_page(folder: str | Path, audit: Audit) -> None:
    """Write the page of an audit into its folder, in the place of the one that is there."""
    replace_one(Path(folder), "report.html", audit.report())


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
        say("There are no neural rankers here: pip install 'shaketable[neural]' adds dense, and a small one to train.")
    elif size > FEW:
        say(f"Neural rankers are left out: reading {size:,} documents takes them long. --ranker dense asks for one.")
    elif TRAIN not in bench.collection.splits:
        say("Neural rankers: dense. A small one is not trained, because there is no split train to learn from.")
        models |= named_models(["dense"])
    else:
        # candidates that came with the data may be those of other queries; the first stage finds some for all
        searched = bench.on(replace(bench.collection, candidates={}))
        kept = searched.is_fitted(SMALL)
        say(
            f"Neural rankers: dense, and a small one, {SMALL}, which "
            + ("was trained before." if kept else f"is trained first. {TRAINING}; the model is kept for next time.")
        )
        models |= named_models(["dense"]) | {"knrm": teach(searched)}
    return models

"""`audit`: robustness tasks on rankers, and their results."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from shaketable.api.corpora import add_corpora
from shaketable.api.first_documents import collect_first_documents
from shaketable.api.hits import list_first_hits, use_hits
from shaketable.api.languages import add_languages
from shaketable.api.options import (
    DEFAULT_DEPTH,
    DEFAULT_FIRST_STAGE,
    CollectionLike,
    ExperimentOptions,
    Notify,
    ignore_message,
)
from shaketable.api.planning.budget import AUTO, parse_budget
from shaketable.api.planning.run import BudgetedRun, run_within_budget
from shaketable.api.ranker_names import Rankers, as_list, build_models
from shaketable.api.restarts import restart_if_refuted
from shaketable.api.settings import SETTINGS_FILE, collect_settings, write_settings
from shaketable.api.workers import check_remote_loadable
from shaketable.core.documents import Run
from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.extras import format_install_command, has_extra
from shaketable.core.home import home_folder
from shaketable.core.progress import ProgressFactory, no_progress
from shaketable.core.protocols import Model, Task
from shaketable.core.registries import LEXICAL_RANKERS, TASKS
from shaketable.core.results import Finding, Result
from shaketable.datasets.load import load
from shaketable.datasets.query_types.labels import format_type_counts
from shaketable.datasets.splits import TEST, TRAIN
from shaketable.datasets.trec import write_run
from shaketable.executors.base import Executor, SerialExecutor
from shaketable.experiment import Experiment
from shaketable.experiment.provenance import describe_documents
from shaketable.files.atomic import atomic_write
from shaketable.report.audit_folder import read_date, replace_file, replace_files
from shaketable.report.files import (
    audit_to_dict,
    make_file_names,
    make_safe_name,
    read_results_json,
    render_json,
    render_system_tables,
    write_results,
)
from shaketable.report.finding_table import FindingTable
from shaketable.report.first_documents import FirstDocuments
from shaketable.report.gates import Gate, GateInput, GateResult, evaluate_gates, has_passed
from shaketable.report.notebook import render_audit, show_page
from shaketable.report.page import render_page
from shaketable.report.rules import parse_gates
from shaketable.report.verdict import DEFAULT_GATE_RULES, Verdict, build_verdict
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from shaketable.tasks.first_stage import FirstStage
from shaketable.tasks.runner import UNJUDGED_NOTE, list_default_tasks

if TYPE_CHECKING:
    import pandas as pd

SECONDS_FACT, DATE_FACT = "seconds", "date"
"""The facts that differ between two runs of one audit; results.json has neither, and manifest.json has the date."""

SMALL_RANKER_SPEC = "knrm(teacher='dense', sentences=400, steps=200)"
"""A small ranker distilled from `dense` on the train queries and on sentences of the passages."""
TRAINING_TIME_NOTE = "That takes about three minutes"
MAX_DOCUMENTS_WITHOUT_GPU = 5_000
"""The largest collection with neural default rankers: an encoder without a GPU reads it in a few minutes."""


@dataclass(frozen=True)
class Audit:
    """The result of an audit, or of an evaluation of runs.

    `audit["risk"]` is the result of the task risk.

    Parameters
    ----------
    title
        The title of the report.
    facts
        Facts about the data and the rankers, to show before the results.
    results
        The results of the tasks.
    provenance
        Everything that the results depend on, such as versions, seed and fingerprints.
    runs
        The run of each ranker; empty if the audit did not keep them.
    skipped
        The tasks that were skipped, with the reasons.
    remarks
        Remarks on the scores, by ranker.
    queries
        The texts of the queries, by query id.
    settings
        The flags that repeat the audit; empty if a ranker exists in memory only.
    gate_results
        The results of the user's gates; the verdict has those of the default gate.
    first_documents
        The first documents of each ranker for each query, with the beginning of their texts.
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
    gate_results: tuple[GateResult, ...] = ()
    first_documents: FirstDocuments = field(default_factory=FirstDocuments, repr=False)

    def __getitem__(self, task: str) -> Result:
        known = {result.task: result for result in self.results}
        if (name := task.replace("_", "-")) not in known:
            raise UnknownName("result", task, known)
        return known[name]

    def table(self, name: str) -> pd.DataFrame:
        """Return a table.

        Parameters
        ----------
        name
            The name of the table, such as "per query", or with its task: "risk: per query".

        Raises
        ------
        UnknownName
            If no result has such a table; the message names similar tables.
        """
        return self.find_table(name)[1]

    def find_table(self, name: str) -> tuple[str, pd.DataFrame]:
        """Return the full name and the data of a table.

        Parameters
        ----------
        name
            The name of the table, as for `table`.
        """
        full = {f"{result.task}: {title}": frame for result in self.results for title, frame in result.tables.items()}
        found = [(title, frame) for title, frame in full.items() if name in (title, title.partition(": ")[2])]
        if not found:
            plain = {title.partition(": ")[2] for title in full}
            shown = {f"{result.task}: {title}" for result in self.results for title in (result.brief or result.tables)}
            raise UnknownName("table", name, [*full, *plain] if get_close_matches(name, [*full, *plain]) else shown)
        return found[0]

    @property
    def findings(self) -> FindingTable[Finding]:
        """The numbers of all tasks."""
        return FindingTable(finding for result in self.results for finding in result.findings)

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with a row for each finding: value, interval, p, number of queries, facet and task."""
        return self.findings.to_frame()

    @cached_property
    def gate_input(self) -> GateInput:
        """The findings and verdicts that gates refer to."""
        return GateInput.from_results(self.results, self.verdict.ranker_verdicts, self.provenance)

    def evaluate_gates(self, *rules: str | Path | Gate) -> list[GateResult]:
        """Return the results of gates.

        Parameters
        ----------
        *rules
            Texts such as "bm25.nDCG@10>=0.4", files of rules, or gates. A rule without a ranker applies to all rankers
            under test.
        """
        return evaluate_gates(parse_gates(rules), self.gate_input)

    def check(self, *rules: str | Path | Gate) -> bool:
        """Return True if no gate fails; warnings are not failures.

        Parameters
        ----------
        *rules
            The gates, as for `evaluate_gates`.
        """
        return has_passed(self.evaluate_gates(*rules))

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict: a status for each ranker and facet, the worst findings, and the results of gates.

        `print(audit.verdict)` prints it as a terminal shows it.
        """
        return build_verdict(self.results, self.provenance, self.gate_results)

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as plain values for strict JSON."""
        return audit_to_dict(self.results, self.provenance, self.gate_results, self._build_context())

    def iterate_json(self) -> Iterator[str]:
        """Yield the JSON text of `to_dict` in parts, because an audit may have millions of table rows."""
        return render_json(self.results, self.provenance, self.gate_results, self._build_context())

    def _build_context(self) -> dict[str, Any]:
        """Return the data that a page and a comparison need besides the results, without running time and date."""
        facts = {name: fact for name, fact in self.facts.items() if name not in (SECONDS_FACT, DATE_FACT)}
        about = {"title": self.title, "facts": facts, "skipped": self.skipped, "remarks": self.remarks}
        return {"about": about, "queries": self.queries, "first_documents": self.first_documents.to_dict()}

    def to_latex(self) -> str:
        """Return the systems by measures, with significance, for LaTeX's booktabs; "" without such a table."""
        return "\n\n".join(render_system_tables(self.results, "latex").values())

    def to_markdown(self) -> str:
        """Return the systems by measures, with significance, as Markdown; "" without such a table."""
        return "\n\n".join(render_system_tables(self.results, "markdown").values())

    def to_html(self) -> str:
        """Return the report as an HTML page without external files."""
        facts = {**self.facts, **self.remarks}
        return render_page(self.title, facts, self.results, self.provenance, self.verdict, self.first_documents)

    def show(self) -> Path:
        """Open the report in the browser and return the path of its file, which is in a temporary folder."""
        return show_page(self.to_html())

    def _repr_html_(self) -> str:
        return render_audit(self.title, self.verdict)

    def save(self, folder: str | Path) -> None:
        """Write report.html, results.json, a CSV file for each table (tables/<task>/), and the runs.

        Parameters
        ----------
        folder
            The folder to write to. An audit in it is replaced as a whole; other files are kept (`report.audit_folder`).
        """

        def fill(staging: Path) -> None:
            write_results(staging, self.results, self.provenance, self.gate_results, self._build_context())
            if self.settings:
                write_settings(staging / SETTINGS_FILE, self.settings)
            for (name, run), file in zip(self.runs.items(), make_file_names(self.runs, ".run"), strict=True):
                write_run(run, staging / "runs" / file, tag=make_safe_name(name))
            with atomic_write(staging / "report.html") as out:
                out.write(self.to_html())

        replace_files(Path(folder), fill, self.facts.get(DATE_FACT, ""))


def audit(
    data: CollectionLike | Sequence[CollectionLike] = "sample",
    rankers: Rankers = (),
    tasks: str | Task | Iterable[str | Task] = (),
    languages: str | Iterable[str] = (),
    *,
    runs: bool = True,
    gated: bool = False,
    budget: str | int | None = AUTO,
    price_per_1k: float | None = None,
    **options: Unpack[ExperimentOptions],
) -> Audit:
    """Run robustness tasks on rankers and return the results.

    Parameters
    ----------
    data
        The collection: "sample", the path of a BEIR folder, "irds:ID", or a `Collection`. Rankers rank the first
        collection of a list; the task corpus-shift uses the others.
    rankers
        One or several rankers: texts such as "bm25(k1=0.9)", objects, or functions. A mapping gives them names. By
        default, the audit chooses rankers that fit the collection and passes their names to `notify`.
    tasks
        One or several tasks, as texts or objects. By default, every task that applies to the rankers and the data.
    languages
        Languages other than English in which to test the rankers, such as "de,fr,ru". By default, those that the
        queries of the collection declare.
    runs
        If True, the result has the run of each ranker. If False, rankers score only the pairs that the tasks need.
    gated
        If True, add the comparison with the first stage, which the default gate needs.
    budget
        The work of the rankers, without lexical ones: a time ("10m"), a number of query-document pairs (20_000), money
        ("$5", with `price_per_1k`), or None for no limit. By default a slow ranker gets about ten minutes, and a fast
        one has no limit. The audit plans how to use the budget and passes the plan to `notify`.
    price_per_1k
        The price of 1,000 requests to an endpoint, for a budget in money.
    **options
        split, split_ratio, query_types, max_queries, candidates, first_stage, depth, seed: the queries, and the
        documents to rank (`shaketable.api.options.CollectionOptions`).
        keep_going, progress, notify, executor: errors, progress bars, messages and workers
        (`shaketable.api.options.RunOptions`).

    Returns
    -------
    Audit
        The tables, findings and figures of all tasks. `audit.verdict` summarises them, and `audit.save(folder)`
        writes the report.

    Raises
    ------
    ShaketableError
        If the data, a ranker or a task is invalid, or a ranker fails and `keep_going` is not set.

    Examples
    --------
    >>> import shaketable as st
    >>> done = st.audit("sample", "bm25", "effectiveness", max_queries=5)
    >>> done["effectiveness"].task
    'effectiveness'
    """
    started, started_s = time.perf_counter(), time.monotonic()
    allowed = parse_budget(budget, price_per_1k)
    models, chosen, first = prepare_audit(data, rankers, tasks)
    if gated and not any(isinstance(task, FirstStage) for task in chosen):
        chosen = [FirstStage(), *chosen]
    notify = options.get("notify", ignore_message)
    experiment = list_first_hits(open_experiment(first, models, **options))
    chosen = add_languages(chosen, languages, experiment.queries, named=bool(as_list(tasks)))
    if not models and any(getattr(task, "needs_rankers", True) for task in chosen):
        experiment = replace(experiment, models=choose_default_models(experiment, notify))
    notify(
        f"The collection {experiment.collection.name} has {describe_documents(experiment.collection)}, "
        f"{len(experiment.queries):,} queries."
        + (f" The rankers are {', '.join(experiment.models)}." if experiment.models else "")
    )

    def run() -> tuple[BudgetedRun, Mapping[str, Run]]:
        named = bool(as_list(tasks))
        planned = run_within_budget(experiment, chosen, allowed, named, price_per_1k, notify, started_s)
        return planned, planned.experiment.get_runs() if runs else {}

    done, lists = restart_if_refuted(experiment, run, notify)
    settings = collect_settings(first, rankers, experiment, chosen, options)
    settings |= {"budget": done.setting} if settings else {}
    requested, experiment, results, skipped = experiment, done.experiment, done.results, done.skipped
    typed = options.get("query_types") or any(query.type for query in experiment.queries.values())
    types = {"query types": format_type_counts(experiment.queries)} if typed else {}
    when = {DATE_FACT: date.today().isoformat(), SECONDS_FACT: f"{time.perf_counter() - started:.1f}"}
    return Audit(
        f"Robustness of {f'{len(experiment.models)} ' if experiment.models else ''}rankers on "
        f"{experiment.collection.name}",
        experiment.summarize() | types | when,
        results,
        _collect_provenance(experiment, requested, chosen, skipped) | done.collect_provenance(),
        lists,
        skipped,
        experiment.collect_remarks() | ({} if experiment.qrels else {"without judgements": UNJUDGED_NOTE}),
        dict(experiment.texts),
        settings,
        first_documents=collect_first_documents(experiment, lists),
    )


def _collect_provenance(
    experiment: Experiment, requested: Experiment, tasks: Iterable[Task], skipped: Mapping[str, str]
) -> dict[str, Any]:
    """Return the provenance for results.json; a budget may sample the queries of the requested experiment."""
    provenance = experiment.collect_provenance()
    provenance["collection"]["queries"] = len(requested.queries)
    own = {"tasks": [TASKS.spec(task) for task in tasks], "command": sys.argv[1:], "queries": dict(experiment.texts)}
    return provenance | own | ({"skipped": skipped} if skipped else {})


def read_audit(path: str | Path, *, allow_edited: bool = False) -> Audit:
    """Read a saved audit, without its runs.

    Parameters
    ----------
    path
        The folder of the audit, or its results.json.
    allow_edited
        If True, read a results.json that was edited or damaged since the audit wrote it.

    Returns
    -------
    Audit
        The audit as it was saved.

    Raises
    ------
    BadInput
        If the file is missing, is not a complete audit, or was edited.

    Examples
    --------
    >>> import shaketable as st
    >>> print(st.read_audit("shaketable-audit").verdict)  # doctest: +SKIP
    """
    document = read_results_json(Path(path), allow_edited=allow_edited)
    try:
        about = document["about"]
        facts, skipped, remarks = ({**about[part]} for part in ("facts", "skipped", "remarks"))
        facts |= {DATE_FACT: written} if (written := read_date(Path(path))) else {}
        ruled = tuple(GateResult(**gate) for gate in document["gate_results"] if gate["rule"] not in DEFAULT_GATE_RULES)
        results, queries = tuple(document["results"]), {**document["queries"]}
        return Audit(
            about["title"],
            facts,
            results,
            document["provenance"],
            {},
            skipped,
            remarks,
            queries,
            gate_results=ruled,
            first_documents=FirstDocuments.from_dict(document.get("first_documents", {})),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise BadInput(
            f"is not a complete audit ({type(error).__name__}: {error}); run the audit again", path
        ) from error


def rewrite_page(folder: str | Path, audit: Audit) -> None:
    """Replace the report page in the folder of an audit."""
    replace_file(Path(folder), "report.html", audit.to_html())


def prepare_audit(
    data: CollectionLike | Sequence[CollectionLike], rankers: Rankers, tasks: str | Task | Iterable[str | Task]
) -> tuple[dict[str, Model], list[Task], CollectionLike]:
    """Return the models, the tasks and the collection of an audit."""
    models = build_models(rankers)
    named = as_list(tasks) or list_default_tasks(models.values())
    chosen = [TASKS.build(task) if isinstance(task, str) else task for task in named]
    first, *others = as_list(data)
    return models, add_corpora(chosen, others) if others else chosen, first


def open_experiment(
    data: CollectionLike,
    models: Mapping[str, Model],
    *,
    split: str | None = None,
    split_ratio: str = "",
    query_types: str | Path | None = None,
    candidates: str | Path | None = None,
    first_stage: str = DEFAULT_FIRST_STAGE,
    depth: int = DEFAULT_DEPTH,
    max_queries: int | None = None,
    seed: int = 0,
    keep_going: bool = False,
    progress: ProgressFactory = no_progress,
    notify: Notify = ignore_message,
    executor: Executor | None = None,
) -> Experiment:
    """Return an experiment on a collection, with a score cache under $SHAKETABLE_HOME."""
    whole = load(data, None, candidates, split_ratio, seed, query_types)
    whole, models, first_stage = use_hits(whole, models, first_stage)
    part = (TEST if TEST in whole.splits else None) if split is None else None if split == "all" else split
    store = Store(home_folder() / "scores.sqlite")
    engine = ScoringEngine(store, progress=progress, keep_going=keep_going, executor=executor or SerialExecutor())
    experiment = Experiment(whole, models, engine, seed, depth, max_queries, first_stage, part)
    check_remote_loadable(experiment)
    if query_types:
        notify(f"Query types from {query_types}: {format_type_counts(experiment.queries)}.")
    return experiment


def choose_default_models(
    experiment: Experiment,
    notify: Notify,
    train_small: Callable[[Experiment], Model] = lambda experiment: experiment.fit(SMALL_RANKER_SPEC),
) -> dict[str, Model]:
    """Return the default rankers: lexical, and neural if these are installed and the collection is small."""
    models = build_models([*LEXICAL_RANKERS, "rm3"])
    size = len(experiment.collection.docs)
    if not has_extra("neural"):
        added = "dense and a small trainable ranker"
        notify(f"Neural rankers are not installed. To add {added}: {format_install_command('neural')}.")
    elif size > MAX_DOCUMENTS_WITHOUT_GPU:
        notify(f"Neural rankers are left out: they are slow on {size:,} documents. Add one with --ranker dense.")
    elif TRAIN not in experiment.collection.splits:
        notify("Neural rankers: dense. No small ranker is trained, because the collection has no train split.")
        models |= build_models(["dense"])
    else:
        # candidates of the data may not cover the train queries; the first stage covers all queries
        searched = experiment.with_collection(replace(experiment.collection, candidates={}))
        kept = searched.is_fitted(SMALL_RANKER_SPEC)
        notify(
            f"Neural rankers: dense, and a small one, {SMALL_RANKER_SPEC}, which "
            + ("is already trained." if kept else f"is trained first. {TRAINING_TIME_NOTE}; the model is cached.")
        )
        models |= build_models(["dense"]) | {"knrm": train_small(searched)}
    return models

"""`shaketable audit`: every task that applies, then a table, a report page and an exit code."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from shaketable.cli.options import Candidates, Data, Depth, Json, KeepGoing, Limit, Rankers, Seed, Split


def audit(
    data: Data = "sample",
    ranker: Rankers = None,
    task: Annotated[
        list[str] | None, typer.Option("--task", help="Only this task, e.g. risk(baseline='ql'); repeat it.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for report, tables and runs.")] = Path("shaketable-audit"),
    split: Split = None,
    candidates: Candidates = None,
    depth: Depth = 100,
    limit: Limit = None,
    seed: Seed = 0,
    fail_under: Annotated[
        list[str] | None,
        typer.Option("--fail-under", help="Exit code 1 unless this holds, e.g. 'bm25.nDCG@10>=0.4'; repeat it."),
    ] = None,
    keep_going: KeepGoing = False,
    json_to: Json = None,
) -> None:
    """Put rankers on the table: every task that applies, on the bundled sample unless you bring data."""
    from shaketable.bench import Bench
    from shaketable.cli.console import emit_json, progress, say, stdout
    from shaketable.cli.defaults import default_models
    from shaketable.cli.open import open_collection, open_models
    from shaketable.data.load import load
    from shaketable.data.trec import write_run
    from shaketable.files import home
    from shaketable.registry import TASKS
    from shaketable.report.files import audit_json, safe_name, write_results
    from shaketable.report.gates import Gate, verdicts
    from shaketable.report.page import write_page
    from shaketable.report.terminal import show_result
    from shaketable.score.road import Road
    from shaketable.score.store import Store
    from shaketable.task.audit import run_tasks

    started = time.perf_counter()
    gates = [Gate.parse(rule) for rule in fail_under or ()]
    tasks = [TASKS.build(text) for text in task or TASKS]
    models = open_models(ranker or ())
    collection = open_collection(data, split, candidates)
    models = models or default_models(load(data), say)
    road = Road(Store(home() / "scores.sqlite"), watch=progress, go_on=keep_going)
    bench = Bench(collection, models, road, seed=seed, depth=depth, limit=limit)
    say(f"{collection.name}: {len(collection.docs)} documents, {len(bench.queries)} queries; {', '.join(models)}")

    results, skipped = run_tasks(bench, tasks)
    found = verdicts(gates, results)
    provenance = bench.provenance()
    if skipped:
        provenance["skipped"] = skipped

    console = stdout(json_to)
    for result in results:
        show_result(console, result)
    for reason in skipped.values():
        console.print(reason, markup=False)
    write_results(out, results, provenance)
    for name in models:
        write_run(bench.run(name), out / "runs" / f"{safe_name(name)}.run", tag=safe_name(name))
    for name, remark in bench.remarks().items():
        console.print(f"{name}: {remark}", markup=False)
    summary = bench.summary() | bench.remarks() | {"seconds": f"{time.perf_counter() - started:.1f}"}
    write_page(
        out / "report.html", f"Robustness of {len(models)} rankers on {collection.name}", summary, results, provenance
    )
    if json_to:
        emit_json(audit_json(results, provenance), json_to)
    for verdict in found:
        console.print(str(verdict), markup=False)
    say(f"report: {out / 'report.html'}   tables and runs: {out}")
    if not all(verdict.held for verdict in found):
        raise typer.Exit(1)

"""`shaketable audit`: every task that applies, then a table, a report page and an exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from shaketable.cli import options as o


def audit(
    data: o.Collections = None,
    queries: o.QueriesFile = None,
    docs: o.DocsFile = None,
    qrels: o.QrelsFile = None,
    ranker: o.Rankers = None,
    task: o.Tasks = None,
    out: o.Out = Path("shaketable-audit"),
    split: o.Split = None,
    cut: o.Cut = "",
    kinds: o.Kinds = None,
    candidates: o.Candidates = None,
    first_stage: o.FirstStage = "bm25",
    depth: o.Depth = 100,
    limit: o.Limit = None,
    seed: o.Seed = 0,
    fail_under: o.Rules = None,
    keep_going: o.KeepGoing = False,
    json_to: o.Json = None,
    jobs: o.Jobs = None,
    ray: o.Ray = None,
    worker_cpus: o.WorkerCpus = None,
    worker_gpus: o.WorkerGpus = None,
    device: o.Device = "auto",
    dtype: o.Dtype = None,
    batch_tokens: o.BatchTokens = None,
    plan: o.PlanOnly = False,
    price_per_1k: o.Price = None,
    seconds_per_request: o.Latency = 0.2,
) -> None:
    """Put rankers on the table: every task that applies, on the bundled sample unless you bring data."""
    from shaketable.cli.console import emit_json, judge, progress, say, show, show_plan
    from shaketable.data.load import chosen_data
    from shaketable.door import audit as door
    from shaketable.door.plan import plan as planned
    from shaketable.report.folder import check_writable

    rules = judge(fail_under or [])  # a mistyped rule, or a folder that cannot be written to, must not cost an audit
    check_writable(out)
    given: Any = (chosen_data(data or "sample", queries, docs, qrels), ranker or (), task or ())
    where: Any = {"split": split, "cut": cut, "candidates": candidates, "first_stage": first_stage, "depth": depth}
    where |= {"kinds": kinds, "limit": limit, "seed": seed, "watch": progress, "say": say}
    if plan:
        show_plan(planned(*given, **where, price_per_1k=price_per_1k, seconds_per_request=seconds_per_request), json_to)
        return
    hands = door.workers(jobs, ray, worker_cpus, worker_gpus, device, dtype, batch_tokens)
    done = door.audit(*given, **where, keep_going=keep_going, executor=hands)
    done.save(out)
    if json_to:
        emit_json(done.json(), json_to)
    show(done, json_to)
    say(f"report: {out / 'report.html'}   tables and runs: {out}")
    if not rules(done):
        raise typer.Exit(1)

"""`shaketable audit`: every task that applies, then a table, a report page and an exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from shaketable.cli import options as o
from shaketable.cli.config import Config


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
    rules: o.RuleFiles = None,
    gate: o.DefaultGate = False,
    tables: o.AllTables = False,
    table: o.TableNames = None,
    keep_going: o.KeepGoing = False,
    json_to: o.Json = None,
    junit_to: o.Junit = None,
    markdown_to: o.Summary = None,
    badge_to: o.Badge = None,
    config: Config = None,
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
    """Audit rankers: run every robustness task that applies to them and to the data, and write a report."""
    import shaketable as st
    from shaketable.cli.console import conclude, say, show_plan
    from shaketable.cli.progress import progress
    from shaketable.data.load import chosen_data
    from shaketable.door.audit import read_gates, save_ruled
    from shaketable.door.plan import check_names
    from shaketable.door.plan import plan as planned
    from shaketable.report.folder import check_writable

    gates = read_gates([*(rules or []), *(fail_under or [])], ranker or ())  # a mistake in one must not cost an audit
    check_writable(out)
    given: Any = (chosen_data(data or "sample", queries, docs, qrels), ranker or (), task or ())
    where: Any = {"split": split, "cut": cut, "candidates": candidates, "first_stage": first_stage, "depth": depth}
    where |= {"kinds": kinds, "limit": limit, "seed": seed, "watch": progress, "say": say}
    check_names(gates, *given, **where)
    if plan:
        where |= {"price_per_1k": price_per_1k, "seconds_per_request": seconds_per_request}
        return show_plan(planned(*given, **where), json_to)
    hands = st.workers(jobs, ray, worker_cpus, worker_gpus, device, dtype, batch_tokens)
    done = st.audit(*given, **where, keep_going=keep_going, executor=hands, gated=gate)
    done = save_ruled(done, out, gates, {"fail-under": fail_under, "rules": rules, "gate": gate})
    if not conclude(done, out, gate, tables, table, json_to, junit_to, markdown_to, badge_to):
        raise typer.Exit(1)
    return None

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
    plan: o.PlanOnly = False,
    price_per_1k: o.Price = None,
    seconds_per_request: o.Latency = 0.2,
) -> None:
    """Put rankers on the table: every task that applies, on the bundled sample unless you bring data."""
    from shaketable.cli.console import emit_json, judge, progress, say, show, show_plan
    from shaketable.data.load import chosen_data
    from shaketable.door import plan as planning
    from shaketable.door.audit import audit as run
    from shaketable.report.folder import check_writable

    rules = judge(fail_under or [])  # a mistyped rule, or a folder that cannot be written to, must not cost an audit
    check_writable(out)
    given: Any = (chosen_data(data or "sample", queries, docs, qrels), ranker or (), task or ())
    where: Any = {"split": split, "cut": cut, "candidates": candidates, "first_stage": first_stage, "depth": depth}
    where |= {"kinds": kinds, "limit": limit, "seed": seed, "watch": progress, "say": say}
    planning.check_rules(fail_under or [], *given, **where)
    if plan:
        cost = planning.plan(*given, **where, price_per_1k=price_per_1k, seconds_per_request=seconds_per_request)
        show_plan(cost, json_to)
        return
    done = run(*given, **where, keep_going=keep_going)
    done.save(out)
    if json_to:
        emit_json(done.json(), json_to)
    show(done, json_to)
    say(f"report: {out / 'report.html'}   tables and runs: {out}")
    if not rules(done):
        raise typer.Exit(1)

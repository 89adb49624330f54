"""`shaketable parity`: are two rankers the same one, in two servers, two precisions, or before and after an upgrade?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from shaketable.cli import options as o


def parity(
    ranker: o.Rankers = None,
    data: o.Data = "sample",
    queries: o.QueriesFile = None,
    docs: o.DocsFile = None,
    qrels: o.QrelsFile = None,
    reference: o.Reference = "",
    repeats: o.Repeats = 10,
    measure: o.Measure = "nDCG@10",
    out: o.Out = Path("shaketable-parity"),
    split: o.Split = None,
    candidates: o.Candidates = None,
    first_stage: o.FirstStage = "bm25",
    depth: o.Depth = 100,
    limit: o.Limit = None,
    seed: o.Seed = 0,
    fail_under: o.Rules = None,
    keep_going: o.KeepGoing = False,
    json_to: o.Json = None,
) -> None:
    """Compare rankers that should give the same scores, for example one model in two servers, and say if they do."""
    from shaketable.cli.console import emit_json, judge, say, show
    from shaketable.cli.progress import progress
    from shaketable.data.load import chosen_data
    from shaketable.door.parity import parity as run
    from shaketable.report.folder import check_writable

    rules = judge(fail_under or [])
    check_writable(out)
    what: Any = {"reference": reference, "repeats": repeats, "measure": measure}
    where: Any = {"split": split, "candidates": candidates, "first_stage": first_stage, "depth": depth, "limit": limit}
    how: Any = {"seed": seed, "keep_going": keep_going, "watch": progress, "say": say}
    done = run(ranker or (), chosen_data(data, queries, docs, qrels), **what, **where, **how)
    done.save(out)
    if json_to:
        emit_json(done.json(), json_to)
    show(done, json_to)
    say(f"The report is {out / 'report.html'}; the tables are in {out}.")
    if not rules(done):
        raise typer.Exit(1)

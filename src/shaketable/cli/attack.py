"""`shaketable attack`: how easily does a document buy a rank?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from shaketable.cli import options as o


def attack(
    data: o.Data = "sample",
    ranker: o.Rankers = None,
    recipe: o.Recipes = None,
    goal: o.GoalText = "promote",
    targets: o.Targets = 9,
    queries: o.AttackedQueries = 0,
    group: o.Group = 1,
    budget: o.Budget = None,
    attacked: o.AttackedFile = None,
    any_grade: o.AnyGrade = False,
    out: o.AttackedOut = None,
    report: o.ReportFolder = Path("shaketable-attack"),
    language: o.LanguageTool = "light",
    split: o.Split = None,
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
) -> None:
    """Attack a ranker: change documents, by recipes such as synonyms or stuffed keywords, until they stand higher."""
    import shaketable as st
    from shaketable.cli.console import emit_json, judge, say, show
    from shaketable.cli.progress import progress
    from shaketable.door.attack import written
    from shaketable.report.folder import check_writable

    rules = judge(fail_under or [])
    check_writable(report)
    what: Any = {"goal": goal, "targets": targets, "queries": queries, "group": group, "budget": budget}
    which: Any = {"attacked": attacked, "any_grade": any_grade, "language": language}
    where: Any = {"split": split, "candidates": candidates, "first_stage": first_stage, "depth": depth, "limit": limit}
    how: Any = {"out": out, "seed": seed, "keep_going": keep_going, "watch": progress, "say": say}
    how["executor"] = st.workers(jobs, ray, worker_cpus, worker_gpus, device, dtype, batch_tokens)
    chosen: Any = {"recipes": recipe} if recipe else {}
    done = st.attack(data, ranker or (), **chosen, **what, **which, **where, **how)
    done.save(report)
    if json_to:
        emit_json(done.json(), json_to)
    show(done, json_to)
    say(f"The report is {report / 'report.html'}; the tables are in {report}.")
    if out:
        say(written(done, out))
    if not rules(done):
        raise typer.Exit(1)

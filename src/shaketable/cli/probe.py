"""`shaketable probe`: what does a ranker prefer, of two texts that differ in one thing?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from shaketable.cli import options as o


def probe(
    data: o.Data = "sample",
    queries: o.QueriesFile = None,
    docs: o.DocsFile = None,
    qrels: o.QrelsFile = None,
    ranker: o.Rankers = None,
    test: o.Probes = None,
    pairs: o.OwnPairs = None,
    out: o.Out = Path("shaketable-probe"),
    documents: o.Documents = 0,
    delta: o.Delta = None,
    language: o.LanguageTool = "light",
    stopwords: o.StopList = "english",
    correction: o.Correction = "bonferroni",
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
    """Probe what rankers prefer, by pairs of texts that differ in one thing: word order, length, negation, ..."""
    from shaketable.cli.console import emit_json, judge, say, show
    from shaketable.cli.progress import progress
    from shaketable.data.load import chosen_data
    from shaketable.door.probe import failed_pairs
    from shaketable.door.probe import probe as run
    from shaketable.door.workers import workers
    from shaketable.report.folder import check_writable

    rules = judge(fail_under or [])
    check_writable(out)
    what: Any = {"pairs": pairs, "delta": delta, "documents": documents, "language": language, "stopwords": stopwords}
    where: Any = {"split": split, "candidates": candidates, "first_stage": first_stage, "depth": depth, "limit": limit}
    how: Any = {"correction": correction, "seed": seed, "keep_going": keep_going, "watch": progress, "say": say}
    how["executor"] = workers(jobs, ray, worker_cpus, worker_gpus, device, dtype, batch_tokens)
    done = run(chosen_data(data, queries, docs, qrels), ranker or (), test or (), **what, **where, **how)
    done.save(out)
    if json_to:
        emit_json(done.json(), json_to)
    show(done, json_to)
    say(f"The report is {out / 'report.html'}; the tables are in {out}.")
    if failed := failed_pairs(done):
        say(f"{failed} of your own pairs did not come out as expected.", always=True)
    if failed or not rules(done):
        raise typer.Exit(1)

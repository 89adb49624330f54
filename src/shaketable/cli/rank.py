"""`shaketable rank`: a collection and a ranker in, a TREC run out."""

from __future__ import annotations

from typing import Any

from shaketable.cli import options as o


def rank(
    ranker: o.OneRanker,
    out: o.RunOut,
    data: o.Data = "sample",
    queries: o.QueriesFile = None,
    docs: o.DocsFile = None,
    split: o.Split = "all",
    candidates: o.Candidates = None,
    first_stage: o.FirstStage = "bm25",
    depth: o.Depth = 1000,
    limit: o.Limit = None,
    tag: o.Tag = None,
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
    """Rank documents for every query of a collection, and write the lists to a TREC run file."""
    from shaketable.cli.console import emit_json, say
    from shaketable.cli.progress import progress
    from shaketable.data.load import chosen_data
    from shaketable.door.rank import ranked, write_ranked
    from shaketable.door.workers import workers

    how: Any = {"split": split, "candidates": candidates, "first_stage": first_stage, "depth": depth, "limit": limit}
    how["executor"] = workers(jobs, ray, worker_cpus, worker_gpus, device, dtype, batch_tokens)
    bench = ranked(chosen_data(data, queries, docs), ranker, **how, keep_going=keep_going, watch=progress)
    run = write_ranked(bench, out, tag)
    (name,) = bench.models
    if json_to:
        spent = {k: vars(v) for k, v in bench.road.spent.items()}
        emit_json({"schema": "shaketable.rank/1", "run": str(out), "queries": len(run), "spent": spent}, json_to)
    for who, remark in bench.remarks().items():
        say(f"{who}: {remark}")
    say(
        f"{name} ranked {sum(map(len, run.values())):,} documents for {len(run):,} of {len(bench.queries):,} queries: "
        f"{out}"
    )

"""`shaketable rank`: a TREC run of a ranker on a collection."""

from __future__ import annotations

from shaketable.cli.options.data import Data, FileFlags, RunCollectionFlags
from shaketable.cli.options.output import Json, Tag, WriteRun
from shaketable.cli.options.performance import RunFlags
from shaketable.cli.options.rankers import OneRanker


def rank(
    *,
    ranker: OneRanker,
    write_run: WriteRun,
    data: Data = "sample",
    files: FileFlags,
    tag: Tag = None,
    json_to: Json = None,
    collection: RunCollectionFlags,
    run: RunFlags,
) -> None:
    """Rank documents for each query of a collection, and write a TREC run file."""
    from shaketable.api.rank import open_rank_experiment, write_ranking
    from shaketable.cli.console import emit_json, notify

    source = files.select_source(data)
    experiment = open_rank_experiment(source, ranker, **collection.to_options(), **run.to_options())
    lists = write_ranking(experiment, write_run, tag, notify)
    (name,) = experiment.models
    if json_to:
        spent = {k: vars(v) for k, v in experiment.engine.usage.items()}
        result = {"schema": "shaketable.rank/1", "run": str(write_run), "queries": len(lists), "spent": spent}
        emit_json(result, json_to)
    for ranker_name, remark in experiment.collect_remarks().items():
        notify(f"{ranker_name}: {remark}")
    notify(
        f"{name} ranked {sum(map(len, lists.values())):,} documents for {len(lists):,} of {len(experiment.queries):,} "
        f"queries: {write_run}"
    )

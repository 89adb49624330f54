"""`shaketable rank`: a collection and a ranker in, a TREC run out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shaketable.cli.options import Candidates, Data, Depth, Json, KeepGoing, Limit, Split


def rank(
    ranker: Annotated[str, typer.Option("--ranker", help="See 'shaketable list rankers'.")],
    out: Annotated[Path, typer.Option("--out", help="The TREC run to write; gzipped if it ends in .gz.")],
    data: Data = "sample",
    split: Split = "all",
    candidates: Candidates = None,
    depth: Depth = 1000,
    limit: Limit = None,
    tag: Annotated[str | None, typer.Option("--tag", help="The run's name, its last column.")] = None,
    keep_going: KeepGoing = False,
    json_to: Json = None,
) -> None:
    """Rank a collection's queries: a retriever searches it, any other ranker re-ranks candidates (bm25's best)."""
    from dataclasses import replace

    from shaketable.bench import Bench
    from shaketable.cli.console import emit_json, progress, say
    from shaketable.cli.open import open_collection, open_models
    from shaketable.data.trec import write_run
    from shaketable.files import home
    from shaketable.report.files import safe_name
    from shaketable.score.road import Road
    from shaketable.score.store import Store

    models = open_models([ranker])
    collection = replace(open_collection(data, split, candidates), qrels={})  # unjudged queries are ranked as well
    road = Road(Store(home() / "scores.sqlite"), watch=progress, go_on=keep_going)
    bench = Bench(collection, models, road, depth=depth, limit=limit)
    (name,) = models
    run = bench.run(name)
    write_run(run, out, tag=tag or safe_name(name))
    if json_to:
        spent = {k: vars(v) for k, v in road.spent.items()}
        emit_json({"schema": "shaketable.rank/1", "run": str(out), "queries": len(run), "spent": spent}, json_to)
    for remark in bench.remarks().values():
        say(f"{name}: {remark}")
    say(f"{out}: {len(run)} of {len(bench.queries)} queries, {sum(map(len, run.values()))} documents, by {name}")

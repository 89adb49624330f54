"""A collection and a ranker in, a run out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from shaketable.bench import Bench
from shaketable.data.load import load
from shaketable.data.trec import write_run
from shaketable.door.audit import open_bench
from shaketable.door.names import named_models
from shaketable.report.files import safe_name
from shaketable.types import Collection, Run


def rank(data: str | Path | Collection = "sample", ranker: Any = "bm25", *, depth: int = 1000, **options: Any) -> Run:
    """Rank the queries of a collection: qid -> docno -> score.

    A retriever searches the collection, any other ranker re-ranks what the first stage finds. The options are those of
    `audit`.
    """
    bench = ranked(data, ranker, depth=depth, **options)
    return bench.run(next(iter(bench.models)))


def ranked(
    data: str | Path | Collection,
    ranker: Any,
    *,
    split: str | None = "all",
    candidates: str | Path | None = None,
    cut: str = "",
    seed: int = 0,
    **options: Any,
) -> Bench:
    """The bench that ranks: unjudged queries too, so judgements are left out."""
    whole = load(data, None if split in (None, "all") else split, candidates, cut, seed)
    return open_bench(replace(whole, qrels={}), named_models([ranker]), split="all", seed=seed, **options)


def write_ranked(bench: Bench, out: Path, tag: str | None = None) -> Run:
    """Rank, and write the run as a TREC file."""
    (name,) = bench.models
    run = bench.run(name)
    write_run(run, out, tag=tag or safe_name(name))
    return run

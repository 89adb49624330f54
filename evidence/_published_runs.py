"""Sixteen published runs on TREC Deep Learning 2019: BM25, ColBERTv2, eight dense retrievers and six re-rankers."""

from __future__ import annotations

from collections.abc import Sequence

from evidence import DATA
from shaketable.core.results import ScoreTable
from shaketable.datasets.trec import read_qrels, read_run
from shaketable.measures.effectiveness import score_tables

FOLDER = DATA / "runs" / "dl19"
BASELINE = "bm25"


def read_published_runs(measures: Sequence[str], names: str = "*") -> dict[str, ScoreTable]:
    """Return measures of the runs whose names match a pattern: measure -> runs by queries."""
    runs = {path.name.removesuffix(".run.gz"): read_run(path) for path in sorted(FOLDER.glob(f"{names}.run.gz"))}
    return dict(zip(measures, score_tables(measures, read_qrels(FOLDER / "qrels.txt"), runs), strict=True))

"""Flags for the collection, its queries, and the documents to rank."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from shaketable.api.options import (
    DEFAULT_DEPTH,
    DEFAULT_FIRST_STAGE,
    RUN_DEPTH,
    CandidateOptions,
    CollectionOptions,
)
from shaketable.cli import completion
from shaketable.cli.options.groups import make_repeatable

Named = TypeVar("Named")

COLLECTION_HELP = (
    "The collection: 'sample' (bundled), the path of a BEIR folder, or 'irds:ID' for a data set of ir_datasets, for "
    "example irds:beir/scifact/test."
)
_COLLECTION = typer.Option("--data", metavar="COLLECTION", help=COLLECTION_HELP)
Data = Annotated[str, _COLLECTION]
OptionalData = Annotated[str | None, _COLLECTION]
Collections = Annotated[
    list[str] | None,
    make_repeatable("--data", f"{COLLECTION_HELP} The task corpus-shift uses the second and further collections.",
                    metavar="COLLECTION"),
]  # fmt: skip
QueriesFile = Annotated[
    Path | None,
    typer.Option("--queries", metavar="FILE", help="A file of your own queries, in place of --data: JSONL, TSV, CSV or "
                 "Parquet with a column 'query' (or 'text'), or lines with an id, a tab and a query. A column 'count' "
                 "(or 'frequency' or 'n') says how often each query was asked, and gives it that weight."),
]  # fmt: skip
DocsFile = Annotated[
    Path | None,
    typer.Option("--docs", metavar="FILE", help="With --queries: a file of the documents, JSONL, TSV, CSV or Parquet "
                 "with a column 'text' (or 'body') and, where they are known, 'docno' (or 'id'), 'title' and 'url'."),
]  # fmt: skip
QrelsFile = Annotated[
    Path | None,
    typer.Option("--qrels", metavar="FILE", help="A file of relevance judgements, in the four columns of TREC or as a "
                 "TSV file of BEIR."),
]  # fmt: skip
Split = Annotated[
    str | None,
    typer.Option("--split", metavar="SPLIT", help="Measure on the queries of this split of the collection, for example "
                 "'test'; 'all' takes every query."),
]  # fmt: skip
SplitRatio = Annotated[
    str,
    typer.Option("--split-ratio", metavar="SHARES", help="Split the judged queries of a collection that has no splits "
                 "into train, validation and test queries; the shares are in per cent, for example 60/20/20."),
]  # fmt: skip
QueryTypes = Annotated[
    str | None,
    typer.Option("--query-types", metavar="SOURCE", help="Where the type of each query, such as 'location' or "
                 "'numeric', comes from: 'rules' (built in), or a TSV, CSV or JSONL file with a column 'qid' (or "
                 "'text') and a column 'type'. By default, the types that come with the collection are used."),
]  # fmt: skip
Candidates = Annotated[
    Path | None,
    typer.Option("--candidates", metavar="RUN", help="A TREC run file: every ranker ranks the documents of its lists, "
                 "and no others."),
]  # fmt: skip
FirstStage = Annotated[
    str,
    typer.Option("--first-stage", metavar="RANKER", autocompletion=completion.rankers, help="The ranker that searches "
                 "the collection for the re-rankers, which cannot search: they re-order the documents that it finds."),
]  # fmt: skip
Depth = Annotated[
    int,
    typer.Option("--depth", min=1, metavar="NUMBER", help="The number of documents that are ranked for each query."),
]
MaxQueries = Annotated[
    int | None,
    typer.Option("--max-queries", min=1, metavar="NUMBER", help="Take only the first queries of the collection, at "
                 "most this many, for a quick look."),
]  # fmt: skip
Seed = Annotated[
    int,
    typer.Option("--seed", metavar="NUMBER", help="The number from which everything random is drawn: the same seed "
                 "gives the same result."),
]  # fmt: skip


@dataclass(frozen=True)
class FileFlags:
    """The files of a collection without a folder."""

    queries: QueriesFile = None
    docs: DocsFile = None
    qrels: QrelsFile = None

    def select_source(self, data: Named) -> Named | str:
        """Return the spec of a collection of these files, or `data` if there are none."""
        from shaketable.datasets.load import select_source

        return select_source(data, self.queries, self.docs, self.qrels)


@dataclass(frozen=True)
class CandidateFlags:
    """The split of the queries, and the documents to rank for each query."""

    split_ratio: SplitRatio = ""
    candidates: Candidates = None
    first_stage: FirstStage = DEFAULT_FIRST_STAGE
    depth: Depth = DEFAULT_DEPTH
    seed: Seed = 0

    def to_options(self) -> CandidateOptions:
        """Return the options of API functions."""
        return {
            "split_ratio": self.split_ratio,
            "candidates": self.candidates,
            "first_stage": self.first_stage,
            "depth": self.depth,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class CollectionFlags(CandidateFlags):
    """The queries to measure on, and the documents to rank for them."""

    split: Split = None
    max_queries: MaxQueries = None

    def to_options(self, query_types: str | None = None) -> CollectionOptions:
        """Return the options of API functions."""
        own: CollectionOptions = {"split": self.split, "max_queries": self.max_queries, "query_types": query_types}
        return {**super().to_options(), **own}


@dataclass(frozen=True)
class RunCollectionFlags(CollectionFlags):
    """`CollectionFlags` with the defaults of a run: all queries, and longer lists."""

    depth: Depth = RUN_DEPTH
    split: Split = "all"

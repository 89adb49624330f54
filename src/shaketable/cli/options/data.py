"""Flags for the collection, its queries, and the documents to rank."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from shaketable.api.options import (
    DEFAULT_DEPTH,
    DEFAULT_FIRST_STAGE,
    RUN_DEPTH,
    CandidateOptions,
    CollectionOptions,
)
from shaketable.cli import completion
from shaketable.cli.help import Panel
from shaketable.cli.options.groups import make_option, make_repeatable

Named = TypeVar("Named")

COLLECTION_HELP = (
    "The collection: 'sample' (bundled), the path of a BEIR folder, or 'irds:ID' for a data set of ir_datasets, for "
    "example irds:beir/scifact/test."
)
_COLLECTION = make_option(Panel.DATA, "--data", metavar="COLLECTION",
    help=COLLECTION_HELP)  # fmt: skip
Data = Annotated[str, _COLLECTION]
OptionalData = Annotated[str | None, _COLLECTION]
Collections = Annotated[
    list[str] | None,
    make_repeatable(Panel.DATA, "--data", metavar="COLLECTION",
        help=f"{COLLECTION_HELP} The task corpus-shift uses the second and further collections."),
]  # fmt: skip
QueriesFile = Annotated[
    Path | None,
    make_option(Panel.DATA, "--queries", metavar="FILE",
        help="A file of your own queries, to use instead of --data: JSONL, TSV, CSV or Parquet with a column "
             "'query' (or 'text'), or lines with an id, a tab and a query. An optional column 'count' (or "
             "'frequency' or 'n') says how often users asked the query, and becomes its weight."),
]  # fmt: skip
DocsFile = Annotated[
    Path | None,
    make_option(Panel.DATA, "--docs", metavar="FILE",
        help="With --queries: a file of documents, JSONL, TSV, CSV or Parquet, with a column 'text' (or 'body') "
             "and optional columns 'docno' (or 'id'), 'title' and 'url'."),
]  # fmt: skip
QrelsFile = Annotated[
    Path | None,
    make_option(Panel.DATA, "--qrels", metavar="FILE",
        help="A file of relevance judgements: TREC's four columns, or BEIR's TSV format."),
]  # fmt: skip
Split = Annotated[
    str | None,
    make_option(Panel.DATA, "--split", metavar="SPLIT",
        help="Use only the queries of this split of the collection, for example 'test'; 'all' means every query."),
]  # fmt: skip
SplitRatio = Annotated[
    str,
    make_option(Panel.DATA, "--split-ratio", metavar="SHARES",
        help="For a collection without splits: divide its judged queries into train, validation and test queries "
             "by these percentages, for example 60/20/20."),
]  # fmt: skip
QueryTypes = Annotated[
    str | None,
    make_option(Panel.DATA, "--query-types", metavar="SOURCE",
        help="The source of query types such as 'location' or 'numeric': 'rules' (built-in rules), or a TSV, CSV "
             "or JSONL file with a column 'qid' (or 'text') and a column 'type'. By default, the types come from "
             "the collection, if it has any."),
]  # fmt: skip
Candidates = Annotated[
    Path | None,
    make_option(Panel.DATA, "--candidates", metavar="RUN",
        help="A TREC run file with the documents to rank for each query. Rankers rank these documents and no others."),
]  # fmt: skip
FirstStage = Annotated[
    str,
    make_option(Panel.DATA, "--first-stage", metavar="RANKER", autocompletion=completion.rankers,
        help="The ranker that finds the candidate documents for re-rankers, which cannot search a collection "
             "themselves."),
]  # fmt: skip
Depth = Annotated[
    int,
    make_option(Panel.DATA, "--depth", metavar="NUMBER", min=1,
        help="The number of documents to rank for each query."),
]  # fmt: skip
MaxQueries = Annotated[
    int | None,
    make_option(Panel.DATA, "--max-queries", metavar="NUMBER", min=1,
        help="Use at most this many queries, the first of the collection, for a quick look."),
]  # fmt: skip
Seed = Annotated[
    int,
    make_option(Panel.GENERAL, "--seed", metavar="NUMBER",
        help="The random seed. The same seed gives the same result."),
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

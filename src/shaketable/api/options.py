"""Options that several functions share: queries and documents to rank, progress, and executors.

`open_experiment` has the default of each option. The command line builds the same objects from its flags.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, TypedDict

if TYPE_CHECKING:
    from pathlib import Path

    from shaketable.core.documents import Collection
    from shaketable.core.progress import ProgressFactory
    from shaketable.executors.base import Executor

CollectionLike: TypeAlias = "str | Path | Collection"
"""The name or the folder of a collection, or a collection."""
Notify = Callable[[str], None]
"""A function that shows a message to the user."""

DEFAULT_DEPTH = 100
DEFAULT_FIRST_STAGE = "bm25"
RUN_DEPTH = 1000
"""The default depth of a run, which is longer than the lists of an audit."""


def ignore_message(message: str) -> None:
    """Show nothing."""


class CandidateOptions(TypedDict, total=False):
    """The split of the queries, and the documents to rank for each query.

    split_ratio   shares of train, validation and test queries in per cent, such as "60/20/20", for a collection that
                  has no splits
    candidates    a TREC run: rankers rank the documents of its lists, and no others
    first_stage   the ranker that finds the candidates of rankers that cannot search
    depth         the number of documents to rank for each query
    seed          the seed of all random numbers
    """

    split_ratio: str
    candidates: str | Path | None
    first_stage: str
    depth: int
    seed: int


class CollectionOptions(CandidateOptions, total=False):
    """The queries to measure on, and the documents to rank for them.

    split         the split to measure on, by default "test" where the collection has one; "all" takes every query
    query_types   where the types of queries come from: "rules", or a file
    max_queries   take only the first queries of the collection, at most this many
    """

    split: str | None
    query_types: str | Path | None
    max_queries: int | None


class WorkOptions(TypedDict, total=False):
    """Progress bars, messages, and the executor (see `st.make_executor`)."""

    progress: ProgressFactory
    notify: Notify
    executor: Executor | None


class RunOptions(WorkOptions, total=False):
    """`WorkOptions` for functions that run rankers; `keep_going` leaves out queries on which a ranker fails."""

    keep_going: bool


class ExperimentOptions(CollectionOptions, RunOptions, total=False):
    """All options of an experiment."""


class TrainingOptions(CandidateOptions, WorkOptions, total=False):
    """The options of an experiment that also apply to training."""

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
    """Options for the split of the queries, and for the documents to rank for each query.

    Attributes
    ----------
    split_ratio
        For a collection without splits: the percentages of train, validation and test queries, such as "60/20/20".
    candidates
        A TREC run file with the documents to rank for each query. Rankers rank these documents and no others.
    first_stage
        The ranker that finds candidate documents for re-rankers, which cannot search; "bm25" by default.
    depth
        The number of documents to rank for each query; 100 by default.
    seed
        The random seed. The same seed gives the same result.
    """

    split_ratio: str
    candidates: str | Path | None
    first_stage: str
    depth: int
    seed: int


class CollectionOptions(CandidateOptions, total=False):
    """Options for the queries to measure on, and for the documents to rank for them.

    The options of `CandidateOptions` apply too.

    Attributes
    ----------
    split
        The split to measure on, by default "test" if the collection has it; "all" means every query.
    query_types
        The source of query types: "rules", or a file of labels. By default the types come from the collection.
    max_queries
        Use at most this many queries, the first of the collection.
    """

    split: str | None
    query_types: str | Path | None
    max_queries: int | None


class WorkOptions(TypedDict, total=False):
    """Options for progress bars, messages and workers.

    Attributes
    ----------
    progress
        A function that opens a progress bar (`core.progress.ProgressFactory`); no progress is shown by default.
    notify
        A function that receives each message as a text; messages are discarded by default.
    executor
        The executor that runs the jobs, from `st.make_executor`; by default this process runs them.
    """

    progress: ProgressFactory
    notify: Notify
    executor: Executor | None


class RunOptions(WorkOptions, total=False):
    """Options for functions that run rankers; those of `WorkOptions` apply too.

    Attributes
    ----------
    keep_going
        If a ranker fails on a query, leave this query out for the ranker and continue. By default the error is raised.
    """

    keep_going: bool


class ExperimentOptions(CollectionOptions, RunOptions, total=False):
    """All options of an experiment: those of `CollectionOptions` and `RunOptions`."""


class BudgetOptions(TypedDict, total=False):
    """Options for the budget of an audit.

    Attributes
    ----------
    budget
        A time such as "10m", a number of query-document pairs, money such as "$5", "auto", or None for no limit.
    price_per_1k
        The price of 1,000 requests to an endpoint.
    """

    budget: str | int | None
    price_per_1k: float | None


class DryRunOptions(BudgetOptions, total=False):
    """Options of a dry run, besides the budget.

    Attributes
    ----------
    seconds_per_request
        The latency of a request to an endpoint.
    """

    seconds_per_request: float


class TrainingOptions(CandidateOptions, WorkOptions, total=False):
    """The options of a training: those of `CandidateOptions` and `WorkOptions`."""

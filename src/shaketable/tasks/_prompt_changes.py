"""Lists of a ranker with other prompts, compared with its own lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shaketable.core.documents import Run
from shaketable.tasks._query_changes import ChangedQuery, ChangedQueryRun, measure_changed_queries

if TYPE_CHECKING:
    from shaketable.experiment import Experiment


def compare_prompts(
    experiment: Experiment, queries: Sequence[ChangedQuery], before: Run, after: Run, measure: str
) -> ChangedQueryRun:
    """Return the lists of queries with a ranker's own prompt and with another one, and their values if judged.

    Both runs have a list for each query; the texts of the queries serve as examples only.
    """
    runs: list[Run] = [{str(i): run[one.qid] for i, one in enumerate(queries)} for run in (before, after)]
    if not experiment.qrels:
        return ChangedQueryRun(queries, runs[0], runs[1], None, None)
    values = [measure_changed_queries(experiment, measure, queries, run) for run in runs]
    return ChangedQueryRun(queries, runs[0], runs[1], values[0], values[1], experiment.qrels)

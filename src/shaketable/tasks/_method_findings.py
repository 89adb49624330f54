"""Findings of single methods of changing queries, which decide the facets on typos and wording.

A re-ranker is judged on the candidates of the original query, so that documents that the first stage no longer finds do
not count against it. A retriever is judged on its own search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from shaketable.core.results import Example, Finding
from shaketable.measures.effectiveness import has_nonrelevant_judgements, judged_share
from shaketable.measures.facets import DROP, OVERLAP, name_test
from shaketable.measures.paired_comparison import compare_paired, query_means, weighted_mean
from shaketable.tasks._query_changes import PIPELINE, RERANKER, ChangedQueryRun, list_settings

if TYPE_CHECKING:
    from shaketable.experiment import Experiment


def choose_setting(experiment: Experiment, ranker: str) -> str:
    """Return the setting in which a ranker alone is responsible for a loss."""
    searches = PIPELINE in list_settings(experiment) and experiment.is_retriever(ranker)
    return PIPELINE if searches else RERANKER


def build_method_finding(
    experiment: Experiment,
    ranker: str,
    method: str,
    changed_run: ChangedQueryRun,
    indices: Sequence[int],
    measure: str,
    facet: str,
) -> Finding | None:
    """Return the drop under one method or, without judgements, the overlap of the first ten; None if there is none."""
    if changed_run.values_before is None or changed_run.values_after is None:
        overlaps = changed_run.compute_overlaps(indices)
        mean = weighted_mean(overlaps, experiment.seed, experiment.weights)
        if not mean.n:
            return None
        name = name_test(OVERLAP, method)
        return Finding(ranker, name, mean.value, mean.low, mean.high, mean.n, facet=facet, values=overlaps)
    qids = [changed_run.changed_queries[i].qid for i in indices]
    before, after = (
        query_means(qids, values[list(indices)]) for values in (changed_run.values_before, changed_run.values_after)
    )
    change = compare_paired(before, after, experiment.seed, experiment.weights)
    if not change.n or not change.before:
        return None
    judged = measure_judged_percentages(experiment, changed_run, indices)
    return Finding(
        ranker,
        name_test(DROP, method),
        change.drop,
        100 * change.low / change.before,
        100 * change.high / change.before,
        change.n,
        change.p,
        against=f"its own {measure}",
        facet=facet,
        values=changed_run.compute_drops(indices, experiment.weights),
        judged_before=judged[0],
        judged_after=judged[1],
    )


def find_largest_loss(ranker: str, method: str, changed_run: ChangedQueryRun, indices: Sequence[int]) -> Example | None:
    """Return the changed query of a method that loses most, or None if none loses."""
    if changed_run.values_before is not None and changed_run.values_after is not None:
        losses = (changed_run.values_before - changed_run.values_after)[list(indices)]
    else:
        losses = np.array([1 - changed_run.movements[i].overlap for i in indices])
    if not len(losses) or not np.nanmax(losses) > 0:
        return None
    return changed_run.make_example(ranker, indices[int(np.nanargmax(losses))], method)


def measure_judged_percentages(
    experiment: Experiment, changed_run: ChangedQueryRun, indices: Sequence[int]
) -> tuple[float, float]:
    """Return the percentages of judged documents among the first ten, before and after.

    They are NaN if only relevant documents are judged: a document without a judgement then counts as not relevant, and
    the number of judged documents falls with every loss.
    """
    if not has_nonrelevant_judgements(experiment.qrels):
        return float("nan"), float("nan")
    qrels = {str(i): experiment.qrels.get(changed_run.changed_queries[i].qid, {}) for i in indices}
    before, after = (
        100 * float(np.mean(list(judged_share(qrels, run).values()))) if qrels else float("nan")
        for run in (changed_run.run_before, changed_run.run_after)
    )
    return before, after

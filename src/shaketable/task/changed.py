"""What a ranker makes of changed queries: the part that all experiments on queries share.

Two settings. "pipeline": all of it sees the changed query; a retriever searches with it, a re-ranker re-ranks what the
first stage finds for it. "re-ranker": the candidates are those of the original query, and only the ranker sees the
changed one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shaketable.measure.effectiveness import Evaluator, parse
from shaketable.types import Run

if TYPE_CHECKING:
    from shaketable.bench import Bench

PIPELINE = "pipeline"
RERANKER = "re-ranker"


@dataclass(frozen=True, slots=True)
class Trial:
    """One changed query: whose it is, and its new text."""

    qid: str
    text: str


def settings(bench: Bench) -> tuple[str, ...]:
    """The settings that make sense: with candidates of its own a collection has no pipeline to change."""
    return (RERANKER,) if bench.collection.candidates else (PIPELINE, RERANKER)


def runs_of(bench: Bench, ranker: str, trials: Sequence[Trial], setting: str) -> Run:
    """The list of each trial, keyed by its place; each distinct text of a query is ranked once."""
    first: dict[Trial, int] = {}
    for trial in trials:
        first.setdefault(trial, len(first))
    texts = {str(i): trial.text for trial, i in first.items()}
    if setting == PIPELINE:
        found = bench.answer(ranker, texts)
    else:
        candidates = {str(i): bench.candidates.get(trial.qid, {}) for trial, i in first.items()}
        found = bench.rerank(bench.ranker(ranker), texts, candidates)
    return {str(i): found.get(str(first[trial]), {}) for i, trial in enumerate(trials)}


def values_of(bench: Bench, measure: str, trials: Sequence[Trial], run: Run) -> NDArray[np.float64]:
    """A measure's value for each trial, by the judgements of the query it came from."""
    wanted = parse(measure)
    qrels = {str(i): bench.qrels[trial.qid] for i, trial in enumerate(trials)}
    found = Evaluator((wanted,), qrels).per_query(run)[wanted]
    return np.array([found[key] for key in qrels])


def measured(bench: Bench, ranker: str, trials: Sequence[Trial], measure: str, setting: str) -> NDArray[np.float64]:
    """A measure's value for each trial under a setting."""
    return values_of(bench, measure, trials, runs_of(bench, ranker, trials, setting))


def originals(bench: Bench) -> list[Trial]:
    """The judged queries as they are, as trials among others."""
    return [Trial(qid, bench.queries[qid].text) for qid in bench.qrels]


def before(bench: Bench, ranker: str, measure: str, setting: str) -> dict[str, float]:
    """qid -> value of the original query under a setting."""
    trials = originals(bench)
    return dict(zip((t.qid for t in trials), measured(bench, ranker, trials, measure, setting).tolist(), strict=True))


def cut_to(bench: Bench, depth: int) -> Bench:
    """The same bench with shorter lists; scores are shared, for they are known by content."""
    return replace(bench, depth=depth)


def per_query_mean(qids: Sequence[str], values: NDArray[np.float64]) -> dict[str, float]:
    """The mean of each query's values."""
    sums: dict[str, list[float]] = {}
    for qid, value in zip(qids, values.tolist(), strict=True):
        sums.setdefault(qid, []).append(value)
    return {qid: float(np.mean(found)) for qid, found in sums.items()}


def paired(left: Mapping[str, float], right: Mapping[str, float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two arrays over the queries that both have."""
    common = [qid for qid in left if qid in right]
    return np.array([left[q] for q in common]), np.array([right[q] for q in common])

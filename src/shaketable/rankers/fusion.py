"""Fusion of several runs into one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from shaketable.core.documents import Run, rank_docnos
from shaketable.core.errors import UnknownName

Fuse = Callable[[Sequence[Mapping[str, float]]], dict[str, float]]
"""Merges several lists of one query, docno -> score, into one."""


def rrf(lists: Sequence[Mapping[str, float]], k: int = 60) -> dict[str, float]:
    """Return reciprocal rank fusion: Σ 1 / (k + rank), rank from 1 (Cormack, Clarke, Büttcher, SIGIR 2009).

    >>> rrf([{"a": 9.0, "b": 8.0}, {"b": 0.2}]) == {"a": 1 / 61, "b": 1 / 62 + 1 / 61}
    True
    """
    fused: dict[str, float] = {}
    for scores in lists:
        for rank, docno in enumerate(rank_docnos(scores), 1):
            fused[docno] = fused.get(docno, 0.0) + 1 / (k + rank)
    return fused


def comb_sum(lists: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return CombSUM: the sum of scores, each list scaled to 0..1 (Fox, Shaw, TREC-2; scaling: Lee, SIGIR 1997).

    >>> comb_sum([{"a": 9.0, "b": 8.0, "c": 7.0}, {"b": 3.0, "a": 1.0}])
    {'a': 1.0, 'b': 1.5, 'c': 0.0}
    """
    fused: dict[str, float] = {}
    for scores in lists:
        for docno, value in _scale_scores(scores).items():
            fused[docno] = fused.get(docno, 0.0) + value
    return fused


def comb_mnz(lists: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return CombMNZ: CombSUM times the number of lists that contain the document.

    >>> comb_mnz([{"a": 9.0, "b": 8.0, "c": 7.0}, {"b": 3.0, "a": 1.0}])
    {'a': 2.0, 'b': 3.0, 'c': 0.0}
    """
    return {docno: value * sum(docno in scores for scores in lists) for docno, value in comb_sum(lists).items()}


METHODS: dict[str, Fuse] = {"rrf": rrf, "comb_sum": comb_sum, "comb_mnz": comb_mnz}


def fuse(runs: Sequence[Run], method: str = "rrf", depth: int = 1000) -> Run:
    """Fuse runs query by query; return the best `depth` documents of each query."""
    if method not in METHODS:
        raise UnknownName("fusion", method, METHODS)
    fused = {}
    for qid in dict.fromkeys(qid for run in runs for qid in run):
        scores = METHODS[method]([run[qid] for run in runs if run.get(qid)])
        fused[qid] = {docno: scores[docno] for docno in rank_docnos(scores)[:depth]}
    return fused


def _scale_scores(scores: Mapping[str, float]) -> dict[str, float]:
    """Return the scores scaled to 0..1; if all scores are equal, all become 1."""
    values = np.fromiter(scores.values(), np.float64, len(scores))
    low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
    scaled = (values - low) / (high - low) if high > low else np.ones(len(scores))
    return dict(zip(scores, scaled.tolist(), strict=True))

"""Queries that a ranker orders worse than at random, and whether there are more of them than chance explains.

The order of a list is measured by the area under the ROC curve (AUC): how often a relevant document is above another
one; a random order has 0.5. Lists with few relevant documents, or with documents of a low grade only, fall below 0.5 by
chance, more often if the ranker is weak. So the number of such lists is compared with that of an even ranker, whose
scores of the documents of each grade have the same distance from those of other documents on every query (the
binormal model of signal detection).

Hanley, McNeil. The meaning and use of the area under a receiver operating characteristic (ROC) curve. Radiology 1982.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Qrels, Run
from shaketable.core.seeding import make_numpy_rng

RANDOM_AUC = 0.5


@dataclass(frozen=True)
class ListQuality:
    """The AUC of a list, and the numbers that an even ranker is modelled by."""

    auc: float
    others: int
    """The number of documents that are not relevant."""
    grades: tuple[int, ...]
    """The grade of each relevant document."""
    shares_below: tuple[float, ...]
    """The share of the other documents that each relevant document is above."""


def measure_list_quality(qrels: Qrels, run: Run) -> dict[str, ListQuality]:
    """Return the quality of each judged list that has relevant and other documents; ties count half.

    >>> measure_list_quality({"q": {"a": 1}}, {"q": {"a": 2.0, "b": 3.0, "c": 1.0}})["q"].auc
    0.5
    """
    found = {}
    for qid, scores in run.items():
        grades = np.array([qrels.get(qid, {}).get(docno, 0) for docno in scores])
        values = np.array(list(scores.values()))
        relevant, others = values[grades > 0], np.sort(values[grades <= 0])
        if len(relevant) and len(others):
            above = np.searchsorted(others, relevant, "left") + np.searchsorted(others, relevant, "right")
            shares = above / (2 * len(others))
            known = tuple(grades[grades > 0].tolist())
            found[qid] = ListQuality(float(shares.mean()), len(others), known, tuple(shares.tolist()))
    return found


def find_worse_than_random(quality: Mapping[str, ListQuality]) -> dict[str, float]:
    """Return, by query, 100 if its order is worse than a random one, otherwise 0."""
    return {qid: 100.0 * (one.auc < RANDOM_AUC) for qid, one in quality.items()}


def worse_than_random_p(quality: Mapping[str, ListQuality], seed: int = 0, draws: int = 1000) -> float:
    """Return the p of as many lists that are worse than random, if the ranker were equally good on all queries.

    >>> even = {str(i): ListQuality(0.9, 95, (1,) * 5, (0.9,) * 5) for i in range(40)}
    >>> uneven = even | {str(i): ListQuality(0.4, 95, (1,) * 5, (0.4,) * 5) for i in range(6)}
    >>> worse_than_random_p(even), worse_than_random_p(uneven) < 0.01
    (1.0, True)
    """
    observed = sum(one.auc < RANDOM_AUC for one in quality.values())
    if not observed:
        return 1.0
    distances = _measure_distances(quality)
    rng = make_numpy_rng(seed, "even ranker")
    counts = np.zeros(draws)
    for one in quality.values():
        counts += _draw_aucs(one, distances, draws, rng) < RANDOM_AUC
    return (int((counts >= observed).sum()) + 1) / (draws + 1)


def _measure_distances(quality: Mapping[str, ListQuality]) -> dict[int, float]:
    """Return the distance of each grade from documents that are not relevant, in standard deviations; 0 or more.

    The median over documents changes little if the ranker fails on a part of the queries.
    """
    from scipy.special import ndtri

    by_grade: dict[int, list[float]] = {}
    for one in quality.values():
        least = 1 / (2 * one.others + 2)  # a document above all others has a finite distance
        for grade, share in zip(one.grades, one.shares_below, strict=True):
            by_grade.setdefault(grade, []).append(float(ndtri(np.clip(share, least, 1 - least))))
    return {grade: max(float(np.median(values)), 0.0) for grade, values in by_grade.items()}


def _draw_aucs(
    one: ListQuality, distances: Mapping[int, float], draws: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw the AUC of a list of this size and these grades under the binormal model."""
    relevant = len(one.grades)
    scores = rng.normal(size=(draws, relevant + one.others))
    scores[:, :relevant] += [distances[grade] for grade in one.grades]
    ranks = scores.argsort(axis=1).argsort(axis=1)[:, :relevant] + 1
    wins = ranks.sum(axis=1) - relevant * (relevant + 1) / 2
    return np.asarray(wins / (relevant * one.others))

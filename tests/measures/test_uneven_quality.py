"""Queries ranked worse than at random: by hand, against scikit-learn, and by the error rate of the test."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from shaketable.measures.uneven_quality import (
    find_worse_than_random,
    measure_list_quality,
    worse_than_random_p,
)


def draw(rng: np.random.Generator, queries: int, distance: float, share_random: float = 0.0) -> tuple[dict, dict]:
    """Draw judgements and scores of an even ranker that is random on a share of the queries."""
    qrels, run = {}, {}
    for q in range(queries):
        grades = np.concatenate([rng.integers(1, 3, size=4), np.zeros(46, dtype=int)])
        skill = 0.0 if q < share_random * queries else distance
        scores = skill * grades + rng.normal(size=50)
        qrels[str(q)] = {f"d{i}": int(grade) for i, grade in enumerate(grades)}
        run[str(q)] = {f"d{i}": float(score) for i, score in enumerate(scores)}
    return qrels, run


def test_the_area_is_that_of_scikit_learn():
    qrels, run = draw(np.random.default_rng(1), 5, 0.7)
    run["0"] = {docno: round(score) for docno, score in run["0"].items()}  # with ties
    for qid, one in measure_list_quality(qrels, run).items():
        relevant = [qrels[qid][docno] > 0 for docno in run[qid]]
        assert one.auc == pytest.approx(roc_auc_score(relevant, list(run[qid].values())))


def test_lists_without_relevant_or_other_documents_have_no_area():
    qrels = {"a": {"d1": 1}, "b": {"d1": 0}, "c": {"d1": 1}}
    run = {"a": {"d1": 1.0}, "b": {"d1": 1.0, "d2": 0.5}, "c": {"d1": 0.1, "d2": 0.5}}
    quality = measure_list_quality(qrels, run)
    assert list(quality) == ["c"]
    assert find_worse_than_random(quality) == {"c": 100.0}


def test_an_even_ranker_is_seldom_called_uneven():
    rng = np.random.default_rng(2)
    alarms = sum(worse_than_random_p(measure_list_quality(*draw(rng, 40, 0.6)), draws=200) < 0.05 for _ in range(60))
    assert alarms <= 8, "5 % are expected, 13 % are beyond chance"


def test_a_ranker_that_is_random_on_a_quarter_is_called_uneven():
    rng = np.random.default_rng(3)
    found = [worse_than_random_p(measure_list_quality(*draw(rng, 50, 1.5, 0.25)), draws=200) < 0.05 for _ in range(20)]
    assert sum(found) >= 18

"""Scores whose last digits depend on the company they were asked for in: neighbours within that noise tie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.documents import Collection, Doc, Query, Run, Scores, Slate, rank_docnos
from shaketable.core.protocols import Ranker
from shaketable.core.registries import TASKS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.experiment import Experiment
from shaketable.measures.effectiveness import tie_rate
from shaketable.rankers.lexical import BM25
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.validation import collapse_ties
from tests.toys import text

NOISE = 1e-6


@dataclass
class Jittery:
    """Counts shared words, as floats that a batch changes in the seventh digit."""

    noise: float = NOISE
    chunk: int = 0
    name: str = "jittery"
    pointwise: bool = True

    def open(self, collection: Collection) -> Ranker:
        return Opened(self.name, self.noise, self.chunk)


@dataclass
class Opened:
    name: str
    noise: float
    chunk: int
    pointwise: bool = True

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        company = crc32(repr([(slate.query, len(slate.docs)) for slate in slates]).encode())
        jitter = np.random.default_rng(company)
        return [
            np.array([sum(word in doc.text.split() for word in slate.query.split()) for doc in slate.docs])
            + jitter.uniform(-1e-7, 1e-7, len(slate.docs))
            for slate in slates
        ]


def collection() -> Collection:
    docs = {f"d{i:02}": Doc(text(i, 9)) for i in range(40)}
    queries = {f"q{i}": Query(text(500 + i, 3)) for i in range(12)}
    qrels = {qid: {f"d{(7 * i + j * j) % 40:02}": j % 3 for j in range(8)} for i, qid in enumerate(queries)}
    return Collection("trees", MemoryCorpus(docs), queries, qrels)


def run_task(model: Jittery, task: str) -> tuple[Any, Mapping[str, Any]]:
    """Return the findings and the tables of a task as texts, so that two missing values are equal."""
    experiment = Experiment(collection(), {"jittery": model, "bm25": BM25()}, ScoringEngine(), depth=20)
    result = TASKS.build(task).run(experiment)
    return repr(result.findings), {name: frame.to_csv() for name, frame in result.tables.items()}


TASK_TEXTS = ("variance", "risk", "agreement", "query_typos", "query_variation(transforms=('random_order_swap',))")


@pytest.mark.parametrize("task", TASK_TEXTS)
def test_nothing_that_is_found_rests_on_noise(task):
    assert run_task(Jittery(chunk=512), task) == run_task(Jittery(chunk=7), task)


@pytest.mark.parametrize("task", TASK_TEXTS)
def test_and_it_would_without_knowing_of_it(task):
    assert run_task(Jittery(0.0, chunk=512), task) != run_task(Jittery(0.0, chunk=7), task)


def test_such_neighbours_are_reported_as_ties():
    def lists(noise: float) -> Run:
        return Experiment(collection(), {"jittery": Jittery(noise)}, ScoringEngine(), depth=20).get_run("jittery")

    exact = {qid: {docno: round(score) for docno, score in scores.items()} for qid, scores in lists(0.0).items()}
    assert tie_rate(lists(0.0)).neighbours < tie_rate(lists(NOISE)).neighbours == tie_rate(exact).neighbours


def test_a_list_that_is_found_is_settled_too():
    class Finder:
        name, noise = "finder", NOISE

        def search(self, queries: Sequence[str], k: int) -> list[dict[str, float]]:
            return [dict(list({"c": 2.0, "a": 1.0 + 1e-7, "b": 1.0, "d": 0.5}.items())[:k]) for _ in queries]

    (lists,) = ScoringEngine().search(Finder(), ["q"], 4)
    assert list(lists.items()) == [("c", 2.0), ("b", 1.0 + 1e-7), ("a", 1.0 + 1e-7), ("d", 0.5)]


values = st.floats(-1e3, 1e3, width=32)


@given(st.lists(values, max_size=12), st.sampled_from([1e-6, 1e-3, 0.1]))
def test_settling_is_small_keeps_the_order_and_is_done_once(scores, noise):
    given_scores = np.array(scores)
    same = collapse_ties(given_scores, noise)
    assert len(same) == len(scores)
    order = np.argsort(-given_scores, kind="stable")
    assert (np.diff(same[order]) <= 0).all()
    distinct = -np.unique(-same)
    assert (distinct[:-1] - distinct[1:] > noise * np.maximum(1, np.abs(distinct[:-1])) * (1 - 1e-9)).all()
    assert set(same.tolist()) <= set(scores)
    np.testing.assert_array_equal(collapse_ties(same, noise), same)
    np.testing.assert_array_equal(collapse_ties(given_scores, 0.0), given_scores)


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=20), st.integers(0, 2**32 - 1))
def test_true_ties_stay_ties_whatever_the_jitter(exact, seed):
    rng = np.random.default_rng(seed)
    docnos = [f"d{i:02}" for i in range(len(exact))]
    lists = []
    for _ in range(2):
        size = np.maximum(1, np.abs(exact))
        jittered = np.array(exact, dtype=float) + rng.uniform(-4e-7, 4e-7, len(exact)) * size
        lists.append(rank_docnos(dict(zip(docnos, collapse_ties(jittered, NOISE).tolist(), strict=True))))
    assert lists[0] == lists[1] == rank_docnos(dict(zip(docnos, exact, strict=True)))

"""Chunks take about two seconds of a ranker's time, for slow and fast rankers."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from shaketable.core.documents import Doc, Scores, Slate
from shaketable.executors.base import ThreadExecutor
from shaketable.executors.processes import ProcessExecutor
from shaketable.scoring import units
from shaketable.scoring.chunks import CHUNK_SECONDS, FIRST_CHUNK, MAX_GROWTH, ChunkPace
from shaketable.scoring.engine import ScoringEngine
from tests.scoring.handing_out import experiment
from tests.toys import Overlap, text


class Clocked(Overlap):
    """Takes a given time for each pair, by a clock of its own."""

    def __init__(self, seconds: float, clock: list[float]):
        super().__init__()
        self.seconds, self.clock, self.sizes = seconds, clock, []

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        self.sizes.append(sum(len(slate.docs) for slate in slates))
        self.clock[0] += self.seconds * self.sizes[-1]
        return super().score(slates)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(units, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    return now


def lists(queries: int, docs: int) -> list[Slate]:
    return [Slate(f"oak {q}", tuple(Doc(f"{text(d)} {d}") for d in range(docs))) for q in range(queries)]


@pytest.mark.parametrize(("seconds", "size"), [(0.2, 10), (0.01, 200), (5.0, 1)])
def test_a_chunk_takes_two_seconds(clock, seconds, size):
    ranker = Clocked(seconds, clock)
    ScoringEngine().score(ranker, lists(40, 50))
    assert ranker.sizes[0] == FIRST_CHUNK
    assert all(after <= MAX_GROWTH * before for before, after in zip(ranker.sizes, ranker.sizes[1:], strict=False))
    assert set(ranker.sizes[4:-1]) == {size}


def test_the_speed_of_a_ranker_is_remembered(clock):
    ranker, engine = Clocked(0.01, clock), ScoringEngine()
    engine.score(ranker, lists(40, 50))
    ranker.sizes.clear()
    engine.score(ranker, [Slate(f"{one.query} new", one.docs) for one in lists(40, 50)])
    assert ranker.sizes[0] == CHUNK_SECONDS / 0.01


def test_fast_rankers_get_large_chunks(clock):
    ranker = Clocked(1e-5, clock)
    ScoringEngine().score(ranker, lists(400, 50))
    assert max(ranker.sizes) == 4096


def test_a_list_is_never_split_by_time(clock):
    ranker = Clocked(1.0, clock)
    ranker.pointwise = False
    ScoringEngine().score(ranker, lists(10, 20))
    assert ranker.sizes == [20] * 10


@pytest.mark.parametrize("setting", [{"chunk": 30}, {"chunk": 30, "max_concurrency": 2}])
def test_a_request_to_a_server_has_its_own_size(clock, setting):
    ranker = Clocked(0.5, clock)
    vars(ranker).update(setting)
    ScoringEngine().score(ranker, lists(4, 60))
    assert ranker.sizes == [30] * 8


def test_a_short_remainder_does_not_shrink_chunks():
    pace = ChunkPace(400)
    pace.record(1, 0.1)
    assert pace.size == 400
    pace.record(400, 4.0)
    assert pace.size == 200
    pace.record(2, 10.0)
    assert pace.size == 1, "a slow remainder counts"


def test_parallel_chunks_of_one_size_grow_once():
    pace = ChunkPace()
    for _ in range(8):
        pace.record(8, 0.001)
    assert pace.size == 8 * MAX_GROWTH


class Batches(Overlap):
    """A ranker whose calls are recorded."""

    batch_chars, pads_texts = 400, True

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        self.calls = [*getattr(self, "calls", []), [doc.text for slate in slates for doc in slate.docs]]
        return super().score(slates)


UNEVEN = [Slate(f"oak {q}", tuple(Doc(text(10 * q + n, n)) for n in range(1, 30))) for q in range(5)]


def test_a_ranker_that_pads_gets_similar_lengths_together():
    ranker = Batches()
    actual = ScoringEngine().score(ranker, UNEVEN)
    seen = [len(one) for call in ranker.calls for one in call]
    assert seen == sorted(seen, reverse=True)
    assert all(len(call) * max(map(len, call)) <= 400 for call in ranker.calls)
    np.testing.assert_array_equal(actual, Overlap().score(UNEVEN))


@pytest.mark.parametrize("pads", [True, False])
def test_batches_do_not_depend_on_chunks(pads):
    calls = []
    for chunk in (1, 20, 4096):
        ranker = Batches()
        ranker.pads_texts = pads
        ScoringEngine(chunk=chunk).score(ranker, UNEVEN)
        calls.append(ranker.calls)
    assert calls[0] == calls[1] == calls[2]


def test_a_failed_text_of_a_batch_fails_alone():
    class Fails(Batches):
        def score(self, slates):
            if any("oak 3" in slate.query for slate in slates):
                raise ValueError("no")
            return super().score(slates)

    answers = ScoringEngine(keep_going=True).score(Fails(), UNEVEN)
    assert [answer is None for answer in answers] == [False, False, False, True, False]


@pytest.mark.parametrize("executor", [ThreadExecutor(3), ProcessExecutor(2)], ids=["threads", "processes"])
def test_scores_do_not_depend_on_chunks_or_workers(executor):
    def run(**more):
        table = experiment(executor, "tests.watched:Watched", "tests.watched:Listwise", **more)
        return table.get_runs()

    alone = experiment(ScoringEngine().executor, "tests.watched:Watched", "tests.watched:Listwise").get_runs()
    assert run() == alone

"""Other processes give the same results as this one; a killed worker costs time and nothing else."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from shaketable import make_executor
from shaketable.api.audit import audit
from shaketable.core.errors import BadInput, RankerFailed
from shaketable.datasets.load import load
from shaketable.executors.base import Job, RemoteSpec, SerialExecutor, as_completed
from shaketable.executors.processes import ProcessExecutor
from shaketable.executors.worker import pack_job
from tests import watched
from tests.scoring.handing_out import (
    check_driver_killed,
    check_nets,
    experiment,
    forget,
    hands,
    pairs,
    rank_in_folds,
    results,
)
from tests.toys import Overlap

pytestmark = pytest.mark.slow

SAMPLE = RemoteSpec("sample")
DOCNO = "enc-001"


@pytest.fixture(scope="module")
def two():
    return ProcessExecutor(2)


def double(collection, number):
    return len(collection.docs), 2 * number, os.getpid()


def invert(collection, number):
    return 1 / number


def test_jobs_are_done_elsewhere_and_what_has_no_origin_here(two):
    jobs = [(i, Job(double, load("sample"), (i,), SAMPLE)) for i in range(20)]
    came = dict(as_completed(two, jobs))
    assert {i: value[:2] for i, value in came.items()} == {i: (384, 2 * i) for i in range(20)}
    assert os.getpid() not in {value[2] for value in came.values()}
    stays = Job(double, load("sample"), (1,)), Job(double, load("sample"), (1,), SAMPLE, uses_all_cores=True)
    assert [two.submit(job).result() for job in stays] == [(384, 2, os.getpid())] * 2


def test_what_cannot_travel_stays_here(two):
    sticky = Job(lambda collection: os.getpid(), load("sample"), (), SAMPLE)
    assert pack_job(sticky) is None
    assert two.submit(sticky).result() == os.getpid()


def test_one_two_and_three_processes_give_equal_results_and_a_killed_one_changes_nothing(home, two):
    expected = results(SerialExecutor())
    once = pairs(watched.read_scored_pairs())
    assert Counter(once).most_common(1)[0][1] == 1
    for executor, after in ((ProcessExecutor(3), 1_000_000), (two, 30)):
        forget(home)
        watched.doom("worker", after)
        assert results(executor) == expected
        assert pairs(watched.read_scored_pairs()) == once, "what was done was done again, or not at all"
        assert len(hands(watched.read_scored_pairs()) - {str(os.getpid())}) >= 2
    assert not (home / watched.DEATH).exists()


def test_a_job_that_kills_every_worker_is_given_up_in_a_sentence(home, two):
    watched.doom("everybody")
    with pytest.raises(RankerFailed, match="failed: 4 workers in a row died while running it"):
        experiment(two, "tests.watched:Watched").get_run("tests.watched:Watched")


def test_a_killed_driver_leaves_what_is_done_and_no_worker_behind(home):
    check_driver_killed(home, None, make_executor(jobs=2))


def test_learners_give_the_same_elsewhere(tmp_path, two):
    there, here = rank_in_folds(two, tmp_path / "there"), rank_in_folds(SerialExecutor(), tmp_path / "here")
    assert there.keys() == here.keys()
    for qid, scores in here.items():
        assert there[qid] == pytest.approx(scores, abs=1e-9), "a sum of products may differ in its last digit"


def test_nets_give_the_same_elsewhere(monkeypatch):
    check_nets(ProcessExecutor(1), monkeypatch)  # a process needs seconds for torch


def test_what_a_ranker_counts_and_remarks_comes_back(two):
    name = "tests.watched:Watched"
    here, there = experiment(SerialExecutor(), name), experiment(two, name)
    assert here.get_run(name) == there.get_run(name)
    assert here.collect_remarks() == there.collect_remarks() == {name: "108 pairs were read"}


def test_errors_are_what_they_are_here(two):
    name = "tests.watched:Broken"
    with pytest.raises(RankerFailed, match="no oaks, please"):
        experiment(two, name).rerank(name, {"q": "an oak"}, {"q": {DOCNO: 1.0}})
    goes_on = experiment(two, name, keep_going=True)
    run = goes_on.rerank(name, {"q": "an oak", "p": "a fir"}, {"q": {DOCNO: 1.0}, "p": {DOCNO: 1.0}})
    assert list(run) == ["p"]
    assert "no oaks, please" in goes_on.engine.failures[0].reason
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):  # a mistake of ours
        two.submit(Job(invert, load("sample"), (0,), SAMPLE)).result()


def test_a_worker_that_opens_something_else_does_not_answer(two):
    with pytest.raises(BadInput, match="is different on a worker"):
        experiment(two, "tests.watched:Elsewhere").get_run("tests.watched:Elsewhere")
    other = RemoteSpec("sample", documents_fingerprint="0" * 32)
    with pytest.raises(BadInput, match="has different documents on a worker"):
        two.submit(Job(double, load("sample"), (1,), other)).result()


def test_what_lives_in_this_process_only_is_refused_in_a_sentence(two):
    with pytest.raises(BadInput, match=r"ranker overlap exists only in this process.*leave out --jobs"):
        audit("sample", Overlap(), "effectiveness", executor=two)
    memory = load("sample", split="test")
    unnamed = type(memory)(memory.name, memory.docs, memory.queries, memory.qrels)
    with pytest.raises(BadInput, match="collection sample exists only in this process"):
        audit(unnamed, "bm25", "effectiveness", executor=two)


def test_each_process_takes_its_share_of_the_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("shaketable.executors.processes.count_cores", lambda: 8)
    threads = Job(read_variable, load("sample"), ("OMP_NUM_THREADS",), SAMPLE)
    assert ProcessExecutor(4).submit(threads).result() == "2"
    assert ProcessExecutor(16).submit(threads).result() == "1"


def read_variable(collection, name):
    return os.environ[name]

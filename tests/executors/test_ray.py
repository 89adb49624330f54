"""A Ray cluster gives the same results as this process; a killed worker costs time and nothing else."""

from __future__ import annotations

import json
import os
import sys
import time

import pytest

from shaketable import make_executor
from shaketable.api.audit import audit
from shaketable.core.errors import BadInput, MissingExtra, RankerFailed
from shaketable.datasets.load import load
from shaketable.executors.base import Job, RemoteSpec, SerialExecutor
from shaketable.executors.file_sync import bundle_files, localize
from shaketable.executors.ray import connect_to_ray
from tests import watched
from tests.processes import in_a_process
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
NAME, BROKEN = "tests.watched:Watched", "tests.watched:Broken"


def test_without_ray_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"--ray needs .*'shaketable\[cluster\]'"):
        make_executor(ray="auto")


def test_an_address_that_does_not_answer_is_refused_within_seconds():
    pytest.importorskip("ray")
    started = time.monotonic()
    for address in ("127.0.0.1:1", "127.0.0.1:nonsense", "no-such-host.invalid:6379"):
        with pytest.raises(BadInput, match=f"no Ray cluster answers at {address}"):
            connect_to_ray(address)
    assert time.monotonic() - started < 10


@pytest.fixture(scope="module")
def cluster():
    """Two workers; files that Ray leaves open at its end are ignored."""
    ray = pytest.importorskip("ray")
    yield make_executor(jobs=2, ray="local")
    ray.shutdown()


def whereabouts(collection):
    return os.getpid(), len(collection.docs), os.environ["SHAKETABLE_HOME"]


def test_jobs_are_done_in_workers_and_what_cannot_travel_here(cluster, home):
    home.mkdir()
    assert cluster.max_concurrency == 2
    pid, *rest = cluster.submit(Job(whereabouts, load("sample"), (), SAMPLE)).result()
    assert pid != os.getpid()
    assert rest == [384, str(home)]
    for job in (Job(whereabouts, load("sample")), Job(lambda collection: whereabouts(collection), load("sample"))):
        assert cluster.submit(job).result()[0] == os.getpid()


def test_two_workers_give_equal_results_and_one_killed_in_the_middle_changes_nothing(cluster, home):
    expected = results(SerialExecutor())
    once = pairs(watched.read_scored_pairs())
    forget(home)
    watched.doom("worker", after=30)
    assert results(cluster) == expected
    assert not (home / watched.DEATH).exists()
    assert pairs(watched.read_scored_pairs()) == once
    assert len(hands(watched.read_scored_pairs()) - {str(os.getpid())}) >= 2


AUDIT = """
import json, sys
from shaketable import make_executor
from tests.scoring.handing_out import results
print(json.dumps(results(make_executor(int(sys.argv[1]), "local"))))
"""


@pytest.mark.parametrize("count", [1, 4])
def test_one_worker_and_four_give_what_two_give(count, home):
    """Ray is one cluster a process, so these have processes of their own."""
    pytest.importorskip("ray")
    expected = results(SerialExecutor())
    once = pairs(watched.read_scored_pairs())
    forget(home)
    done = in_a_process(AUDIT, count)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(json.dumps(expected))
    assert pairs(watched.read_scored_pairs()) == once
    assert len(hands(watched.read_scored_pairs())) >= min(count, 2)


def test_a_killed_driver_leaves_what_is_done_and_no_worker_behind(cluster, home):
    check_driver_killed(home, "local", cluster)


def test_nets_give_the_same_in_a_cluster(cluster, monkeypatch):
    check_nets(cluster, monkeypatch)


def test_learners_give_the_same_in_a_cluster(cluster, tmp_path):
    there, here = rank_in_folds(cluster, tmp_path / "there"), rank_in_folds(SerialExecutor(), tmp_path / "here")
    assert there.keys() == here.keys()
    for qid, scores in here.items():
        assert there[qid] == pytest.approx(scores, abs=1e-9), "a sum of products may differ in its last digit"


def test_counts_remarks_and_errors_come_back(cluster, home):
    home.mkdir()
    here, there = experiment(SerialExecutor(), NAME), experiment(cluster, NAME)
    assert here.get_run(NAME) == there.get_run(NAME)
    assert here.collect_remarks() == there.collect_remarks() == {NAME: "108 pairs were read"}
    with pytest.raises(RankerFailed, match="no oaks, please"):
        experiment(cluster, BROKEN).rerank(BROKEN, {"q": "an oak"}, {"q": {"enc-001": 1.0}})
    with pytest.raises(BadInput, match="is different on a worker"):
        experiment(cluster, "tests.watched:Elsewhere").get_run("tests.watched:Elsewhere")


def test_what_a_job_needs_bounds_how_many_there_are(cluster):
    assert make_executor(ray="local", cpus=2).max_concurrency == 1
    with pytest.raises(BadInput, match="fewer than one job needs"):
        _ = make_executor(ray="local", gpus=1).max_concurrency


def test_a_ranker_that_lives_only_in_this_process_is_refused_in_a_sentence(cluster):
    with pytest.raises(BadInput, match=r"ranker overlap exists only in this process.*leave out --ray"):
        audit("sample", Overlap(), "effectiveness", executor=cluster)


def test_a_collection_that_a_machine_does_not_see_is_shipped_once(folder, home, tmp_path):
    """The same texts open from a copy below the home folder, where the path itself is gone."""
    pieces: list[bytes] = []

    def put(piece: bytes) -> int:
        pieces.append(piece)
        return len(pieces) - 1

    here = load(folder)
    shipment = bundle_files(str(folder), here.docs.fingerprint, put)
    origin = RemoteSpec(here.source, documents_fingerprint=here.docs.fingerprint)
    assert localize(origin, [shipment], pieces.__getitem__) == origin, "who sees the path opens it"
    folder.rename(tmp_path / "elsewhere")
    there = localize(origin, [shipment], pieces.__getitem__)
    assert there.collection.startswith(str(home / "shipped"))
    assert load(there.collection).fingerprint == here.fingerprint
    assert localize(origin, [shipment], lambda piece: pytest.fail("fetched twice")) == there

"""Laws of every executor that sends jobs to other processes, on this machine or on a cluster."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from shaketable.api.audit import audit
from shaketable.api.ranker_names import build_models
from shaketable.core.documents import Run
from shaketable.datasets.load import load
from shaketable.executors.base import Executor, SerialExecutor
from shaketable.executors.device import DeviceSettings, get_device_settings
from shaketable.experiment import Experiment
from shaketable.scoring.engine import ScoringEngine
from tests import watched
from tests.processes import in_a_process

RANKERS = ("bm25", "watched=tests.watched:Watched", "listwise=tests.watched:Listwise")
TASKS = (
    "effectiveness",
    "query_typos(draws=1)",
    "document-attack(recipes=('query_line',), targets=2, queries=3, detectors=())",
)


def results(executor: Executor | None, rankers: Sequence[str] = RANKERS, tasks: Sequence[str] = TASKS) -> Any:
    """results.json of a small audit, without the command that this process was started by.

    Without a budget, because the pace of a busy machine would decide what the audit leaves out.
    """
    options: dict[str, Any] = {"depth": 20, "max_queries": 6, "budget": None}
    found = audit("sample", list(rankers), list(tasks), executor=executor, **options).to_dict()
    del found["provenance"]["command"], found["provenance"]["versions"]
    return json.loads(json.dumps(found))


def pairs(lines: Sequence[str]) -> list[str]:
    """Return the requests to all rankers."""
    return sorted(line.partition(" ")[2] for line in lines)


def hands(lines: Sequence[str]) -> set[str]:
    """Return the ids of the processes that scored."""
    return {line.partition(" ")[0] for line in lines}


def experiment(executor: Executor, *rankers: str, **more: Any) -> Experiment:
    return Experiment(
        load("sample"),
        build_models(list(rankers)),
        ScoringEngine(executor=executor, chunk=20, **more),
        depth=20,
        limit=6,
    )


def read_device_settings(collection: None) -> DeviceSettings:
    """Return the settings of the process; this module imports no torch, which takes a worker seconds."""
    return get_device_settings()


def rank_in_folds(executor: Executor, folder: Path) -> Run:
    """Return the lists of a cross-fitted learner."""
    model = experiment(executor).fit_folds("prank(epochs=2)", 3, folder=folder)
    ranker: Any = model.open(load("sample"))
    run: Run = ranker.recorded
    return run


def forget(home: Path) -> None:
    """As if nothing had been scored yet."""
    for path in (*home.glob("scores.sqlite*"), home / watched.ASKED):
        path.unlink(missing_ok=True)


DRIVER = """
import sys
from shaketable import make_executor
from tests import watched
from tests.scoring.handing_out import results
watched.doom("driver", after=80)
results(make_executor(2, sys.argv[1] or None), tasks=["effectiveness"])
"""


def check_driver_killed(home: Path, ray: str | None, again: Executor) -> None:
    """Check that a killed driver leaves the committed scores and no worker, and that a second run resumes."""
    whole = results(SerialExecutor(), tasks=["effectiveness"])
    once = pairs(watched.read_scored_pairs())
    forget(home)
    assert in_a_process(DRIVER, ray or "").returncode == -signal.SIGKILL
    done = watched.read_scored_pairs()
    assert 80 <= len(done) < len(once)
    assert all(map(is_gone, hands(done)))
    assert results(again, tasks=["effectiveness"])["results"] == whole["results"]
    # when the ninth chunk of ten pairs begins, four of those before it are committed: four wait beside it
    assert len(watched.read_scored_pairs()) - len(done) <= len(once) - 40


def is_gone(pid: str) -> bool:
    """Return True if the process ends soon."""
    until = time.monotonic() + 30
    while Path(f"/proc/{pid}/cmdline").exists() and time.monotonic() < until:
        time.sleep(0.05)
    return not Path(f"/proc/{pid}/cmdline").exists()


def check_nets(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a net has the same scores in a worker as in this process."""
    pytest.importorskip("torch")
    from shaketable.rankers.neural.scoring import NeuralRanker

    net = experiment(SerialExecutor()).fit("knrm(steps=4, every=4, lists=2, size=3, dim=8)", "train").path
    alone = experiment(SerialExecutor(), net).get_run(net)
    monkeypatch.setattr(NeuralRanker, "score", lambda self, slates: pytest.fail("it was asked in this process"))
    together = experiment(executor, net).get_run(net)
    assert together.keys() == alone.keys()
    for qid, scores in alone.items():
        assert together[qid] == pytest.approx(scores, abs=1e-6)

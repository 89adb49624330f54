"""A clock that jumps: no file is used, refused or removed because of its date."""

from __future__ import annotations

import itertools
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shaketable.files.atomic import atomic_write
from shaketable.files.staging import STAGE_PREFIX, remove_abandoned_folders, set_aside, staging_folder
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from tests.faults.jobs import collection
from tests.toys import Overlap, slates

LONG_AGO, FAR_AHEAD = 0.0, 4_102_444_800.0  # 1970 and 2100


@pytest.fixture(params=[LONG_AGO, FAR_AHEAD], ids=["1970", "2100"])
def moment(request: pytest.FixtureRequest) -> float:
    return float(request.param)


@pytest.fixture
def backwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock finds it a day earlier; `time.monotonic` never jumps."""
    days = itertools.count()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 86_400 * next(days))
    monkeypatch.setattr(time, "time_ns", lambda: int(1e9 * (now - 86_400 * next(days))))


def date_back(folder: Path, moment: float) -> None:
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (moment, moment))


def test_a_lock_protects_whatever_the_date(tmp_path, moment):
    with staging_folder(tmp_path, in_home=True) as stage:
        (stage / "half").write_text("half")
        date_back(stage.parent, moment)
        assert not remove_abandoned_folders(tmp_path, in_home=True)
        assert (stage / "half").read_text() == "half"
    with atomic_write(tmp_path / "a.txt") as out:
        out.write("first")
        date_back(tmp_path, moment)
        with atomic_write(tmp_path / "a.txt") as second:  # a second writer removes drafts that no process locks
            second.write("second")
    assert (tmp_path / "a.txt").read_text() == "first"


def test_folders_without_a_lock_are_abandoned_at_any_date(tmp_path, moment):
    (left := tmp_path / f"{STAGE_PREFIX}left").mkdir()
    (left / "half").write_text("half")
    assert not remove_abandoned_folders(tmp_path, in_home=True), "it is new: a process may be making its lock"
    date_back(left, moment)
    assert not remove_abandoned_folders(tmp_path), "outside of the home it may be a user's"
    with staging_folder(tmp_path):
        assert left.exists(), "outside of the home it may be a user's"
    with staging_folder(tmp_path, in_home=True):
        assert not left.exists(), "a new folder takes the place of an abandoned one"
    left.mkdir()
    date_back(left, moment)
    assert remove_abandoned_folders(tmp_path, in_home=True)
    assert not left.exists()


@pytest.mark.usefixtures("backwards")
def test_damaged_files_that_are_set_aside_never_replace_each_other(tmp_path):
    for number in range(3):
        (tmp_path / "a").write_text(str(number))
        set_aside(tmp_path / "a")
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == ["0", "1", "2"]


@pytest.mark.usefixtures("backwards")
def test_a_cache_retries_by_the_clock_that_never_jumps(tmp_path):
    (tmp_path / "home").write_text("in the way")
    engine = ScoringEngine(Store(tmp_path / "home" / "s.sqlite"), chunk=10)
    expected = ScoringEngine().score(Overlap(), slates())
    np.testing.assert_array_equal(engine.score(Overlap(), slates()), expected)
    (tmp_path / "home").unlink()
    assert engine.list_warnings() == [], "the folder can be made now, and everything was written"
    again = Overlap()
    ScoringEngine(Store(tmp_path / "home" / "s.sqlite")).score(again, slates())
    assert again.asked == 0


def read_results(out: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(out) / "results.json").read_text())
    return found


AUDIT = ("audit", "--data", "trees", "--ranker", "bm25", "--ranker", "mine=tests.toys:Overlap", "--depth", "5")
AUDIT += ("--task", "variance", "--task", "agreement")


@pytest.mark.slow
def test_stored_files_of_any_date_are_used(shaketable, home, tmp_path, moment):
    collection(tmp_path / "trees")
    assert shaketable(*AUDIT, "--out", "out").code == 0
    before = read_results("out")
    for place in ("home", "out", "trees"):
        date_back(tmp_path / place, moment)
    ended = shaketable(*AUDIT, "--out", "out")
    assert ended.code == 0, ended.err
    after = read_results("out")
    assert after["results"] == before["results"]
    assert after["provenance"]["spent"]["mine"]["scored"] == 0
    assert list(tmp_path.rglob(".*")) == []


@pytest.mark.slow
def test_a_clock_that_runs_backwards(shaketable, tmp_path, request):
    collection(tmp_path / "trees")
    train = ("train", "prank", "--data", "trees", "--depth", "5", "--overwrite")
    assert shaketable(*AUDIT, "--out", "expected").code == 0
    assert shaketable(*train, "--model", "expected-model").code == 0
    request.getfixturevalue("backwards")
    for _ in range(2):
        for words in ((*AUDIT, "--out", "out"), (*train, "--model", "model")):
            ended = shaketable(*words)
            assert ended.code == 0, ended.err
    assert read_results("out")["results"] == read_results("expected")["results"]
    weights = [json.loads((Path(name) / "model.json").read_text())["weights"] for name in ("model", "expected-model")]
    assert weights[0] == weights[1]

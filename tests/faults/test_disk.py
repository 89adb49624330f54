"""The disk fails at each place from which it is changed: nothing is lost, nothing is wrong, and the rerun is as ever.

Here each distinct site is broken once; `make faults` breaks every single call.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from shaketable.scoring.store import Store
from tests.faults.jobs import JOBS, Job
from tests.processes import ROOT, SOURCE

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here")]
EVERY = os.environ.get("SHAKETABLE_FAULTS") == "every"
"""At every call, as `make faults` asks for; not at each distinct site alone."""
SITES = 50
"""Distinct sites of all jobs together."""


def lines(module: str, *words: object) -> list[dict[str, Any]]:
    """What a script here prints, a line of JSON each."""
    env = os.environ | {"PYTHONPATH": f"{SOURCE}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-m", f"tests.faults.{module}", *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.fixture(scope="session")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """All jobs under all faults, once for the tests below."""
    return lines("stage", tmp_path_factory.mktemp("faults"), *(["--every"] if EVERY else []))


def of(told: list[dict[str, Any]], job: Job) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if job.needs and not find_spec(job.needs):
        pytest.skip(f"{job.needs} is not installed")
    mine = [one for one in told if one["job"] == job.name]
    return mine[0], mine[1:]


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_a_job_survives_whatever_the_disk_does(told, job):
    about, trials = of(told, job)
    wrong = [one for one in trials if one["wrong"]]
    assert not wrong, "\n".join(f"{one['mode']} at call {one['at']} ({one['site']}): {one['wrong']}" for one in wrong)
    assert len(about["sites"]) >= job.sites, about["sites"]
    if job.group or EVERY:
        assert len(trials) == 3 * (about["calls"] if EVERY else len(about["sites"]))


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_nothing_has_its_name_before_it_is_on_the_disk(told, job):
    assert of(told, job)[0]["hasty"] == []


@pytest.mark.slow
def test_every_site_is_broken_in_every_way(told):
    sites = {site for one in told if "sites" in one for site in one["sites"]}
    broken = Counter((one["mode"], one["site"]) for one in told if "mode" in one)
    assert all(broken[mode, site] for mode in ("kill", "full", "read-only") for site in sites)
    if all(not job.needs or find_spec(job.needs) for job in JOBS):
        assert len(sites) >= SITES, sorted(sites)


@pytest.mark.slow
def test_two_audits_at_once(tmp_path):
    rounds = lines("together", tmp_path, 6)
    assert len(rounds) == 12
    assert [one for one in rounds if one["wrong"]] == []


LIMITS: dict[str, Callable[[Store], Any]] = {
    "database or disk is full": lambda store: store._db.execute("PRAGMA max_page_count=4"),
    "attempt to write a readonly database": lambda store: store._db.execute("PRAGMA query_only=ON"),
}


@pytest.mark.parametrize("reason", LIMITS)
def test_the_score_cache_cannot_be_written(shaketable, folder, home, monkeypatch, reason):
    """SQLite's own words for it, from SQLite itself."""
    words = ("rank", "--data", folder, "--ranker", "tests.faults.test_disk:Wordy", "--write-run", "a.run")
    opened = Store._open

    def limited(store: Store) -> None:
        opened(store)
        LIMITS[reason](store)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_open", limited)
        complaint = shaketable(*words).complaint()
    assert complaint.startswith(f"{home / 'scores.sqlite'}: the score cache cannot be used (")
    assert complaint.endswith("free the disk, delete that file, or set SHAKETABLE_HOME to another folder")
    assert reason in complaint
    assert not list(home.glob("*.damaged-*")), "a full disk is no damage"
    assert shaketable(*words).code == 0


class Wordy:
    """Its answers are long: whole lists, kept with the score cache."""

    name = "wordy"
    fingerprint = "wordy"

    def score(self, slates: Any) -> Any:
        import numpy as np

        return [np.arange(len(slate.docs), dtype=float) for slate in slates]

    def search(self, queries: Any, k: int) -> Any:
        return [{f"d{i}" + "x" * 900: float(-i) for i in range(1, min(k, 30))} for _ in queries]


@pytest.mark.parametrize("name", ["file", "file/deeper", "read-only"])
def test_a_home_that_cannot_be_a_home(shaketable, folder, tmp_path, monkeypatch, name):
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "read-only").mkdir(mode=0o555)
    if name == "read-only" and os.access(tmp_path / name, os.W_OK):
        pytest.skip("this user may write everywhere")
    monkeypatch.setenv("SHAKETABLE_HOME", str(tmp_path / name / "home"))
    words = ("--data", folder, "--ranker", "bm25")
    assert "the score cache cannot be used" in shaketable("audit", *words, "--out", "out").complaint()
    assert "the score cache cannot be used" in shaketable("rank", *words, "--write-run", "a.run").complaint()
    assert shaketable("train", "prank", "--data", folder, "--train-split", "test", "--model", "model").complaint()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "read-only", "trees"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk here that is always full")
def test_what_is_printed_onto_a_full_disk():
    env = os.environ | {"PYTHONPATH": f"{SOURCE}{os.pathsep}{ROOT}", "PYTHONUNBUFFERED": ""}
    command = [sys.executable, "-c", "from shaketable.cli import main; main()", "list"]
    with open("/dev/full", "w") as full:
        for words in (["data"], ["data", "--json", "-"]):
            done = subprocess.run([*command, *words], env=env, stdout=full, stderr=subprocess.PIPE, text=True)
            assert (done.returncode, done.stderr) == (2, "shaketable: a file: No space left on device\n")
        for words in (["data"], ["nothing"]):
            assert subprocess.run([*command, *words], env=env, stdout=full, stderr=full).returncode == 2

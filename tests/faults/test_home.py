"""A home that cannot be written: commands end well with a remark, and give the results of any other home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shaketable.scoring.store import Store
from tests.faults.jobs import collection
from tests.processes import ROOT, SOURCE

pytestmark = pytest.mark.slow

LIMITS: dict[str, Callable[[Any], Any]] = {
    "database or disk is full": lambda db: db.execute("PRAGMA max_page_count=4"),
    "attempt to write a readonly database": lambda db: db.execute("PRAGMA query_only=ON"),
}


@pytest.mark.parametrize("reason", LIMITS)
def test_a_score_cache_that_is_full_or_read_only(shaketable, folder, home, monkeypatch, reason):
    """SQLite's own words for it, from SQLite itself."""
    words = ("rank", "--data", folder, "--ranker", "tests.faults.test_home:Wordy", "--write-run", "a.run")
    opened = Store._open

    def open_limited(store: Store, name: str, **how: bool) -> Any:
        db = opened(store, name, **how)
        LIMITS[reason](db)
        return db

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_open", open_limited)
        ended = shaketable(*words)
    assert ended.code == 0, ended.err
    assert f"the cache {home / 'scores.sqlite'} cannot be written ({reason})" in ended.err
    assert "scores are not cached, so a later run computes them again" in ended.err
    assert "delete" not in ended.err
    assert not list(home.glob("*.damaged-*")), "a full disk is no damage"
    first = Path("a.run").read_text()
    assert "cannot be written" not in shaketable(*words).err
    assert Path("a.run").read_text() == first


class Wordy:
    """Its answers take space: whole lists, kept in the score cache."""

    name = "wordy"
    fingerprint = "wordy"

    def score(self, slates: Any) -> Any:
        return [np.arange(len(slate.docs), dtype=float) for slate in slates]

    def search(self, queries: Any, k: int) -> Any:
        return [{f"d{i}" + "x" * 900: float(-i) for i in range(1, min(k, 30))} for _ in queries]


def findings(out: Path) -> list[Any]:
    return [result["findings"] for result in json.loads((out / "results.json").read_text())["results"]]


RANKERS = ("--data", "trees", "--ranker", "bm25", "--ranker", "mine=tests.toys:Overlap", "--depth", "5")
AUDIT = ("audit", *RANKERS, "--task", "variance", "--task", "agreement")
TRAIN = ("train", "prank", "--data", "trees", "--depth", "5", "--folds", "3")


@pytest.mark.parametrize("name", ["file", "file/deeper"])
def test_a_home_that_cannot_be_a_home(shaketable, tmp_path, monkeypatch, name):
    collection(tmp_path / "trees")
    assert shaketable(*AUDIT, "--out", "expected").code == 0
    assert shaketable(*TRAIN, "--model", "expected-model").code == 0
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("SHAKETABLE_HOME", str(tmp_path / name / "home"))
    ended = shaketable(*AUDIT, "--out", "out", "--tables")
    assert ended.code == 0, ended.err
    assert "scores.sqlitecannotbewritten(Notadirectory)" in "".join(ended.out.split()), "a long path may be wrapped"
    assert findings(tmp_path / "out") == findings(tmp_path / "expected")
    remarks = json.loads((tmp_path / "out" / "results.json").read_text())["provenance"]["remarks"]
    assert "SHAKETABLE_HOME" in remarks["scores"]
    ended = shaketable(*TRAIN, "--model", "model")
    assert ended.code == 0, ended.err
    assert "models cannot be written (Not a directory)" in ended.err, "each fold is a model in the home"
    assert read_records(tmp_path / "model") == read_records(tmp_path / "expected-model")
    assert (tmp_path / "file").read_text() == "not a folder"


def read_records(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob("files-*/*"))]


MOUNT = """
while [ "$1" != -- ]; do
    mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 1
    shift
done
shift
exec "$@"
"""
AUDITS = f"""
import os, sys
from shaketable.cli import main
for home in sys.argv[1:]:
    os.environ["SHAKETABLE_HOME"] = home
    try:
        main([*{AUDIT}, "--out", f"out {{os.path.basename(home)}}", "--tables"])
    except SystemExit as end:
        assert not end.code, end.code
"""


def run_read_only(homes: Sequence[Path], *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program that sees these homes mounted read-only; other programs do not."""
    env = os.environ | {"PYTHONPATH": f"{SOURCE}{os.pathsep}{ROOT}", "COLUMNS": "500"}
    mounted = ["unshare", "-m", "sh", "-c", MOUNT, "sh", *map(str, homes), "--"]
    return subprocess.run([*mounted, *words], env=env, capture_output=True, text=True)


def can_mount(home: Path) -> bool:
    try:
        return run_read_only([home], "sh", "-c", f"! touch {home}/probe").returncode == 0
    except OSError:
        return False


def test_a_home_that_is_mounted_read_only(tmp_path, home, monkeypatch):
    """A home with scores, which are used, and an empty home."""
    monkeypatch.chdir(tmp_path)
    homes = (home, tmp_path / "empty")
    for each in homes:
        each.mkdir()
    if not can_mount(home):
        pytest.skip("mounting needs a privileged user on Linux")
    collection(tmp_path / "trees")
    # in a process of its own: a store that is still open has files beside it, with which it can be read
    assert run_read_only((), sys.executable, "-c", AUDITS, str(home)).returncode == 0
    (tmp_path / "out home").rename(tmp_path / "expected")
    before = read_files(*homes)
    ended = run_read_only(homes, sys.executable, "-c", AUDITS, *map(str, homes))
    assert ended.returncode == 0, ended.stderr
    assert read_files(*homes) == before
    for each in homes:
        assert f"the cache {each / 'scores.sqlite'} cannot be written (" in " ".join(ended.stdout.split())
        out = tmp_path / f"out {each.name}"
        assert findings(out) == findings(tmp_path / "expected")
        spent = json.loads((out / "results.json").read_text())["provenance"]["spent"]
        assert (spent["mine"]["scored"] == 0) == (each == home), "what the home has is used"


def read_files(*folders: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()}

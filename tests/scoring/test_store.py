"""A score cache that is locked, read-only or damaged: scoring goes on, no answer is lost, and the remark says why."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from shaketable.scoring import store as store_module
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from tests.toys import Overlap, slates

HOLDER = """
import os, signal, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
db.execute("INSERT INTO kept VALUES (x'00', x'00')")
print("locked", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""


@contextmanager
def suspended_writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that stopped in the middle of a transaction."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "locked\n"
        try:
            yield child
        finally:
            child.kill()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "LOCK_TIMEOUT_S", 0.2)


@pytest.mark.usefixtures("impatient")
def test_a_suspended_writer_blocks_no_other_process(tmp_path):
    path = tmp_path / "s.sqlite"
    ScoringEngine(Store(path)).score(Overlap(), slates(2))
    expected = ScoringEngine().score(Overlap(), slates(20))
    engine, ranker = ScoringEngine(Store(path), chunk=10, cache_size=5), Overlap()
    with suspended_writer(path) as child:
        np.testing.assert_array_equal(engine.score(ranker, slates(20)), expected)
        asked = ranker.asked
        np.testing.assert_array_equal(engine.score(ranker, slates(20)), expected)
        assert ranker.asked == asked, "answers that wait to be written are served from memory"
        (warning,) = engine.list_warnings()
        assert f"the cache {path} is locked by " in warning
        if Path("/proc/locks").exists():
            assert f"process {child.pid} (suspended): {asked} scores are not cached" in warning
        assert "resume or end that process" in warning
        assert "delete" not in warning
    assert engine.list_warnings() == [], "the lock is gone, and everything was written"
    again = Overlap()
    ScoringEngine(Store(path)).score(again, slates(20))
    assert again.asked == 0
    assert not list(tmp_path.glob("*.damaged-*")), "a lock is no damage"


@pytest.mark.usefixtures("impatient")
def test_an_interruption_reports_scores_that_are_not_cached(tmp_path):
    class Stops(Overlap):
        def score(self, slates):
            if self.asked > 30:
                raise KeyboardInterrupt
            return super().score(slates)

    path = tmp_path / "s.sqlite"
    Store(path)
    with suspended_writer(path), pytest.raises(KeyboardInterrupt, match=r"are lost, because caching failed"):
        ScoringEngine(Store(path), chunk=10).score(Stops(), slates(20))
    with pytest.raises(KeyboardInterrupt, match=r"they are cached: run the same command again"):
        ScoringEngine(Store(path), chunk=10).score(Stops(), slates(20))


@pytest.mark.usefixtures("impatient")
def test_a_cache_that_is_locked_before_it_is_opened(tmp_path):
    path = tmp_path / "s.sqlite"
    db = sqlite3.connect(path, isolation_level=None)  # not in WAL mode, so that opening needs the lock
    db.execute("CREATE TABLE kept (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")
    db.execute("BEGIN EXCLUSIVE")
    store = Store(path)
    store.put([(b"a", b"1")])
    assert store.get([b"a", b"b"]) == {b"a": b"1"}
    assert "is locked by" in store.list_warnings()[0]
    db.execute("ROLLBACK")
    db.close()
    assert store.list_warnings() == []
    assert Store(path).get([b"a"]) == {b"a": b"1"}


SCHEMA_DAMAGE = (
    "CREATE TABLE kept (key BLOB PRIMARY KEY, walue BLOB) WITHOUT ROWID",
    "CREATE TABLE kept (kez BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID",
    "CREATE TABLE kept (key BLOB PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE kept (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWIE",
    "CREATE TABLF kept (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID",
    "",
)


@pytest.mark.parametrize("sql", SCHEMA_DAMAGE)
def test_a_damaged_schema_is_set_aside(tmp_path, sql):
    path = tmp_path / "s.sqlite"
    expected = ScoringEngine(Store(path)).score(Overlap(), slates())
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA writable_schema=ON")
    db.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'kept'", (sql,))
    db.close()
    engine, ranker = ScoringEngine(Store(path)), Overlap()
    np.testing.assert_array_equal(engine.score(ranker, slates()), expected)
    assert ranker.asked > 0
    assert "damaged" in engine.list_warnings()[0]
    assert len(list(tmp_path.glob("s.sqlite.damaged-*"))) == 1
    again = Overlap()
    ScoringEngine(Store(path)).score(again, slates())
    assert again.asked == 0


def test_a_schema_that_is_damaged_while_the_cache_is_open(tmp_path):
    path = tmp_path / "s.sqlite"
    store = Store(path)
    store.put([(b"a", b"1")])
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("ALTER TABLE kept RENAME COLUMN value TO walue")
    db.close()
    assert store.get([b"a"]) == {}
    store.put([(b"a", b"2")])
    assert Store(path).get([b"a"]) == {b"a": b"2"}
    assert store.damaged_count == 1


def test_a_file_that_another_process_replaced_is_not_set_aside(tmp_path):
    path = tmp_path / "s.sqlite"
    Store(path).put([(b"a", b"1")])
    first, second = Store(path), Store(path)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("ALTER TABLE kept RENAME TO taken")
    db.close()
    first.put([(b"b", b"2")])  # both see the damage; the first replaces the file
    second.put([(b"c", b"3")])
    assert Store(path).get([b"b", b"c"]) == {b"b": b"2", b"c": b"3"}
    assert len(list(tmp_path.glob("s.sqlite.damaged-*"))) == 1


def test_text_that_is_not_utf8_is_no_answer(tmp_path):
    path = tmp_path / "s.sqlite"
    Store(path).put([(b"a", b"1"), (b"b", b"2")])
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("UPDATE kept SET value = CAST(x'fffe00' AS TEXT) WHERE key = ?", (b"a",))
    db.close()
    assert Store(path).get([b"a", b"b"]) == {b"b": b"2"}


def test_a_cache_that_cannot_be_created_is_a_remark(tmp_path):
    (tmp_path / "file").write_text("")
    engine, ranker = ScoringEngine(Store(tmp_path / "file" / "s.sqlite"), cache_size=5), Overlap()
    expected = ScoringEngine().score(Overlap(), slates())
    np.testing.assert_array_equal(engine.score(ranker, slates()), expected)
    np.testing.assert_array_equal(engine.score(ranker, slates()), expected)
    (warning,) = engine.list_warnings()
    assert "s.sqlite cannot be written (" in warning
    assert f"{ranker.asked} scores are not cached" in warning
    assert "set SHAKETABLE_HOME" in warning
    assert "delete" not in warning

"""Scores on disk: one SQLite file that several processes share and that outlives a kill at any moment."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from shaketable.errors import ShaketableError

Value = float | np.ndarray
"""One score of a pair, or the scores of a whole slate."""

PATIENCE = 60.0  # seconds to wait for another process
LOOKUP = 900  # parameters of one SELECT; older SQLite builds allow 999


class Store:
    """key -> score(s). Keys name content (ranker, query, text), so a hit can never be stale.

    Write-ahead logging makes each `put` atomic: after a crash it is there whole or not at all, and readers never wait.
    """

    def __init__(self, path: Path):
        self.path = path
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
            self._log_ahead()
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("PRAGMA mmap_size=1073741824")
            self._db.execute("CREATE TABLE IF NOT EXISTS scores (key BLOB PRIMARY KEY, value) WITHOUT ROWID")

    def _log_ahead(self) -> None:
        """Switch to write-ahead logging. Who finds another at it is turned away at once, whatever the timeout."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self._db.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Value]:
        """Those of the keys that are known, with their values."""
        found: dict[bytes, Value] = {}
        keys = sorted(keys)  # neighbours share a page
        with self._explained():
            for start in range(0, len(keys), LOOKUP):
                part = keys[start : start + LOOKUP]
                marks = ",".join("?" * len(part))
                found.update(self._db.execute(f"SELECT key, value FROM scores WHERE key IN ({marks})", part))
        for key, value in found.items():
            if isinstance(value, bytes):
                found[key] = np.frombuffer(value)
        return found

    def put(self, items: Iterable[tuple[bytes, Value]]) -> None:
        """Keep these, all or none."""
        rows = sorted((k, v.astype(np.float64).tobytes() if isinstance(v, np.ndarray) else v) for k, v in items)
        with self._explained():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?)", rows)
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise ShaketableError(
                f"{self.path}: the score cache cannot be used ({error}); "
                "free the disk, delete that file, or set SHAKETABLE_HOME to another folder"
            ) from error

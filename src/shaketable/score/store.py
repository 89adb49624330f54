"""Answers on disk: one SQLite file that several processes share and that outlives a kill at any moment."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

from shaketable.errors import ShaketableError

PATIENCE = 60.0  # seconds to wait for another process
LOOKUP = 450  # keys of one SELECT


class Store:
    """key -> bytes. Keys name content (ranker, query, text), so a hit can never be stale.

    Each row carries a checksum over key and value: one that does not match counts as absent, and is written anew when
    its value has been computed again. Write-ahead logging makes each `put` atomic: after a crash it is there whole or
    not at all, and readers never wait. A file that SQLite finds damaged is set aside, and a new one begun.
    """

    def __init__(self, path: Path):
        self.path = path
        self.damaged = 0
        """Rows, and files, that were found damaged."""
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._open()
            except sqlite3.DatabaseError as error:
                self._begin_anew(error)

    def _open(self) -> None:
        self._db = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        self._log_ahead()
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("PRAGMA mmap_size=1073741824")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, value BLOB, sum INTEGER) WITHOUT ROWID"
        )

    def _begin_anew(self, error: sqlite3.DatabaseError) -> None:
        """Set a damaged file aside. A file that is only busy, full or forbidden is not damaged."""
        if isinstance(error, sqlite3.OperationalError) and "malformed" not in str(error):
            raise error
        self.damaged += 1
        self._db.close()
        aside = self.path.with_name(f"{self.path.name}.damaged-{time.time_ns()}")
        self.path.replace(aside)
        for ending in ("-wal", "-shm"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
        self._open()

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

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Those of the keys that are known and undamaged, with their values."""
        keys = sorted(keys)  # neighbours share a page
        with self._explained():
            try:
                return self._read(keys)
            except sqlite3.DatabaseError as error:
                self._begin_anew(error)
                return {}

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        known: dict[bytes, bytes] = {}
        rows = 0
        for start in range(0, len(keys), LOOKUP):
            part = keys[start : start + LOOKUP]
            marks = ",".join("?" * len(part))
            for key, value, total in self._db.execute(f"SELECT * FROM answers WHERE key IN ({marks})", part):
                rows += 1
                if isinstance(value, bytes) and crc32(value, crc32(key)) == total:
                    known[key] = value
        self.damaged += rows - len(known)
        return known

    def put(self, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Keep these, all or none."""
        rows = sorted((key, value, crc32(value, crc32(key))) for key, value in items)
        with self._explained():
            try:
                self._write(rows)
            except sqlite3.DatabaseError as error:
                self._begin_anew(error)
                self._write(rows)

    def _write(self, rows: Sequence[tuple[bytes, bytes, int]]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", rows)
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

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

"""A score cache in one SQLite file that several processes share and that survives a kill at any moment."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import add
from pathlib import Path
from zlib import crc32

from shaketable.core.errors import ShaketableError

LOCK_TIMEOUT_S = 60.0
MAX_KEYS_PER_SELECT = 450
VALID_CRC32 = 0x2144DF1C
"""The CRC-32 of any bytes that end in their own CRC-32."""


class Store:
    """A score cache backed by SQLite: key -> bytes. Keys hash the content (ranker, query, text), so no entry is stale.

    Each value ends in a checksum of key and value. An entry with a wrong checksum counts as absent and is replaced when
    its value is computed again. Write-ahead logging makes each `put` atomic, and readers never wait. A damaged database
    file is renamed, and a new one is created.
    """

    def __init__(self, path: Path):
        self.path = path
        self.damaged_count = 0
        """The number of damaged rows and files."""
        with self._explain_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._open()
            except sqlite3.DatabaseError as error:
                self._replace_damaged_file(error)

    def _open(self) -> None:
        self._db = sqlite3.connect(self.path, timeout=LOCK_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        self._enable_wal()
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("PRAGMA mmap_size=1073741824")
        self._db.execute("CREATE TABLE IF NOT EXISTS kept (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")

    def _replace_damaged_file(self, error: sqlite3.DatabaseError) -> None:
        """Rename a damaged file and create a new one; raise the error of a busy, full or read-only file."""
        if isinstance(error, sqlite3.OperationalError) and "malformed" not in str(error):
            raise error
        self.damaged_count += 1
        self._db.close()
        aside = self.path.with_name(f"{self.path.name}.damaged-{time.time_ns()}")
        self.path.replace(aside)
        for ending in ("-wal", "-shm"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
        self._open()

    def _enable_wal(self) -> None:
        """Switch to write-ahead logging, and retry: SQLite ignores its timeout while another process switches."""
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while True:
            try:
                self._db.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values of the keys that are known and undamaged."""
        keys = sorted(keys)  # adjacent keys share a database page
        with self._explain_errors():
            try:
                return self._read(keys)
            except sqlite3.DatabaseError as error:
                self._replace_damaged_file(error)
                return {}

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values of sorted keys. If all keys are known, the values come in their order without the keys."""
        known: dict[bytes, bytes] = {}
        for start in range(0, len(keys), MAX_KEYS_PER_SELECT):
            part = keys[start : start + MAX_KEYS_PER_SELECT]
            where = f"FROM kept WHERE key IN ({','.join('?' * len(part))}) ORDER BY key"
            values = [value for (value,) in self._db.execute(f"SELECT value {where}", part)]
            with suppress(TypeError):  # damage can turn a value into a number
                if len(values) == len(part) and {*map(crc32, map(add, part, values))} == {VALID_CRC32}:
                    known.update(zip(part, [value[:-4] for value in values], strict=True))
                    continue
            if values:  # some are absent or damaged
                rows = self._db.execute(f"SELECT key, value {where}", part).fetchall()
                sound = [(k, v[:-4]) for k, v in rows if isinstance(v, bytes) and crc32(k + v) == VALID_CRC32]
                self.damaged_count += len(rows) - len(sound)
                known.update(sound)
        return known

    def put(self, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Write all items or none."""
        rows = sorted([(key, value + crc32(key + value).to_bytes(4, "little")) for key, value in items])
        with self._explain_errors():
            try:
                self._write(rows)
            except sqlite3.DatabaseError as error:
                self._replace_damaged_file(error)
                self._write(rows)

    def _write(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", rows)
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise ShaketableError(
                f"{self.path}: the score cache cannot be used ({error}); "
                "free the disk, delete that file, or set SHAKETABLE_HOME to another folder"
            ) from error

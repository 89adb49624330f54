"""A score cache in one SQLite file that several processes share and that survives a kill at any moment."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import add
from pathlib import Path
from typing import TypeVar
from zlib import crc32

from shaketable.files.locking import describe_lock_holder
from shaketable.files.staging import set_aside

LOCK_TIMEOUT_S = 5.0
RETRY_INTERVAL_S = 1.0
"""The time between two attempts to use a cache that was locked, full or read-only."""
MAX_KEYS_PER_SELECT = 450
VALID_CRC32 = 0x2144DF1C
"""The CRC-32 of any bytes that end in their own CRC-32."""
LOCK_CODES = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL))
READ_ONLY_CODES = frozenset((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM))
SOUND_FILE_CODES = LOCK_CODES | READ_ONLY_CODES | {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM}
"""SQLite's error codes for a file that is not damaged; all others mean damage, for example of the schema."""

T = TypeVar("T")


@dataclass(frozen=True)
class CacheProblem:
    """The reason why a cache cannot be written, and the remedy."""

    what: str
    remedy: str


class Store:
    """A score cache backed by SQLite: key -> bytes. Keys hash the content (ranker, query, text), so no entry is stale.

    Each value ends in a checksum of key and value. An entry with a wrong checksum counts as absent and is replaced when
    its value is computed again. Write-ahead logging makes each `put` atomic, and readers never wait. A damaged database
    file is renamed, and a new one is created.

    A cache that is locked, full or read-only raises no error: entries stay in memory, later calls try to write them
    again, and `list_warnings` names the reason.
    """

    def __init__(self, path: Path):
        self.path = path
        self.damaged_count = 0
        """The number of damaged rows and files."""
        self._db: sqlite3.Connection | None = None
        self._file_id: tuple[int, int] | None = None
        self._read_only = False
        self._unwritten: dict[bytes, bytes] = {}
        self._problem: CacheProblem | None = None
        self._retry_at_s = 0.0
        self._run(lambda db: None)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values of the keys that are known and undamaged."""
        keys = sorted(keys)  # adjacent keys share a database page
        known = self._run(lambda db: self._read(db, keys)) or {}
        if self._unwritten:
            known |= {key: self._unwritten[key][:-4] for key in keys if key in self._unwritten}
        return known

    def put(self, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Write all items or none; items that cannot be written now are kept in memory and written by a later call."""
        rows = sorted([(key, value + crc32(key + value).to_bytes(4, "little")) for key, value in items])
        if self._unwritten:
            self._unwritten.update(rows)
            if time.monotonic() < self._retry_at_s:
                return
            rows = sorted(self._unwritten.items())
        if self._run(lambda db: _write(db, rows)):
            self._unwritten.clear()
            self._forget_problem()
        else:
            self._unwritten.update(rows)

    def delete(self, keys: Sequence[bytes]) -> None:
        """Delete entries; those of a database that cannot be written now remain."""
        for key in keys:
            self._unwritten.pop(key, None)
        self._run(lambda db: _delete(db, sorted(keys)))

    def flush(self) -> int:
        """Try again to write the entries that are only in memory, and return how many remain there."""
        if self._unwritten:
            self._retry_at_s = 0.0
            self.put(())
        return len(self._unwritten)

    def list_warnings(self) -> list[str]:
        """Return warnings about damaged entries, and about a cache that cannot be used."""
        waiting, damaged = self.flush(), self.damaged_count
        warnings = [f"{damaged:,} cached scores were damaged and were computed again"] if damaged else []
        if self._problem is not None:
            lost = f"{waiting:,} scores are not cached, so a later run computes them again; " if waiting else ""
            warnings.append(f"the cache {self.path} {self._problem.what}: {lost}{self._problem.remedy}")
        return warnings

    def close(self) -> None:
        self.flush()
        self._disconnect()

    def _run(self, action: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return the result of an action on the database; None if the database cannot be used now.

        A damaged file is set aside, and the action runs once more on a new file.
        """
        if self._db is None and time.monotonic() < self._retry_at_s:
            return None
        try:
            try:
                return action(self._connect())
            except sqlite3.DatabaseError as error:
                if self._read_only or _get_code(error) in SOUND_FILE_CODES:
                    raise
                self._set_damaged_file_aside()
                return action(self._connect())
        except (sqlite3.DatabaseError, OSError) as error:
            self._note_problem(error)
            return None

    def _connect(self) -> sqlite3.Connection:
        if self._db is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._db = self._open(str(self.path))
            except sqlite3.OperationalError as error:
                if _get_code(error) not in READ_ONLY_CODES or not self.path.is_file():
                    raise
                # `immutable` reads a file in a folder that is not writable; checksums detect a concurrent change
                self._db = self._open(f"{self.path.absolute().as_uri()}?immutable=1", read_only=True)
                self._read_only = True
                self._note_problem(error)
            self._file_id = _get_file_id(self.path)
        return self._db

    def _open(self, name: str, *, read_only: bool = False) -> sqlite3.Connection:
        timeout = 0.0 if self._problem else LOCK_TIMEOUT_S
        db = sqlite3.connect(name, timeout=timeout, isolation_level=None, check_same_thread=False, uri=read_only)
        try:
            db.text_factory = bytes  # damage can turn a value into text that is not UTF-8
            if not read_only:
                _enable_wal(db, timeout)
                db.execute("PRAGMA synchronous=NORMAL")
                db.execute("CREATE TABLE IF NOT EXISTS kept (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")
            db.execute("PRAGMA mmap_size=1073741824")
            db.execute("SELECT key, value FROM kept LIMIT 0")  # fails if the schema is damaged
        except BaseException:
            db.close()
            raise
        return db

    def _disconnect(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def _set_damaged_file_aside(self) -> None:
        """Rename the damaged file, unless another process has already replaced it."""
        self.damaged_count += 1
        self._disconnect()
        if self._file_id in (None, _get_file_id(self.path)):
            set_aside(self.path)
            for ending in ("-wal", "-shm"):
                self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
        self._file_id = None

    def _note_problem(self, error: sqlite3.DatabaseError | OSError) -> None:
        if isinstance(error, sqlite3.DatabaseError) and _get_code(error) in LOCK_CODES:
            holder = describe_lock_holder(self.path.with_name(f"{self.path.name}-shm"))
            self._problem = CacheProblem(f"is locked by {holder}", "resume or end that process")
        else:
            reason = getattr(error, "strerror", None) or error
            remedy = "free some disk space, or set SHAKETABLE_HOME to a writable folder"
            self._problem = CacheProblem(f"cannot be written ({reason})", remedy)
        self._retry_at_s = time.monotonic() + RETRY_INTERVAL_S
        self._set_patience(0.0)

    def _forget_problem(self) -> None:
        if self._problem is not None:
            self._problem = None
            self._set_patience(LOCK_TIMEOUT_S)

    def _set_patience(self, seconds: float) -> None:
        """Set how long SQLite waits for a lock; a run waits once, not before every chunk."""
        if self._db is not None:
            self._db.execute(f"PRAGMA busy_timeout={round(1000 * seconds)}")

    def _read(self, db: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values of sorted keys. If all keys are known, the values come in their order without the keys."""
        known: dict[bytes, bytes] = {}
        for start in range(0, len(keys), MAX_KEYS_PER_SELECT):
            part = keys[start : start + MAX_KEYS_PER_SELECT]
            where = f"FROM kept WHERE key IN ({','.join('?' * len(part))}) ORDER BY key"
            values = [value for (value,) in db.execute(f"SELECT value {where}", part)]
            with suppress(TypeError):  # damage can turn a value into a number
                if len(values) == len(part) and {*map(crc32, map(add, part, values))} == {VALID_CRC32}:
                    known.update(zip(part, [value[:-4] for value in values], strict=True))
                    continue
            if values:  # some are absent or damaged
                rows = db.execute(f"SELECT key, value {where}", part).fetchall()
                sound = [
                    (k, v[:-4])
                    for k, v in rows
                    if isinstance(k, bytes) and isinstance(v, bytes) and crc32(k + v) == VALID_CRC32
                ]
                self.damaged_count += len(rows) - len(sound)
                known.update(sound)
        return known


def _write(db: sqlite3.Connection, rows: Sequence[tuple[bytes, bytes]]) -> bool:
    return _execute_many(db, "INSERT OR REPLACE INTO kept VALUES (?, ?)", rows)


def _delete(db: sqlite3.Connection, keys: Sequence[bytes]) -> bool:
    return _execute_many(db, "DELETE FROM kept WHERE key = ?", [(key,) for key in keys])


def _execute_many(db: sqlite3.Connection, statement: str, rows: Sequence[tuple[bytes, ...]]) -> bool:
    """Execute a statement for all rows or for none."""
    db.execute("BEGIN IMMEDIATE")
    try:
        db.executemany(statement, rows)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return True


def _enable_wal(db: sqlite3.Connection, timeout: float) -> None:
    """Switch to write-ahead logging, and retry: SQLite ignores its timeout while another process switches."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if _get_code(error) not in LOCK_CODES or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _get_code(error: sqlite3.DatabaseError) -> int:
    """Return SQLite's primary error code; -1 if Python raised the error."""
    return int(getattr(error, "sqlite_errorcode", -1)) & 0xFF


def _get_file_id(path: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        about = os.stat(path)
        return about.st_dev, about.st_ino
    return None

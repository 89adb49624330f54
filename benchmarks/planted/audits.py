"""Audits of planted rankers in worker processes, and the file of their results, with which a run resumes."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import blake2b
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

from benchmarks.planted.bases import BaseRanker, Calibration, KnownTexts, Level, calibrate
from benchmarks.planted.design import MAX_QUERIES, SOUND_STRENGTH, TWIN, Point, list_collections
from benchmarks.planted.flaw import Flaw, PlantedModel, PlantedRanker
from benchmarks.planted.flaws import FLAWS
from benchmarks.planted.reading import RANKER, Reading, is_found_worse, read_verdict
from benchmarks.planted.sound import SOUND

import shaketable
from shaketable.api.audit import Audit, open_experiment
from shaketable.api.ranker_names import RankerLike

RESULTS_FILE, TWINS_FOLDER = "audits.jsonl", "twins"
FIRST_STAGE = "bm25"
MAX_AUDITS_PER_WORKER = 20


@dataclass(frozen=True)
class AuditRow:
    """The result of one audit.

    `found_worse` is the answer of `compare` with the twin; None for sound rankers and for audits with a budget.
    """

    point: Point
    reading: Reading
    pairs: int
    seconds: float
    found_worse: bool | None
    source: str

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> AuditRow:
        plain: dict[str, Any] = json.loads(line)
        return cls(**{**plain, "point": Point(**plain["point"]), "reading": Reading.from_dict(plain["reading"])})


@cache
def fingerprint_source() -> str:
    """Return a hash of the code of Shaketable and of this benchmark; results of other code are not reused."""
    digest = blake2b(digest_size=8)
    for root in (Path(shaketable.__file__).parent, Path(__file__).parent):
        for path in sorted(root.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def open_collection(name: str) -> tuple[KnownTexts, Calibration]:
    """Return the texts of a collection and the noise of the bases, measured on the queries of the audit."""
    experiment = open_experiment(list_collections()[name], {}, max_queries=MAX_QUERIES)
    known = KnownTexts(experiment.collection)
    return known, calibrate(known, list(experiment.queries))


def build_ranker(point: Point) -> PlantedRanker:
    """Return the ranker of an audit."""
    known, calibration = open_collection(point.collection)
    if point.strength == SOUND_STRENGTH and point.ranker != TWIN:
        return next(one for one in SOUND if one.name == point.ranker).build(known, calibration)
    level: Level = "good" if point.level == "good" else "mediocre"
    base = BaseRanker(known, calibration.noise[level], name=level)
    flaw = Flaw(TWIN, {}, lambda items: items.scores) if point.ranker == TWIN else FLAWS[point.ranker]
    return PlantedRanker(base, flaw, "quarter" if point.strength == "quarter" else "full")


def run_audit(point: Point, tasks: Sequence[str] = ()) -> tuple[Audit, int]:
    """Return the audit of a planted ranker beside BM25, and the number of pairs that the planted ranker scores."""
    ranker = build_ranker(point)
    rankers: dict[str, RankerLike] = {FIRST_STAGE: FIRST_STAGE, RANKER: PlantedModel(ranker)}
    audit = shaketable.audit(
        list_collections()[point.collection],
        rankers,
        tasks,
        max_queries=MAX_QUERIES,
        runs=False,
        budget=point.budget or None,
    )
    return audit, ranker.pairs


def run_point(point: Point, folder: Path, tasks: Sequence[str] = ()) -> AuditRow:
    """Return the result of one audit; the audit of a twin is saved, and others are compared with it."""
    open_collection(point.collection)  # the time of an audit does not include this
    started = time.perf_counter()
    audit, pairs = run_audit(point, tasks)
    seconds = time.perf_counter() - started
    twin = folder / TWINS_FOLDER / f"{point.collection}-{point.level}"
    found_worse = None
    if point.ranker == TWIN:
        audit.save(twin)
    elif point.strength != SOUND_STRENGTH and not point.budget:
        found_worse = is_found_worse(shaketable.compare(twin, audit))
    return AuditRow(point, read_verdict(audit), pairs, round(seconds, 1), found_worse, fingerprint_source())


def read_rows(folder: Path) -> dict[Point, AuditRow]:
    """Return the results in a folder that the present code made."""
    path = folder / RESULTS_FILE
    rows = map(AuditRow.from_json, path.read_text(encoding="utf-8").splitlines() if path.exists() else ())
    return {row.point: row for row in rows if row.source == fingerprint_source()}


def start_worker() -> None:
    """Give a worker process a store of its own, so that no worker waits for a lock, and delete it at the end."""
    folder = tempfile.mkdtemp(prefix="planted-")
    os.environ["SHAKETABLE_HOME"] = folder
    Finalize(None, shutil.rmtree, (folder, True), exitpriority=1)


class Workers:
    """Worker processes for all parts of a run, because each process opens the collections again.

    They are replaced after `MAX_AUDITS_PER_WORKER` audits each, because their memory grows.
    """

    def __init__(self, count: int) -> None:
        self.count, self._audits = count, 0
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def pool(self) -> ProcessPoolExecutor:
        """The present processes."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.count, multiprocessing.get_context("spawn"), start_worker)
        return self._pool

    def run_audits(self, points: Sequence[Point], folder: Path, tasks: Sequence[str]) -> Iterator[AuditRow]:
        """Yield the result of each audit as soon as it ends."""
        limit = self.count * MAX_AUDITS_PER_WORKER
        while points:
            if self._audits == limit:  # an executor that replaces its workers itself hangs in Python 3.11
                self.close()
            free = limit - self._audits
            batch, points = points[:free], points[free:]
            self._audits += len(batch)
            for done in as_completed(self.pool.submit(run_point, point, folder, tasks) for point in batch):
                yield done.result()

    def close(self) -> None:
        """End the present processes."""
        if self._pool is not None:
            self._pool.shutdown()
        self._pool, self._audits = None, 0


def run_points(
    points: Sequence[Point], folder: Path, workers: Workers, notify: Callable[[str], None], tasks: Sequence[str] = ()
) -> Iterator[AuditRow]:
    """Yield the result of each audit, from the file of results if it is there."""
    known = read_rows(folder)
    yield from (known[point] for point in points if point in known)
    todo = [point for point in points if point not in known]
    with (folder / RESULTS_FILE).open("a", encoding="utf-8") as out:
        for count, row in enumerate(workers.run_audits(todo, folder, tasks), 1):
            out.write(row.to_json() + "\n")
            out.flush()
            notify(f"{count}/{len(todo)} {row.point.key}: {row.reading.headline}, {row.seconds:.0f} s")
            yield row

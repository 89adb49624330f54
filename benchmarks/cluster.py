"""Speed-up of two Ray workers over one, and the overhead of distribution per pair, against goals of 1.7 and 5 %.

    python benchmarks/cluster.py [--quick]

The ranker spends 20 ms of processor time per pair in one thread. Goals: two local workers are at least 1.7 times as
fast as one, and the overhead is at most 5 %. The overhead is the processor time of this process and of the workers
beyond the ranker's own time. One worker is the same cluster with jobs that need both of its cores. If other programs
use the cores, wall time says little; the average number of busy workers then says how fast two free cores would be.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from quick import judge_limits, parse_quick

from shaketable.core.home import home_folder
from shaketable.executors.base import RemoteSpec, SerialExecutor

PAIR_S = 0.02  # processor time
MIN_SPEED_UP, MAX_OVERHEAD = 1.7, 0.05
DOCUMENTS, TURNS = 40, 2
RAY, SERIAL, LOG_FILE = "local", "this process", "calls.txt"


class SlowRanker:
    """A ranker by text length that spends 20 ms of processor time per pair and writes the times of each call."""

    name = "slow"
    fingerprint = "slow 20 ms"
    pointwise = True

    def score(self, slates):
        begun, own = time.time(), PAIR_S * sum(len(slate.docs) for slate in slates)
        until = time.thread_time() + own
        scores = [np.array([float(len(doc.text)) for doc in slate.docs]) for slate in slates]
        while time.thread_time() < until:
            pass
        row = (os.getpid(), begun, time.time(), time.process_time(), own)
        with (home_folder() / LOG_FILE).open("a") as out:
            out.write(" ".join(map(str, row)) + "\n")
        return scores


def read_log() -> list[list[float]]:
    """Return the times of all calls since the last reading, and delete the file."""
    path = home_folder() / LOG_FILE
    rows = [list(map(float, line.split())) for line in path.read_text().splitlines()]
    path.unlink()
    return rows


def make_slates(queries: int, mark: str):
    """Return slates of the sample's documents; the mark is part of each query."""
    from itertools import islice

    from shaketable.core.documents import Slate
    from shaketable.datasets.load import load

    docs = tuple(doc for _, doc in islice(load("sample").docs.items(), DOCUMENTS))
    return [Slate(f"query {mark} {number}", docs) for number in range(queries)]


@dataclass
class Usage:
    """Wall time, busy time of the workers, and processor time, in seconds."""

    wall: float = 0.0
    busy: float = 0.0
    ranker: float = 0.0
    driver: float = 0.0
    """Processor time of this process beyond the ranker's."""
    worker: float = 0.0
    """Processor time of the workers beyond the ranker's, between the first and the last job of each worker."""
    ranker_in_worker: float = 0.0
    """Processor time of the ranker in the same period."""

    def add(self, engine, slates, serial: bool) -> None:
        """Score the slates and add the time."""
        started, started_cpu = time.perf_counter(), time.process_time()
        engine.score(SlowRanker(), slates, remote_spec=RemoteSpec("sample", f"{Path(__file__).resolve()}:SlowRanker"))
        self.wall += time.perf_counter() - started
        rows = read_log()
        ranker = sum(row[4] for row in rows)
        self.ranker += ranker
        self.driver += time.process_time() - started_cpu - (ranker if serial else 0.0)
        self.busy += sum(row[2] - row[1] for row in rows)
        for pid in {row[0] for row in rows}:
            jobs = [row for row in rows if row[0] == pid]
            ranker = sum(row[4] for row in jobs[1:])
            self.worker += jobs[-1][3] - jobs[0][3] - ranker
            self.ranker_in_worker += ranker

    @property
    def driver_overhead(self) -> float:
        return self.driver / self.ranker

    @property
    def worker_overhead(self) -> float:
        return self.worker / self.ranker_in_worker if self.ranker_in_worker else 0.0

    @property
    def overhead(self) -> float:
        """The processor time beyond the ranker's, as a share of the ranker's."""
        return self.driver_overhead + self.worker_overhead


def main() -> int:
    quick = parse_quick(__doc__)
    queries, turns = (1, 1) if quick else (24, TURNS)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"SHAKETABLE_HOME": folder, "RAY_worker_niceness": "0"}  # Ray lowers the priority
        from shaketable import make_executor
        from shaketable.scoring.engine import ScoringEngine
        from shaketable.scoring.store import Store

        executors = {
            SERIAL: SerialExecutor(),
            "two workers": make_executor(2, RAY),
            "one worker": make_executor(2, RAY, cpus=2),
        }
        engines = {
            name: ScoringEngine(Store(Path(folder) / f"{name}.sqlite"), executor=one) for name, one in executors.items()
        }
        usage = {name: Usage() for name in executors}
        Usage().add(engines["two workers"], make_slates(2 if quick else 8, "first"), False)  # workers open the ranker
        for turn in range(turns):  # in turns, because the load of the machine changes
            for name, engine in engines.items():
                usage[name].add(engine, make_slates(queries, f"{name} {turn}"), name == SERIAL)
    ranker_time = usage[SERIAL].ranker
    print(f"{ranker_time / PAIR_S:,.0f} pairs at {PAIR_S * 1000:.0f} ms, {ranker_time:.0f} s of processor time")
    for name, one in usage.items():
        print(f"  {name:14}{one.wall:7.1f} s wall time, {one.busy / one.wall:.2f} workers busy on average")
    one, two = usage["one worker"], usage["two workers"]
    wall_ratio, busy_ratio = one.wall / two.wall, (two.busy / two.wall) / (one.busy / one.wall)
    print(f"speed-up of two workers over one: {wall_ratio:.2f} in wall time, {busy_ratio:.2f} in busy workers "
          f"(goal {MIN_SPEED_UP}), ratio {busy_ratio / MIN_SPEED_UP:.2f}")  # fmt: skip
    print(f"overhead per pair {two.overhead:.1%} (limit {MAX_OVERHEAD:.0%}), ratio {two.overhead / MAX_OVERHEAD:.2f}: "
          f"driver {two.driver_overhead:.1%}, worker {two.worker_overhead:.1%}")  # fmt: skip
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > cores:
        print(f"the machine was busy (load {load:.1f} on {cores} cores), so wall time says little")
    return judge_limits(busy_ratio >= MIN_SPEED_UP and two.overhead <= MAX_OVERHEAD, quick)


if __name__ == "__main__":
    sys.exit(main())

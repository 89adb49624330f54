"""What a second worker of a Ray cluster is worth, and what handing out costs a pair.

    python benchmarks/cluster.py [--quick]

Two local Ray workers against one, on a ranker that spends 20 ms of processor time a pair in one thread. Goals: at least
1.7 times as fast, and at most 5 % of overhead a pair: what this process and the workers spend of the processor beyond
the ranker's own time. One worker is the same cluster with jobs that take both of its cores. Where other programs leave
no two cores to us the clock says little; how many workers were busy on average says how fast two cores would be.
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

PAIR = 0.02  # seconds of processor time
SPEED_UP, OVERHEAD = 1.7, 0.05
DOCUMENTS, TURNS = 40, 2
RAY, HERE, LOG = "local", "this process", "spent.txt"


class Spending:
    """Lengths of texts, at 20 ms of the processor a pair; it writes down when it was busy, and what was spent."""

    name = "spending"
    fingerprint = "spending 20 ms"
    pointwise = True

    def score(self, slates):
        begun, own = time.time(), PAIR * sum(len(slate.docs) for slate in slates)
        until = time.thread_time() + own
        scores = [np.array([float(len(doc.text)) for doc in slate.docs]) for slate in slates]
        while time.thread_time() < until:
            pass
        row = (os.getpid(), begun, time.time(), time.process_time(), own)
        with (home_folder() / LOG).open("a") as out:
            out.write(" ".join(map(str, row)) + "\n")
        return scores


def logged() -> list[list[float]]:
    """What was written down, and forgotten now."""
    path = home_folder() / LOG
    rows = [list(map(float, line.split())) for line in path.read_text().splitlines()]
    path.unlink()
    return rows


def asked(queries: int, mark: str):
    """Slates of the sample's documents; another mark makes other queries."""
    from itertools import islice

    from shaketable.core.documents import Slate
    from shaketable.datasets.load import load

    docs = tuple(doc for _, doc in islice(load("sample").docs.items(), DOCUMENTS))
    return [Slate(f"query {mark} {number}", docs) for number in range(queries)]


@dataclass
class Spent:
    """Seconds by the clock, seconds that workers were busy, and what of the processor went beyond the ranker's own."""

    clock: float = 0.0
    busy: float = 0.0
    own: float = 0.0
    driver: float = 0.0
    worker: float = 0.0
    """Beyond its own time, between the first and the last job of each process; `within` is the own time there."""
    within: float = 0.0

    def add(self, engine, slates, here: bool) -> None:
        started, spent = time.perf_counter(), time.process_time()
        engine.score(Spending(), slates, remote_spec=RemoteSpec("sample", f"{Path(__file__).resolve()}:Spending"))
        self.clock += time.perf_counter() - started
        rows = logged()
        own = sum(row[4] for row in rows)
        self.own += own
        self.driver += time.process_time() - spent - (own if here else 0.0)
        self.busy += sum(row[2] - row[1] for row in rows)
        for pid in {row[0] for row in rows}:
            mine = [row for row in rows if row[0] == pid]
            within = sum(row[4] for row in mine[1:])
            self.worker += mine[-1][3] - mine[0][3] - within
            self.within += within

    @property
    def beyond(self) -> float:
        """The overhead as a share of the ranker's own time."""
        return self.driver / self.own + (self.worker / self.within if self.within else 0.0)


def main() -> int:
    quick = parse_quick(__doc__)
    queries, turns = (1, 1) if quick else (24, TURNS)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"SHAKETABLE_HOME": folder, "RAY_worker_niceness": "0"}  # else Ray's workers yield to all others
        from shaketable import make_executor
        from shaketable.scoring.engine import ScoringEngine
        from shaketable.scoring.store import Store

        hands = {
            HERE: SerialExecutor(),
            "two workers": make_executor(2, RAY),
            "one worker": make_executor(2, RAY, cpus=2),
        }
        roads = {n: ScoringEngine(Store(Path(folder) / f"{n}.sqlite"), executor=one) for n, one in hands.items()}
        found = {name: Spent() for name in hands}
        Spent().add(
            roads["two workers"], asked(2 if quick else 8, "first"), False
        )  # workers start, and open the ranker
        for turn in range(turns):  # in turns, since other programs come and go
            for name, engine in roads.items():
                found[name].add(engine, asked(queries, f"{name} {turn}"), name == HERE)
    own = found[HERE].own
    print(f"{own / PAIR:,.0f} pairs at {PAIR * 1000:.0f} ms, {own:.0f} s of the processor")
    for name, one in found.items():
        print(f"  {name:14}{one.clock:7.1f} s by the clock, {one.busy / one.clock:.2f} busy on average")
    one, two = found["one worker"], found["two workers"]
    ratio, busy = one.clock / two.clock, (two.busy / two.clock) / (one.busy / one.clock)
    print(f"speed-up of two workers over one {ratio:.2f} by the clock, {busy:.2f} where each has a core of its own "
          f"(goal {SPEED_UP}), ratio {busy / SPEED_UP:.2f}")  # fmt: skip
    print(f"overhead a pair {two.beyond:.1%} (limit {OVERHEAD:.0%}), ratio {two.beyond / OVERHEAD:.2f}: driver "
          f"{two.driver / two.own:.1%}, worker {two.worker / max(two.within, 1e-9):.1%}")  # fmt: skip
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > cores:
        print(f"the machine was busy: a load of {load:.1f} on {cores} cores, so the clock says little")
    return judge_limits(busy >= SPEED_UP and two.beyond <= OVERHEAD, quick)


if __name__ == "__main__":
    sys.exit(main())

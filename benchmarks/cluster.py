"""What a second worker of a Ray cluster is worth, and what handing out costs a pair.

    python benchmarks/cluster.py [--quick]

Two local Ray workers against one, on a ranker that spends 20 ms of processor time a pair in one thread. Goals: at least
1.7 times as fast by the clock, and at most 5 % of overhead a pair: what this process and the workers spend of the
processor beyond the ranker's own time, which other programs on the machine hardly change. One worker is the same
cluster with jobs that take both of its cores.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil

PAIR = 0.02  # seconds of processor time
SPEED_UP, OVERHEAD = 1.7, 0.05
DOCUMENTS, TURNS = 40, 4
RAY = "local"


class Spending:
    """Lengths of texts, at 20 ms of processor time a pair."""

    name = "spending"
    fingerprint = "spending 20 ms"
    pointwise = True

    def score(self, slates):
        until = time.thread_time() + PAIR * sum(len(slate.docs) for slate in slates)
        scores = [np.array([float(len(doc.text)) for doc in slate.docs]) for slate in slates]
        while time.thread_time() < until:
            pass
        return scores


def asked(queries: int, mark: str):
    """Slates of the sample's documents; another mark makes other queries."""
    from itertools import islice

    from shaketable.data.load import load
    from shaketable.types import Slate

    docs = tuple(doc for _, doc in islice(load("sample").docs.items(), DOCUMENTS))
    return [Slate(f"query {mark} {number}", docs) for number in range(queries)]


def processor() -> float:
    """Seconds of the processor that this process and its workers have spent."""
    us = psutil.Process()
    spent = 0.0
    for process in (us, *us.children(recursive=True)):
        with suppress(psutil.Error):  # it may have ended meanwhile
            if process == us or process.name().startswith("ray::perform") or process.name().startswith("ray::IDLE"):
                times = process.cpu_times()
                spent += times.user + times.system
    return spent


def measured(road, slates) -> tuple[float, float]:
    """Seconds by the clock and of the processor for these slates."""
    from shaketable.score.executor import Origin

    started, spent = time.perf_counter(), processor()
    road.score(Spending(), slates, origin=Origin("sample", f"{Path(__file__).resolve()}:Spending"))
    return time.perf_counter() - started, processor() - spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer queries")
    queries = 3 if parser.parse_args().quick else 12
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"SHAKETABLE_HOME": folder, "RAY_worker_niceness": "0"}  # else Ray's workers yield to all others
        from shaketable import workers
        from shaketable.score.executor import Here
        from shaketable.score.road import Road
        from shaketable.score.store import Store

        hands = {"this process": Here(), "two workers": workers(2, RAY), "one worker": workers(2, RAY, cpus=2)}
        roads = {n: Road(Store(Path(folder) / f"{n}.sqlite"), executor=one) for n, one in hands.items()}
        measured(roads["two workers"], asked(4, "first"))  # workers start, and open the ranker
        clock, spent = dict.fromkeys(hands, 0.0), dict.fromkeys(hands, 0.0)
        for turn in range(TURNS):  # in turns, since other programs come and go
            for name, road in roads.items():
                seconds, processed = measured(road, asked(queries, f"{name} {turn}"))
                clock[name] += seconds
                spent[name] += processed
    own = TURNS * queries * DOCUMENTS * PAIR
    print(f"{own / PAIR:,.0f} pairs at {PAIR * 1000:.0f} ms, {own:.0f} s of the processor")
    for name in hands:
        beyond = spent[name] / own - 1
        print(f"  {name:14}{clock[name]:7.1f} s by the clock, {beyond:6.1%} of the processor beyond the ranker's own")
    ratio, beyond = clock["one worker"] / clock["two workers"], spent["two workers"] / own - 1
    print(f"speed-up of two workers over one {ratio:.2f} (goal {SPEED_UP}), ratio {ratio / SPEED_UP:.2f}")
    print(f"overhead a pair {beyond:.1%} (limit {OVERHEAD:.0%}), ratio {beyond / OVERHEAD:.2f}")
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > cores:
        print(f"the machine was busy: a load of {load:.1f} on {cores} cores, so the clock says little")


if __name__ == "__main__":
    main()

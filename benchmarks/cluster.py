"""What a second worker of a Ray cluster is worth, and what handing out costs a pair.

    python benchmarks/cluster.py [--quick]

Two local Ray workers against one, on a ranker that spends 20 ms of processor time a pair in one thread. Goals: at least
1.7 times as fast by the clock, and at most 5 % of overhead a pair: what this process, the workers and Ray itself spend
of the processor beyond the ranker's own time, which other programs on the machine hardly change.
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
DOCUMENTS = 40


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
    """Seconds of the processor that this process and all that it started have spent."""
    us = psutil.Process()
    spent = 0.0
    for process in (us, *us.children(recursive=True)):
        with suppress(psutil.Error):  # it may have ended meanwhile
            times = process.cpu_times()
            spent += times.user + times.system
    return spent


def measured(executor, slates, folder: Path, mark: str) -> tuple[float, float]:
    """Seconds by the clock and of the processor of the road on this executor, scores committed to a store on disk."""
    from shaketable.score.executor import Origin
    from shaketable.score.road import Road
    from shaketable.score.store import Store

    road = Road(Store(folder / f"{mark}.sqlite"), executor=executor)
    origin = Origin("sample", f"{Path(__file__).resolve()}:Spending")
    ranker = Spending()
    road.score(ranker, slates[:1], origin=origin)  # workers start, and open the ranker
    started, spent = time.perf_counter(), processor()
    road.score(ranker, slates[1:], origin=origin)
    return time.perf_counter() - started, processor() - spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer queries")
    queries = 11 if parser.parse_args().quick else 51
    pairs = (queries - 1) * DOCUMENTS
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SHAKETABLE_HOME"] = folder
        import ray

        from shaketable import workers
        from shaketable.score.executor import Here

        place = Path(folder)
        clock, spent = {}, {}
        clock[0], spent[0] = measured(Here(), asked(queries, "here"), place, "here")
        for count in (1, 2):
            hands = workers(count, "local")
            clock[count], spent[count] = measured(hands, asked(queries, str(count)), place, str(count))
            ray.shutdown()
    own = pairs * PAIR
    print(f"{pairs} pairs at {PAIR * 1000:.0f} ms, {own:.0f} s of the processor")
    for count, what in enumerate(("in this process", "one worker of Ray", "two workers of Ray")):
        beyond = spent[count] / own - 1
        print(f"  {what:20}{clock[count]:7.1f} s by the clock, {beyond:6.1%} of the processor beyond the ranker's own")
    ratio, beyond = clock[1] / clock[2], spent[2] / own - 1
    print(f"speed-up of two workers over one {ratio:.2f} (goal {SPEED_UP}), ratio {ratio / SPEED_UP:.2f}")
    print(f"overhead a pair {beyond:.1%} (limit {OVERHEAD:.0%}), ratio {beyond / OVERHEAD:.2f}")
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > cores:
        print(f"the machine was busy: a load of {load:.1f} on {cores} cores, so the clock says little")


if __name__ == "__main__":
    main()

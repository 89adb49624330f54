"""Detection rates for planted faults of servers and false alarms for healthy servers, against goals.

    python -m benchmarks.server_faults [--quick]

30 broken and 30 healthy servers listen on the loopback, one after the other, and `shaketable doctor` examines each.
Then three simulations run without a network: the power to find a server that fails open on 3 % of 200 lists (goal: at
least 95 %), false alarms for healthy servers (goal: at most 1 %), and false alarms of `shaketable watch` within 1,000
looks (goal: at most 5 %). The exit code is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass

import numpy as np
from benchmarks.server_faults.servers import PlantedServer, fail_open, make_broken, make_healthy, score_by_position
from tests.servers import Server, running

from shaketable.core.documents import Slate
from shaketable.datasets.known_answers import read_known_answers
from shaketable.measures.drift import EVIDENCE_LIMIT, highest_evidence
from shaketable.rankers.diagnosis.asking import Examiner
from shaketable.rankers.diagnosis.canary import record_baseline, take_look
from shaketable.rankers.diagnosis.questions import ask_questions
from shaketable.rankers.http.diagnostics import diagnose_endpoint
from shaketable.rankers.http.reranker import HttpEndpoint

LOOKS = 1000


def examine(planted: PlantedServer) -> tuple[list[str], float]:
    """Return the faults that `doctor` names, and its time in seconds."""
    started = time.perf_counter()
    with running(Server(planted)) as server:
        diagnosis = diagnose_endpoint(HttpEndpoint(server.url, retries=0))
    kinds = [fault.kind for fault in diagnosis.faults]
    broken = [check.check for check in diagnosis.checks if check.severity == "error"]
    return kinds or broken, time.perf_counter() - started


def examine_servers(every: int) -> bool:
    """Print a table of faults; return True if all faults are detected and no healthy server is reported."""
    found: dict[str, Counter[str]] = {}
    seconds = []
    for seed, (kind, what, make) in enumerate(make_broken()[::every]):
        named, duration = examine(make(seed))
        seconds.append(duration)
        counts = found.setdefault(kind, Counter())
        counts.update(servers=1, detected=bool(named), named=bool(named) and named[0] == kind)
        if not named or named[0] != kind:
            print(f"  {kind} ({what}) is reported as {', '.join(named) or 'healthy'}")
    false_alarms = 0
    healthy = list(make_healthy().items())[::every]
    for seed, (what, make) in enumerate(healthy):
        named, duration = examine(make(seed))
        seconds.append(duration)
        false_alarms += bool(named)
        if named:
            print(f"  a healthy server ({what}) is reported as {', '.join(named)}")
    print(f"\n{'planted fault':20} {'servers':>8} {'detected':>9} {'named':>6}")
    for kind, counts in found.items():
        print(f"{kind:20} {counts['servers']:8} {counts['detected']:9} {counts['named']:6}")
    total = sum(found.values(), Counter())
    print(f"{'all':20} {total['servers']:8} {total['detected']:9} {total['named']:6}")
    print(f"{'none (healthy)':20} {len(healthy):8} {false_alarms:9}")
    print(f"time per server {np.median(seconds):.2f} s (median)")
    return total["detected"] == total["servers"] and false_alarms == 0


@dataclass
class LocalServer:
    """A planted server without a network."""

    planted: PlantedServer
    name: str = "planted"

    def score(self, slates: list[Slate]) -> list[list[float]]:
        return [self.planted.score_list(one.query, [doc.text for doc in one.docs]) or [] for one in slates]


def count_fail_open(make: object, runs: int, lists: int = 200) -> float:
    """Return the share of runs in which the examiner finds that the server fails open."""
    questions = read_known_answers()
    hits = 0
    for seed in range(runs):
        examiner = Examiner(LocalServer(make(seed)), "planted")  # type: ignore[operator]
        hits += bool(ask_questions(examiner, questions, seed, lists).fail_open.failed)
    return hits / runs


def simulate_fail_open(runs: int) -> bool:
    """Print the power for servers that fail open and the false alarms; return True if the goals are met."""
    ways = {"input order": score_by_position, "one score": lambda n: [0.5] * n, "fewer results": lambda n: None}
    met = True
    for name, answer in ways.items():
        power = count_fail_open(
            lambda seed, answer=answer: PlantedServer("bm25", 7 + seed, change=fail_open(0.03, answer)), runs
        )
        met &= power >= 0.95
        print(f"fails open on 3 % of 200 lists ({name}): found in {100 * power:.1f} % of {runs} runs, goal 95 %")
    healthy = list(make_healthy().values())
    alarms = count_fail_open(lambda seed: healthy[seed % len(healthy)](seed), 2 * runs)
    print(f"healthy servers: {100 * alarms:.2f} % false alarms in {2 * runs} runs of 200 lists, goal at most 1 %")
    return met and alarms <= 0.01


def simulate_watch(runs: int) -> bool:
    """Print the share of unchanged rankers that `watch` reports as drifted; return True if the goal is met."""
    rng = np.random.default_rng(0)
    met = True
    for name, draw_noise in {
        "independent noise": lambda n: np.abs(rng.normal(0, 1, (n, 120))).mean(axis=1),
        "noise shared by a replay": lambda n: np.abs(rng.normal(0, 1, (n, 120)) + rng.normal(0, 1, (n, 1))).mean(
            axis=1
        ),
        "rare outliers": lambda n: np.abs(rng.standard_t(2, (n, 120))).mean(axis=1),
        "no noise": np.zeros,
    }.items():
        alarms = [
            highest_evidence(draw_noise(20), draw_noise(LOOKS), rng.random(LOOKS)) >= EVIDENCE_LIMIT
            for _ in range(runs)
        ]
        met &= np.mean(alarms) <= 0.05
        print(f"watch, {name}: {100 * np.mean(alarms):.1f} % false alarms for {runs} unchanged rankers", end="")
        print(f" in {LOOKS:,} looks, goal at most 5 %")
    return bool(met)


def simulate_drift(runs: int) -> bool:
    """Print after how many looks `watch` finds a new model or a slow drift; return True if it always does."""
    found: dict[str, list[int]] = {
        "another model, without noise": [],
        "another model, with noise": [],
        "slow drift": [],
    }
    for seed in range(runs):
        for name, looks in found.items():
            noise = random.Random(seed)
            level = 0.0 if "without" in name else 0.02
            drift = [0.0]

            def add(scores: list[float], noise=noise, level=level, drift=drift) -> list[float]:
                return [score * (1 + drift[0]) + noise.gauss(0, level) for score in scores]

            planted = PlantedServer("bm25", seed, rescore=add)
            local = LocalServer(planted)
            state = record_baseline(local, "planted")  # type: ignore[arg-type]
            for _ in range(10):
                take_look(local, state)  # type: ignore[arg-type]
            for look in range(1, 200):
                if name == "slow drift":
                    drift[0] += 0.0005
                else:
                    planted.base = "bm25(b=0)"
                if take_look(local, state).drift:  # type: ignore[arg-type]
                    looks.append(look)
                    break
    for name, looks in found.items():
        print(f"watch, {name}: found in {len(looks)} of {runs} runs, after {np.median(looks):.0f} looks (median)")
    return all(len(looks) == runs for looks in found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer servers and runs, to check that it works")
    quick = parser.parse_args().quick
    os.environ["NO_PROXY"] = "127.0.0.1"
    met = [
        examine_servers(10 if quick else 1),
        simulate_fail_open(2 if quick else 200),
        simulate_watch(4 if quick else 400),
        simulate_drift(1 if quick else 10),
    ]
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()

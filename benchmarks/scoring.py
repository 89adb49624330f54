"""Overhead of the scoring engine against bare calls of a ranker, and speed of cached scores against goals.

    python benchmarks/scoring.py [--quick]

Overhead: the time of the engine with a store on disk, relative to bare calls, for a ranker that takes 1 ms per pair.
Goal: a ratio of at most 1.05. Cache: goals of 200,000 scores per second from memory and 100,000 from disk.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from quick import judge_limits, parse_quick

from shaketable.core.documents import Doc, Slate
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store

PAIR_S = 0.001
MAX_RATIO = 1.05
MIN_SCORES_PER_S = {"memory": 200_000, "disk": 100_000}


class SlowRanker:
    """A ranker that keeps the processor busy for a given time per pair."""

    name = "slow"
    fingerprint = "slow"
    pointwise = True

    def __init__(self, seconds: float):
        self.seconds = seconds

    def score(self, slates):
        until = time.perf_counter() + self.seconds * sum(len(slate.docs) for slate in slates)
        scores = [np.arange(len(slate.docs), dtype=float) for slate in slates]
        while time.perf_counter() < until:
            pass
        return scores


def make_slates(queries: int) -> list[Slate]:
    """Return slates of 100 passages each."""
    docs = [Doc(f"passage number {i} " + "words of a passage " * 15) for i in range(1000)]
    return [Slate(f"query {q}", tuple(docs[(q * 7 + i) % 1000] for i in range(100))) for q in range(queries)]


def measure_seconds(call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def main() -> int:
    quick = parse_quick(__doc__)
    few, many = make_slates(2 if quick else 100), make_slates(20 if quick else 2000)
    with tempfile.TemporaryDirectory() as folder:
        ranker = SlowRanker(PAIR_S)
        bare = measure_seconds(lambda: [ranker.score(few[i : i + 5]) for i in range(0, len(few), 5)])
        seconds = measure_seconds(lambda: ScoringEngine(Store(Path(folder) / "a.sqlite")).score(ranker, few))
        ratio, pairs = seconds / bare, sum(len(slate.docs) for slate in few)
        print(f"{pairs} pairs at 1 ms: bare {bare:.2f} s, engine {seconds:.2f} s, ratio {ratio:.3f} (goal {MAX_RATIO})")

        pairs = sum(len(slate.docs) for slate in many)
        engine = ScoringEngine(Store(Path(folder) / "b.sqlite"))
        cold = measure_seconds(lambda: engine.score(SlowRanker(0), many))
        memory = measure_seconds(lambda: engine.score(SlowRanker(0), many))
        disk = measure_seconds(lambda: ScoringEngine(Store(Path(folder) / "b.sqlite")).score(SlowRanker(0), many))
    print(f"{pairs} scores: not cached {pairs / cold:,.0f} scores/s")
    rates = {"memory": pairs / memory, "disk": pairs / disk}
    for source, rate in rates.items():
        goal = MIN_SCORES_PER_S[source]
        print(f"  from {source:6} {rate:,.0f} scores/s (goal {goal:,}), ratio {rate / goal:.2f}")
    return judge_limits(
        ratio <= MAX_RATIO and all(rate >= MIN_SCORES_PER_S[source] for source, rate in rates.items()), quick
    )


if __name__ == "__main__":
    sys.exit(main())

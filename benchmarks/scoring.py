"""The overhead of the scoring engine, and the speed of cached scores.

    python benchmarks/scoring.py [--quick]

Overhead: a ranker that takes 1 ms a pair, called on ready chunks, and called through the engine with a store on disk.
Goal: at most 5 %. Lookups: goals 200,000 scores a second from memory, 100,000 from disk.
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

MILLISECOND = 0.001


class Spinning:
    """Keeps the processor busy for a given time a pair, as a model would."""

    name = "spinning"
    fingerprint = "spinning"
    pointwise = True

    def __init__(self, seconds: float):
        self.seconds = seconds

    def score(self, slates):
        until = time.perf_counter() + self.seconds * sum(len(slate.docs) for slate in slates)
        scores = [np.arange(len(slate.docs), dtype=float) for slate in slates]
        while time.perf_counter() < until:
            pass
        return scores


def slates(queries: int) -> list[Slate]:
    docs = [Doc(f"passage number {i} " + "words of a passage " * 15) for i in range(1000)]
    return [Slate(f"query {q}", tuple(docs[(q * 7 + i) % 1000] for i in range(100))) for q in range(queries)]


def timed(call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def main() -> int:
    quick = parse_quick(__doc__)
    work = slates(2 if quick else 100)
    pairs = sum(len(slate.docs) for slate in work)
    with tempfile.TemporaryDirectory() as folder:
        ranker = Spinning(MILLISECOND)
        bare = timed(lambda: [ranker.score(work[i : i + 5]) for i in range(0, len(work), 5)])
        engine = timed(lambda: ScoringEngine(Store(Path(folder) / "a.sqlite")).score(ranker, work))
        print(
            f"{pairs} pairs at 1 ms: bare {bare:.2f} s, by the engine {engine:.2f} s, ratio {engine / bare:.3f} (goal "
            "1.05)"
        )

        many = slates(20 if quick else 2000)
        pairs = sum(len(slate.docs) for slate in many)
        keeper = ScoringEngine(Store(Path(folder) / "b.sqlite"))
        cold = timed(lambda: keeper.score(Spinning(0), many))
        memory = timed(lambda: keeper.score(Spinning(0), many))
        disk = timed(lambda: ScoringEngine(Store(Path(folder) / "b.sqlite")).score(Spinning(0), many))
        print(f"{pairs} scores: first time {pairs / cold:,.0f}/s")
        print(f"  from memory {pairs / memory:,.0f}/s, ratio to the goal of 200,000: {pairs / memory / 200_000:.2f}")
        print(f"  from disk   {pairs / disk:,.0f}/s, ratio to the goal of 100,000: {pairs / disk / 100_000:.2f}")
    return judge_limits(engine <= 1.05 * bare and pairs / memory >= 200_000 and pairs / disk >= 100_000, quick)


if __name__ == "__main__":
    sys.exit(main())

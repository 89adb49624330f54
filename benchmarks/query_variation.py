"""What a query-variation experiment costs beyond the scorings it cannot avoid.

    python benchmarks/query_variation.py [--quick]

A ranker that takes 1 ms a pair re-ranks the sample's candidates for all rule-based variations. Bare: the same number of
distinct pairs in ready chunks. Goal: at most 1.10.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from quick import judge_limits, parse_quick

from shaketable.core.documents import Doc, Slate
from shaketable.datasets.load import load
from shaketable.experiment import Experiment
from shaketable.scoring.engine import ScoringEngine
from shaketable.tasks.query_variation import QueryVariation

MILLISECOND = 0.001
GOAL = 1.1


class Spinning:
    """Keeps the processor busy for 1 ms a pair, and opens to itself."""

    name = "spinning"
    pointwise = True

    def __init__(self) -> None:
        self.pairs = 0

    def open(self, collection):
        return self

    def score(self, slates):
        count = sum(len(slate.docs) for slate in slates)
        self.pairs += count
        until = time.perf_counter() + MILLISECOND * count
        scores = [np.array([(len(d.body) * 31 + len(s.query)) % 97 for d in s.docs], dtype=float) for s in slates]
        while time.perf_counter() < until:
            pass
        return scores


def main() -> int:
    quick = parse_quick(__doc__)
    collection = load("sample", "test")
    task = QueryVariation(depths=())
    Experiment(collection, {"warm": Spinning()}, limit=1, depth=2).get_run("warm")  # compiles the first stage's kernels
    ranker = Spinning()
    experiment = Experiment(
        collection, {"spinning": ranker}, ScoringEngine(), limit=2 if quick else 50, depth=5 if quick else 20
    )
    started = time.perf_counter()
    task.run(experiment)
    took = time.perf_counter() - started

    pairs, peer = ranker.pairs, Spinning()
    started = time.perf_counter()
    for start in range(0, pairs, 500):
        peer.score([Slate("query", tuple(Doc(f"text {i}") for i in range(min(500, pairs - start))))])
    bare = time.perf_counter() - started
    print(f"{pairs} distinct pairs at 1 ms: bare {bare:.2f} s, the task {took:.2f} s, ratio {took / bare:.3f}")
    print(f"goal: {GOAL:.2f}")
    return judge_limits(took / bare <= GOAL, quick)


if __name__ == "__main__":
    sys.exit(main())

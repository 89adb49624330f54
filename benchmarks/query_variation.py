"""Time of a query-variation task, against scoring its distinct pairs alone.

    python benchmarks/query_variation.py [--quick]

A ranker that takes 1 ms per pair re-ranks the candidates of the sample for all rule-based variations. "Bare" is the
same ranker on the same number of distinct pairs in chunks of 500. Goal: a ratio of at most 1.10.
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

PAIR_S = 0.001
MAX_RATIO = 1.1
CHUNK_SIZE = 500


class SlowRanker:
    """A ranker, and its own model, that keeps the processor busy for 1 ms per pair."""

    name = "slow"
    pointwise = True

    def __init__(self) -> None:
        self.pairs = 0

    def open(self, collection):
        return self

    def score(self, slates):
        count = sum(len(slate.docs) for slate in slates)
        self.pairs += count
        until = time.perf_counter() + PAIR_S * count
        scores = [np.array([(len(d.body) * 31 + len(s.query)) % 97 for d in s.docs], dtype=float) for s in slates]
        while time.perf_counter() < until:
            pass
        return scores


def main() -> int:
    quick = parse_quick(__doc__)
    collection = load("sample", "test")
    task = QueryVariation(depths=())
    Experiment(collection, {"warm": SlowRanker()}, limit=1, depth=2).get_run("warm")  # compiles the first stage
    ranker = SlowRanker()
    experiment = Experiment(
        collection, {"slow": ranker}, ScoringEngine(), limit=2 if quick else 50, depth=5 if quick else 20
    )
    started = time.perf_counter()
    task.run(experiment)
    seconds = time.perf_counter() - started

    pairs, peer = ranker.pairs, SlowRanker()
    started = time.perf_counter()
    for start in range(0, pairs, CHUNK_SIZE):
        peer.score([Slate("query", tuple(Doc(f"text {i}") for i in range(min(CHUNK_SIZE, pairs - start))))])
    bare = time.perf_counter() - started
    print(f"{pairs} distinct pairs at 1 ms: bare {bare:.2f} s, task {seconds:.2f} s", end="")
    print(f", ratio {seconds / bare:.3f} (goal {MAX_RATIO:.2f})")
    return judge_limits(seconds / bare <= MAX_RATIO, quick)


if __name__ == "__main__":
    sys.exit(main())

"""Every risk measure for 100 systems x 10,000 topics x 4 alphas: time against a limit, and against plain Python.

    python benchmarks/risk.py [--quick]

The limit is one second; and one second for all of it with its p, by 10,000 random assignments, for 110 systems x 250
topics, which is TREC 2004's robust track.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from math import sqrt
from statistics import NormalDist, median

import numpy as np
from quick import judge_limits, parse_quick

from shaketable.measures.risk import risk_table

SYSTEMS, TOPICS, ALPHAS, ROUNDS, LIMIT = 100, 10_000, (0, 1, 5, 10), 3, 1.0
SLICE, TRACK = (20, 1000), (110, 250)


def student(y: list[float]) -> float:
    mean = sum(y) / len(y)
    deviation = sqrt(sum((v - mean) ** 2 for v in y) / (len(y) - 1))
    return mean / deviation * sqrt(len(y)) if deviation else 0.0


def plain(x: list[list[float]], baseline: list[float]) -> list[tuple[float, ...]]:
    """The definitions as loops."""
    topics = len(baseline)
    columns = [sum(row[j] for row in x) for j in range(topics)]
    total, means = sum(columns), [column / len(x) for column in columns]
    found: list[tuple[float, ...]] = []
    for row in x:
        expected = [sum(row) * column / total for column in columns]
        z = [(s - e) / sqrt(e) if e > 0 else 0.0 for s, e in zip(row, expected, strict=True)]
        for alpha in ALPHAS:

            def weigh(delta: list[float], alpha: float = alpha) -> list[float]:
                return [d if d > 0 else (1 + alpha) * d for d in delta]

            y = weigh([s - b for s, b in zip(row, baseline, strict=True)])
            y_star = weigh([s - b for s, b in zip(row, means, strict=True)])
            z_risk = sum(weigh(z))
            geo = sqrt(sum(row) / topics * NormalDist().cdf(z_risk / topics))
            found.append((sum(y) / topics, student(y), student(y_star), z_risk, geo))
    return found


def seconds(job: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return median(times)


def main() -> int:
    quick = parse_quick(__doc__)
    systems, topics = (20, 200) if quick else (SYSTEMS, TOPICS)
    x = np.random.default_rng(1).beta(1, 2, (systems, topics))
    small = x[: SLICE[0], : SLICE[1]]
    lists = small.tolist()
    risk_table(small, small[0], ALPHAS)  # loads scipy
    track = np.random.default_rng(2).beta(1, 2, (10, 50) if quick else TRACK)
    whole = seconds(lambda: risk_table(x, x[0], ALPHAS, draws=1))
    part, loops = seconds(lambda: risk_table(small, small[0], ALPHAS, draws=1)), seconds(lambda: plain(lists, lists[0]))
    tested = seconds(lambda: risk_table(track, track[0], ALPHAS))
    print(f"{systems} systems x {topics} topics x {len(ALPHAS)} alphas: {whole:.3f} s")
    print(f"time / limit {whole / LIMIT:.2f} (limit {LIMIT:.0f} s)")
    print(f"plain Python / shaketable {loops / part:.0f} (on {len(small)} systems x {len(lists[0])} topics)")
    print(f"with p, {len(track)} systems x {len(track[0])} topics: {tested:.3f} s (limit {LIMIT:.0f} s)")
    return judge_limits(max(whole, tested) <= LIMIT, quick)


if __name__ == "__main__":
    sys.exit(main())

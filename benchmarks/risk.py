"""Time of all risk measures, against a limit of one second and against plain Python.

    python benchmarks/risk.py [--quick]

100 systems x 10,000 topics x 4 alphas, without p-values. The same limit holds for all risk measures with p-values from
10,000 random assignments, for 110 systems x 250 topics, the size of the robust track of TREC 2004.
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

SYSTEMS, TOPICS, ALPHAS, ROUNDS, LIMIT_S = 100, 10_000, (0, 1, 5, 10), 3, 1.0
SLICE, TRACK = (20, 1000), (110, 250)


def compute_t(y: list[float]) -> float:
    """Return Student's t of the mean."""
    mean = sum(y) / len(y)
    deviation = sqrt(sum((v - mean) ** 2 for v in y) / (len(y) - 1))
    return mean / deviation * sqrt(len(y)) if deviation else 0.0


def measure_risk_in_loops(x: list[list[float]], baseline: list[float]) -> list[tuple[float, ...]]:
    """Compute the risk measures of each system and alpha in plain Python."""
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
            found.append((sum(y) / topics, compute_t(y), compute_t(y_star), z_risk, geo))
    return found


def measure_seconds(job: Callable[[], object]) -> float:
    """Return the median time of a job."""
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
    whole = measure_seconds(lambda: risk_table(x, x[0], ALPHAS, draws=1))
    part = measure_seconds(lambda: risk_table(small, small[0], ALPHAS, draws=1))
    loops = measure_seconds(lambda: measure_risk_in_loops(lists, lists[0]))
    with_p = measure_seconds(lambda: risk_table(track, track[0], ALPHAS))
    print(f"{systems} systems x {topics} topics x {len(ALPHAS)} alphas: {whole:.3f} s (limit {LIMIT_S:.0f} s)", end="")
    print(f", ratio {whole / LIMIT_S:.2f}")
    print(f"time of plain Python relative to shaketable: {loops / part:.0f}", end="")
    print(f" ({len(small)} systems x {len(lists[0])} topics)")
    print(f"with p-values, {len(track)} systems x {len(track[0])} topics: {with_p:.3f} s (limit {LIMIT_S:.0f} s)")
    return judge_limits(max(whole, with_p) <= LIMIT_S, quick)


if __name__ == "__main__":
    sys.exit(main())

"""How often do 95 % intervals of a mean catch it? Ours, plain percentiles, BCa and Student's, on simulated topics.

    python benchmarks/intervals.py [--quick]

Ours should catch the mean in 92 % to 97 % of all cases, but for a shape where a sample seldom shows what the mean is
made of; there none does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from quick import judge_limits, parse_quick
from scipy.special import ndtr, ndtri, stdtrit

from shaketable.measures.significance import bootstrap_interval

Values = NDArray[np.float64]
Ends = tuple[Values, Values]

CASES, DRAWS, LEVEL, TOPICS = 4000, 2000, 0.95, (10, 20, 50)
ROWS = 100  # that one set of resamples serves


def rare(rng: np.random.Generator, shape: tuple[int, int]) -> Values:
    """Differences of which one in ten is large: most samples of ten topics have one of those, or none."""
    large = rng.random(shape) < 0.1
    return np.where(large, rng.normal(-0.1, 0.3, shape), rng.normal(0.01, 0.03, shape))


SHAPES: dict[str, tuple[Callable[[np.random.Generator, tuple[int, int]], Values], float]] = {
    "normal": (lambda rng, shape: rng.normal(0.4, 0.2, shape), 0.4),
    "even scores, Beta(2, 3)": (lambda rng, shape: rng.beta(2, 3, shape), 0.4),
    "skewed scores, Beta(0.5, 1.5)": (lambda rng, shape: rng.beta(0.5, 1.5, shape), 0.25),
    "differences, Laplace": (lambda rng, shape: rng.laplace(0.02, 0.1, shape), 0.02),
    "differences, few large losses": (rare, 0.1 * -0.1 + 0.9 * 0.01),
}
"""What the values of a topic are drawn from, and their true mean."""


def student(x: Values) -> Ends:
    count = x.shape[1]
    half = stdtrit(count - 1, (1 + LEVEL) / 2) * x.std(axis=1, ddof=1) / count**0.5
    return x.mean(axis=1) - half, x.mean(axis=1) + half


def resampled(x: Values, rng: np.random.Generator) -> Values:
    """Means of resamples, ascending [draws, rows]."""
    count = x.shape[1]
    times = rng.multinomial(count, np.full(count, 1 / count), size=DRAWS)
    return np.sort(times @ x.T / count, axis=0)


def percentile(x: Values, means: Values) -> Ends:
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high


def bca(x: Values, means: Values) -> Ends:
    """Bias-corrected and accelerated; the acceleration of a mean by the jackknife is its skewness / (6 √n)."""
    mean, rows = x.mean(axis=1), np.arange(len(x))
    off = x - mean[:, None]
    acceleration = (off**3).sum(axis=1) / (6 * (off**2).sum(axis=1) ** 1.5)
    bias = ndtri(((means < mean).sum(axis=0) + 0.5 * (means == mean).sum(axis=0)) / DRAWS)

    def end(z: float) -> Values:
        share = ndtr(bias + (bias + z) / (1 - acceleration * (bias + z)))
        at = np.clip(np.round(share * (DRAWS - 1)), 0, DRAWS - 1).astype(int)
        return np.asarray(means[at, rows])

    return end(-ndtri((1 + LEVEL) / 2)), end(ndtri((1 + LEVEL) / 2))


def main() -> int:
    quick = parse_quick(__doc__)
    cases = 100 if quick else CASES
    fine = True
    print(f"{'shape':32} topics  percentile    BCa  Student   ours")
    for name, (draw, true) in SHAPES.items():
        for topics in TOPICS:
            rng = np.random.default_rng(topics)
            caught = np.zeros(4)
            for part in range(cases // ROWS):
                x = draw(rng, (ROWS, topics))
                means = resampled(x, rng)
                ends = percentile(x, means), bca(x, means), student(x), bootstrap_interval(x, part, LEVEL, DRAWS)
                caught += [int(((low <= true) & (true <= high)).sum()) for low, high in ends]
            plain, corrected, t, ours = 100 * caught / cases
            print(f"{name:32} {topics:6} {plain:9.1f} % {corrected:5.1f} % {t:6.1f} % {ours:5.1f} %")
            fine &= 92 <= ours <= 97 or draw is rare
    return judge_limits(fine, quick)


if __name__ == "__main__":
    sys.exit(main())

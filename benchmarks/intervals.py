"""Coverage of our 95 % bootstrap intervals of a mean, against percentile, BCa and Student intervals.

    python benchmarks/intervals.py [--quick]

The topics are simulated. Limit: our intervals contain the true mean in 92 % to 97 % of the cases. The distribution
with few large losses has no limit: few topics determine its mean, a sample seldom contains them, and no method covers.
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
ROWS = 100  # samples that share one set of resamples


def draw_rare_losses(rng: np.random.Generator, shape: tuple[int, int]) -> Values:
    """Draw differences of which one in ten is large; most samples of ten topics have one of them, or none."""
    large = rng.random(shape) < 0.1
    return np.where(large, rng.normal(-0.1, 0.3, shape), rng.normal(0.01, 0.03, shape))


SHAPES: dict[str, tuple[Callable[[np.random.Generator, tuple[int, int]], Values], float]] = {
    "normal": (lambda rng, shape: rng.normal(0.4, 0.2, shape), 0.4),
    "even scores, Beta(2, 3)": (lambda rng, shape: rng.beta(2, 3, shape), 0.4),
    "skewed scores, Beta(0.5, 1.5)": (lambda rng, shape: rng.beta(0.5, 1.5, shape), 0.25),
    "differences, Laplace": (lambda rng, shape: rng.laplace(0.02, 0.1, shape), 0.02),
    "differences, few large losses": (draw_rare_losses, 0.1 * -0.1 + 0.9 * 0.01),
}
"""Distribution -> a function that draws the values of topics, and the true mean."""


def compute_student(x: Values) -> Ends:
    count = x.shape[1]
    half = stdtrit(count - 1, (1 + LEVEL) / 2) * x.std(axis=1, ddof=1) / count**0.5
    return x.mean(axis=1) - half, x.mean(axis=1) + half


def resample_means(x: Values, rng: np.random.Generator) -> Values:
    """Return the means of resamples, ascending [draws, rows]."""
    count = x.shape[1]
    times = rng.multinomial(count, np.full(count, 1 / count), size=DRAWS)
    return np.sort(times @ x.T / count, axis=0)


def compute_percentile(x: Values, means: Values) -> Ends:
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high


def compute_bca(x: Values, means: Values) -> Ends:
    """Return bias-corrected and accelerated ends; the jackknife acceleration of a mean is its skewness / (6 √n)."""
    mean, rows = x.mean(axis=1), np.arange(len(x))
    off = x - mean[:, None]
    acceleration = (off**3).sum(axis=1) / (6 * (off**2).sum(axis=1) ** 1.5)
    bias = ndtri(((means < mean).sum(axis=0) + 0.5 * (means == mean).sum(axis=0)) / DRAWS)

    def find_end(z: float) -> Values:
        share = ndtr(bias + (bias + z) / (1 - acceleration * (bias + z)))
        at = np.clip(np.round(share * (DRAWS - 1)), 0, DRAWS - 1).astype(int)
        return np.asarray(means[at, rows])

    return find_end(-ndtri((1 + LEVEL) / 2)), find_end(ndtri((1 + LEVEL) / 2))


def main() -> int:
    quick = parse_quick(__doc__)
    cases = 100 if quick else CASES
    are_met = True
    print("coverage of 95 % intervals (limit for ours: 92 % to 97 %)")
    print(f"{'distribution':32} topics  percentile    BCa  Student   ours")
    for name, (draw, true) in SHAPES.items():
        for topics in TOPICS:
            rng = np.random.default_rng(topics)
            covered = np.zeros(4)
            for part in range(cases // ROWS):
                x = draw(rng, (ROWS, topics))
                means = resample_means(x, rng)
                ends = (
                    compute_percentile(x, means),
                    compute_bca(x, means),
                    compute_student(x),
                    bootstrap_interval(x, part, LEVEL, DRAWS),
                )
                covered += [int(((low <= true) & (true <= high)).sum()) for low, high in ends]
            percentile, bca, student, ours = 100 * covered / cases
            print(f"{name:32} {topics:6} {percentile:9.1f} % {bca:5.1f} % {student:6.1f} % {ours:5.1f} %")
            are_met &= 92 <= ours <= 97 or draw is draw_rare_losses
    return judge_limits(are_met, quick)


if __name__ == "__main__":
    sys.exit(main())

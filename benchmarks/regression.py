"""False alarms of `shaketable compare` for equal versions, against a limit of 18 in 200, and its power for losses.

    python benchmarks/regression.py [--quick]

The script simulates pairs of versions with 30 correlated findings. The power has no limit;
docs/choices.md has a table of it by number of queries.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from shaketable.core.seeding import make_numpy_rng
from shaketable.measures.regression import (
    MIN_RANDOMISATION_DRAWS,
    SIGNIFICANCE_LEVEL,
    can_be_significant,
    correct_p_values,
    randomisation_p_values,
)

Values = NDArray[np.float64]

PAIRS, MAX_FALSE_ALARMS, FINDINGS = 200, 18, 30
"""With 200 pairs at level 0.05, more than 18 false alarms have a probability below 1 %."""
QUERIES = (25, 50, 100, 200)
LOSSES = (0.02, 0.05, 0.1)


def simulate_values(rng: np.random.Generator, queries: int) -> Values:
    """Draw per-query values of correlated findings like those of tasks: from 0 to 1, many at the ends, some skewed."""
    skill = rng.normal(size=queries)
    mixed = 0.7 * skill + 0.7 * rng.normal(size=(FINDINGS, queries)) + rng.normal(size=(FINDINGS, 1))
    return np.asarray(np.clip(ndtr(mixed) * 1.4 - 0.2, 0, 1))


def draw_noise(rng: np.random.Generator, queries: int, size: float = 0.15) -> Values:
    """Draw the difference between two trainings of a model: none for half of the queries, large for the others."""
    is_noisy = rng.random(queries) < 0.5
    return np.asarray(size * is_noisy * (rng.normal(size=queries) + 0.5 * rng.normal(size=(FINDINGS, queries))))


def draw_equal_pair(rng: np.random.Generator, queries: int) -> Values:
    """Draw the loss of each finding and query between two versions of equal quality."""
    base = simulate_values(rng, queries)
    first, second = (np.clip(base + draw_noise(rng, queries), 0, 1) for _ in range(2))
    return np.asarray(first - second)


def draw_planted_pair(rng: np.random.Generator, queries: int, loss: float) -> Values:
    """Draw an equal pair and add a mean loss to the first finding, all of it on half of the queries."""
    losses = draw_equal_pair(rng, queries)
    losses[0, ::2] += 2 * loss
    return losses


def find_differences(losses: Values) -> NDArray[np.bool_]:
    """Return True for each finding with a significant loss, as `compare` decides it."""
    return np.asarray(
        correct_p_values(randomisation_p_values(losses, draws=MIN_RANDOMISATION_DRAWS), can_be_significant(losses))
        < SIGNIFICANCE_LEVEL
    )


def count_false_alarms(queries: int, pairs: int = PAIRS) -> int:
    """Count the equal pairs with at least one significant loss."""
    drawn = (draw_equal_pair(make_numpy_rng(seed, "equal", queries), queries) for seed in range(pairs))
    return sum(bool(find_differences(losses).any()) for losses in drawn)


def measure_power(queries: int, loss: float, pairs: int = PAIRS) -> tuple[float, float]:
    """Return the share of planted losses that are found, and the share of pairs with another significant loss."""
    drawn = (draw_planted_pair(make_numpy_rng(seed, "planted", queries), queries, loss) for seed in range(pairs))
    found = np.array([find_differences(losses) for losses in drawn])
    return float(found[:, 0].mean()), float(found[:, 1:].any(axis=1).mean())


def main() -> int:
    from quick import judge_limits, parse_quick  # works in a script only, and tests import this module

    quick = parse_quick(__doc__)
    pairs = 3 if quick else PAIRS
    are_met = True
    print(f"{FINDINGS} findings; false alarms (limit {MAX_FALSE_ALARMS} of {PAIRS}) and power by mean loss")
    print("queries  false alarms  " + "  ".join(f"loss {loss:.2f}" for loss in LOSSES))
    for queries in QUERIES:
        alarms = count_false_alarms(queries, pairs)
        shares = "  ".join(f"{100 * measure_power(queries, loss, pairs)[0]:7.0f} %" for loss in LOSSES)
        print(f"{queries:7} {alarms:6} of {pairs:<4} {shares}")
        are_met &= alarms <= MAX_FALSE_ALARMS
    return judge_limits(are_met, quick)


if __name__ == "__main__":
    sys.exit(main())

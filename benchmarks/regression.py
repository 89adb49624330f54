"""How often does `shaketable compare` call equal versions different, and how large a loss does it find?

    python benchmarks/regression.py [--quick]

Of 200 equal pairs at most 18 should raise a false alarm; what is found by how many queries is in docs/choices.md.
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

PAIRS, FALSE_ALARMS, FINDINGS = 200, 18, 30
"""Of 200 pairs at level 0.05, more than 18 come by chance with a probability below 1 %."""
QUERIES = (25, 50, 100, 200)
LOSSES = (0.02, 0.05, 0.1)


def simulated(rng: np.random.Generator, queries: int) -> Values:
    """Values by query of correlated findings, as tasks have them: within 0 and 1, many at the ends, some skewed."""
    skill = rng.normal(size=queries)
    mixed = 0.7 * skill + 0.7 * rng.normal(size=(FINDINGS, queries)) + rng.normal(size=(FINDINGS, 1))
    return np.asarray(np.clip(ndtr(mixed) * 1.4 - 0.2, 0, 1))


def noise(rng: np.random.Generator, queries: int, size: float = 0.15) -> Values:
    """What two trainings of one model differ by: nothing for half of the queries, for others a lot, in all findings."""
    moved = rng.random(queries) < 0.5
    return np.asarray(size * moved * (rng.normal(size=queries) + 0.5 * rng.normal(size=(FINDINGS, queries))))


def equal_pair(rng: np.random.Generator, queries: int) -> Values:
    """What each query loses by each finding, between two versions that are worth the same."""
    base = simulated(rng, queries)
    first, second = (np.clip(base + noise(rng, queries), 0, 1) for _ in range(2))
    return np.asarray(first - second)


def planted_pair(rng: np.random.Generator, queries: int, loss: float) -> Values:
    """The same, but the first finding loses so much in the mean, and all of it on half of the queries."""
    losses = equal_pair(rng, queries)
    losses[0, ::2] += 2 * loss
    return losses


def alarms(losses: Values) -> NDArray[np.bool_]:
    """The findings that are called different, as `measure.regression.drifts` does it."""
    return np.asarray(
        correct_p_values(randomisation_p_values(losses, draws=MIN_RANDOMISATION_DRAWS), can_be_significant(losses))
        < SIGNIFICANCE_LEVEL
    )


def false_alarms(queries: int, pairs: int = PAIRS) -> int:
    """Of so many equal pairs, those in which some finding is called different."""
    return sum(bool(alarms(equal_pair(make_numpy_rng(seed, "equal", queries), queries)).any()) for seed in range(pairs))


def found(queries: int, loss: float, pairs: int = PAIRS) -> tuple[float, float]:
    """The share of planted losses that are found, and the share of pairs in which anything else is called different."""
    called = np.array(
        [alarms(planted_pair(make_numpy_rng(seed, "planted", queries), queries, loss)) for seed in range(pairs)]
    )
    return float(called[:, 0].mean()), float(called[:, 1:].any(axis=1).mean())


def main() -> int:
    from quick import judge_limits, parse_quick  # as a script; tests and evidence import this module otherwise

    quick = parse_quick(__doc__)
    pairs = 3 if quick else PAIRS
    fine = True
    print(f"{FINDINGS} findings, {pairs} pairs\nqueries  false alarms  " + "  ".join(f"finds {x:.2f}" for x in LOSSES))
    for queries in QUERIES:
        wrong = false_alarms(queries, pairs)
        shares = "  ".join(f"{100 * found(queries, loss, pairs)[0]:8.0f} %" for loss in LOSSES)
        print(f"{queries:7} {wrong:6} of {pairs}  {shares}")
        fine &= wrong <= FALSE_ALARMS
    return judge_limits(fine, quick)


if __name__ == "__main__":
    sys.exit(main())

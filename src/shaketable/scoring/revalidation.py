"""The comparison of cached answers of a volatile ranker with new ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shaketable.core.documents import Scores
from shaketable.scoring.units import UnitResult, WorkUnit


def are_still_valid(
    unit_type: WorkUnit[Any],
    kept: Sequence[UnitResult],
    once: Sequence[UnitResult],
    again: Sequence[UnitResult],
    noise_floor: float,
) -> bool:
    """Return True if the answers of two new calls agree with the cached ones.

    New scores may differ from cached ones by at most twice the difference between the two calls, or twice the noise
    floor. Lists of a search must have the same documents in the same order.
    """
    stored, first, second = ([unit_type.as_scores(one) for one in answers] for answers in (kept, once, again))
    noise = max(_measure_difference(a, b) for a, b in zip(first, second, strict=True))
    near = 1e-6 + 2 * max(noise, noise_floor)
    same = (len(a) == len(b) and np.allclose(a, b, rtol=1e-6, atol=near) for a, b in zip(first, stored, strict=True))
    return all(same) and unit_type.has_same_documents(once, kept)


def _measure_difference(first: Scores, second: Scores) -> float:
    """Return the largest difference of two answers; 0 for lists of different lengths, which scores do not explain."""
    return float(np.abs(first - second).max(initial=0)) if len(first) == len(second) else 0.0

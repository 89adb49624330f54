"""Measures and significance tests. They return values per query; the last axis of an array is topics."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shaketable.core.errors import BadInput

ROUNDING_TOLERANCE = 1e-12
"""Relative to the scores; smaller differences are rounding errors."""


def validate_topic_scores(values: ArrayLike, minimum: float = -np.inf) -> NDArray[np.float64]:
    """Return scores as finite floats [..., topics]; refuse other values and values below `minimum`.

    >>> validate_topic_scores([[0.5, 1], [0, 0.25]], minimum=0).mean(axis=-1)
    array([0.75 , 0.125])
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise BadInput("there are no topics: give at least one score for each system")
    for wrong, what in ((~np.isfinite(array), "not a finite number"), (array < minimum, f"below {minimum:g}")):
        if wrong.any():
            *system, topic = np.argwhere(wrong)[0].tolist()
            where = "".join(f"system {i + 1}, " for i in system) + f"topic {topic + 1}"
            raise BadInput(f"the score of {where} is {what}: {array[(*system, topic)]}")
    return array


def subtract_scores(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return after - before, and 0 where the difference is only rounding.

    >>> subtract_scores(np.array([0.3, 0.5]), np.array([0.1 + 0.2, 0.75]))
    array([0.  , 0.25])
    """
    delta = np.asarray(after - before)
    delta[np.abs(delta) <= ROUNDING_TOLERANCE * np.maximum(np.abs(before), np.abs(after))] = 0
    return delta

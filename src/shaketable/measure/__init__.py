"""Numbers and tests of them. Per query first, mean last: arrays end in topics, mappings are keyed by query."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shaketable.errors import BadInput

NOISE = 1e-12
"""Relative to the scores: differences this small come from rounding, not from systems."""


def per_topic(values: ArrayLike, least: float = -np.inf) -> NDArray[np.float64]:
    """The one shape of numbers in this room, checked at the door: finite floats [..., topics], none below `least`.

    >>> per_topic([[0.5, 1], [0, 0.25]], least=0).mean(axis=-1)
    array([0.75 , 0.125])
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise BadInput("there are no topics to measure on: give at least one score for each system")
    for wrong, what in ((~np.isfinite(array), "not a finite number"), (array < least, f"below {least:g}")):
        if wrong.any():
            *system, topic = np.argwhere(wrong)[0].tolist()
            place = "".join(f"system {i + 1}, " for i in system) + f"topic {topic + 1}"
            raise BadInput(f"the score of {place} is {what}: {array[(*system, topic)]}")
    return array


def difference(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """after - before, and 0 where only rounding is between them.

    >>> difference(np.array([0.3, 0.5]), np.array([0.1 + 0.2, 0.75]))
    array([0.  , 0.25])
    """
    delta = np.asarray(after - before)
    delta[np.abs(delta) <= NOISE * np.maximum(np.abs(before), np.abs(after))] = 0
    return delta

"""Tukey's honestly significant differences (HSD): a test of all pairs of systems at once.

The model is a two-way analysis of variance without interaction: score = system + topic + error. The range of the system
means, divided by their standard error, follows the studentised range distribution if all systems are equal, so the
p-values of all pairs hold together and need no further correction.

Carterette. Multiple testing in statistical analysis of systems-based information retrieval experiments. TOIS 2012.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shaketable.core.errors import BadInput
from shaketable.measures import ROUNDING_TOLERANCE, validate_topic_scores

Values = NDArray[np.float64]

_TAIL = 1e-16
"""The probability beyond the ends of an integral."""
_SCALE_NODES = 64
_NORMAL_STEP, _NORMAL_END = 0.1, 9.0
_RANGE_STEP, _RANGE_END = 0.01, 16.0
"""The points of the integrals over s and z, and those between which the distribution of the range is interpolated."""


def tukey_hsd(values: ArrayLike) -> Values:
    """Return the p-values of all pairs of systems of a matrix [systems, topics], as a symmetric matrix.

    With two systems, p is that of the paired t-test. p is 1 if there is a single topic, or no difference.

    >>> tukey_hsd([[0.1, 0.2, 0.3, 0.4], [0.2, 0.3, 0.5, 0.5]]).round(4).tolist()
    [[1.0, 0.0154], [0.0154, 1.0]]
    """
    x = validate_topic_scores(values)
    if x.ndim != 2:
        raise BadInput(f"a comparison needs a matrix of systems x topics, not an array of shape {x.shape}")
    systems, topics = x.shape
    p = np.ones((systems, systems))
    if systems == 1 or topics == 1:
        return p
    means = x.mean(axis=1)
    residuals = x - means[:, None] - x.mean(axis=0) + x.mean()
    freedom = (systems - 1) * (topics - 1)
    error = float(np.sqrt((residuals**2).sum() / freedom / topics))
    first, second = np.triu_indices(systems, 1)
    apart = np.abs(means[first] - means[second])
    noise = ROUNDING_TOLERANCE * float(np.abs(x).max())
    apart[apart <= noise] = 0
    endless = np.where(apart == 0, 0.0, np.inf)  # without any error, every difference is certain
    q = np.divide(apart, error, out=endless, where=np.broadcast_to(error > noise, apart.shape))
    p[first, second] = p[second, first] = studentised_range_p(q, systems, freedom)
    return p


def studentised_range_p(q: ArrayLike, groups: int, freedom: int) -> Values:
    """Return P(Q >= q) of the studentised range of `groups` normal means with `freedom` degrees of freedom.

    P(Q < q) = ∫ f(s) P(W < q s) ds, where W is the range of the normals and f the density of s = √(χ²/freedom). The
    result is that of `scipy.stats.studentized_range.sf`, which takes minutes for the pairs of a hundred systems.

    >>> round(studentised_range_p(3.877, 3, 10).item(), 4)
    0.05
    """
    from scipy.interpolate import CubicSpline
    from scipy.stats import chi

    q = np.asarray(q, dtype=np.float64)
    ends = chi.ppf([_TAIL, 1 - _TAIL], freedom) / np.sqrt(freedom)
    nodes, weights = np.polynomial.legendre.leggauss(_SCALE_NODES)
    s = ends.mean() + nodes * np.ptp(ends) / 2
    density = weights * np.ptp(ends) / 2 * chi.pdf(s * np.sqrt(freedom), freedom) * np.sqrt(freedom)
    known = np.arange(0, _RANGE_END + _RANGE_STEP / 2, _RANGE_STEP)
    within = CubicSpline(known, _range_of_normals(known, groups))
    return np.asarray(np.clip(1 - within(np.minimum(q[..., None] * s, _RANGE_END)) @ density, 0, 1))


def _range_of_normals(width: Values, groups: int) -> Values:
    """Return P(W < width) of the range W of `groups` normals: k ∫ φ(z) [Φ(z) - Φ(z - width)]^(k - 1) dz."""
    from scipy.special import ndtr

    # the trapezoidal rule converges exponentially for a smooth function that vanishes at both ends
    z = np.arange(-_NORMAL_END, _NORMAL_END + _NORMAL_STEP / 2, _NORMAL_STEP)
    density = groups * _NORMAL_STEP * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return np.asarray((ndtr(z) - ndtr(z - width[:, None])) ** (groups - 1) @ density)

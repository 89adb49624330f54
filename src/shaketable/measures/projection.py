"""Projection of a few high-dimensional points to the plane by exact t-SNE.

van der Maaten, Hinton. Visualizing data using t-SNE. JMLR 2008.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]

GRADIENT_STEPS = 1000
EXAGGERATION_STEPS = 250
"""Steps in which similarities are multiplied by four (early exaggeration)."""


def tsne(points: Points, perplexity: float = 5.0) -> Points:
    """Return a position in the plane for each point: [n, d] -> [n, 2].

    The start is the first two principal components, so the result is deterministic. Equal points share a position, and
    the order of the points has no effect, because distinct points are projected once, in sorted order.
    """
    distinct, which = np.unique(points, axis=0, return_inverse=True)
    return np.asarray(_embed_distinct_points(distinct, perplexity)[which.reshape(-1)])


def _embed_distinct_points(points: Points, perplexity: float) -> Points:
    n = len(points)
    if n < 3:
        return np.pad(principal_components(points), ((0, 0), (0, 2)))[:, :2]
    near = _joint_probabilities(points, min(perplexity, max(1.0, (n - 1) / 3)))
    positions = principal_components(points)[:, :2]
    scale = positions.std() or 1.0
    positions, speed = positions / scale * 1e-2, np.zeros_like(positions)
    for step in range(GRADIENT_STEPS):
        weight = 4.0 if step < EXAGGERATION_STEPS else 1.0
        difference = positions[:, None, :] - positions[None, :, :]
        closeness = 1 / (1 + (difference**2).sum(axis=2))
        np.fill_diagonal(closeness, 0.0)
        pull = (weight * near - closeness / closeness.sum()) * closeness
        gradient = 4 * (pull[:, :, None] * difference).sum(axis=1)
        speed = (0.5 if step < EXAGGERATION_STEPS else 0.8) * speed - min(10.0, n) * gradient
        positions = positions + speed
    return np.asarray(positions - positions.mean(axis=0))


def principal_components(points: Points) -> Points:
    """Return the principal components, largest first; the largest entry of each is positive."""
    u, s, _ = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    positions = u * s
    if positions.shape[1] < 2:
        positions = np.pad(positions, ((0, 0), (0, 2 - positions.shape[1])))
    largest = positions[np.abs(positions).argmax(axis=0), np.arange(positions.shape[1])]
    return np.asarray(positions * np.where(largest < 0, -1.0, 1.0))


def _joint_probabilities(points: Points, perplexity: float) -> Points:
    """Return symmetric similarities that sum to 1; each point's neighbourhood has the given perplexity."""
    squares = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    squares = squares / (squares.max() or 1.0)
    n = len(points)
    rows = np.zeros((n, n))
    others = ~np.eye(n, dtype=bool)
    for i in range(n):
        distances = squares[i, others[i]] - squares[i, others[i]].min()
        low, high, beta = 0.0, np.inf, 1.0
        for _ in range(60):  # bisect until the entropy matches the perplexity
            weights = np.exp(-beta * distances)
            shares = weights / weights.sum()
            entropy = -float((shares * np.log(np.maximum(shares, 1e-300))).sum())
            if entropy > np.log(perplexity):
                low, beta = beta, beta * 2 if np.isinf(high) else (beta + high) / 2
            else:
                high, beta = beta, (low + beta) / 2
        rows[i, others[i]] = shares
    return np.asarray(np.maximum((rows + rows.T) / (2 * n), 1e-12))

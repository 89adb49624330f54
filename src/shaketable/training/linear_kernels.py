"""Loops of linear learners over rows and pairs of rows, compiled by numba. Import this module only for training."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from shaketable.retrieval.kernels import compile_kernel

Array = NDArray[Any]


@compile_kernel
def prank(features: Array, labels: Array, order: Array, weights: Array, thresholds: Array, total: Array) -> int:
    """Make one pass of PRank over the rows in this order; return the mistakes. `total` sums the weights after each row.

    thresholds[r] separates labels up to r from those above: the predicted label is the first r with
    w·x < thresholds[r].
    """
    mistakes = 0
    for row in order:
        x, label = features[row], labels[row]
        score = 0.0
        for k in range(len(weights)):
            score += weights[k] * x[k]
        predicted = 0
        while predicted < len(thresholds) and score >= thresholds[predicted]:
            predicted += 1
        if predicted != label:
            mistakes += 1
            step = 0
            for r in range(len(thresholds)):
                side = 1 if label > r else -1
                if (score - thresholds[r]) * side <= 0:
                    step += side
                    thresholds[r] -= side
            for k in range(len(weights)):
                weights[k] += step * x[k]
        for k in range(len(weights)):
            total[k] += weights[k]
    return mistakes


@compile_kernel
def compute_scores(features: Array, weights: Array, out: Array) -> None:
    """Compute out = X w."""
    for row in range(len(out)):
        total = 0.0
        for k in range(len(weights)):
            total += weights[k] * features[row, k]
        out[row] = total


@compile_kernel
def accumulate_gradient(features: Array, pulls: Array, out: Array) -> None:
    """Compute out = Xᵀ pulls."""
    out[:] = 0.0
    for row in range(len(pulls)):
        if pulls[row] != 0.0:
            for k in range(len(out)):
                out[k] += pulls[row] * features[row, k]


@compile_kernel
def hinge(scores: Array, below: Array, end: Array, width: float, pulls: Array) -> float:
    """Return Σ max(0, 1 - s_i + s_j) over pairs, smoothed over ± width; `pulls` gets the derivative by each score.

    Row i is better than rows below[i]:end[i]. Smoothed, a pair with t = 1 + width - s_i + s_j adds t²/(4 width) where
    0 < t < 2 width.
    """
    total = 0.0
    pulls[:] = 0.0
    for i in range(len(scores)):
        pull = 0.0
        for j in range(below[i], end[i]):
            t = 1 + width - scores[i] + scores[j]
            if t >= 2 * width:
                total += t - width
                pull += 1.0
                pulls[j] += 1.0
            elif t > 0:
                total += t * t / (4 * width)
                pull += t / (2 * width)
                pulls[j] += t / (2 * width)
        pulls[i] -= pull
    return total


@compile_kernel
def hinge_hessian_product(scores: Array, moves: Array, below: Array, end: Array, width: float, out: Array) -> None:
    """Compute the second derivative of `hinge` times a vector of moves of the scores."""
    out[:] = 0.0
    for i in range(len(scores)):
        pull = 0.0
        for j in range(below[i], end[i]):
            t = 1 + width - scores[i] + scores[j]
            if 0 < t < 2 * width:
                bend = (moves[i] - moves[j]) / (2 * width)
                pull += bend
                out[j] -= bend
        out[i] += pull

"""Distances between two collections of texts: shared words, known words, and the distance of their vectors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shaketable.core.errors import BadInput

Values = NDArray[np.float64]
Counts = Mapping[str, int]
"""Word -> number of occurrences."""


def vocabulary_jaccard(one: Counts, other: Counts) -> float:
    """Return the share of all distinct words that both collections contain (Jaccard).

    >>> vocabulary_jaccard({"a": 9, "b": 1}, {"b": 5, "c": 5})
    0.3333333333333333
    """
    return len(one.keys() & other.keys()) / max(1, len(one.keys() | other.keys()))


def known_word_share(known: Counts, text: Counts) -> float:
    """Return the share of word occurrences in a text that are known; the measure is not symmetric.

    >>> known_word_share({"a": 1}, {"a": 3, "b": 1})
    0.75
    """
    return sum(count for word, count in text.items() if word in known) / max(1, sum(text.values()))


def mmd(one: ArrayLike, other: ArrayLike) -> float:
    """Return the maximum mean discrepancy of two samples of vectors [n, d] and [m, d]; about 0 if they are alike.

    MMD² = mean k(x, x') + mean k(y, y') - 2 mean k(x, y) over pairs of different vectors (the unbiased estimate; 0 is
    returned if it is negative), with k(x, y) = exp(-|x - y|² / (2 s²)) and s the median distance of two vectors of both
    samples together.

    >>> mmd([[0.0], [0.1]], [[5.0], [5.1]]) > 0.8 and mmd([[0.0], [1.0], [2.0]], [[0.0], [1.0], [2.0]]) == 0
    True

    Gretton, Borgwardt, Rasch, Schölkopf, Smola. A kernel two-sample test. JMLR 2012 (equation 3, section 8).
    """
    x, y = (np.asarray(sample, dtype=np.float64) for sample in (one, other))
    if x.ndim != 2 or y.ndim != 2 or x.shape[1:] != y.shape[1:] or min(len(x), len(y)) < 2:
        raise BadInput("the discrepancy needs two samples, each with at least two vectors of the same length")
    n, both = len(x), np.concatenate([x, y])
    squares = (both**2).sum(axis=1)
    far = np.maximum(squares[:, None] + squares[None, :] - 2 * both @ both.T, 0.0)
    width = float(np.median(far[np.triu_indices(len(both), 1)]))
    if width == 0:  # more than half of all vectors are equal; any width detects a difference of the others
        width = float(far.max()) or 1.0
    kernel = np.exp(-far / (2 * width))
    np.fill_diagonal(kernel, 0.0)
    within = kernel[:n, :n].sum() / (n * (n - 1)) + kernel[n:, n:].sum() / (len(y) * (len(y) - 1))
    return float(np.sqrt(max(0.0, within - 2 * kernel[:n, n:].mean())))

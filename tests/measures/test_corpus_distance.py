"""Distances between collections of texts: laws, and the definition written out."""

from __future__ import annotations

import numpy as np
import pytest

from shaketable.core.errors import BadInput
from shaketable.measures.corpus_distance import known_word_share, mmd, vocabulary_jaccard


def test_words():
    one, other = {"a": 2, "b": 1}, {"b": 3, "c": 1}
    assert vocabulary_jaccard(one, other) == vocabulary_jaccard(other, one) == pytest.approx(1 / 3)
    assert known_word_share(one, other) == 0.75
    assert known_word_share(other, one) == pytest.approx(1 / 3)
    assert vocabulary_jaccard(one, one) == known_word_share(one, one) == 1
    assert vocabulary_jaccard({}, {}) == known_word_share(one, {}) == 0


def test_mmd_is_the_sum_over_pairs():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(7, 3)), rng.normal(2.0, 1.0, size=(5, 3))
    both = [*x, *y]
    far = [np.sum((a - b) ** 2) for i, a in enumerate(both) for b in both[:i]]
    width = np.median(far)

    def kernel(a, b):
        return np.exp(-np.sum((a - b) ** 2) / (2 * width))

    within = np.mean([kernel(a, b) for i, a in enumerate(x) for j, b in enumerate(x) if i != j])
    within += np.mean([kernel(a, b) for i, a in enumerate(y) for j, b in enumerate(y) if i != j])
    between = np.mean([kernel(a, b) for a in x for b in y])
    assert mmd(x, y) == pytest.approx(np.sqrt(within - 2 * between))
    assert mmd(x, y) == pytest.approx(mmd(y, x))


def test_mmd_tells_far_from_near():
    rng = np.random.default_rng(3)
    x, alike, far = rng.normal(size=(150, 8)), rng.normal(size=(150, 8)), rng.normal(1.0, 1.0, size=(150, 8))
    assert mmd(x, alike) < 0.1 < 0.3 < mmd(x, far)
    same = np.ones((4, 2))
    assert mmd(same, same) == 0
    assert mmd(same, 3 * same) > 0.5


def test_samples_that_cannot_be_compared():
    with pytest.raises(BadInput, match="at least two vectors"):
        mmd([[1.0]], [[1.0], [2.0]])
    with pytest.raises(BadInput, match="the same length"):
        mmd([[1.0], [2.0]], [[1.0, 2.0], [2.0, 1.0]])

"""Lists without a ranking: their patterns, computed by hand, and what refutes them."""

from __future__ import annotations

import numpy as np
import pytest

from shaketable.measures.fail_open import (
    FailOpenReport,
    ListOutcome,
    chance_of_input_order,
    contradicts,
    detect_pattern,
)


def test_the_chance_of_the_input_order_counts_ties():
    assert chance_of_input_order(np.array([5.0, 0, 0, 0])) == pytest.approx(1 / 4), "the first of four positions"
    rng = np.random.default_rng(0)
    scores = np.array([3.0, 3.0, 2.0, 1.0])
    shuffled = (rng.permutation(scores) for _ in range(12_000))
    never_rises = np.mean([(np.diff(some) <= 0).all() for some in shuffled])
    assert never_rises == pytest.approx(chance_of_input_order(scores), abs=0.01)


@pytest.mark.parametrize(
    ("scores", "pattern"),
    [
        ([0.0] * 3, "one score"),
        ([0.5, 0.5], ""),
        ([7.0, 6, 5, 4, 3, 2, 1], ""),
        ([8.0, 7, 6, 5, 4, 3, 2, 1], "input order"),
        ([1.0, *[0.0] * 20], ""),
        ([8.0, 7, 6, 5, 4, 3, 1, 2], ""),
    ],
)
def test_patterns(scores, pattern):
    assert detect_pattern(np.array(scores)) == pattern


def test_one_score_twice_proves_nothing_and_once_it_does():
    zeros, ranked = np.zeros(4), np.array([1.0, 4.0, 2.0, 3.0])
    assert not contradicts(zeros, zeros, zeros)
    assert contradicts(zeros, ranked, ranked[::-1])


def test_a_report_without_failures():
    report = FailOpenReport((ListOutcome(8, "", 0.1),) * 20)
    assert (report.failed, report.percent) == ([], 0.0)

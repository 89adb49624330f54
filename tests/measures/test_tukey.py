"""Tukey's HSD: the textbook formulas, scipy's studentised range, and a simulation of its error rate."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import studentized_range, ttest_rel

from shaketable.core.errors import BadInput, UnknownName
from shaketable.measures.significance import (
    CORRECTIONS,
    MIN_QUERIES,
    TESTS,
    choose_correction,
    compare_all_pairs,
    describe_comparison,
)
from shaketable.measures.tukey import studentised_range_p, tukey_hsd


def hsd_by_regression(x: np.ndarray) -> np.ndarray:
    """Return p of all pairs from a least-squares fit of score ~ system + topic with dummy variables."""
    systems, topics = x.shape
    rows = [(i, j) for i in range(systems) for j in range(topics)]
    design = np.zeros((len(rows), systems + topics - 1))
    for row, (i, j) in enumerate(rows):
        design[row, i] = 1
        if j:
            design[row, systems + j - 1] = 1
    y = np.array([x[i, j] for i, j in rows])
    fitted, *_ = np.linalg.lstsq(design, y, rcond=None)
    left = y - design @ fitted
    freedom = len(rows) - np.linalg.matrix_rank(design)
    spread = left @ left / freedom
    p = np.ones((systems, systems))
    for a in range(systems):
        for b in range(systems):
            q = abs(fitted[a] - fitted[b]) / np.sqrt(spread / topics)
            p[a, b] = studentized_range.sf(q, systems, freedom) if a != b else 1.0
    return p


@pytest.mark.parametrize(("systems", "topics"), [(2, 25), (3, 20), (6, 12)])
def test_p_values_are_those_of_a_linear_model(systems: int, topics: int) -> None:
    rng = np.random.default_rng(systems)
    x = rng.random(topics) + 0.1 * rng.random((systems, 1)) + 0.2 * rng.random((systems, topics))
    assert tukey_hsd(x) == pytest.approx(hsd_by_regression(x), abs=1e-9)


def test_two_systems_are_the_paired_t_test() -> None:
    first, second = np.random.default_rng(2).random((2, 30))
    assert tukey_hsd([first, second])[0, 1] == pytest.approx(ttest_rel(first, second).pvalue, abs=1e-9)


# Critical values of the studentised range at 0.05, from the tables of statistics textbooks: groups, freedom, q.
PRINTED = [(2, 10, 3.151), (3, 10, 3.877), (5, 20, 4.232), (10, 60, 4.646), (20, 120, 5.126)]


@pytest.mark.parametrize(("groups", "freedom", "q"), PRINTED)
def test_printed_critical_values(groups: int, freedom: int, q: float) -> None:
    assert studentised_range_p(q, groups, freedom).item() == pytest.approx(0.05, abs=5e-5)


@pytest.mark.parametrize(("groups", "freedom"), [(2, 9), (3, 40), (10, 441), (60, 2891)])
def test_the_distribution_is_scipys(groups: int, freedom: int) -> None:
    q = np.array([0.0, 0.3, 1.0, 2.5, 4.0, 6.0, 15.0])
    assert studentised_range_p(q, groups, freedom) == pytest.approx(studentized_range.sf(q, groups, freedom), abs=1e-9)


def test_equal_systems_rarely_differ() -> None:
    """Among eight equal systems, one of the 28 pairs differs in 5 % of all experiments, with uncorrected t in 40 %."""
    rng = np.random.default_rng(8)
    experiments = [rng.random(30) + rng.normal(0, 0.1, (8, 30)) for _ in range(400)]
    assert np.mean([tukey_hsd(x - x.min()).min() < 0.05 for x in experiments]) == pytest.approx(0.05, abs=0.02)


def test_nothing_to_test() -> None:
    assert tukey_hsd([[0.1, 0.2, 0.3]]).tolist() == [[1.0]]
    assert tukey_hsd([[0.1], [0.9]]).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert tukey_hsd([[0.3] * 30, [0.1 + 0.2] * 30]).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    constant = tukey_hsd([np.arange(30) / 10, np.arange(30) / 10 + 0.1, np.arange(30) / 10])
    assert constant[0, 1] < 1e-9
    assert constant[0, 2] == 1.0
    with pytest.raises(BadInput, match="systems x topics"):
        tukey_hsd([0.1, 0.2])


def test_all_pairs_by_tukey() -> None:
    rng = np.random.default_rng(30)
    x = np.clip(rng.beta(2, 3, 30) + np.array([0.0, 0.3, 0.02, 0.25])[:, None] + 0.2 * rng.random((4, 30)), 0, 1)
    found = compare_all_pairs(x, "Tukey-HSD")
    expected = tukey_hsd(x)
    assert found.p.tolist() == found.raw_p.tolist() == expected[found.first, found.second].tolist()
    for system in range(4):
        others = [other for other in range(4) if other != system]
        assert found.select_p(system).tolist() == expected[system, others].tolist()
        worse = [o for o in others if expected[system, o] < 0.05 and x[system].mean() > x[o].mean()]
        assert found.find_beaten(system) == worse
    assert [found.find_beaten(system) for system in range(4)] == [[], [0, 2], [], [0, 2]]
    few = compare_all_pairs(x[:, : MIN_QUERIES - 1], "tukey_hsd")
    assert few.p.min() < 0.05
    assert few.find_beaten(1) == [], "19 topics are too few to say so"


def test_tukey_takes_no_correction() -> None:
    for correction in CORRECTIONS:
        with pytest.raises(BadInput, match=f"leave out the correction {correction}"):
            choose_correction("tukey_hsd", correction)
    assert [choose_correction(test) for test in (*TESTS, "tukey_hsd")] == ["holm", "holm", "holm", ""]
    with pytest.raises(UnknownName, match="did you mean tukey_hsd"):
        choose_correction("tukey_hds")


def test_each_comparison_states_its_correction() -> None:
    for test in TESTS:
        assert describe_comparison(test, "bonferroni", 1).endswith(", p < 0.05, Bonferroni correction for 1 pair")
    assert describe_comparison("wilcoxon", "bh", 1275) == (
        "Wilcoxon signed-rank test, p < 0.05, Benjamini-Hochberg correction for 1,275 pairs"
    )
    assert describe_comparison("tukey_hsd", "", 6) == (
        "Tukey's HSD after a two-way analysis of variance, p < 0.05, valid for all pairs together"
    )

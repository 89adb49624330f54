from __future__ import annotations

import csv
import math
from itertools import product
from pathlib import Path
from statistics import NormalDist, mean, stdev

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shaketable.core.errors import BadInput, UnknownName
from shaketable.measures import risk
from shaketable.measures.risk import (
    baseline_scores,
    g_squared,
    g_squared_of_two,
    geo_risk,
    geo_risk_slope,
    rank_systems,
    reward_risk,
    risk_table,
    student_p_value,
    t_risk,
    t_risk_p,
    t_star_risk,
    t_star_risk_p,
    u_risk,
    u_risk_slope,
    z_risk,
    z_scores,
)
from shaketable.measures.significance import randomisation_test

# Paper 002, Table 3.
EXAMPLE = np.array(
    [
        [0.0500, 0.1500, 0.3000, 0.4500, 0.5500],
        [0.4000, 0.3500, 0.3000, 0.2500, 0.2000],
        [0.3000, 0.3000, 0.3000, 0.3000, 0.3000],
        [0.2500, 0.2500, 0.2500, 0.2500, 0.2500],
        [0.4000, 0.1500, 0.4000, 0.1500, 0.4000],
        [0.2000, 0.4500, 0.2000, 0.4500, 0.2000],
        [0.2542, 0.2629, 0.2802, 0.2975, 0.3061],
        [0.2918, 0.2994, 0.3147, 0.3301, 0.3378],
    ]
)

# Table 4: (system, baseline) -> z on five topics, and ZRisk at α = 0.
SINGLE = {
    (2, 1): (0.3689, 0.2000, 0.0000, -0.1690, -0.2858, 0.1141),
    (1, 2): (-0.3689, -0.2000, 0.0000, 0.1690, 0.2858, -0.1141),
    (3, 1): (0.2988, 0.1581, 0.0000, -0.1225, -0.1917, 0.1427),
    (1, 3): (-0.2988, -0.1581, 0.0000, 0.1225, 0.1917, -0.1427),
    (4, 1): (0.3077, 0.1599, 0.0000, -0.1209, -0.1884, 0.1583),
    (1, 4): (-0.2809, -0.1460, 0.0000, 0.1103, 0.1720, -0.1445),
    (5, 1): (0.3689, 0.0000, 0.0845, -0.2739, -0.1088, 0.0708),
    (1, 5): (-0.3689, 0.0000, -0.0845, 0.2739, 0.1088, -0.0708),
    (6, 1): (0.2121, 0.2739, -0.1000, 0.0000, -0.2858, 0.1002),
    (1, 6): (-0.2121, -0.2739, 0.1000, 0.0000, 0.2858, -0.1002),
    (7, 1): (0.2799, 0.1422, 0.0000, -0.1057, -0.1669, 0.1496),
    (1, 7): (-0.2705, -0.1374, 0.0000, 0.1021, 0.1613, -0.1446),
    (8, 1): (0.2792, 0.1445, -0.0001, -0.1097, -0.1732, 0.1408),
    (1, 8): (-0.2860, -0.1480, 0.0001, 0.1123, 0.1774, -0.1442),
}

# Table 5: ZRisk and GeoRisk at α = 0, 1, 5, 10.
MULTIPLE = np.array(
    [
        [-0.049, 0.386, -0.727, 0.364, -3.442, 0.271, -6.835, 0.160],
        [0.026, 0.388, -0.312, 0.378, -1.668, 0.333, -3.362, 0.274],
        [0.006, 0.387, -0.069, 0.385, -0.368, 0.376, -0.742, 0.364],
        [0.005, 0.354, -0.063, 0.352, -0.336, 0.344, -0.677, 0.334],
        [0.006, 0.387, -0.541, 0.370, -2.727, 0.296, -5.460, 0.203],
        [0.005, 0.387, -0.539, 0.370, -2.718, 0.297, -5.442, 0.204],
        [-0.001, 0.374, -0.008, 0.374, -0.036, 0.373, -0.072, 0.372],
        [0.001, 0.397, -0.010, 0.396, -0.052, 0.395, -0.106, 0.393],
    ]
)

# Table 6, 50 topics, by run: ERR@20; URisk, ZRisk and its rank, GeoRisk and its rank at α = 0; TRisk, ZRisk and its
# rank, GeoRisk and its rank at α = 5; GeoRisk and its rank at α = 20. The sixth ZRisk is printed -0.233, but its rank
# and its GeoRisk need it positive.
TREC_2012 = np.array(
    [
        [0.3406, 0.146, 0.962, 1, 0.4158, 1, -0.798, -29.255, 1, 0.308, 1, 0.053, 1],
        [0.3067, 0.112, -0.912, 9, 0.3887, 2, -0.673, -37.069, 7, 0.265, 4, 0.024, 7],
        [0.2920, 0.097, -0.328, 7, 0.3811, 3, -0.981, -32.635, 5, 0.274, 3, 0.037, 4],
        [0.2901, 0.095, 0.004, 4, 0.3809, 4, -1.112, -30.966, 4, 0.279, 2, 0.044, 3],
        [0.2203, 0.026, -0.172, 6, 0.3314, 5, -2.046, -29.807, 2, 0.246, 5, 0.044, 2],
        [0.2149, 0.020, 0.233, 3, 0.3284, 6, -1.994, -32.887, 6, 0.234, 6, 0.030, 6],
        [0.1947, 0.000, -0.339, 8, 0.3111, 7, np.nan, -38.619, 9, 0.207, 8, 0.014, 8],
        [0.1735, -0.021, -0.143, 5, 0.2942, 8, -2.518, -38.215, 8, 0.196, 9, 0.014, 9],
        [0.1723, -0.022, 0.265, 2, 0.2942, 9, -2.634, -30.410, 3, 0.216, 7, 0.035, 5],
    ]
)

# many zeros, whole zero rows and columns among them
cells = st.one_of(st.just(0.0), st.integers(0, 1000).map(lambda i: i / 1000))
matrices = arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 6)), elements=cells)
alphas = st.sampled_from([0.0, 0.5, 1.0, 5.0, 20.0])


@pytest.mark.parametrize(("pair", "printed"), SINGLE.items(), ids=[f"s{s} vs s{b}" for s, b in SINGLE])
def test_single_baseline_table(pair: tuple[int, int], printed: tuple[float, ...]) -> None:
    rows = EXAMPLE[[i - 1 for i in pair]]
    assert np.round(z_scores(rows)[0], 4) == pytest.approx(printed[:5], abs=1e-9)
    assert np.round(z_risk(rows)[0], 4) == pytest.approx(printed[5], abs=1e-9)


def test_multiple_baselines_table() -> None:
    found = risk_table(EXAMPLE, EXAMPLE[0], alphas=(0, 1, 5, 10))
    assert np.round(found.z, 3) == pytest.approx(MULTIPLE[:, 0::2], abs=1e-9)
    assert np.round(found.geo, 3) == pytest.approx(MULTIPLE[:, 1::2], abs=1e-9)


def test_trec_2012_table_agrees_with_itself() -> None:
    err, u, z_0, z_0_rank, geo_0, geo_0_rank, t_5, z_5, z_5_rank, geo_5, geo_5_rank, geo_20, geo_20_rank = TREC_2012.T
    assert u == pytest.approx(err - err[6], abs=0.0011)  # URisk at α = 0 is the difference of means
    assert risk.geo_risk_from_means(err, z_0 / 50) == pytest.approx(geo_0, abs=1.01e-4)
    assert risk.geo_risk_from_means(err, z_5 / 50) == pytest.approx(geo_5, abs=6e-4)
    for values, printed in ((z_0, z_0_rank), (z_5, z_5_rank)):
        assert rank_systems(values).tolist() == printed.tolist()
    for values, printed in ((geo_0, geo_0_rank), (geo_5, geo_5_rank), (geo_20, geo_20_rank)):
        assert np.all(
            np.diff(rank_systems(values)[np.argsort(printed)]) >= 0
        )  # the unrounded values differ where the printed ones are equal
    # the runs it marks as significant at α = 5, and no other
    assert (student_p_value(t_5, 50) < 0.05).tolist() == [False, False, False, False, True, False, False, True, True]


def weigh(deltas: list[float], alpha: float) -> list[float]:
    return [d if d > 0 else (1 + alpha) * d for d in deltas]


def plain_u(row: list[float], baseline: list[float], alpha: float) -> float:
    return mean(weigh([s - b for s, b in zip(row, baseline, strict=True)], alpha))


def plain_t(row: list[float], baseline: list[float], alpha: float) -> float:
    y = weigh([s - b for s, b in zip(row, baseline, strict=True)], alpha)
    if len(y) == 1 or stdev(y) < 1e-9:
        return 0.0
    return mean(y) / (stdev(y) / math.sqrt(len(y)))


def plain_z(x: list[list[float]], i: int, alpha: float) -> float:
    total = sum(map(sum, x))
    z = []
    for j, score in enumerate(x[i]):
        e = sum(x[i]) * sum(row[j] for row in x) / total if total else 0.0
        z.append((score - e) / math.sqrt(e) if e > 0 else 0.0)
    return sum(weigh(z, alpha))


@given(matrices, alphas, alphas)
def test_equals_plain_python(x: np.ndarray, first: float, second: float) -> None:
    rows, topics = x.tolist(), x.shape[1]
    found = risk_table(x, x[-1], (first, second))
    means = [mean(column) for column in zip(*rows, strict=True)]
    for a, alpha in enumerate((first, second)):
        for i, row in enumerate(rows):
            z = plain_z(rows, i, alpha)
            assert found.u[i, a] == pytest.approx(plain_u(row, rows[-1], alpha), abs=1e-12)
            assert found.t[i, a] == pytest.approx(plain_t(row, rows[-1], alpha), rel=1e-6, abs=1e-9)
            assert found.t_star[i, a] == pytest.approx(plain_t(row, means, alpha), rel=1e-6, abs=1e-9)
            assert found.z[i, a] == pytest.approx(z, rel=1e-9, abs=1e-9)
            geo = math.sqrt(mean(row) * NormalDist().cdf(z / topics))
            assert found.geo[i, a] == pytest.approx(geo, rel=1e-6, abs=1e-9)
        assert found.u[:, a] == pytest.approx(u_risk(x, x[-1], alpha), abs=1e-12)
        assert found.t[:, a] == pytest.approx(t_risk(x, x[-1], alpha))
        assert found.t_star[:, a] == pytest.approx(t_star_risk(x, alpha))
        assert found.z[:, a] == pytest.approx(z_risk(x, alpha), abs=1e-12)
        assert found.geo[:, a] == pytest.approx(geo_risk(x, alpha), abs=1e-12)


@given(matrices, alphas)
def test_laws(x: np.ndarray, alpha: float) -> None:
    found = risk_table(x, x.mean(axis=0), (0.0, alpha))
    assert all(np.isfinite(values).all() for values in (found.u, found.t, found.t_star, found.z, found.geo))
    assert (found.p <= 1).all()
    assert (found.p >= 0).all()
    for values in (found.u, found.z, found.geo):
        assert (values[:, 1] <= values[:, 0] + 1e-12).all()  # a larger weight of losses makes no system safer
    assert found.u[:, 0].sum() == pytest.approx(0, abs=1e-9)
    assert z_scores(x)[:, ~x.any(axis=0)].any() == np.False_  # no system found anything
    assert found.geo[~x.any(axis=1)].any() == np.False_  # found nothing anywhere
    if len(x) == 1:
        assert not found.z.any()


@given(matrices, st.floats(0.1, 100))
def test_expected_scores_keep_the_totals(x: np.ndarray, factor: float) -> None:
    e = risk.expected_scores(x.sum(axis=1, keepdims=True), x.sum(axis=0), x.sum())
    assert e.sum(axis=1) == pytest.approx(x.sum(axis=1))
    assert e.sum(axis=0) == pytest.approx(x.sum(axis=0))
    assert z_scores(x * factor) == pytest.approx(z_scores(x) * math.sqrt(factor), rel=1e-6, abs=1e-6)


def test_t_at_alpha_zero_is_the_paired_t_test() -> None:
    x = np.random.default_rng(2).random((3, 40))
    test = scipy.stats.ttest_rel(x[1], x[0])
    assert t_risk(x[1], x[0]).item() == pytest.approx(test.statistic)
    assert student_p_value(t_risk(x[1], x[0]), 40).item() == pytest.approx(test.pvalue)


# What chance could do, at any α.


def flipped_by_hand(deltas: list[float], alpha: float) -> float:
    """Every assignment of signs, one by one, with the TRisk of the definition."""
    own = plain_t_of(deltas, alpha)
    drawn = [plain_t_of([abs(d) * s for d, s in zip(deltas, signs, strict=True)], alpha) for signs in all_signs(deltas)]
    below, above = (mean([t <= own + 1e-9 for t in drawn]), mean([t >= own - 1e-9 for t in drawn]))
    return min(1.0, 2 * min(below, above))


def all_signs(deltas: list[float]) -> list[tuple[int, ...]]:
    return list(product((-1, 1), repeat=len(deltas)))


def plain_t_of(deltas: list[float], alpha: float) -> float:
    y = weigh(deltas, alpha)
    if stdev(y) < 1e-9:
        return math.copysign(math.inf, mean(y)) if abs(mean(y)) > 1e-9 else 0.0
    return mean(y) / (stdev(y) / math.sqrt(len(y)))


@given(
    st.lists(st.integers(-8, 8).map(lambda i: i / 16), min_size=2, max_size=7),
    st.sampled_from([0.0, 0.5, 1.0, 5.0, 20.0]),
)
def test_p_tries_every_sign(deltas: list[float], alpha: float) -> None:
    scores = 0.5 + np.array(deltas)
    found = t_risk_p(scores, np.full(len(deltas), 0.5), (alpha,)).item()
    assert found == pytest.approx(flipped_by_hand(deltas, alpha))


def test_p_by_hand() -> None:
    # differences 0.3, -0.1 at α = 1: y = 0.3, -0.2, T = 0.05 / 0.25; the others are (0.3, 0.1) with T = 0.2 / 0.1,
    # (-0.6, 0.1) with T = -0.25 / 0.35, (-0.6, -0.2) with T = -0.4 / 0.2: ours is second of four
    assert t_risk([0.8, 0.4], [0.5, 0.5], 1).item() == pytest.approx(0.2)
    assert t_risk_p([0.8, 0.4], [0.5, 0.5], (1,)).tolist() == [1.0]
    assert t_risk_p([0.8, 0.6], [0.5, 0.5], (1,)).tolist() == [0.5]


def test_p_at_alpha_zero_is_that_of_the_randomisation_test() -> None:
    x = np.random.default_rng(12).beta(1, 2, (6, 60))
    found = t_risk_p(x, x[0], (0.0,))[:, 0]
    assert found == pytest.approx(randomisation_test(np.broadcast_to(x[0], x.shape), x), abs=0.02)
    assert found == pytest.approx(student_p_value(t_risk(x, x[0]), 60), abs=0.02)
    assert found[0] == 1.0


@pytest.mark.parametrize("topics", [10, 50], ids=["all signs", "some of them"])
def test_equal_systems_are_called_different_as_often_as_p_says(topics: int) -> None:
    """1500 pairs that are exchangeable on each topic, with scores as skewed as average precision is."""
    rng = np.random.default_rng(20)
    both = rng.beta(0.6, 1.6, (2, 1500, topics)) * rng.beta(1, 1, (1500, topics))
    levels = (0.0, 1.0, 5.0, 20.0)
    # one baseline for all rows: what matters are differences, and these are those of the pairs
    p = t_risk_p(1 + both[0] - both[1], np.ones(topics), levels, draws=1999)
    for level in (0.01, 0.05, 0.2):
        error = math.sqrt(level * (1 - level) / 1500)
        assert (p <= level).mean(axis=0) == pytest.approx([level] * 4, abs=4 * error)


def test_students_p_is_for_alpha_zero_only() -> None:
    """What the module says of equal systems and |TRisk| above 2, with normal differences on 50 topics."""
    scores, baseline = 5 + np.random.default_rng(24).normal(size=(4000, 50)), np.full(50, 5.0)
    passed = [100 * float((np.abs(t_risk(scores, baseline, alpha)) > 2).mean()) for alpha in (0, 1, 5)]
    assert passed == pytest.approx([5, 44, 99], abs=2)
    assert 100 * (student_p_value(t_risk(scores, baseline), 50) < 0.05).mean() == pytest.approx(5, abs=1.5)


def test_an_average_system_is_called_different_from_the_mean_as_often_as_p_says() -> None:
    """Systems that are exchangeable on each topic; flipping signs would call one of five different at α = 5."""
    rng = np.random.default_rng(21)
    levels, found = (0.0, 1.0, 5.0), []
    for number in range(60):
        x = rng.beta(1, 4, (30, 50)) * rng.beta(1, 2, 50)
        found.append(t_star_risk_p(x, levels, seed=number, draws=999))
    assert (np.concatenate(found) <= 0.05).mean(axis=0) == pytest.approx([0.05] * 3, abs=0.012)


def test_p_of_the_mean_by_hand() -> None:
    # two systems on two topics: rows are drawn from (±0.1, ±0.2), each pattern a quarter of the time
    x = np.array([[0.6, 0.7], [0.4, 0.3]])
    found = t_star_risk_p(x, (0.0, 1.0), draws=4000)
    assert found == pytest.approx(np.full((2, 2), 0.5), abs=0.05)
    assert t_star_risk_p([[0.3, 0.5]], (0.0, 5.0)).tolist() == [[1.0, 1.0]]


def test_p_sees_a_system_that_is_safer_or_riskier() -> None:
    rng = np.random.default_rng(22)
    base = rng.beta(2, 3, 60)
    safe = base + 0.05 * rng.random(60)
    risky = np.clip(base + np.where(rng.random(60) < 0.5, -0.3, 0.32), 0, None)
    table = risk_table(np.stack([base, safe, risky]), base, (0.0, 5.0))
    assert (table.p[1] < 0.001).all()
    assert table.t[2, 1] < -4
    assert table.p[2, 1] > 0.05  # its losses are what its gains lead one to expect of chance
    assert table.p[0].tolist() == [1.0, 1.0]


def test_p_is_seeded_and_does_not_see_other_systems() -> None:
    x = np.random.default_rng(23).random((4, 30))
    first, again = (t_risk_p(x, x[0], (1.0,), seed=3) for _ in range(2))
    assert first.tolist() == again.tolist()
    assert first.tolist() != t_risk_p(x, x[0], (1.0,), seed=4).tolist()
    assert t_risk_p(x[2], x[0], (1.0,), seed=3).tolist() == first[2].tolist()
    assert t_star_risk_p(x, (1.0,), seed=3).tolist() == t_star_risk_p(x, (1.0,), seed=3).tolist()


# G².


def test_g_squared_by_hand_and_as_printed() -> None:
    # S = 1, 0.5; T = 0.9, 0.6; N = 1.5: e = 0.6, 0.4, 0.3, 0.2, and every cell is 0.1 away
    assert g_squared([[0.7, 0.3], [0.2, 0.3]]) == pytest.approx(0.01 * (1 / 0.6 + 1 / 0.4 + 1 / 0.3 + 1 / 0.2))
    assert g_squared([[0.7, 0.3]]) == 0.0
    assert g_squared(EXAMPLE) == pytest.approx((z_scores(EXAMPLE) ** 2).sum())
    counts = np.array([[12, 5, 9], [4, 8, 7]])
    assert g_squared(counts) == pytest.approx(scipy.stats.chi2_contingency(counts, correction=False).statistic)
    for (s, b), printed in SINGLE.items():  # Table 4 has z of both rows
        if (s, b) != (1, 1) and s > b:
            wanted = sum(z * z for pair in ((s, b), (b, s)) for z in SINGLE[pair][:5])
            assert g_squared(EXAMPLE[[s - 1, b - 1]]) == pytest.approx(wanted, abs=2e-4), printed


def test_equation_8_by_hand_and_where_it_holds() -> None:
    # (0.1)² / 0.9 + (0.2)² / 0.4, and a topic where no system finds anything
    assert g_squared_of_two([0.5, 0.1, 0.0], [0.4, 0.3, 0.0]).item() == pytest.approx(0.01 / 0.9 + 0.04 / 0.4)
    same_total = [i for i in range(8) if EXAMPLE[i].sum() == pytest.approx(1.5) and i]
    for i in same_total:
        assert g_squared_of_two(EXAMPLE[i], EXAMPLE[0]).item() == pytest.approx(g_squared(EXAMPLE[[i, 0]]))
        assert g_squared_of_two(EXAMPLE[0], EXAMPLE[i]).item() == g_squared_of_two(EXAMPLE[i], EXAMPLE[0]).item()
    assert len(same_total) == 4
    for i in (3, 6, 7):  # other totals: the paper's equation is then not G²
        assert g_squared_of_two(EXAMPLE[i], EXAMPLE[0]).item() > g_squared(EXAMPLE[[i, 0]])
    assert g_squared_of_two(EXAMPLE, EXAMPLE[0]).shape == (8,)


def test_ranks_by_t_star_differ_from_those_by_the_mean() -> None:
    """Section 2 of the paper says that they are those of the mean; they are not."""
    found = risk_table(EXAMPLE, EXAMPLE[0], (0, 5))
    ranks = rank_systems(found.t_star)
    assert ranks.shape == (8, 2)
    for a in range(2):
        values = found.t_star[:, a]
        assert ranks[:, a].tolist() == [1 + int((values > v + 1e-9).sum()) for v in values]
    assert ranks[:, 0].tolist() != rank_systems(found.mean).tolist()
    assert ranks[:, 1].tolist() != ranks[:, 0].tolist()


def test_u_and_t_by_hand() -> None:
    # differences 0.3, -0.1, 0.1; α = 1 makes them 0.3, -0.2, 0.1: mean 0.2/3, deviations 0.7/3, -0.8/3, 0.1/3
    system, baseline = [0.5, 0.1, 0.3], [0.2, 0.2, 0.2]
    error = math.sqrt((0.49 + 0.64 + 0.01) / 9 / 2) / math.sqrt(3)
    assert u_risk(system, baseline, 1).item() == pytest.approx(0.2 / 3)
    assert t_risk(system, baseline, 1).item() == pytest.approx(0.2 / 3 / error)


def test_nothing_varies_nothing_is_tested() -> None:
    assert t_risk([0.3, 0.4, 0.7], [0.1, 0.2, 0.5]).item() == 0.0  # 0.2 better everywhere, but for rounding
    assert t_risk([0.3], [0.1]).item() == 0.0
    assert student_p_value(0.0, 1).item() == student_p_value(0.0, 30).item() == 1.0


@pytest.mark.parametrize("wrong", [-0.1, math.nan, math.inf])
def test_a_score_that_is_none(wrong: float) -> None:
    x = np.array([[0.1, 0.2], [0.3, wrong]])
    against = (lambda m: u_risk(m, [0.1, 0.1]), lambda m: t_risk(m, m[0]), lambda m: risk_table(m, m[0]))
    for call in (z_scores, z_risk, geo_risk, t_star_risk, *against):
        with pytest.raises(BadInput, match="system 2, topic 2"):
            call(x)
    with pytest.raises(BadInput):
        u_risk([0.1, 0.2], [0.1, wrong])


@pytest.mark.parametrize("alpha", [-1.0, math.nan, math.inf])
def test_an_alpha_that_is_none(alpha: float) -> None:
    with pytest.raises(BadInput, match="alpha"):
        u_risk([0.1], [0.1], alpha)
    with pytest.raises(BadInput, match="alpha"):
        z_risk([[0.1]], alpha)
    with pytest.raises(BadInput, match="alpha"):
        risk_table([[0.1]], [0.1], [alpha])


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(BadInput, match="does not fit 2 topics"):
        u_risk([[0.1, 0.2]], [0.1])
    with pytest.raises(BadInput, match="matrix of systems x topics"):
        z_risk([0.1, 0.2])
    with pytest.raises(BadInput, match="no topics"):
        z_risk([[]])


def test_reward_and_risk_by_hand() -> None:
    baseline = [0.5, 0.5, 0.5, 0.0, 0.5]
    found = reward_risk([[0.6, 0.4, 0.1, 0.2, 0.5], [0.5, 0.5, 0.5, 0.0, 0.6], [0.5, 0.5, 0.5, 0.0, 0.5]], baseline)
    assert found.reward == pytest.approx([0.3 / 5, 0.1 / 5, 0])
    assert found.risk == pytest.approx([0.5 / 5, 0, 0])
    assert found.ratio == pytest.approx([0.6, math.inf, math.nan], nan_ok=True)
    assert found.wins.tolist() == [2, 1, 0]
    assert found.losses.tolist() == [2, 0, 0]
    assert found.ties.tolist() == [1, 4, 5]
    assert found.win_loss == pytest.approx([1, math.inf, math.nan], nan_ok=True)
    assert found.heavy_losses.tolist() == [1, 0, 0]  # from 0.5 to 0.4 is 20 %, not more


def test_several_baselines_are_averaged_last() -> None:
    x = np.random.default_rng(4).random((3, 30))
    both, first, second = reward_risk(x, x[:2]), reward_risk(x, x[0]), reward_risk(x, x[1])
    for field in ("reward", "risk", "wins", "losses", "ties", "heavy_losses"):
        assert getattr(both, field) == pytest.approx((getattr(first, field) + getattr(second, field)) / 2)
    assert both.ratio[2] == pytest.approx((first.ratio[2] + second.ratio[2]) / 2)
    assert both.ratio[2] != pytest.approx(both.reward[2] / both.risk[2])


def test_baselines_by_name() -> None:
    x, systems = [[0.1, 0.6], [0.3, 0.0], [0.2, 0.3]], ["bm25", "ql", "median"]
    assert baseline_scores(x, systems, "bm25").tolist() == [0.1, 0.6]
    assert baseline_scores(x, systems, "mean") == pytest.approx([0.2, 0.3])
    assert baseline_scores(x, systems, "max").tolist() == [0.3, 0.6]
    assert baseline_scores(x, [*systems[:2], "rm3"], "median").tolist() == [0.2, 0.3]
    assert baseline_scores(x[::-1], systems[::-1], "median").tolist() == [0.2, 0.3]  # a system of that name comes first
    with pytest.raises(UnknownName, match="did you mean bm25"):
        baseline_scores(x, systems, "bm52")


@given(arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 3)), elements=st.integers(0, 4).map(float)))
def test_ranks_by_definition(values: np.ndarray) -> None:
    found = rank_systems(values)
    for i, row in enumerate(values):
        assert found[i].tolist() == (1 + (values > row).sum(axis=0)).tolist()


def test_rounding_does_not_separate_ranks() -> None:
    assert rank_systems([0.1 + 0.2, 0.3, 0.5, 0.1]).tolist() == [2, 2, 1, 4]
    assert rank_systems([math.inf, math.inf, 1.0, -math.inf]).tolist() == [1, 1, 3, 4]
    # two systems with one set of scores, in two orders: their means are equal
    x = np.random.default_rng(1).random((1, 50))
    assert rank_systems(np.concatenate([x, x[:, ::-1], x[:, np.argsort(x[0])]]).mean(axis=1)).tolist() == [1, 1, 1]


def test_rounding_is_neither_win_nor_loss() -> None:
    found = reward_risk([[0.1 + 0.2, 0.5, 0.4]], [0.3, 0.4, 0.5])
    assert (found.wins.item(), found.losses.item(), found.ties.item()) == (1, 1, 1)


def test_nan_has_no_rank() -> None:
    with pytest.raises(BadInput, match="NaN"):
        rank_systems([0.1, math.nan])


@pytest.mark.parametrize("track", ["web2013_err20", "robust2004_ap"])
def test_real_systems(shared_data: Path, track: str) -> None:
    with (shared_data / "scores" / f"{track}.csv").open(newline="") as file:
        x = np.array([[float(cell) for cell in row[1:]] for row in list(csv.reader(file))[1:]]).T
    found = risk_table(x, np.median(x, axis=0), (0, 5))
    rows = x.tolist()
    for i in range(0, len(rows), 20):
        assert found.z[i, 1] == pytest.approx(plain_z(rows, i, 5))
        assert found.t[i, 1] == pytest.approx(plain_t(rows[i], np.median(x, axis=0).tolist(), 5))
    # with the topic means as baseline and α = 0, the order of the systems is that of their means
    assert rank_systems(u_risk(x, x.mean(axis=0)).round(9)).tolist() == rank_systems(found.mean.round(9)).tolist()


@given(seed=st.integers(0, 10_000), alpha=st.sampled_from([0.0, 1.0, 5.0]))
def test_slopes_are_differences(seed, alpha):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.05, 1, (rng.integers(1, 4) + 1, rng.integers(2, 7)))
    step = 1e-6

    def shift_topic(topic: int, by: float):
        y = x.copy()
        y[-1, topic] += by
        return y

    for topic in range(x.shape[1]):
        up, down = shift_topic(topic, step), shift_topic(topic, -step)
        rise = (geo_risk(up, alpha)[-1] - geo_risk(down, alpha)[-1]) / (2 * step)
        assert geo_risk_slope(x, alpha)[topic] == pytest.approx(rise, rel=1e-4, abs=1e-6)
        rise = (u_risk(up[-1], x[0], alpha) - u_risk(down[-1], x[0], alpha)) / (2 * step)
        assert u_risk_slope(x[-1], x[0], alpha)[topic] == pytest.approx(rise, rel=1e-4)


def test_slopes_where_nothing_is_expected():
    slope = geo_risk_slope([[0.5, 0.0, 0.2], [0.4, 0.0, 0.1]], 1.0)
    assert np.isfinite(slope).all()
    assert geo_risk_slope([[0.5, 0.2], [0.0, 0.0]], 1.0).tolist() == [0.0, 0.0]

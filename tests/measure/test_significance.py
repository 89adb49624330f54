from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shaketable.errors import BadInput, UnknownName
from shaketable.measure.significance import (
    adjust,
    bootstrap_interval,
    effect_size,
    mark,
    randomisation,
    t_test,
    wilcoxon,
)

TESTS = [t_test, wilcoxon, randomisation]
BEFORE, AFTER = np.random.default_rng(7).random((2, 4, 30))
tied = arrays(np.float64, st.integers(1, 9), elements=st.integers(0, 4).map(lambda i: i / 4))


def test_t_is_scipys() -> None:
    assert t_test(BEFORE, AFTER) == pytest.approx(scipy.stats.ttest_rel(AFTER, BEFORE, axis=1).pvalue)


def test_wilcoxon_is_scipys() -> None:
    assert wilcoxon(BEFORE, AFTER) == pytest.approx([scipy.stats.wilcoxon(d).pvalue for d in AFTER - BEFORE])
    many = np.round(np.random.default_rng(8).random((2, 200)), 1)
    d = np.round(many[1] - many[0], 1)
    assert wilcoxon(*many) == pytest.approx(scipy.stats.wilcoxon(d[d != 0]).pvalue)


def test_wilcoxon_by_hand() -> None:
    # five gains of different size: one of 2^5 sign patterns is as good, one as bad
    assert wilcoxon(np.zeros(5), [0.1, 0.2, 0.3, 0.4, 0.5]).item() == pytest.approx(2 / 32)


@given(tied)
def test_randomisation_tries_every_sign(d: np.ndarray) -> None:
    sums = [sum(s * v for s, v in zip(signs, d, strict=True)) for signs in product((-1, 1), repeat=len(d))]
    share = np.mean([abs(total) >= abs(d.sum()) - 1e-9 for total in sums])
    assert randomisation(np.zeros(len(d)), d).item() == pytest.approx(share)


def test_drawn_signs_come_near_every_sign() -> None:
    d = np.random.default_rng(9).normal(0.3, 1, 12)
    exact = randomisation(np.zeros(12), d, draws=2**12)
    drawn = randomisation(np.zeros(12), d, draws=4000)
    assert exact.item() != drawn.item()
    assert drawn == pytest.approx(exact, abs=0.03)
    assert randomisation(BEFORE, AFTER, draws=20_000) == pytest.approx(t_test(BEFORE, AFTER), abs=0.02)


def test_chance_is_seeded_and_does_not_see_other_systems() -> None:
    assert randomisation(BEFORE, AFTER, seed=3).tolist() == randomisation(BEFORE, AFTER, seed=3).tolist()
    assert randomisation(BEFORE, AFTER, seed=3).tolist() != randomisation(BEFORE, AFTER, seed=4).tolist()
    assert randomisation(BEFORE[1], AFTER[1]).item() == randomisation(BEFORE, AFTER)[1]
    low, high = bootstrap_interval(BEFORE)
    assert [v.item() for v in bootstrap_interval(BEFORE[1])] == pytest.approx([low[1], high[1]])


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize(
    ("first", "second"),
    [([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]), ([0.1], [0.9]), ([0.3] * 30, [0.1 + 0.2] * 30)],
    ids=["no difference", "one topic", "rounding only"],
)
def test_nothing_to_test(test, first: list[float], second: list[float]) -> None:
    assert test(first, second).item() == 1.0
    assert effect_size(first, second).item() == 0.0


@pytest.mark.parametrize("test", TESTS)
def test_laws(test) -> None:
    p = test(BEFORE, AFTER)
    assert p.shape == (4,)
    assert ((p > 0) & (p <= 1)).all()
    assert p == pytest.approx(test(AFTER, BEFORE))
    assert test(np.zeros(40), np.linspace(0.1, 0.2, 40)).item() < 0.001
    with pytest.raises(BadInput, match="cannot be paired"):
        test([0.1, 0.2], [0.1, 0.2, 0.3])
    with pytest.raises(BadInput, match="not a finite number"):
        test([0.1, math.nan], [0.1, 0.2])


def test_a_difference_that_never_varies() -> None:
    first, second = np.arange(30) / 10, np.arange(30) / 10 + 0.1
    assert t_test(first, second).item() == 0.0
    assert effect_size(first, second).item() == math.inf
    assert effect_size(second, first).item() == -math.inf


def test_effect_size_by_hand() -> None:
    # differences 0.1, 0.2, 0.3: mean 0.2, standard deviation 0.1
    assert effect_size([0.0, 0.0, 0.0], [0.1, 0.2, 0.3]).item() == pytest.approx(2)


def test_corrections_by_hand() -> None:
    p = [0.04, 0.01, 0.03, 0.005]
    assert adjust(p, "bonferroni") == pytest.approx([0.16, 0.04, 0.12, 0.02])
    # ascending 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1, each at least the one before
    assert adjust(p, "holm") == pytest.approx([0.06, 0.03, 0.06, 0.02])
    # 0.005 x 4/1, 0.01 x 4/2, 0.03 x 4/3, 0.04 x 4/4, each at most the one after
    assert adjust(p, "bh") == pytest.approx([0.04, 0.02, 0.04, 0.02])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_corrections_against_others(p: list[float]) -> None:
    assert adjust(p, "bh") == pytest.approx(scipy.stats.false_discovery_control(p))
    order = sorted(range(len(p)), key=p.__getitem__)
    holm, highest = [0.0] * len(p), 0.0
    for k, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p) - k) * p[i]))
        holm[i] = highest
    assert adjust(p, "holm") == pytest.approx(holm)
    assert (adjust(p, "bh") <= adjust(p, "holm") + 1e-12).all()
    assert (adjust(p, "holm") <= adjust(p, "bonferroni") + 1e-12).all()


@pytest.mark.parametrize("method", ["bonferroni", "holm", "bh"])
def test_nan_is_not_of_the_family(method: str) -> None:
    p = np.array([[0.01, math.nan], [0.02, 0.5]])
    found = adjust(p, method)
    assert found.shape == (2, 2)
    assert np.isnan(found[0, 1])
    assert found[~np.isnan(p)] == pytest.approx(adjust([0.01, 0.02, 0.5], method))
    assert np.isnan(adjust([math.nan], method)).all()
    assert adjust([], method).shape == (0,)


def test_what_is_no_correction() -> None:
    with pytest.raises(UnknownName, match="bonferroni"):
        adjust([0.1], "bonferoni")
    with pytest.raises(BadInput, match="outside"):
        adjust([1.2])


def test_interval_is_near_the_normal_one() -> None:
    x = np.random.default_rng(6).normal(0.5, 0.1, (2, 500))
    low, high = bootstrap_interval(x, draws=4000)
    error = x.std(axis=1, ddof=1) / math.sqrt(500)
    assert low == pytest.approx(x.mean(axis=1) - 1.96 * error, abs=0.1 * 4 * error.max())
    assert high == pytest.approx(x.mean(axis=1) + 1.96 * error, abs=0.1 * 4 * error.max())
    narrow = bootstrap_interval(x, level=0.5)
    assert (narrow[0] > low).all()
    assert (narrow[1] < high).all()


@pytest.mark.parametrize("topics", [10, 20, 50])
@pytest.mark.parametrize(
    ("draw", "true"),
    [
        (lambda rng, shape: rng.normal(0.4, 0.2, shape), 0.4),
        (lambda rng, shape: rng.beta(2, 3, shape), 0.4),
        (lambda rng, shape: rng.beta(0.5, 1.5, shape), 0.25),
        (lambda rng, shape: rng.laplace(0.02, 0.1, shape), 0.02),
    ],
    ids=["normal", "even scores", "skewed scores", "differences"],
)
def test_intervals_catch_the_mean_as_often_as_they_say(draw, true: float, topics: int) -> None:
    """Plain percentiles catch it in 88 % to 91 % of all cases with 10 topics."""
    rng = np.random.default_rng(topics)
    caught = []
    for seed in range(20):
        low, high = bootstrap_interval(draw(rng, (100, topics)), seed, draws=1000)
        caught += ((low <= true) & (true <= high)).tolist()
    assert 0.92 < np.mean(caught) < 0.975


def test_an_interval_lies_within_the_values() -> None:
    for values in ([0.2, 0.8], [0.0, 0.0, 1.0], [0.1, 0.2, 0.3, 0.9]):
        low, high = (end.item() for end in bootstrap_interval(values))
        assert min(values) <= low <= np.mean(values) <= high <= max(values)
    assert [end.item() for end in bootstrap_interval([0.2, 0.8])] == pytest.approx([0.2, 0.8])


def test_interval_of_what_does_not_vary() -> None:
    assert [v.item() for v in bootstrap_interval([0.25])] == [0.25, 0.25]
    assert [v.item() for v in bootstrap_interval([0.5] * 7)] == pytest.approx([0.5, 0.5])
    with pytest.raises(BadInput, match="level"):
        bootstrap_interval([0.5], level=95)
    with pytest.raises(BadInput, match="no topics"):
        bootstrap_interval([])


def test_many_topics_do_not_need_much_memory() -> None:
    x = np.random.default_rng(1).random((2, 3, 100_000))
    assert ((p := randomisation(x[0], x[1], draws=100)) > 0).all()
    assert p.shape == (3,)
    assert bootstrap_interval(x, draws=100)[0].shape == (2, 3)


def test_few_queries_get_no_star() -> None:
    assert mark(0.049, 20) == "*"
    assert mark(0.0, 19) == ""
    assert mark(0.05, 100) == ""
    assert mark(math.nan, 100) == ""

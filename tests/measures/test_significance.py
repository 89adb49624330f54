from __future__ import annotations

import math
import re
from itertools import combinations, product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shaketable.core.errors import BadInput, UnknownName
from shaketable.measures import significance
from shaketable.measures.letter_display import compute_letter_display
from shaketable.measures.significance import (
    CORRECTIONS,
    TESTS,
    adjust_p_values,
    bootstrap_interval,
    compare_all_pairs,
    correct_intervals,
    effect_size,
    format_star,
    get_test,
    randomisation_test,
    t_test,
    wilcoxon,
)

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
    assert randomisation_test(np.zeros(len(d)), d).item() == pytest.approx(share)


def test_drawn_signs_come_near_every_sign() -> None:
    d = np.random.default_rng(9).normal(0.3, 1, 12)
    exact = randomisation_test(np.zeros(12), d, draws=2**12)
    drawn = randomisation_test(np.zeros(12), d, draws=4000)
    assert exact.item() != drawn.item()
    assert drawn == pytest.approx(exact, abs=0.03)
    assert randomisation_test(BEFORE, AFTER, draws=20_000) == pytest.approx(t_test(BEFORE, AFTER), abs=0.02)


def test_chance_is_seeded_and_does_not_see_other_systems() -> None:
    assert randomisation_test(BEFORE, AFTER, seed=3).tolist() == randomisation_test(BEFORE, AFTER, seed=3).tolist()
    assert randomisation_test(BEFORE, AFTER, seed=3).tolist() != randomisation_test(BEFORE, AFTER, seed=4).tolist()
    assert randomisation_test(BEFORE[1], AFTER[1]).item() == randomisation_test(BEFORE, AFTER)[1]
    low, high = bootstrap_interval(BEFORE)
    assert [v.item() for v in bootstrap_interval(BEFORE[1])] == pytest.approx([low[1], high[1]])


@pytest.mark.parametrize("test", TESTS.values())
@pytest.mark.parametrize(
    ("first", "second"),
    [([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]), ([0.1], [0.9]), ([0.3] * 30, [0.1 + 0.2] * 30)],
    ids=["no difference", "one topic", "rounding only"],
)
def test_nothing_to_test(test, first: list[float], second: list[float]) -> None:
    assert test(first, second).item() == 1.0
    assert effect_size(first, second).item() == 0.0


@pytest.mark.parametrize("test", TESTS.values())
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
    assert adjust_p_values(p, "bonferroni") == pytest.approx([0.16, 0.04, 0.12, 0.02])
    # ascending 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1, each at least the one before
    assert adjust_p_values(p, "holm") == pytest.approx([0.06, 0.03, 0.06, 0.02])
    # 0.005 x 4/1, 0.01 x 4/2, 0.03 x 4/3, 0.04 x 4/4, each at most the one after
    assert adjust_p_values(p, "bh") == pytest.approx([0.04, 0.02, 0.04, 0.02])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_corrections_against_others(p: list[float]) -> None:
    assert adjust_p_values(p, "bh") == pytest.approx(scipy.stats.false_discovery_control(p))
    order = sorted(range(len(p)), key=p.__getitem__)
    holm, highest = [0.0] * len(p), 0.0
    for k, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p) - k) * p[i]))
        holm[i] = highest
    assert adjust_p_values(p, "holm") == pytest.approx(holm)
    assert (adjust_p_values(p, "bh") <= adjust_p_values(p, "holm") + 1e-12).all()
    assert (adjust_p_values(p, "holm") <= adjust_p_values(p, "bonferroni") + 1e-12).all()


@pytest.mark.parametrize("method", ["bonferroni", "holm", "bh"])
def test_nan_is_not_of_the_family(method: str) -> None:
    p = np.array([[0.01, math.nan], [0.02, 0.5]])
    found = adjust_p_values(p, method)
    assert found.shape == (2, 2)
    assert np.isnan(found[0, 1])
    assert found[~np.isnan(p)] == pytest.approx(adjust_p_values([0.01, 0.02, 0.5], method))
    assert np.isnan(adjust_p_values([math.nan], method)).all()
    assert adjust_p_values([], method).shape == (0,)


@pytest.mark.parametrize("method", ["holm", "bonferroni", "bh"])
def test_a_corrected_interval_excludes_zero_where_the_corrected_p_is_significant(method: str) -> None:
    rng = np.random.default_rng(3)
    decided = []
    for tests in (1, 2, 9, 40):
        d = rng.normal(rng.uniform(-0.6, 0.6, (tests, 1)), 1, (tests, 30))
        p = t_test(np.zeros_like(d), d)
        corrected = adjust_p_values(p, method)
        mean, error = d.mean(axis=1), d.std(axis=1, ddof=1) / np.sqrt(30)
        half = scipy.stats.t.ppf(0.975, 29) * error
        low, high = correct_intervals(mean, mean - half, mean + half, p, corrected, np.full(tests, 30))
        assert (((low > 0) | (high < 0)) == (corrected < 0.05)).all()
        assert ((low <= mean - half) & (high >= mean + half)).all(), "never narrower"
        if method == "bonferroni":  # the interval of 1 - 0.05 / tests, by scipy
            wide = scipy.stats.t.ppf(1 - 0.025 / tests, 29) * error
            np.testing.assert_allclose((low, high), (mean - wide, mean + wide))
        decided += [*zip((p < 0.05).tolist(), (corrected < 0.05).tolist(), strict=True)]
    assert {(True, True), (True, False), (False, False)} == set(decided), "every case occurs"


def test_an_unknown_correction_is_refused() -> None:
    with pytest.raises(UnknownName, match="bonferroni"):
        adjust_p_values([0.1], "bonferoni")
    with pytest.raises(BadInput, match="outside"):
        adjust_p_values([1.2])


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


def test_interval_of_constant_values() -> None:
    assert [v.item() for v in bootstrap_interval([0.25])] == [0.25, 0.25]
    assert [v.item() for v in bootstrap_interval([0.5] * 7)] == pytest.approx([0.5, 0.5])
    with pytest.raises(BadInput, match="level"):
        bootstrap_interval([0.5], level=95)
    with pytest.raises(BadInput, match="no topics"):
        bootstrap_interval([])


def test_many_topics_do_not_need_much_memory() -> None:
    x = np.random.default_rng(1).random((2, 3, 100_000))
    assert ((p := randomisation_test(x[0], x[1], draws=100)) > 0).all()
    assert p.shape == (3,)
    assert bootstrap_interval(x, draws=100)[0].shape == (2, 3)


# All pairs.


def graphs(systems: int) -> list[np.ndarray]:
    """Every way in which some pairs of systems may differ."""
    pairs = list(combinations(range(systems), 2))
    found = []
    for which in product((False, True), repeat=len(pairs)):
        differ = np.zeros((systems, systems), dtype=bool)
        for (i, j), yes in zip(pairs, which, strict=True):
            differ[i, j] = differ[j, i] = yes
        found.append(differ)
    return found


def groups_of(marks: list[str]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for system, own in enumerate(marks):
        for letter in re.findall(r"[a-zA-Z]\d*", own):
            found.setdefault(letter, set()).add(system)
    return found


def says(marks: list[str], without: str = "") -> set[tuple[int, int]]:
    """Pairs that share a letter, a system with itself among them."""
    return {
        pair for letter, group in groups_of(marks).items() if letter != without for pair in product(group, repeat=2)
    }


@pytest.mark.parametrize("systems", [1, 2, 3, 4, 5])
def test_letters_by_brute_force(systems: int) -> None:
    """For every graph: letters say what it says, no letter could have more systems, and none can be spared."""
    for differ in graphs(systems):
        marks = compute_letter_display(differ)
        alike = {(i, j) for i, j in product(range(systems), repeat=2) if not differ[i, j]}
        assert says(marks) == alike
        found = groups_of(marks)
        assert list(found) == list("abcdefghij")[: len(found)]  # in order of the first system that has them
        for letter, group in found.items():
            assert not any(all(not differ[i, j] for j in group) for i in set(range(systems)) - group)
            assert says(marks, without=letter) != alike


def test_letters_are_as_few_as_can_be_for_small_graphs() -> None:
    """All sets of groups are tried, the small ones first."""
    for differ in graphs(4):
        alike = {(i, j) for i, j in product(range(4), repeat=2) if not differ[i, j]}
        cliques = [
            set(product(members, repeat=2))
            for size in range(1, 5)
            for members in combinations(range(4), size)
            if set(product(members, repeat=2)) <= alike
        ]
        least = next(n for n in range(1, 9) if any(set().union(*some) == alike for some in combinations(cliques, n)))
        assert len(groups_of(compute_letter_display(differ))) == least


@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_letters_of_any_graph(systems: int, seed: int, share: float) -> None:
    differ = np.triu(np.random.default_rng(seed).random((systems, systems)) < share, 1)
    differ |= differ.T
    marks = compute_letter_display(differ)
    assert says(marks) == {(i, j) for i, j in product(range(systems), repeat=2) if not differ[i, j]}


def test_more_letters_than_the_alphabet_has() -> None:
    marks = compute_letter_display(~np.eye(60, dtype=bool))
    assert marks[:2] == ["a", "b"]
    assert marks[25:28] == ["z", "A", "B"]
    assert marks[51:54] == ["Z", "a2", "b2"]


@pytest.mark.parametrize("wrong", [[[True]], [[False, True], [False, False]], [[False, False]], [False]])
def test_invalid_matrices_of_pairs_are_refused(wrong) -> None:
    with pytest.raises(BadInput, match="symmetric"):
        compute_letter_display(wrong)


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("test", TESTS)
def test_every_pair_by_itself(test: str, correction: str) -> None:
    rng = np.random.default_rng(30)
    x = np.clip(rng.beta(2, 3, 30) + np.array([0.0, 0.3, 0.02, 0.25])[:, None] + 0.2 * rng.random((4, 30)), 0, 1)
    found = compare_all_pairs(x, test, correction, seed=4)
    assert len(found.p) == 6
    order = np.argsort(-x.mean(axis=1))
    assert list(zip(found.first.tolist(), found.second.tolist(), strict=True)) == list(combinations(order.tolist(), 2))
    run = get_test(test, 4)
    for row, (i, j) in enumerate(zip(found.first, found.second, strict=True)):
        assert found.difference[row] == pytest.approx(x[i].mean() - x[j].mean())
        assert found.difference[row] >= 0
        assert found.raw_p[row] == pytest.approx(run(x[j], x[i]).item())
        assert found.effect[row] == pytest.approx(effect_size(x[j], x[i]).item())
    assert found.p == pytest.approx(adjust_p_values(found.raw_p, correction))
    for row, (i, j) in enumerate(zip(found.first, found.second, strict=True)):
        assert (not set(found.letters[i]) & set(found.letters[j])) == (found.p[row] < 0.05)
    assert "a" in found.letters[order[0]]


def test_randomisation_draws_enough_for_many_pairs() -> None:
    """40 systems are 780 pairs: corrected by Bonferroni, 1 / 10,001 would never be below 0.05."""
    rng = np.random.default_rng(31)
    x = rng.random(30) + 0.01 * rng.random((40, 30))
    x[0] += 1
    found = compare_all_pairs(x, "randomisation", "bonferroni")
    assert (found.p[found.first == 0] < 0.05).all()
    assert found.letters[0] == "a"
    assert not any("a" in own for own in found.letters[1:])
    same = np.stack([np.full(30, 0.3), np.full(30, 0.1 + 0.2)])
    assert compare_all_pairs(same, "randomisation").p.tolist() == [1.0]


def test_systems_that_cannot_be_compared() -> None:
    alone = compare_all_pairs([[0.1, 0.2]])
    assert (alone.letters, alone.p.shape) == (("a",), (0,))
    few = compare_all_pairs(np.stack([np.linspace(0.1, 0.2, 19), np.linspace(0.8, 0.99, 19)]))
    assert few.p[0] < 0.001
    assert few.letters == ("a", "a")  # 19 topics are too few to say so
    with pytest.raises(BadInput, match="matrix of systems x topics"):
        compare_all_pairs([0.1, 0.2])
    with pytest.raises(UnknownName, match="did you mean wilcoxon"):
        compare_all_pairs([[0.1], [0.2]], test="wilcoxn")
    with pytest.raises(UnknownName, match="holm"):
        compare_all_pairs([[0.1], [0.2]], correction="hollm")


def test_tests_by_name() -> None:
    assert list(TESTS) == ["t_test", "wilcoxon", "randomisation"]
    assert get_test("T-Test")(BEFORE, AFTER) == pytest.approx(t_test(BEFORE, AFTER))
    assert get_test("randomisation", 3)(BEFORE, AFTER).tolist() == randomisation_test(BEFORE, AFTER, seed=3).tolist()


def test_few_queries_get_no_star() -> None:
    assert format_star(0.049, 20) == "*"
    assert format_star(0.0, 19) == ""
    assert format_star(0.05, 100) == ""
    assert format_star(math.nan, 100) == ""


@pytest.mark.parametrize("test", ["t_test", "wilcoxon"])
def test_pairs_in_blocks_are_bit_equal(test: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.round(np.random.default_rng(5).random((9, 40)), 2)
    whole, sizes = compare_all_pairs(x, test), []

    def record(first, second):
        sizes.append(len(first))
        return effect_size(first, second)

    monkeypatch.setattr(significance, "effect_size", record)
    monkeypatch.setattr(significance, "_MAX_NUMBERS_PER_BLOCK", 7 * 40)
    blocks = compare_all_pairs(x, test)
    assert sizes == [7, 7, 7, 7, 7, 1], "36 pairs, seven at once"
    assert blocks.letters == whole.letters
    for name in ("difference", "raw_p", "p", "effect"):
        assert getattr(blocks, name).tolist() == getattr(whole, name).tolist(), name

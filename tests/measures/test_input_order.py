"""How much of the input order comes through, and the ranking that several orders agree on."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from shaketable.core.errors import BadInput
from shaketable.measures.input_order import (
    central_ranking,
    compute_ranks,
    mean_kendall_distance,
    position_curve,
    position_sums,
    position_weight,
)
from shaketable.measures.rank_distance import Kendall

DOCS = list("abcdefg")
ORDERS = st.lists(st.permutations(DOCS), min_size=2, max_size=5)


def weight(inputs, outputs):
    return position_weight([position_sums(inputs, outputs)]).value


@given(ORDERS, st.permutations(DOCS))
def test_a_ranker_that_is_blind_to_the_order_has_no_weight(inputs, ranking):
    outputs = [ranking] * len(inputs)
    assert mean_kendall_distance(outputs) == 0
    top, bottom = position_sums(inputs, outputs)
    assert top == pytest.approx(0)
    assert all(shift == pytest.approx(0) for _, _, shift in position_curve(inputs, outputs))
    if bottom:
        assert weight(inputs, outputs) == pytest.approx(0)


@given(ORDERS)
def test_returning_the_input_has_weight_1_and_reversing_it_minus_1(inputs):
    if len(set(map(tuple, inputs))) < 2:
        assert np.isnan(weight(inputs, inputs)), "orders that are all one tell nothing"
        return
    assert weight(inputs, inputs) == pytest.approx(1)
    assert weight(inputs, [order[::-1] for order in inputs]) == pytest.approx(-1)


def test_weight_and_curve_by_hand():
    """Shown abc and cba. Out come abc and bca: a moved from 1 to 3, b from 2 to 1, c from 3 to 2."""
    inputs, outputs = [list("abc"), list("cba")], [list("abc"), list("bca")]
    # within documents: p - p̄ is -1, 0, 1 and then 1, 0, -1; r - r̄ is -1, .5, .5 and then 1, -.5, -.5
    assert position_sums(inputs, outputs) == (3.0, 4.0)
    assert position_weight([(3.0, 4.0), (1.0, 4.0)]).value == 0.5
    assert position_curve(inputs, outputs) == [
        (1, 1.0, -1.0),
        (2, 2.0, 0.5),
        (3, 3.0, 0.5),
        (3, 3.0, 1.0),
        (2, 1.0, -0.5),
        (1, 2.0, -0.5),
    ]


def test_the_interval_is_over_queries():
    one = position_weight([(1.0, 2.0)])
    assert np.isnan(one.low)
    many = position_weight([(1.0, 2.0), (2.0, 2.0), (0.0, 2.0), (1.0, 2.0)])
    assert many.low < many.value == 0.5 < many.high
    assert position_weight([]).targets == 0


@given(ORDERS)
def test_spread_is_the_mean_of_scipys_distance(outputs):
    table = compute_ranks(outputs)
    expected = [(1 - kendalltau(a, b).statistic) / 2 for a, b in combinations(table, 2)]
    assert mean_kendall_distance(outputs) == pytest.approx(np.mean(expected))


def total(ranking, outputs):
    return sum(Kendall().between(ranking, one) for one in outputs)


@given(ORDERS)
def test_no_swap_of_neighbours_makes_the_centre_more_central(outputs):
    centre = central_ranking(outputs)
    assert sorted(centre) == DOCS
    here = total(centre, outputs)
    for i in range(len(centre) - 1):
        swapped = [*centre[:i], centre[i + 1], centre[i], *centre[i + 2 :]]
        assert total(swapped, outputs) >= here - 1e-12


def test_the_centre_of_three_short_lists_is_the_best_of_all():
    """Every three rankings of four documents; the first may be a b c d without loss."""
    every = [list(one) for one in permutations("abcd")]
    for second in every:
        for third in every[::5]:
            outputs = [every[0], second, third]
            best = min(total(one, outputs) for one in every)
            assert total(central_ranking(outputs), outputs) == pytest.approx(best)


@given(st.permutations(DOCS))
def test_a_majority_that_agrees_is_the_centre(ranking):
    assert central_ranking([ranking[::-1], ranking, ranking]) == ranking
    assert central_ranking([ranking]) == ranking
    assert central_ranking([ranking, ranking[::-1]]) == ranking, "evenly divided: the first decides"


def test_noise_cancels():
    """Seven noisy copies of one ranking: their centre is nearer to it than they are."""
    rng = np.random.default_rng(0)
    truth = [f"d{i:02}" for i in range(20)]
    noisy = [[truth[i] for i in np.argsort(np.arange(20) + rng.normal(0, 4, 20))] for _ in range(7)]
    alone = np.mean([Kendall().between(truth, one) for one in noisy])
    assert Kendall().between(truth, central_ranking(noisy)) < alone / 2


def test_orders_of_other_documents_are_refused():
    for orders in ([["a", "b"], ["a", "c"]], [["a", "a"], ["a", "a"]], [["a", "b"], ["a"]]):
        with pytest.raises(BadInput, match="the same documents"):
            compute_ranks(orders)

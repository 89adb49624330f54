"""Random numbers belong to the item: equal names give equal draws, uniform over the choices."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.seeding import make_item_rng, make_numpy_rng


def test_names_tell_items_apart():
    assert make_item_rng(1, "a", "b").random_bits() == make_item_rng(1, "a", "b").random_bits()
    others = {
        make_item_rng(1, "ab").random_bits(),
        make_item_rng(2, "a", "b").random_bits(),
        make_item_rng(1, "a", "b", 0).random_bits(),
    }
    assert make_item_rng(1, "a", "b").random_bits() not in others
    assert len(others) == 3
    assert make_numpy_rng(1, "a").integers(2**60) == make_numpy_rng(1, "a").integers(2**60)


@given(st.integers(1, 1000), st.integers())
def test_below_stays_below(n, seed):
    rng = make_item_rng(seed)
    assert all(0 <= rng.randbelow(n) < n for _ in range(20))


def test_draws_are_even():
    counts = Counter(make_item_rng(0, i).randbelow(6) for i in range(12_000))
    assert all(abs(count - 2000) < 200 for count in counts.values())
    orders = Counter("".join(make_item_rng(0, "shuffle", i).permutation("abc")) for i in range(6000))
    assert len(orders) == 6
    assert all(abs(count - 1000) < 150 for count in orders.values())
    values = [make_item_rng(0, "random", i).random() for i in range(4000)]
    assert 0.48 < sum(values) / len(values) < 0.52


def test_nothing_to_draw_from():
    with pytest.raises(ValueError, match="nothing"):
        make_item_rng(0).randbelow(0)

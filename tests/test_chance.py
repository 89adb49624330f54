"""Chance belongs to the item: the same for the same name, even over what it draws from."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.chance import draws_for, rng_for


def test_names_tell_items_apart():
    assert draws_for(1, "a", "b").bits() == draws_for(1, "a", "b").bits()
    others = {draws_for(1, "ab").bits(), draws_for(2, "a", "b").bits(), draws_for(1, "a", "b", 0).bits()}
    assert draws_for(1, "a", "b").bits() not in others
    assert len(others) == 3
    assert rng_for(1, "a").integers(2**60) == rng_for(1, "a").integers(2**60)


@given(st.integers(1, 1000), st.integers())
def test_below_stays_below(n, seed):
    draws = draws_for(seed)
    assert all(0 <= draws.below(n) < n for _ in range(20))


def test_draws_are_even():
    counts = Counter(draws_for(0, i).below(6) for i in range(12_000))
    assert all(abs(count - 2000) < 200 for count in counts.values())
    orders = Counter("".join(draws_for(0, "shuffle", i).shuffled("abc")) for i in range(6000))
    assert len(orders) == 6
    assert all(abs(count - 1000) < 150 for count in orders.values())
    values = [draws_for(0, "random", i).random() for i in range(4000)]
    assert 0.48 < sum(values) / len(values) < 0.52


def test_nothing_to_draw_from():
    with pytest.raises(ValueError, match="nothing"):
        draws_for(0).below(0)

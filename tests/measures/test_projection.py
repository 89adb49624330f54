"""Rankers in the plane: near ones near each other, equal ones in one place, nothing left to chance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shaketable.measures.projection import principal_components, tsne


def apart(places):
    return np.linalg.norm(places[:, None] - places[None], axis=2)


@pytest.mark.parametrize("n", [4, 7, 12])
def test_equal_points_share_a_position(n):
    rng = np.random.default_rng(n)
    points = rng.normal(size=(n, 30))
    points[1] = points[0]
    points[n - 1] = points[2]
    places = tsne(points)
    distances = apart(places)
    assert distances[0, 1] == distances[2, n - 1] == 0
    others = distances[np.triu_indices(n, 1)]
    assert (others == 0).sum() == 2
    assert np.isfinite(places).all()


def test_points_that_are_all_equal():
    assert np.abs(tsne(np.ones((5, 10)))).max() == pytest.approx(0)
    assert np.abs(tsne(np.zeros((4, 1)))).max() == pytest.approx(0)


def test_groups_stay_groups():
    rng = np.random.default_rng(1)
    centres = 10 * rng.normal(size=(3, 40))
    points = np.repeat(centres, 4, axis=0) + 0.1 * rng.normal(size=(12, 40))
    distances = apart(tsne(points))
    same = np.repeat(np.arange(3), 4)[:, None] == np.repeat(np.arange(3), 4)
    within, between = distances[same & ~np.eye(12, dtype=bool)], distances[~same]
    assert within.max() < between.min()


def test_positions_do_not_depend_on_the_order_of_points():
    points = np.random.default_rng(3).normal(size=(6, 20))
    order = np.array([3, 1, 5, 0, 2, 4])
    first, second = tsne(points), tsne(points[order])
    assert np.array_equal(first, tsne(points))
    assert np.array_equal(first[order], second)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 8), st.integers(1, 5), st.integers(0, 100))
def test_any_points_have_a_position(n, dims, seed):
    places = tsne(np.random.default_rng(seed).normal(size=(n, dims)))
    assert places.shape == (n, 2)
    assert np.isfinite(places).all()


def test_components_by_hand():
    """Points on a line: one component, by distance; the second is nothing."""
    found = principal_components(np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]]))
    assert np.abs(found[:, 0]) == pytest.approx([5, 0, 5])
    assert np.abs(found[:, 1]) == pytest.approx([0, 0, 0])
    largest = found[np.abs(found).argmax(axis=0), [0, 1]]
    assert (largest >= 0).all()


def test_components_keep_distances():
    points = np.random.default_rng(0).normal(size=(5, 9))
    np.testing.assert_allclose(apart(principal_components(points)), apart(points), atol=1e-9)

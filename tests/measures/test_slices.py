"""Queries by what they are like: every one in one part, numbers by hand, Welch's test as scipy has it."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_ind

from shaketable.measures.slices import (
    MIN_QUERIES_PER_PART,
    SlicePart,
    compare_parts,
    find_worst_part,
    group_by_label,
    group_by_length,
    group_by_quarter,
    welch_t_test,
)

NUMBERS = st.dictionaries(st.text(min_size=1, max_size=4), st.floats(0, 1, width=16), max_size=30)
QUARTERS = ("hardest", "hard", "easy", "easiest")


def test_lengths_by_hand():
    texts = {"a": "tea", "b": "green tea", "c": "how to brew", "d": "a b c d", "e": "a b c d e", "g": "a b c d e f g"}
    texts |= {"h": "a b c d e f g h", "i": " spaced   out ", "j": ""}
    assert group_by_length(texts) == {
        "1 to 2 words": ("a", "b", "i"),
        "3 to 4 words": ("c", "d"),
        "5 to 7 words": ("e", "g"),
        "8 or more words": ("h",),
    }, "a query without words is of no length"


def test_labels():
    assert group_by_label({"a": "name", "b": "", "c": "reason", "d": "name"}) == {"name": ("a", "d"), "reason": ("c",)}
    assert group_by_label({"a": "", "b": ""}) == {}


@given(NUMBERS)
def test_quarters_hold_every_query_once_and_are_in_order(values):
    found = group_by_quarter(values, QUARTERS)
    assert sorted(qid for part in found.values() for qid in part) == sorted(values)
    spans = [[values[qid] for qid in found[name]] for name in QUARTERS if name in found]
    for lower, higher in pairwise(spans):
        assert max(lower) < min(higher), "equal numbers stay together"


@given(st.lists(st.integers(), min_size=4, max_size=40, unique=True))
def test_quarters_of_different_numbers_are_of_one_size(numbers):
    found = group_by_quarter({str(n): float(i) for i, n in enumerate(numbers)}, QUARTERS)
    sizes = [len(found[name]) for name in QUARTERS]
    assert max(sizes) - min(sizes) <= 1


def test_quarters_of_one_number_are_one():
    assert group_by_quarter({"a": 0.5, "b": 0.5, "c": 0.5}, QUARTERS) == {"easiest": ("a", "b", "c")}
    assert group_by_quarter({}, QUARTERS) == {}


SAMPLES = st.lists(st.floats(0, 1, width=32), min_size=2, max_size=30).map(np.array)


@given(SAMPLES, SAMPLES)
def test_welch_is_scipys(left, right):
    if min(left.var(), right.var()) < 1e-6:  # where scipy warns of its own rounding
        return
    assert welch_t_test(left, right) == pytest.approx(
        ttest_ind(left, right, equal_var=False).pvalue, rel=1e-9, abs=1e-15
    )


def test_welch_where_there_is_nothing_to_test():
    assert welch_t_test(np.array([0.5]), np.array([0.1, 0.2])) == 1
    assert welch_t_test(np.full(5, 0.3), np.full(7, 0.3)) == 1


def test_parts_by_hand():
    values = {"a": 0.0, "b": 0.5, "c": 1.0, "d": 0.5, "e": 0.75}
    slices = {
        "kind": {"name": ("a", "b"), "reason": ("c", "d", "e")},
        "length": {"all": tuple("abcde"), "none": ("z",)},
    }
    rows = compare_parts(values, slices)
    assert [(row.slice, row.part, row.n) for row in rows] == [("kind", "name", 2), ("kind", "reason", 3)]
    assert [(row.mean, row.rest_mean) for row in rows] == [(0.25, 0.75), (0.75, 0.25)]
    p = ttest_ind([0.0, 0.5], [1.0, 0.5, 0.75], equal_var=False).pvalue
    assert [row.p for row in rows] == pytest.approx([min(1, 2 * p)] * 2), "two tests of one family"
    for row in rows:
        assert row.low <= row.mean <= row.high
    (alone,) = compare_parts(values, {"kind": {"one": ("a",)}})
    assert (alone.mean, alone.low, alone.high, alone.p) == (0.0, 0.0, 0.0, 1.0)
    assert compare_parts({}, slices) == []


def part(name: str, mean: float, rest: float, n: int = MIN_QUERIES_PER_PART) -> SlicePart:
    return SlicePart("slice", name, mean, math.nan, math.nan, rest, n, math.nan)


def test_the_worst_part():
    rows = [
        part("good", 0.9, 0.5),
        part("bad", 0.3, 0.5),
        part("worse", 0.1, 0.5),
        part("few", 0.0, 0.9, MIN_QUERIES_PER_PART - 1),
    ]
    assert find_worst_part(rows).part == "worse"
    assert find_worst_part(rows, "lower").part == "good"
    assert find_worst_part(rows[:1]) is None
    assert find_worst_part([part("same", 0.5, 0.5)]) is None
    assert find_worst_part([]) is None

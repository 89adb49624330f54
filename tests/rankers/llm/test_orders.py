"""Windows, pairs and sets: the ranking if every prompt is answered correctly, and the number of prompts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.rankers.llm.orders import (
    PromptSchedule,
    compare_all_pairs,
    run_schedule,
    slide_windows,
    sort_by_pairs,
    sort_by_sets,
)

Answer = Callable[[tuple[int, ...]], tuple[int, ...]]


def rightly(wanted: list[int], asked: list[tuple[int, ...]]) -> Answer:
    """Return a judge that knows the grade of each document and records the questions."""

    def answer(shown: tuple[int, ...]) -> tuple[int, ...]:
        asked.append(shown)
        return tuple(sorted(range(len(shown)), key=lambda i: wanted.index(shown[i])))

    return answer


def mute(shown: tuple[int, ...]) -> tuple[int, ...]:
    return ()


def outcome(way: PromptSchedule, wanted: list[int]) -> tuple[list[int], list[tuple[int, ...]]]:
    asked: list[tuple[int, ...]] = []
    return run_schedule(way, rightly(wanted, asked)), asked


def test_twenty_documents_in_windows_of_ten():
    _, asked = outcome(slide_windows(20, 10, 5), list(range(20)))
    assert [shown[0] for shown in asked] == [10, 5, 0]
    assert {len(shown) for shown in asked} == {10}


def test_the_last_window_begins_at_the_first_document_whatever_the_length():
    """23 - 10 is no multiple of 5: the three documents at the top are shown all the same."""
    order, asked = outcome(slide_windows(23, 10, 5), list(reversed(range(23))))
    assert asked[-1][:1] == (0,)
    assert order[:5] == [22, 21, 20, 19, 18]


@given(st.permutations(range(17)), st.integers(2, 20), st.data())
def test_windows_keep_every_document_and_bring_the_best_to_the_top(wanted, size, data):
    step = data.draw(st.integers(1, size - 1))
    order, _ = outcome(slide_windows(17, size, step), wanted)
    assert sorted(order) == list(range(17))
    sure = min(size - step, 17) if size < 17 else 17
    assert order[:sure] == wanted[:sure], "what overlaps from window to window travels to the top"


@pytest.mark.parametrize(
    "way", [lambda n: slide_windows(n, 4, 2), compare_all_pairs, sort_by_pairs, lambda n: sort_by_sets(n, 3, 10)]
)
@pytest.mark.parametrize("count", [0, 1])
def test_short_lists_need_no_question(way, count):
    assert outcome(way(count), [0]) == (list(range(count)), [])


@given(st.permutations(range(9)))
def test_pairs_sort_the_list(wanted):
    every, asked = outcome(compare_all_pairs(9), wanted)
    assert every == wanted
    assert sorted(asked) == sorted((i, j) for i in range(9) for j in range(9) if i != j)
    some, fewer = outcome(sort_by_pairs(9), wanted)
    assert some == wanted
    assert len(fewer) <= 2 * 25, "merging nine takes 25 comparisons at most, each in both orders"
    assert all((b, a) in fewer for a, b in fewer)


def test_always_choosing_the_first_keeps_the_order():
    """Each pair is shown in both orders, so an answer by position alone is a tie, and ties keep the input order."""
    for way in (compare_all_pairs(7), sort_by_pairs(7)):
        assert run_schedule(way, lambda shown: (0,)) == list(range(7))


def test_answers_that_cannot_be_read_change_nothing():
    for way in (compare_all_pairs(7), sort_by_pairs(7), sort_by_sets(7, 3, 7)):
        assert run_schedule(way, mute) == list(range(7))


@given(st.permutations(range(13)), st.integers(2, 6), st.integers(1, 13))
def test_sets_sort_the_top_and_leave_the_rest(wanted, size, top):
    order, asked = outcome(sort_by_sets(13, size, top), wanted)
    assert order[:top] == wanted[:top]
    assert order[top:] == sorted(order[top:]), "the rest keeps the order of the input"
    assert max(map(len, asked)) <= size


def test_points_of_pairs_by_hand():
    """0 beats 1, 1 beats 2, and 2 beats 0: one point each, so the input order decides."""
    beats = {(0, 1), (1, 2), (2, 0)}
    order = run_schedule(compare_all_pairs(3), lambda shown: (0,) if shown in beats else (1,))
    assert order == [0, 1, 2]
    # 2 beats both, and neither 0 nor 1 wins in both orders
    order = run_schedule(compare_all_pairs(3), lambda shown: (shown.index(2),) if 2 in shown else (0,))
    assert order == [2, 0, 1]


def test_a_merge_of_four_by_hand():
    asked: list[tuple[int, ...]] = []
    assert run_schedule(sort_by_pairs(4), rightly([3, 2, 1, 0], asked)) == [3, 2, 1, 0]
    pairs = [tuple(sorted(pair)) for pair in asked[::2]]
    assert pairs == [(0, 1), (2, 3), (1, 3), (1, 2)]
    assert set(pairs) <= set(combinations(range(4), 2))

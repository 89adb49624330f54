"""Ranking errors: by hand, and by enumeration of every text within one word."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.documents import rank_docnos
from shaketable.core.errors import BadInput
from shaketable.measures.ranking_error import RankingError, find_true_rank_ranges, ranking_error

Text = tuple[str, ...]
VOCABULARY = ("x", "y", "z")
DOCNOS = ("a", "b", "c", "d")


def test_without_ties_by_hand() -> None:
    # the true order is a b c d; b and c are swapped, so two of four are wrong
    grades = {"a": 3, "b": 2, "c": 1, "d": 0}
    listed = ["a", "c", "b", "d"]
    # a is right, and best: demotion counts. d is right: promotion counts. b is wrong in any case
    found = ranking_error(listed, grades, {"a": [1, 2], "b": [1], "d": [4, 3]})
    assert found == RankingError(0.5, 0.5, 1.0, 0.75, 2 / 3, 1.0, 4, 3)


def test_directions_that_do_not_count() -> None:
    grades = {"a": 3, "b": 2, "c": 1, "d": 0}
    listed = ["a", "b", "c", "d"]
    down = ranking_error(listed, grades, {"b": [3, 4], "c": [4]})  # demotion of what is not best
    assert (down.boundary, down.bound, down.robust) == (0.0, 0.5, 0.0)
    up = ranking_error(listed, grades, {"b": [1], "c": [1, 2, 3], "d": [4]})
    assert (up.natural, up.boundary, up.bound) == (0.0, 0.5, 0.5)
    assert up.boundary_attacked == pytest.approx(2 / 3)


def test_with_ties_by_hand() -> None:
    # blocks: a, b at 1 to 2; c, d, e at 3 to 5
    grades = {"a": 1, "b": 1}
    listed = ["b", "a", "d", "c", "e"]
    inside = ranking_error(listed, grades, {"a": [1], "b": [2], "e": [3], "d": [5]})
    assert (inside.natural, inside.boundary, inside.bound) == (0.0, 0.0, 0.8)  # all move, none leaves its block
    out = ranking_error(listed, grades, {"a": [3], "e": [2, 5], "c": [3]})
    assert (out.natural, out.boundary, out.robust, out.bound) == (0.0, 0.4, 0.4, 0.6)
    assert out.boundary_attacked == pytest.approx(2 / 3)
    # c is above its block and a below: both wrong, neither can be at the boundary
    swapped = ranking_error(["b", "c", "a", "d", "e"], grades, {"a": [1, 5], "c": [1]})
    assert (swapped.natural, swapped.boundary, swapped.robust) == (0.4, 0.0, 0.4)


def test_equal_grades_allow_any_order() -> None:
    assert find_true_rank_ranges(["a", "b"], {}) == {"a": (1, 2), "b": (1, 2)}
    assert find_true_rank_ranges(["a", "b", "c"], {"a": -2, "b": 1, "z": 9}) == {"a": (2, 3), "b": (1, 1), "c": (2, 3)}
    equal = ranking_error(["a", "b"], {}, {"a": [2], "b": [1]})
    assert (equal.natural, equal.boundary, equal.bound) == (0.0, 0.0, 1.0)  # nowhere to go


def test_nothing_attacked_and_nothing_listed() -> None:
    alone = ranking_error(["a", "b"], {"b": 1}, {})
    assert (alone.natural, alone.boundary, alone.robust, alone.bound) == (1.0, 0.0, 1.0, 0.0)
    assert math.isnan(alone.boundary_attacked)
    empty = ranking_error([], {"a": 1}, {})
    assert math.isnan(empty.natural)
    assert empty.documents == 0


@pytest.mark.parametrize(
    ("listed", "reached", "said"),
    [
        (["a", "b"], {"c": [1]}, "document c was attacked, but it is not in the list"),
        (["a", "b"], {"a": [3]}, "document a reached rank 3 of a list of 2"),
        (["a", "b"], {"a": [0]}, "reached rank 0"),
        (["a", "a"], {}, "twice"),
    ],
)
def test_invalid_input_is_refused(listed: list[str], reached: dict[str, list[int]], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        ranking_error(listed, {}, reached)


# A linear ranker of texts of three words over three words: a weight for each word at each position.
weights = st.lists(st.floats(-1, 1, width=32), min_size=9, max_size=9)
texts = st.lists(st.tuples(*[st.sampled_from(VOCABULARY)] * 3), min_size=4, max_size=4)


def neighbours(text: Text) -> list[Text]:
    """Every text that differs in one word at most."""
    return [
        other
        for other in product(VOCABULARY, repeat=3)
        if sum(one != two for one, two in zip(text, other, strict=True)) <= 1
    ]


def order(documents: dict[str, Text], weights: list[float]) -> list[str]:
    return rank_docnos(
        {
            docno: sum(weights[3 * position + VOCABULARY.index(word)] for position, word in enumerate(text))
            for docno, text in documents.items()
        }
    )


def enumerate_neighbour_ranks(documents: dict[str, Text], weights: list[float]) -> dict[str, list[int]]:
    """Return the rank of every neighbour of each document, in the list with only this document changed."""
    return {
        docno: [order(documents | {docno: other}, weights).index(docno) + 1 for other in neighbours(text)]
        for docno, text in documents.items()
    }


@given(weights, texts, st.lists(st.integers(-1, 3), min_size=4, max_size=4), st.sets(st.sampled_from(DOCNOS)))
def test_the_boundary_error_never_exceeds_the_bound(
    weights: list[float], texts: list[Text], grades: list[int], attacked: set[str]
) -> None:
    documents, graded = dict(zip(DOCNOS, texts, strict=True)), dict(zip(DOCNOS, grades, strict=True))
    listed, reached = order(documents, weights), enumerate_neighbour_ranks(documents, weights)
    every = ranking_error(listed, graded, reached)
    assert every.boundary <= every.bound
    assert every.robust == pytest.approx(every.natural + every.boundary)
    assert every.robust <= 1
    assert (every.boundary_attacked, every.bound_attacked) == (every.boundary, every.bound)  # all were attacked
    # an attack that tries less finds less
    some = ranking_error(listed, graded, {docno: reached[docno][::2] for docno in attacked})
    assert some.natural == every.natural
    assert some.boundary <= every.boundary
    assert some.bound <= every.bound
    assert some.boundary <= some.bound
    if attacked:
        assert some.boundary_attacked == pytest.approx(some.boundary * 4 / len(attacked))
        assert some.boundary_attacked <= some.bound_attacked


@given(weights, texts, st.permutations(range(4)))
def test_without_ties_it_equals_the_formula_of_the_paper(
    weights: list[float], texts: list[Text], grades: list[int]
) -> None:
    documents, graded = dict(zip(DOCNOS, texts, strict=True)), dict(zip(DOCNOS, grades, strict=True))
    listed, reached = order(documents, weights), enumerate_neighbour_ranks(documents, weights)
    wrong = crossing = moved = 0
    for docno in DOCNOS:
        rank, true = listed.index(docno) + 1, 4 - graded[docno]
        neighbour = true - 1 if true > 1 else true + 1
        wrong += rank != true
        crossing += rank == true and any((rank - neighbour) * (to - neighbour) <= 0 for to in reached[docno])
        moved += max(rank != to for to in reached[docno])
    found = ranking_error(listed, graded, reached)
    assert (found.natural, found.boundary, found.bound) == (wrong / 4, crossing / 4, moved / 4)


def test_a_toy_ranker_by_enumeration() -> None:
    # y is worth 1 and x nothing, wherever they stand; z is worth 2
    weights = [0.0, 1.0, 2.0] * 3
    documents = {"a": ("z", "z", "x"), "b": ("y", "y", "x"), "c": ("y", "x", "x"), "d": ("x", "x", "x")}
    # Scores 4, 2, 1, 0, so the list is a b c d. One word changes a by -2 to +2, b and c by -1 to +2, d by 0 to +2.
    # Ties go to the larger docno: b reaches 4 and passes a; c reaches 3 and passes b; d reaches 2 and passes b and c;
    # a falls to 2, where b passes it.
    found = ranking_error(
        order(documents, weights), {"a": 3, "b": 2, "c": 1}, enumerate_neighbour_ranks(documents, weights)
    )
    assert (found.natural, found.boundary, found.robust, found.bound) == (0.0, 1.0, 1.0, 1.0)
    # with b, c and d of one grade, of these only b reaches the first rank
    tied = ranking_error(order(documents, weights), {"a": 1}, enumerate_neighbour_ranks(documents, weights))
    assert (tied.natural, tied.boundary, tied.robust, tied.bound) == (0.0, 0.5, 0.5, 1.0)

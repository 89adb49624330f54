"""Outcomes of attacks: hand computations, both goals, and intervals over queries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.attacks.goals import Demote, Promote, Top
from shaketable.core.attack_types import AttackCase, AttackOutcome, Goal, TargetRanking
from shaketable.core.documents import Doc
from shaketable.core.errors import BadInput
from shaketable.measures.attack_success import (
    RANK_RANGES,
    AttackOutcomes,
    boost,
    build_promotion_row,
    compute_gains,
    estimate,
    intrusion_rate,
    mean_pairs,
    mean_trials,
    perturbation_percentage,
    success_by_rank_range,
    success_by_trials,
    success_rate,
    top_rate,
)


def attempts(
    queries: str, before: list[int], after: list[int], goal: Goal | None = None, **more: Any
) -> AttackOutcomes:
    count = len(before)
    some = {"changed_words": 0, "words": 10, "trials": 1, "pairs": 1, "first_success_trial": 0}
    numbers = {name: [value] * count for name, value in some.items()} | more
    columns = {name: np.array(column) for name, column in numbers.items()}
    gain = compute_gains(goal or Promote(), before, after)
    return AttackOutcomes(list(queries), np.array(before), np.array(after), gain, **columns)


FOUR = attempts(
    "aaab",
    [15, 25, 8, 40],
    [4, 25, 9, 10],
    changed_words=[2, 0, 5, 1],
    words=[10, 10, 20, 4],
    trials=[3, 10, 10, 7],
    pairs=[30, 100, 100, 70],
    first_success_trial=[2, 0, 0, 7],
)


def test_each_number_by_hand() -> None:
    assert success_rate(FOUR).value == 50  # the first and the last; a document that stays has failed
    assert boost(FOUR).value == (11 + 0 - 1 + 30) / 4
    assert top_rate(FOUR, 10).value == 75  # one of them was there before
    assert top_rate(FOUR, 5).value == 25
    assert intrusion_rate(FOUR, 10).value == pytest.approx(100 * 2 / 3)  # of the three that stood outside
    assert intrusion_rate(FOUR, 5).value == 25
    assert perturbation_percentage(FOUR).value == pytest.approx(100 * (0.2 + 0 + 0.25 + 0.25) / 4)
    assert mean_trials(FOUR).value == 7.5
    assert mean_pairs(FOUR).value == 75
    assert (success_rate(FOUR).targets, success_rate(FOUR).queries) == (4, 2)
    assert (intrusion_rate(FOUR, 10).targets, intrusion_rate(FOUR, 10).queries) == (3, 2)


def test_the_goal_defines_success() -> None:
    before, after = [15, 25, 8, 40], [4, 25, 9, 10]
    assert success_rate(attempts("aaab", before, after, Demote())).value == 25  # the one that sank
    assert boost(attempts("aaab", before, after, Demote())).value == boost(FOUR).value  # ranks are ranks
    assert success_rate(attempts("aaab", before, after, Top(10))).value == 50


@given(st.lists(st.tuples(st.integers(1, 100), st.integers(1, 100)), min_size=1))
def test_a_promotion_is_no_demotion(moves: list[tuple[int, int]]) -> None:
    before, after = (list(side) for side in zip(*moves, strict=True))
    queries = "a" * len(moves)
    still = 100 * np.mean([b == a for b, a in moves])
    up, down = (success_rate(attempts(queries, before, after, goal)).value for goal in (Promote(), Demote()))
    assert up + down + still == pytest.approx(100)
    assert up == pytest.approx(100 * np.mean([a < b for b, a in moves]))


def test_one_query_has_no_interval() -> None:
    for number in (success_rate(attempts("aa", [5, 6], [1, 6])), boost(attempts("aa", [5, 6], [1, 6]))):
        assert math.isnan(number.low)
        assert math.isnan(number.high)
        assert not math.isnan(number.value)


def test_nothing_attacked_is_nothing_known() -> None:
    none = AttackOutcomes.from_outcomes([])
    assert len(none) == 0
    assert all(
        math.isnan(value) for name, value in build_promotion_row(none).items() if name not in ("targets", "queries")
    )
    assert build_promotion_row(none)["targets"] == 0
    assert success_by_rank_range(none) == []
    inside = attempts("ab", [3, 4], [1, 2])
    assert math.isnan(intrusion_rate(inside, 10).value)  # no document was outside


def test_intervals_are_over_queries_and_not_over_targets() -> None:
    # ten queries, half of them lost altogether: a hundred targets each make them no more certain
    values, names = np.repeat([0.0, 100.0], 5), [f"q{i}" for i in range(10)]
    few = estimate(values, names)
    many = estimate(np.repeat(values, 100), [name for name in names for _ in range(100)])
    assert (many.low, many.high) == pytest.approx((few.low, few.high))
    assert many.value == few.value == 50
    assert many.high - many.low > 40
    apart = estimate(np.repeat(values, 100), [f"q{i}" for i in range(1000)])
    assert apart.high - apart.low < 8


def test_a_mean_over_targets_where_queries_have_more_and_fewer() -> None:
    number = estimate(np.array([1.0, 1.0, 1.0, 0.0]), list("aaab"))
    assert number.value == 0.75  # and not 0.5, the mean of the queries' means
    assert number.low <= 0.75 <= number.high


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(200):
        rates = rng.beta(2, 2, size=30)  # queries differ in how easy they are
        won = (rng.random((30, 9)) < rates[:, None]).ravel().astype(float)
        number = estimate(won, [f"q{i}" for i in range(30) for _ in range(9)])
        held += number.low <= 0.5 <= number.high
    assert 178 <= held <= 200


def test_a_row_has_every_number_and_its_ends() -> None:
    row = build_promotion_row(FOUR)
    headings = ["success %", "boost", "top 10 %", "top 5 %", "into top 10 %", "into top 5 %"]
    headings += ["words changed %", "trials", "pairs"]
    ends = [name for heading in headings for name in (heading, f"{heading} low", f"{heading} high")]
    assert list(row) == ["targets", "queries", *ends]
    assert (row["targets"], row["queries"], row["success %"], row["top 10 %"]) == (4, 2, 50, 75)
    assert all(row[f"{heading} low"] <= row[heading] <= row[f"{heading} high"] for heading in headings)


def test_success_by_the_rank_before() -> None:
    assert RANK_RANGES[0] == (11, 20)
    assert RANK_RANGES[-1] == (91, 100)
    assert len(RANK_RANGES) == 9
    rows = success_by_rank_range(attempts("abcab", [11, 20, 20, 21, 100], [1, 20, 3, 5, 100]))
    assert [(row["ranks"], row["success %"], row["targets"], row["queries"]) for row in rows] == [
        ("11-20", pytest.approx(200 / 3), 3, 3),
        ("21-30", 100, 1, 1),
        ("91-100", 0, 1, 1),
    ]


def test_success_by_number_of_trials() -> None:
    rows = success_by_trials(FOUR, [0, 1, 2, 7, 1000])
    assert [(row["trials"], row["success %"]) for row in rows] == [(0, 0), (1, 0), (2, 25), (7, 50), (1000, 50)]
    assert rows[-1]["success %"] == success_rate(FOUR).value


def case(docno: str, body: str, ranks: tuple[int, ...], goal: Goal) -> AttackCase:
    lists = tuple(TargetRanking(f"q{i}", "boats", (docno,), (Doc(body),)) for i in range(len(ranks)))
    return AttackCase(docno, Doc(body, title="Boats"), lists, goal, ranks)


def test_cases_and_their_outcomes() -> None:
    one, two = case("d1", "a red boat", (12,), Promote()), case("d2", "a sail", (3, 20), Demote())
    moved = AttackOutcome(
        Doc("a blue boat", title="Boats"), (12,), (4,), trials=6, scored_pairs=60, first_success_trial=4
    )
    shared = AttackOutcome(Doc("a sail", title="Boats"), (3, 20), (2, 31), trials=5, scored_pairs=10)
    found = AttackOutcomes.from_outcomes([(one, moved), (two, shared)])
    assert list(found.queries) == ["q0", "q0", "q0"]  # a text in two lists is one thing to draw again
    assert found.before.tolist() == [12, 3, 20]
    assert found.after.tolist() == [4, 2, 31]
    assert found.gain.tolist() == [8, -1, 11]
    assert found.changed_words.tolist() == [1, 0, 0]
    assert found.words.tolist() == [4, 3, 3]
    assert found.trials.tolist() == [6, 5, 5]
    assert found.pairs.tolist() == [60, 10, 10]
    assert found.first_success_trial.tolist() == [4, 0, 0]


def test_a_text_without_words_has_no_share() -> None:
    found = attempts("ab", [5, 6], [1, 2], changed_words=[3, 1], words=[0, 4])
    assert perturbation_percentage(found).value == 25
    assert perturbation_percentage(found).targets == 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"before": [0, 5]}, "before is 0 for a target; it must be at least 1"),
        ({"trials": [1]}, r"2 targets have queries, but trials has shape \(1,\)"),
        ({"after": [1, math.nan]}, "after has a value that is not finite"),
        ({"words": [-1, 3]}, "words is -1"),
    ],
)
def test_numbers_that_cannot_be(wrong: dict[str, Any], said: str) -> None:
    names = ("before", "after", "gain", "changed_words", "words", "trials", "pairs", "first_success_trial")
    with pytest.raises(BadInput, match=said):
        AttackOutcomes(["a", "b"], **{name: np.array(wrong.get(name, [1, 1])) for name in names})

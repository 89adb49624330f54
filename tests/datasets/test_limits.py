"""Limits of ids and grades; invalid values never reach the evaluation library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.errors import BadInput
from shaketable.datasets.limits import MAX_ID_CHARS, check_grades, check_ids, describe_id_problem, find_invalid_id
from shaketable.measures.effectiveness import Evaluator, score_table
from shaketable.measures.measure_names import parse_measure

WRONG = [
    "",
    " ",
    "a b",
    "a\0b",
    "a\tb",
    "a\n",
    "\x1b[31m",
    "\x7f",
    "a\x85",
    "a\xa0b",
    "a\u2028",
    "\u3000",
    "\ud800",
    "x" * 1001,
]
RIGHT = ["a", "MARCO_12", "<dbpedia:Boat_(ship)>", "d#1", "é", "東京", "\u200b", "\ue000", "🙂", "x" * 1000]


@pytest.mark.parametrize("name", WRONG, ids=range(len(WRONG)))
def test_invalid_ids(name: str) -> None:
    assert describe_id_problem(name)
    assert find_invalid_id({"a": 1, name: 1, "b": 1}) == name
    with pytest.raises(BadInput, match="an id has 1 to 1,000 characters and none of them is white space"):
        check_ids({"a": 1, name: 1}, "query id")


@pytest.mark.parametrize("name", RIGHT, ids=range(len(RIGHT)))
def test_valid_ids(name: str) -> None:
    assert describe_id_problem(name) == ""
    assert find_invalid_id({name: 1, "b": 2}) is None


@given(st.dictionaries(st.text(st.characters(exclude_categories=()), max_size=4), st.none(), max_size=6))
def test_many_at_once_are_as_one_by_one(names: dict[str, None]) -> None:
    assert find_invalid_id(names) == next((name for name in names if describe_id_problem(name)), None)


@given(st.text(st.characters(exclude_categories=()), max_size=5))
def test_the_rule_by_its_words(name: str) -> None:
    strange = any(c.isspace() or "\0" <= c < " " or "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff" for c in name)
    assert bool(describe_id_problem(name)) == (strange or not 1 <= len(name) <= MAX_ID_CHARS)


@pytest.mark.parametrize("grade", [128, -128, 2_000_000_000, 2**63 - 1, -(2**63), 2**64, 0.5, np.nan, np.inf])
def test_invalid_grades(grade: Any) -> None:
    with pytest.raises(BadInput, match="is not a whole number from -127 to 127"):
        check_grades([1, grade])


def test_a_grade_that_python_cannot_even_write() -> None:
    with pytest.raises(BadInput, match="grade a very long int is not a whole number"):
        check_grades([10**5000])


def test_valid_grades() -> None:
    check_grades([-127, 127, 0, True, np.int64(3), 2.0])  # type: ignore[list-item]


MEASURES = ["AP", "nDCG@10", "nDCG(dcg='exp-log2')@10", "SetF", "ERR@20", "Judged@10"]


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("make", [lambda n: ({"q": {n: 1}}, {"q": {"d": 1.0}}), lambda n: ({n: {"d": 1}}, {}),
                                  lambda n: ({"q": {"d": 1}}, {"q": {n: 1.0}}), lambda n: ({"q": {"d": 1}}, {n: {}})],
                         ids=["judged document", "judged query", "document", "query"])  # fmt: skip
def test_no_such_id_is_counted(measure: str, make: Callable[[str], tuple[Any, Any]]) -> None:
    """The library ends an id at a NUL: 'd\\0x' was the document 'd', and AP was 1; a lone surrogate crashed it."""
    for name in ("d\0x", "\ud800", "a b", ""):
        qrels, run = make(name)
        with pytest.raises(BadInput, match=r"id .* an id has"):
            score_table(measure, qrels, {"system": run})


def test_an_id_that_is_no_text() -> None:
    with pytest.raises(BadInput, match="the document id 7 is not a text"):
        score_table("AP", {"q": {7: 1}}, {"system": {}})  # type: ignore[dict-item]


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("grade", [2_000_000_000, 2**63 - 1, 2**64, -(2**63), 1.5])
def test_no_such_grade_is_counted(measure: str, grade: Any) -> None:
    """The first takes the library hours, the second crashes it."""
    with pytest.raises(BadInput, match=r"grade .* is not a whole number from -127 to 127"):
        Evaluator((parse_measure(measure),), {"q": {"d": grade}}).evaluate({"q": {"d": 1.0}})


def test_gains_have_an_end_too() -> None:
    measure = parse_measure("nDCG(dcg='exp-log2')@10")
    assert Evaluator((measure,), {"q": {"d": 10}}).evaluate({"q": {"d": 1.0}})[measure] == {"q": 1.0}
    for grade in (11, 31, 127):
        with pytest.raises(BadInput, match=f"a document of grade {grade} gains .* more than the maximum of 1,023"):
            Evaluator((measure,), {"q": {"d": grade}}).evaluate({"q": {"d": 1.0}})
    gains = parse_measure("nDCG(gains={1: 1000000000})@10")
    with pytest.raises(BadInput, match="a document of grade 1 gains 1,000,000,000"):
        Evaluator((gains,), {"q": {"d": 1}}).evaluate({"q": {"d": 1.0}})


def test_the_highest_grades_are_counted() -> None:
    for measure in map(parse_measure, ("AP", "nDCG@10", "P@5", "Bpref", "SetF")):
        qrels = {"q": {"a": 127, "b": -127, "c": 1}}
        value = Evaluator((measure,), qrels).evaluate({"q": {"a": 3.0, "c": 2.0, "b": 1.0}})[measure]["q"]
        assert 0 < value <= 1

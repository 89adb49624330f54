"""Pairs of the user's own: what is expected, and what is wrong with a line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shaketable.core.documents import Doc
from shaketable.core.errors import BadInput
from shaketable.core.protocols import TextPair
from shaketable.core.registries import PROBES
from shaketable.probes.user_pairs import ExpectedPreference, UserPairs
from tests.probes.tool import context

ROW = {"query": "opening hours", "a": "Open from nine to five.", "b": "A family business.", "expect": "a"}


def pairs(folder: Any, *rows: Any) -> UserPairs:
    path = folder / "mine.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return UserPairs(str(path))


def test_the_text_that_should_be_preferred_is_first(tmp_path):
    mine = pairs(tmp_path, ROW, ROW | {"expect": "b", "id": "x", "title_b": "About"}, ROW | {"expect": "same"})
    a, b = Doc("Open from nine to five."), Doc("A family business.")
    query = "opening hours"
    assert mine.expectations() == (
        ExpectedPreference(TextPair(query, a, b, qid="1"), "a", "1"),
        ExpectedPreference(TextPair(query, Doc(b.body, "About"), a, qid="x"), "b", "x"),
        ExpectedPreference(TextPair(query, a, b, qid="3"), "same", "3"),
    )
    assert list(mine.draw_pairs(context())) == [e.contrast for e in mine.expectations()]
    assert (mine.strategy, mine.symmetric, mine.unavailable_reason(context())) == ("own", False, "")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "is not JSON"),
        ("[1]", 'is not an object of JSON with "query", "a", "b" and "expect"'),
        ({k: v for k, v in ROW.items() if k != "b"}, 'has no "b"; a line needs .*, this one has: query, a, expect'),
        ({}, 'has no "query"; .* this one has: nothing'),
        (ROW | {"a": None}, '"a" should be a text, not None'),
        (ROW | {"a": "  "}, '"a" is empty'),
        (ROW | {"query": ""}, '"query" is empty'),
        (ROW | {"expect": "both"}, '"expect" should be "a", "b" or "same", not \'both\''),
        (ROW | {"expect": "A"}, '"expect" should be "a", "b" or "same", not \'A\''),
        (ROW | {"b": ROW["a"]}, 'the two texts are the same, so "a" cannot be preferred'),
        (ROW | {"title_a": 3}, '"title_a" should be a text, not 3'),
        (ROW | {"id": "1"}, "the id '1' is taken; line 1 has it too"),
        (ROW | {"id": [1]}, r'"id" should be a text or a whole number, not \[1\]'),
    ],
)
def test_errors_name_file_and_line(line, message, tmp_path):
    with pytest.raises(BadInput, match=rf"mine\.jsonl:2: {message}"):
        pairs(tmp_path, ROW, line).expectations()


def test_the_same_text_twice_may_be_expected_to_be_the_same(tmp_path):
    (found,) = pairs(tmp_path, ROW | {"b": ROW["a"], "expect": "same"}).expectations()
    assert found.contrast.first == found.contrast.second


def test_no_file(tmp_path):
    mine = PROBES.build(f"pairs(path={str(tmp_path / 'nothing.jsonl')!r})")
    assert "there is no file" in mine.unavailable_reason(context())
    with pytest.raises(BadInput, match="there is no such file"):
        list(mine.draw_pairs(context()))

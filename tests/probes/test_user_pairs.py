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
        ("[1]", "is not an object of JSON"),
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


@pytest.mark.parametrize("names", [("q1", "q2", "doc1", "doc2"), ("query_a", "query_b", "a", "b")])
def test_a_crossed_pair_stands_for_two_pairs(tmp_path, names):
    """NevIR's layout and ours: each query expects the text that answers it."""
    row = dict(zip(names, ("red boat", "blue boat", "It is red.", "It is blue."), strict=True))
    red, blue = Doc("It is red."), Doc("It is blue.")
    assert pairs(tmp_path, row | {"id": "x"}).expectations() == (
        ExpectedPreference(TextPair("red boat", red, blue, qid="x-a"), "a", "x-a"),
        ExpectedPreference(TextPair("blue boat", blue, red, qid="x-b"), "b", "x-b"),
    )


@pytest.mark.parametrize(
    ("row", "probe"),
    [
        ({"query": "q", "a": "x", "b": "y", "grade": 1}, "source_bias"),
        ({"a": "x", "b": "y", "a_spellchecked": "x"}, "fluency"),
        ({"article": "x", "sentences": []}, "factuality"),
        ({"id": "1", "title": "t", "summary": "s", "body": "b"}, "summaries"),
    ],
)
def test_an_error_names_the_probe_that_reads_a_published_layout(tmp_path, row, probe):
    mine = pairs(tmp_path, row)
    with pytest.raises(
        BadInput, match=rf"mine\.jsonl:1: has no \"expect\", .*--probe \"{probe}\(path='.*mine\.jsonl'\)\""
    ):
        mine.expectations()
    assert PROBES.build(f"{probe}(path={mine.path!r})").unavailable_reason(context()) == ""


def test_a_folder_is_refused_with_a_hint(tmp_path):
    assert f"--probe \"NAME(path='{tmp_path}')\"" in UserPairs(str(tmp_path)).unavailable_reason(context())

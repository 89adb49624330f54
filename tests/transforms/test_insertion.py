"""Texts inserted into a text: where they go, and that all else stays."""

from __future__ import annotations

import pytest

from shaketable.core.seeding import make_item_rng
from shaketable.transforms.insertion import append_text, insert_text, prepend_text, select_keywords, stuff_keywords

TEXT = "Some text\nof  a boat."


def test_the_middle_is_between_two_words_and_all_else_stays():
    places = set()
    for seed in range(60):
        text = insert_text(TEXT, "NEW WORDS", "middle", make_item_rng(seed, "middle"))
        before, after = text.split(" NEW WORDS")
        assert before + after == TEXT
        assert before.split()
        assert after.split()
        places.add(len(before.split()))
    assert places == {1, 2, 3, 4}


@pytest.mark.parametrize("body", ["", "boat"])
def test_a_body_without_a_middle_gets_it_last(body):
    assert insert_text(body, "new", "middle", make_item_rng(0)).split() == [*body.split(), "new"]


@pytest.mark.parametrize("blank", ["", " "])
def test_a_blank_part_is_left_out(blank):
    assert prepend_text("boat", blank) == append_text("boat", blank) == "boat"
    assert prepend_text(blank, "boat") == append_text(blank, "boat") == "boat"


def test_a_query_of_stop_words_has_no_keywords():
    assert select_keywords("To be, or not to be") == []
    assert stuff_keywords(TEXT, [], 2, "start", make_item_rng(0)) == [TEXT] * 3

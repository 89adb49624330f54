"""Which part of speech a word has where it stands: by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.nlp.pos_context import ANY_PART, find_asked_verb, find_pos_in_context, lookup_pos


@pytest.mark.parametrize(
    ("text", "word", "can_be", "cannot_be"),
    [
        ("how to find a job", "find", "verb", "noun"),
        ("the find of the year", "find", "noun", "verb"),
        ("how does plutonium help us", "help", "verb", "noun"),
        ("what makes the holes in cheese", "makes", "verb", "noun"),
        ("the makes of cars", "makes", "noun", "verb"),
        ("what types of food can you cook", "cook", "verb", "noun"),
        ("how do young spiders change at night", "change", "verb", "noun"),
        ("do phone prices change", "phone", "noun", "verb"),
        ("does weather cause pain", "cause", "verb", "noun"),
        ("use of force", "use", "noun", "verb"),
        ("for help with taxes", "help", "noun", "verb"),
        ("a very cold winter", "cold", "adj", "noun"),
        ("what is change", "change", "noun", "verb"),
        ("things to drink with a cold", "cold", "noun", "adj"),
    ],
)
def test_neighbours_narrow_the_parts_of_speech(text, word, can_be, cannot_be):
    words = text.split()
    parts = find_pos_in_context(words, words.index(word))
    assert can_be in parts
    assert cannot_be not in parts


@pytest.mark.parametrize(
    ("text", "word"), [("find", "find"), ("texas child support number", "support"), ("by cooking rice", "cooking")]
)
def test_where_they_tell_nothing_a_noun_and_a_verb_are_possible(text, word):
    words = text.split()
    assert {"noun", "verb"} <= find_pos_in_context(words, words.index(word))


@given(st.lists(st.sampled_from("how to do does the a find change of me boat red can you very is".split()), min_size=1))
def test_some_part_is_always_possible(words):
    for place in range(len(words)):
        assert find_pos_in_context(words, place)
        assert find_pos_in_context(words, place) <= ANY_PART
    verb = find_asked_verb(words)
    assert verb is None or "verb" in lookup_pos(words[verb])

"""Questions and keywords: by hand."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.chance import draws_for
from shaketable.edit.naturality import ChangeCase, ChangePunctuation, RemoveStopWords, ToKeywords, ToQuestion
from shaketable.edit.ordering import RandomOrderSwap
from shaketable.types import Context
from tests.edit.scripted import Scripted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what is durable medical equipment consist of", "durable medical equipment consist"),
        ("anthropological definition of environment", "anthropological definition environment"),
        ("What IS love?", "love?"),
        ("flu symptoms", None),
        ("it is what it is", None),
        ("", None),
        ("东京 is big", "东京 big"),
    ],
)
def test_removing_stop_words(text, expected):
    assert RemoveStopWords().apply(text, Scripted(), Context()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("how do I reset my phone?", "reset phone"),
        ("can you tell me how many calories are in a banana?", "how many calories banana"),
        ("why does it not rain in the desert", "not rain desert"),
        ("what is the difference between wifi and bluetooth", "difference between wifi bluetooth"),
        ("please explain photosynthesis", "photosynthesis"),
        ("is it true", "true"),
        ("flu symptoms", None),
        ("how are you", None),
        ("how many", None),
        ("", None),
    ],
)
def test_into_keywords(text, expected):
    assert ToKeywords().apply(text, Scripted(), Context()) == expected


@pytest.mark.parametrize(
    ("text", "way", "expected"),
    [
        ("flu symptoms", 0, "what are the symptoms of flu"),
        ("symptoms of flu", 0, "what are the symptoms of flu"),
        ("cost of concrete flooring", 0, "how much does concrete flooring cost"),
        ("define visceral", 1, "what is visceral"),
        ("wifi vs bluetooth", 0, "what is the difference between wifi and bluetooth"),
        ("convert miles to km", 1, "how do i convert miles to km"),
        ("capital of france.", 0, "what is the capital of france"),
        ("life cycle of flea", 0, "what is the life cycle of flea"),
        ("roman roads", 0, "what are roman roads"),
        ("roman roads {}", 0, "what is roman roads {}"),
        ("raspberry pi", 1, "what should i know about raspberry pi"),
    ],
)
def test_into_a_question(text, way, expected):
    assert ToQuestion().apply(text, Scripted(way), Context()) == expected


@pytest.mark.parametrize("text", ["what is love", "roads?", "tracheids are part of", "", "the of", "1984", "東京 天気"])
def test_what_is_no_keyword_query(text):
    assert ToQuestion().apply(text, Scripted(), Context()) is None


def test_case():
    ways = [ChangeCase().apply("what is NASA", Scripted(way), Context()) for way in range(4)]
    assert ways == ["WHAT IS NASA", "what is nasa", "What is nasa", "What Is NASA"]
    assert ChangeCase().apply("what is it", Scripted(1), Context()) == "What is it"  # the lower case is no change
    assert ChangeCase().apply("1984 東京", Scripted(), Context()) is None


def test_punctuation():
    ways = [ChangePunctuation().apply("what is (durable) love", Scripted(way), Context()) for way in range(3)]
    assert ways == ["what is durable love", '"what is (durable) love"', "what is (durable) love?"]
    assert ChangePunctuation().apply("flu symptoms", Scripted(1), Context()) == "flu symptoms."
    assert ChangePunctuation().apply("?!", Scripted(), Context()) is None


@given(st.text(max_size=40), st.integers(0, 99))
def test_case_and_punctuation_keep_the_letters(text, seed):
    def letters(some: str) -> str:
        return "".join(c for c in some if c.isalnum())

    marked = ChangePunctuation().apply(text, draws_for(seed), Context())
    assert marked is None or letters(marked) == letters(text)
    cased = ChangeCase().apply(text, draws_for(seed), Context())
    assert cased is None or cased.upper().lower() == " ".join(text.split()).upper().lower()


def test_swapping_words_by_hand():
    assert RandomOrderSwap().apply("right pelvic pain causes", Scripted(0, 2), Context()) == "causes pelvic pain right"
    assert RandomOrderSwap().apply("to be or not to be", Scripted(0, 0), Context()) == "be to or not to be"
    assert RandomOrderSwap().apply("boat boat", Scripted(0), Context()) is None
    assert RandomOrderSwap().apply("boat", Scripted(), Context()) is None


@given(st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), min_size=2, max_size=9), st.integers(0, 99))
def test_swapping_keeps_the_words(words, seed):
    new = RandomOrderSwap().apply(" ".join(words), draws_for(seed), Context())
    if len(set(words)) == 1:
        assert new is None
    else:
        assert new.split() != words
        assert Counter(new.split()) == Counter(words)
        assert sum(a != b for a, b in zip(words, new.split(), strict=True)) == 2

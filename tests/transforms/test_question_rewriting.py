"""Questions as keywords and keywords as questions: by hand."""

from __future__ import annotations

import pytest

from shaketable.core.protocols import TransformContext
from shaketable.transforms.question_rewriting import ToKeywords, ToQuestion
from tests.transforms.scripted import Scripted


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
    assert ToKeywords().apply(text, Scripted(), TransformContext()) == expected


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
    assert ToQuestion().apply(text, Scripted(way), TransformContext()) == expected


@pytest.mark.parametrize("text", ["what is love", "roads?", "tracheids are part of", "", "the of", "1984", "東京 天気"])
def test_other_texts_are_not_keyword_queries(text):
    assert ToQuestion().apply(text, Scripted(), TransformContext()) is None

"""Stop-words that are left out: by hand."""

from __future__ import annotations

import pytest

from shaketable.core.protocols import TransformContext
from shaketable.transforms.stopwords import RemoveStopWords
from tests.transforms.scripted import Scripted


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
    assert RemoveStopWords().apply(text, Scripted(), TransformContext()) == expected

"""Case and punctuation: by hand, and laws."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.protocols import TransformContext
from shaketable.core.seeding import make_item_rng
from shaketable.transforms.case import ChangeCase, ChangePunctuation
from tests.transforms.scripted import Scripted


def test_case():
    ways = [ChangeCase().apply("what is NASA", Scripted(way), TransformContext()) for way in range(4)]
    assert ways == ["WHAT IS NASA", "what is nasa", "What is nasa", "What Is NASA"]
    assert (
        ChangeCase().apply("what is it", Scripted(1), TransformContext()) == "What is it"
    )  # the lower case is no change
    assert ChangeCase().apply("1984 東京", Scripted(), TransformContext()) is None


def test_punctuation():
    ways = [ChangePunctuation().apply("what is (durable) love", Scripted(way), TransformContext()) for way in range(3)]
    assert ways == ["what is durable love", '"what is (durable) love"', "what is (durable) love?"]
    assert ChangePunctuation().apply("flu symptoms", Scripted(1), TransformContext()) == "flu symptoms."
    assert ChangePunctuation().apply("?!", Scripted(), TransformContext()) is None


@given(st.text(max_size=40), st.integers(0, 99))
def test_case_and_punctuation_keep_the_letters(text, seed):
    def letters(some: str) -> str:
        return "".join(c for c in some if c.isalnum())

    marked = ChangePunctuation().apply(text, make_item_rng(seed), TransformContext())
    assert marked is None or letters(marked) == letters(text)
    cased = ChangeCase().apply(text, make_item_rng(seed), TransformContext())
    assert cased is None or cased.upper().lower() == " ".join(text.split()).upper().lower()

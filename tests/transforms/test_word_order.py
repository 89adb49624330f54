"""Words in another order: by hand, and laws."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.protocols import TransformContext
from shaketable.core.seeding import make_item_rng
from shaketable.transforms.word_order import RandomOrderSwap
from tests.transforms.scripted import Scripted


def test_swapping_words_by_hand():
    assert (
        RandomOrderSwap().apply("right pelvic pain causes", Scripted(0, 2), TransformContext())
        == "causes pelvic pain right"
    )
    assert RandomOrderSwap().apply("to be or not to be", Scripted(0, 0), TransformContext()) == "be to or not to be"
    assert RandomOrderSwap().apply("boat boat", Scripted(0), TransformContext()) is None
    assert RandomOrderSwap().apply("boat", Scripted(), TransformContext()) is None


@given(st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), min_size=2, max_size=9), st.integers(0, 99))
def test_swapping_keeps_the_words(words, seed):
    new = RandomOrderSwap().apply(" ".join(words), make_item_rng(seed), TransformContext())
    if len(set(words)) == 1:
        assert new is None
    else:
        assert new.split() != words
        assert Counter(new.split()) == Counter(words)
        assert sum(a != b for a, b in zip(words, new.split(), strict=True)) == 2

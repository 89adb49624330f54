"""Words in another order: by hand, and laws."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.protocols import TransformContext
from shaketable.core.seeding import make_item_rng
from shaketable.nlp.parser import open_parser
from shaketable.transforms.word_order import RandomOrderSwap, shuffle_sentence_words
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


def test_noun_phrases_of_each_sentence_stay_whole():
    text = "The old dog chased a red ball. A small cat saw the old dog. It slept."
    parsed = open_parser("light").parse([text])[0]
    for seed in range(20):
        words = " ".join(shuffle_sentence_words(parsed, True, make_item_rng(seed)))
        assert all(phrase in words for phrase in ("The old dog", "a red ball", "A small cat", "the old dog"))
        assert [len(part.split()) for part in words.split(" . ")] == [7, 7, 3]

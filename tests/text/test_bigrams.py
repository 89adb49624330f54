"""Counts of words and of neighbours, beside a plain counter."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from shaketable.text.bigrams import Bigrams
from shaketable.text.tokens import Tokenizer

TEXTS = st.lists(st.text(st.sampled_from("ab c-.é東 "), max_size=12), max_size=5)


@given(TEXTS)
def test_as_a_plain_counter_counts(texts):
    cut = [Tokenizer().words(text) for text in texts]
    words = Counter(word for text in cut for word in text)
    pairs = Counter(pair for text in cut for pair in pairwise(text))
    counts = Bigrams(lambda: texts)
    known = [*words, "nowhere"]
    assert {word: counts.word(word) for word in known} == {word: words[word] for word in known}
    both = [(a, b) for a in known for b in known]
    assert {pair: counts.pair(*pair) for pair in both} == {pair: pairs[pair] for pair in both}


def test_texts_are_read_at_the_first_question_and_once():
    asked = []

    def texts():
        asked.append(1)
        return ["red boat"]

    counts = Bigrams(texts)
    assert not asked
    assert (counts.pair("red", "boat"), counts.word("red"), asked) == (1, 1, [1])


def test_no_texts_no_counts():
    assert Bigrams(list).word("red") == Bigrams(list).pair("red", "boat") == 0

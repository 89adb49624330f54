"""Counts of words and of neighbours, beside a plain counter."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.bigrams import Bigrams

TEXTS = st.lists(st.text(st.sampled_from("ab c-.é東 "), max_size=12), max_size=5)


@given(TEXTS)
def test_as_a_plain_counter_counts(texts):
    cut = [Analyzer().split_words(text) for text in texts]
    words = Counter(word for text in cut for word in text)
    pairs = Counter(pair for text in cut for pair in pairwise(text))
    counts = Bigrams(lambda: texts)
    known = [*words, "nowhere"]
    assert {word: counts.count_word(word) for word in known} == {word: words[word] for word in known}
    both = [(a, b) for a in known for b in known]
    assert {pair: counts.count_pair(*pair) for pair in both} == {pair: pairs[pair] for pair in both}


def test_texts_are_read_at_the_first_question_and_once():
    asked = []

    def texts():
        asked.append(1)
        return ["red boat"]

    counts = Bigrams(texts)
    assert not asked
    assert (counts.count_pair("red", "boat"), counts.count_word("red"), asked) == (1, 1, [1])


def test_no_texts_no_counts():
    assert Bigrams(list).count_word("red") == Bigrams(list).count_pair("red", "boat") == 0

"""Where the words of a text are."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.words import find_word_spans, split_token


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" --- …\n🙂", []),
        ("“Well-known,” he said (twice).", ["Well-known", "he", "said", "twice"]),
        ("and/or http://a.b/c?d=1& _x_", ["and/or", "http://a.b/c?d=1", "x"]),
        ("東京タワー, Москва! 1984", ["東京タワー", "Москва", "1984"]),
        ("cafe\u0301, हिन्दी।", ["cafe\u0301", "हिन्दी"]),  # marks stay with their letters
        ("no\u00a0break\u2003here", ["no", "break", "here"]),
    ],
)
def test_spans_by_hand(text, words):
    assert [text[start:end] for start, end in find_word_spans(text)] == words


@given(st.text(max_size=60))
def test_one_word_for_each_token_that_has_a_letter_or_a_digit(text):
    found = find_word_spans(text)
    tokens = [token for token in text.split() if any(c.isalnum() for c in token)]
    assert len(found) == len(tokens)
    end = 0
    for (start, after), token in zip(found, tokens, strict=True):
        word = text[start:after]
        assert end <= start < after
        end = after
        head, _, tail = token.partition(word)
        assert word in token
        assert not any(c.isalnum() for c in head)
        assert not any(c.isalnum() for c in tail)
        assert not unicodedata.category((tail or " ")[0]).startswith("M")


@given(st.text(alphabet="ab'’.&-(!? ", max_size=30))
def test_words_in_latin_letters_are_the_cores_of_tokens(text):
    cores = [found.core for token in text.split() if (found := split_token(token))]
    assert [text[start:end] for start, end in find_word_spans(text) if split_token(text[start:end])] == cores


@given(st.text(max_size=60))
def test_every_term_is_inside_a_word(text):
    rest = list(text)
    for start, end in find_word_spans(text):
        rest[start:end] = " " * (end - start)
    assert Analyzer(stopwords="none", stemmer="none")("".join(rest)) == []

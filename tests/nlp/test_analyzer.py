"""Texts to terms."""

from __future__ import annotations

import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.errors import BadInput
from shaketable.nlp.analyzer import Analyzer, Memo
from shaketable.nlp.stopwords import ENGLISH_STOPWORDS

PLAIN = Analyzer(stopwords="none", stemmer="none")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" \t\n", []),
        ("Sea-level, 3.5%", ["sea", "level", "3", "5"]),
        ("don't can’t", ["don", "t", "can", "t"]),
        ("snake_case x2", ["snake", "case", "x2"]),
        ("ÉCOLE straße", ["école", "straße"]),
        ("हिन्दी में", ["हिन्दी", "में"]),  # vowel signs and virama are marks
        ("Ελλάδα Москва", ["ελλάδα", "москва"]),
        ("❤️ 👩‍👩‍👧 ok", ["ok"]),  # a mark alone is no word
        ("東京 2020", ["東京", "2020"]),
        ("a\x00b\ufeffc", ["a", "b", "c"]),
        ("\ud800x", ["x"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert PLAIN(text) == words


def test_stopwords_and_stems() -> None:
    assert Analyzer()("The engines of the flying machines") == ["engin", "fly", "machin"]
    assert Analyzer(stopwords="none")("The engines") == ["the", "engin"]
    assert Analyzer(stemmer="snowball")("generously, generous") == ["generous", "generous"]
    assert Analyzer(stemmer="porter")("generously, generous") == ["gener", "gener"]
    assert Analyzer(stemmer="none")("The engines") == ["engines"]
    assert Analyzer(lower=False, stemmer="none")("The Engines AND") == ["Engines"]
    assert Analyzer(split="space", stemmer="none")("The e-mail: a.b@c") == ["e-mail:", "a.b@c"]
    assert Analyzer(split="space")("boats \ud800s") == ["boat", "\ud800s"]
    assert 120 <= len(ENGLISH_STOPWORDS) <= 185


@given(st.text(st.characters(exclude_categories=())), st.sampled_from(["words", "space"]), st.booleans())
def test_words_are_words(text: str, split: str, lower: bool) -> None:
    tokenizer = Analyzer(lower=lower, split=split, stopwords="none", stemmer="none")
    words = tokenizer.split_words(text)
    assert all(words)
    assert tokenizer.split_words(" ".join(words)) == words
    assert tokenizer(text) == words


@given(st.lists(st.text(st.characters(exclude_categories=()))), st.sampled_from(["words", "space"]), st.booleans())
def test_many_texts_at_once(texts: list[str], split: str, lower: bool) -> None:
    tokenizer = Analyzer(lower=lower, split=split)
    spaced, sizes = tokenizer.join_words(texts)
    assert sum(sizes) == len(spaced)
    for text, size in zip(texts, sizes, strict=True):
        assert spaced[:size].endswith(b" ")
        words = spaced[:size].decode("utf-8", "surrogatepass").split(" ")
        assert list(filter(None, words)) == tokenizer.split_words(text)
        spaced = spaced[size:]


@given(st.text(st.characters(codec="ascii") | st.sampled_from("’“”—…\u00a0™·\u0301\u037e\u1fef\u2126😀")))
def test_the_fast_way_for_ascii_and_signs_is_the_same(text: str) -> None:
    """With a letter that is not ASCII the pattern is used."""
    assert [*PLAIN.split_words(text), "é"] == PLAIN.split_words(text + " é")


@given(st.text())
def test_equivalent_texts_have_the_same_terms(text: str) -> None:
    assert PLAIN(unicodedata.normalize("NFD", text)) == PLAIN(unicodedata.normalize("NFC", text))


@pytest.mark.parametrize("field", ["split", "stopwords", "stemmer"])
def test_unknown_choices_are_refused(field: str) -> None:
    with pytest.raises(BadInput, match=f"{field} is one of .*, not 'x'"):
        Analyzer(**{field: "x"})  # type: ignore[arg-type]


def test_a_full_memo_starts_anew() -> None:
    asked: list[str] = []
    memo = Memo(lambda word: asked.append(word) or word.upper(), max_size=2)
    assert [memo[word] for word in "aabcca"] == list("AABCCA")
    assert asked == ["a", "b", "c", "a"]


def test_importing_loads_no_stemmer() -> None:
    code = "import shaketable.nlp.analyzer, sys; sys.exit('Stemmer' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop_words!", ["don", "t", "stop", "words"]),
        ("café", ["caf"]),
        ("1234 12345 a1b2c3d4 a1b2c3d4e5", ["1234", "a1b2c3d4"]),
        ("aaa aaaa baaaab 0000", ["aaa"]),
        ("x" * 20 + " " + "ab" * 10 + " " + "ab" * 10 + "a", ["ab" * 10]),
    ],
)
def test_terriers_words(text, words):
    assert Analyzer(split="terrier").split_words(text) == words

"""Letters that look Latin and are not, and invisible characters."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.nlp.characters import HOMOGLYPHS, INVISIBLE_CHARACTERS, ZERO_WIDTH, count_suspicious_characters


def test_lookalikes_are_single_letters_of_other_scripts_in_the_same_case():
    assert len(set(HOMOGLYPHS.values())) == len(HOMOGLYPHS)
    for letter, stranger in HOMOGLYPHS.items():
        script, size, *_ = unicodedata.name(stranger).split()
        assert script in ("CYRILLIC", "GREEK")
        assert letter.isascii()
        assert letter.isalpha()
        assert (size == "CAPITAL") == letter.isupper() == stranger.isupper()
        assert unicodedata.normalize("NFKC", stranger) == stranger, "no normal form gives it away"


def test_invisible_characters_are_format_characters_and_no_white_space():
    assert set(ZERO_WIDTH) <= INVISIBLE_CHARACTERS
    for character in INVISIBLE_CHARACTERS:
        assert unicodedata.category(character) in ("Cf", "Cn", "Cc", "Mn")
        assert len(f"a{character}b".split()) == 1


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("A naïve façade in Łódź, Ærø and Đà Nẵng.", 0),
        ("cafe\u0301s in Hawai\u02bbi, N\u00bas 1 and 2", 0),
        ("Москва is the capital", 0),
        ("東京 and Tokyo, 5 μm, 3 kΩ, β-carotene, 10 µmol", 0),
        ("می\u200cخواهم", 0),
        ("a family: 👨\u200d👩\u200d👧", 0),
        ("p\u0430ypal", 1),
        ("p\u0430yp\u0430l, p\u0430ypal", 3),
        ("\u0441\u043e\u0440е", 0),
        ("pass\u200bword", 1),
        ("pass\u200d\u200dword", 2),
        ("\u200dword", 1),
        ("two \u200b\u2060 words", 2),
        ("\u202eltr\u202c", 2),
    ],
)
def test_counts_by_hand(text, count):
    assert count_suspicious_characters(text) == count


@given(st.text(st.characters(max_codepoint=0x24F, exclude_categories=["Cc"])))
def test_latin_texts_have_none(text):
    assert count_suspicious_characters(text.replace("\u00ad", "")) == 0


@given(st.text("abcxyzABC ,.", min_size=1), st.integers(0, 100), st.sampled_from(sorted(INVISIBLE_CHARACTERS)))
def test_each_invisible_character_beside_a_latin_letter_counts(text, at, character):
    at %= len(text)
    if text[at].isalpha():
        assert count_suspicious_characters(text[: at + 1] + character + text[at + 1 :]) == 1

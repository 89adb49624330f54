"""Misspellings: by hand with fixed dice, then the laws."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shaketable.core.protocols import TransformContext
from shaketable.core.seeding import make_item_rng
from shaketable.nlp.edit_distance import damerau_levenshtein
from shaketable.nlp.keyboard import ADJACENT_KEYS
from shaketable.nlp.words import NLTK_STOPWORDS
from shaketable.transforms import typos as m
from tests.transforms.scripted import Scripted

ONE_LETTER = [m.NeighbCharSwap(), m.RandomCharSub(), m.QwertyCharSub(), m.DropLetter(), m.DoubleLetter()]
SPACES = [m.SplitWord(), m.JoinWords()]
VOCABULARY = ["what", "is", "the", "durable", "medical", "equipment", "noon", "of", "42", "ww1", "Tea"]
WORDS = st.lists(st.sampled_from(VOCABULARY), max_size=7)


@pytest.mark.parametrize(
    ("edit", "text", "numbers", "expected"),
    [
        (m.NeighbCharSwap(), "what is durable", (0, 0), "what is udrable"),
        (m.NeighbCharSwap(), "what is durable", (0, 5), "what is durabel"),
        (m.NeighbCharSwap(), "noon", (0, 1), "nono"),  # of three pairs the middle one is equal
        (m.RandomCharSub(), "the tea", (0, 1, 0), "the taa"),
        (m.RandomCharSub(), "the tea", (0, 1, 4, 30, 26), "the tAa"),  # e and E are drawn again
        (m.QwertyCharSub(), "the tea", (0, 0, 1), "the yea"),
        (m.QwertyCharSub(), "the TEA", (0, 0, 1), "the YEA"),
        (m.QwertyCharSub(), "ww1", (0, 1, 0), "wq1"),
        (m.RealTypo(), "i receive it", (1, 0), "i recieve it"),
        (m.RealTypo(), "Receive it", (0, 0), "Recieve it"),
        (m.RealTypo(), "restaurants", (0, 1), "resturants"),
        (m.RealTypo(), "kitchens?", (0, 0), "kichens?"),
        (m.LookalikeChar(), "room", (0, 0), "r0om"),
        (m.LookalikeChar(), "room", (0, 2), "roorn"),
        (m.Phonetic(), "phone", (0, 0), "fone"),
        (m.Phonetic(), "knee", (0, 0), "nee"),
        (m.DropLetter(), "the boat", (0, 2), "the boa"),
        (m.DropLetter(), "ww1", (0, 0), "w1"),
        (m.DoubleLetter(), "the boat", (0, 1), "the booat"),
        (m.SplitWord(), "the notebook", (0, 2), "the note book"),
        (m.JoinWords(), "the red boat", (1,), "the redboat"),
    ],
)
def test_by_hand(edit, text, numbers, expected):
    assert edit.apply(text, Scripted(*numbers), TransformContext()) == expected


@pytest.mark.parametrize("edit", [*ONE_LETTER, m.LookalikeChar(), m.Phonetic(), m.SplitWord()], ids=repr)
@pytest.mark.parametrize("text", ["", "it is what it is", "1984", "東京", "🙂", "a"])
def test_nothing_to_misspell(edit, text):
    assert edit.apply(text, make_item_rng(0), TransformContext()) is None


def test_joining_needs_two_words_side_by_side():
    assert m.JoinWords().apply("boat", make_item_rng(0), TransformContext()) is None
    assert m.JoinWords().apply("boat, (lake)", make_item_rng(0), TransformContext()) is None


def test_real_typos_may_hit_stop_words_but_not_words_it_does_not_know():
    assert m.RealTypo().apply("the xyzzy", make_item_rng(0), TransformContext()) in ("teh xyzzy", "hte xyzzy")
    assert m.RealTypo().apply("xyzzy", make_item_rng(0), TransformContext()) is None


@pytest.mark.parametrize("edit", ONE_LETTER, ids=repr)
@given(words=WORDS, seed=st.integers(0, 999))
def test_one_letter_of_one_word_that_is_no_stop_word(edit, words, seed):
    text = " ".join(words)
    new = edit.apply(text, make_item_rng(seed), TransformContext())
    assume(new is not None)
    assert damerau_levenshtein(text, new) == 1
    (old, _), *others = [pair for pair in zip(words, new.split(), strict=True) if pair[0] != pair[1]]
    assert not others
    assert old not in NLTK_STOPWORDS


@pytest.mark.parametrize("edit", SPACES, ids=repr)
@given(words=WORDS, seed=st.integers(0, 999))
def test_spaces_come_and_go_and_letters_stay(edit, words, seed):
    new = edit.apply(" ".join(words), make_item_rng(seed), TransformContext())
    assert new is None or (new.replace(" ", "") == "".join(words) and abs(len(new.split()) - len(words)) == 1)


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=9), st.integers(0, 99))
def test_a_slip_on_the_keyboard_hits_a_key_beside(word, seed):
    assume(word not in NLTK_STOPWORDS)
    new = m.QwertyCharSub().apply(word, make_item_rng(seed), TransformContext())
    old, hit = next((a, b) for a, b in zip(word, new, strict=True) if a != b)
    assert hit in ADJACENT_KEYS[old]


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=9), st.integers(0, 99))
def test_lookalikes_are_ascii_by_default(word, seed):
    new = m.LookalikeChar().apply(word, make_item_rng(seed), TransformContext())
    assert new is None or new.isascii()


def collect(transform, word):
    """All results of a transform for a word."""
    return {transform.apply(word, make_item_rng(seed), TransformContext()) for seed in range(300)}


def test_lookalikes_look_alike():
    assert "determinatioh" not in collect(m.LookalikeChar(), "determination")


def test_soundalikes_sound_alike():
    """A double t or s before -ion or -ial would change the sound."""
    assert "evaluasion" in collect(m.Phonetic(), "evaluation")
    assert "evaluattion" not in collect(m.Phonetic(), "evaluation")
    assert "invassion" not in collect(m.Phonetic(), "invasion")
    assert "spattial" not in collect(m.Phonetic(), "spatial")
    assert {"wrritten", "writen"} & collect(m.Phonetic(), "written")
    assert "pilott" not in collect(m.Phonetic(), "pilot")
    assert "pillot" in collect(m.Phonetic(), "pilot")
    assert "visitting" in collect(m.Phonetic(), "visiting")


def test_beyond_ascii():
    new = {m.LookalikeChar(ascii=False).apply("canopy", make_item_rng(seed), TransformContext()) for seed in range(200)}
    assert {"canópy", "cаnopy"} <= new


def test_an_accent_is_put_on_one_vowel():
    context = TransformContext("boat")
    changed = {m.AccentLetter().apply("boat", make_item_rng(seed, "q"), context) for seed in range(20)}
    assert changed == {"bóat", "boát"}

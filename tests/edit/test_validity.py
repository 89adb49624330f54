"""What is valid, and of which kind a pair is: by hand."""

from __future__ import annotations

import numpy as np
import pytest

from shaketable.edit.taxonomy import CATEGORIES, KEEPING, category_of
from shaketable.edit.validity import Validity

ORIGINAL = "what is durable medical equipment"


@pytest.mark.parametrize(
    ("category", "text", "why"),
    [
        ("misspelling", "what is durable mdeical equipment", ""),
        ("misspelling", "what is durable medical equip ment", ""),
        ("misspelling", "what is strong medical equipment", "more than 2 letters changed"),
        ("ordering", "medical what is durable equipment", ""),
        ("ordering", "medical what is durable", "other words"),
        ("naturality", "durable medical equipment", ""),
        ("naturality", "WHAT IS DURABLE MEDICAL EQUIPMENT", ""),
        ("naturality", "equipment", "lost durable, medical"),
        ("naturality", "durable medical equipment with", "ends in 'with'"),
        ("naturality", "durable medical equipment hospital invoice", "brought in hospital, invoice"),
        ("paraphrasing", "what is durable medical apparatus", ""),
        ("paraphrasing", "which durable medical equipment", ""),
        ("paraphrasing", "What is durable medical equipment?", "the original but for case and punctuation"),
        ("paraphrasing", "what is durable medical elephant", "no synonym known: elephant"),
        ("paraphrasing", "what is equipment", "lost durable, medical"),
        ("generalisation-specialisation", "tea", ""),
        ("aspect-change", "tea", ""),
        *((category, " ", "empty") for category in CATEGORIES),
        *((category, f"  {ORIGINAL} ", "the original") for category in CATEGORIES),
    ],
)
def test_by_hand(category, text, why):
    assert Validity().judge(category, ORIGINAL, text) == why


def test_a_similarity_function_is_asked_once_and_only_where_words_deny_the_meaning():
    asked = []

    def similarity(left: list[str], right: list[str]) -> np.ndarray:
        asked.append(list(zip(left, right, strict=True)))
        return np.array([0.95, 0.3])

    cases = [
        ("misspelling", ORIGINAL, "what is strong medical equipment"),
        ("paraphrasing", ORIGINAL, "what is durable medical apparatus"),
        ("paraphrasing", ORIGINAL, "what is durable medical elephant"),
        ("naturality", ORIGINAL, "equipment"),
        ("paraphrasing", ORIGINAL, f"{ORIGINAL}?"),
        ("paraphrasing", ORIGINAL, " "),
    ]
    whys = Validity(similarity=similarity).judge_all(cases)
    assert whys[:4] == ["more than 2 letters changed", "", "", "lost durable, medical; similarity 0.30"]
    assert whys[4:] == ["the original but for case and punctuation", "empty"]
    assert asked == [[(ORIGINAL, cases[2][2]), (ORIGINAL, "equipment")]]
    assert Validity(similarity=similarity).judge_all(cases[:2]) == whys[:2]
    assert len(asked) == 1


def test_very_long_texts_are_judged_at_once():
    text = "boat " * 2_000
    assert Validity().judge("misspelling", text, text + "x") == ""
    assert Validity().judge("misspelling", text, "tea " * 2_500) != ""


@pytest.mark.parametrize(
    ("left", "right", "category"),
    [
        ("raspberry pi", "raspeberry pi", "misspelling"),
        ("the note book", "the notebook", "misspelling"),
        ("weather because rain", "weather becuase rain", "misspelling"),
        ("how does zinc relate to wilson's disease", "zinc wilson's disease", "naturality"),
        ("what is love", "WHAT IS LOVE?", "naturality"),
        ("carotid cavernous fistula treatment", "treatment carotid cavernous fistula", "ordering"),
        ("flu remedies", "influenza cures", "paraphrasing"),
        ("popular food in switzerland", "food in switzerland", "generalisation-specialisation"),
        ("american civil war", "number of battles in south carolina during civil war", "generalisation-specialisation"),
        ("what types of spiders can bite you", "what treatment of spiders can bite you", "aspect-change"),
        ("tea", " tea ", ""),
        ("", "", ""),
    ],
)
def test_the_kind_of_a_pair(left, right, category):
    assert category_of(left, right) == category


@pytest.mark.parametrize("left", ["flu symptoms", "what is love?", "a red boat", "the of", "東京 天気", ""])
@pytest.mark.parametrize("right", ["flu signs", "love", "boat red a", "", "is", "🙂"])
def test_the_kind_does_not_depend_on_direction(left, right):
    assert category_of(left, right) == category_of(right, left)
    assert category_of(left, right) in (*CATEGORIES, "")


def test_four_of_six_keep_the_meaning():
    assert set(KEEPING) < set(CATEGORIES)
    assert len(KEEPING) == 4

"""Changes of queries and documents in other languages."""

from __future__ import annotations

import unicodedata

import pytest

from shaketable.core.documents import Query, Variant
from shaketable.core.languages import LANGUAGES
from shaketable.core.protocols import TransformContext
from shaketable.core.registries import TRANSFORMS
from shaketable.core.seeding import make_item_rng
from shaketable.nlp.keyboard import LAYOUTS, get_adjacent_keys
from shaketable.transforms.categories import MISSPELLING, MIXED_LANGUAGES, SCRIPT
from shaketable.transforms.document_languages import add_direction_marks, decompose
from shaketable.transforms.presets import list_default_methods, list_language_methods, select_transforms
from shaketable.transforms.validity import Validity
from shaketable.transforms.vary import build_human_variations, vary

GERMAN = TransformContext("Zahnarzt für Kinder", language="de", translations={"en": "dentist for children"})


def apply(name: str, text: str, language: str = "", seed: int = 0, english: str = "") -> str | None:
    context = TransformContext(text, language=language, translations={"en": english} if english else {})
    return TRANSFORMS.build(name).apply(text, make_item_rng(seed, "item"), context)


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("Größe der Tür", "Grosse der Tur"),
        ("łódź i źródło", "lodz i zrodlo"),
        ("İstanbul'da ışık", "Istanbul'da isik"),
        ("мёд и йод", "мед и йод"),
        ("أحمد", "احمد"),
        ("cafe\u0301", "cafe"),
    ],
)
def test_accents_are_left_out_as_people_type(text, typed):
    assert apply("strip_accents", text) == typed
    assert Validity().judge(SCRIPT, text, typed) == ""


@pytest.mark.parametrize("text", ["plain words", "がぎぐ", "йод", "चाय की खेती"])
def test_letters_of_their_own_are_no_accents(text):
    assert apply("strip_accents", text) is None


@pytest.mark.parametrize(
    ("text", "language", "latin"),
    [("рынок с мёдом", "ru", "rynok s medom"), ("Küche", "de", "Kueche"), ("图书馆", "zh", "tushuguan")],
)
def test_a_query_in_latin_letters_is_valid(text, language, latin):
    assert apply("transliterate", text, language) == latin
    assert Validity().judge(SCRIPT, text, latin) == ""
    assert Validity().judge(SCRIPT, text, latin + "x") != ""


@pytest.mark.parametrize(("text", "language"), [("الملح", "ar"), ("चाय", "hi"), ("図書館", "ja"), ("bread", "en")])
def test_scripts_without_vowels_and_readings_are_not_transliterated(text, language):
    assert apply("transliterate", text, language) is None


@pytest.mark.parametrize("language", [code for code, one in LANGUAGES.items() if one.layout])
def test_every_layout_of_a_language_exists_and_its_neighbours_are_mutual(language):
    adjacent = get_adjacent_keys(LANGUAGES[language].layout)
    assert all(key in adjacent[other] for key, others in adjacent.items() for other in others)
    assert all(len(row) == len(set(row)) for row, _ in LAYOUTS[LANGUAGES[language].layout])


@pytest.mark.parametrize(
    ("text", "language"), [("прямой поезд", "ru"), ("Brücke aus Stein", "de"), ("تحمل الملح", "ar"), ("नमक ढोते", "hi")]
)
def test_a_slip_hits_an_adjacent_key_of_the_language(text, language):
    adjacent = get_adjacent_keys(LANGUAGES[language].layout)
    for seed in range(10):
        typed = apply("keyboard_slip", text, language, seed)
        assert typed is not None
        (changed,) = [(old, new) for old, new in zip(text, typed, strict=True) if old != new]
        assert changed[1].lower() in adjacent[changed[0].lower()]
        assert Validity().judge(MISSPELLING, text, typed) == ""


def test_without_a_language_there_is_no_keyboard():
    assert apply("keyboard_slip", "Brücke aus Stein") is None
    assert apply("keyboard_slip", "图书馆闭馆", "zh") is None


def test_german_compounds_are_split_and_joined():
    assert apply("split_compound", "Termin beim Zahnarzt", "de") == "Termin beim Zahn Arzt"
    assert apply("join_compound", "Zahn Arzt am Sonntag", "de") == "Zahnarzt am Sonntag"
    assert apply("split_compound", "Termin beim Zahnarzt", "nl") is None
    assert apply("split_compound", "am Montag geschlossen", "de") is None
    assert apply("join_compound", "Arzt am Sonntag", "de") is None


def test_width_changes_for_languages_with_such_keyboards():
    assert apply("change_width", "PCのガラス", "ja") == "ＰＣのｶﾞﾗｽ"
    assert Validity().judge(SCRIPT, "PCのガラス", "ＰＣのｶﾞﾗｽ") == ""
    assert apply("change_width", "PC", "de") is None


def test_one_content_word_of_another_language_is_added():
    mixed = apply("mix_language", "Zahnarzt für Kinder", "de", english="the dentist for children")
    assert mixed in ("Zahnarzt für Kinder dentist", "Zahnarzt für Kinder children")
    assert Validity().judge(MIXED_LANGUAGES, "Zahnarzt für Kinder", mixed) == ""
    assert Validity().judge(MIXED_LANGUAGES, "Zahnarzt für Kinder", "Zahnarzt Kinder dentist") != ""
    assert apply("mix_language", "Zahnarzt für Kinder", "de") is None


def test_the_parallel_query_is_asked():
    assert apply("other_language", "Zahnarzt", "de", english="dentist") == "dentist"
    assert apply("other_language", "dentist", "en", english="dentist") is None


def test_no_default_variation_is_for_other_languages():
    methods = list_language_methods()
    assert len(methods) == 8
    assert not set(methods) & set(list_default_methods())
    chosen, lacking = select_transforms(categories=["script"])
    assert [TRANSFORMS.spec(one) for one in chosen] == ["strip_accents", "transliterate", "change_width"]
    assert not lacking
    assert "keyboard_slip" not in [TRANSFORMS.spec(one) for one in select_transforms(categories=["misspelling"])[0]]


def test_variations_know_the_language_of_their_query():
    queries = {"de": Query("Brücke aus Stein", language="de"), "?": Query("Brücke aus Stein")}
    made = vary(queries, [TRANSFORMS.build("keyboard_slip")], lower=False)
    assert [one.qid for one in made] == ["de"]


def test_a_parallel_query_is_no_variation():
    variants = {"q": (Variant("dentist", "", "en"), Variant("zahnärzte", "paraphrasing"))}
    assert [one.text for one in build_human_variations({"q": Query("zahnarzt")}, variants)] == ["zahnärzte"]


def test_changes_of_documents_keep_the_letters():
    text = "قرب موقف الحافلات صيدلية"
    marked = add_direction_marks(text)
    assert [c for c in marked if unicodedata.category(c) != "Cf"] == list(text)
    assert marked != text
    assert unicodedata.normalize("NFC", decompose("Größe")) == "Größe"

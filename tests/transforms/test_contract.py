"""Every registered transform obeys the contract, if its resources are installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.protocols import TransformContext
from shaketable.core.registries import TRANSFORMS
from shaketable.core.seeding import make_item_rng
from shaketable.testing import check_transform
from shaketable.transforms.categories import CATEGORIES, DOCUMENT, LANGUAGE_CATEGORIES
from shaketable.transforms.noise import CharNoise
from shaketable.transforms.synonyms import SynSwap, WordEmbedSynSwap, WordNetSynSwap
from shaketable.transforms.typos import LookalikeChar

MODELS = {"desc_to_title", "back_translation", "paraphrase", "add_queries"}
RESOURCES = {"wordnet_syn_swap", "word_embed_syn_swap"}
OWN = {"function"}  # a function of the user's: tests/edit/test_function.py
RULES = sorted(set(TRANSFORMS) - MODELS - RESOURCES - OWN)


@pytest.mark.parametrize("name", RULES)
def test_rules_keep_the_contract(name):
    check_transform(TRANSFORMS.build(name))


@pytest.mark.parametrize("edit", [CharNoise(2), CharNoise(5), LookalikeChar(ascii=False), SynSwap("random")], ids=repr)
def test_so_do_their_other_settings(edit):
    check_transform(edit)


@pytest.mark.parametrize("choice", ["first", "random"])
def test_wordnet_keeps_the_contract(choice, shared_data, monkeypatch):
    monkeypatch.setenv("NLTK_DATA", str(shared_data / "nltk_data"))
    check_transform(WordNetSynSwap(choice))


def test_neighbours_keep_the_contract(tmp_path: Path):
    (tmp_path / "near.json").write_text(
        json.dumps({"boat": ["ship", "vessel"], "tea": ["tea", "infusion"], "panic": []})
    )
    check_transform(WordEmbedSynSwap(file=str(tmp_path / "near.json")))
    check_transform(WordEmbedSynSwap("random", file=str(tmp_path / "near.json")))


@pytest.mark.parametrize("name", sorted(set(TRANSFORMS) - OWN))
def test_every_query_transform_has_a_category(name):
    known = (*CATEGORIES, *LANGUAGE_CATEGORIES)
    assert TRANSFORMS.get_class(name).category in (known if name != "add_queries" else (DOCUMENT,))


@pytest.mark.parametrize("name", RULES)
@given(text=st.text(max_size=60), seed=st.integers(0, 9))
def test_no_text_breaks_a_rule(name, text, seed):
    edit = TRANSFORMS.build(name)
    once = edit.apply(text, make_item_rng(seed, "item"), TransformContext())
    assert once == edit.apply(text, make_item_rng(seed, "item"), TransformContext())
    assert once is None or (once.strip() and once.split() != text.split())

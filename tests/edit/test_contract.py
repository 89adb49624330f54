"""Every edit of the catalogue keeps the contract; those that need a resource keep it where the resource is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.chance import draws_for
from shaketable.edit.attack import CharAttack
from shaketable.edit.misspelling import LookalikeChar
from shaketable.edit.paraphrasing import SynSwap, WordEmbedSynSwap, WordNetSynSwap
from shaketable.edit.taxonomy import CATEGORIES, DOCUMENT
from shaketable.registry import EDITS
from shaketable.testing import check_edit
from shaketable.types import Context

MODELS = {"desc_to_title", "back_translation", "paraphrase", "add_queries"}
RESOURCES = {"wordnet_syn_swap", "word_embed_syn_swap"}
OWN = {"function"}  # a function of the user's: tests/edit/test_function.py
RULES = sorted(set(EDITS) - MODELS - RESOURCES - OWN)


@pytest.mark.parametrize("name", RULES)
def test_rules_keep_the_contract(name):
    check_edit(EDITS.build(name))


@pytest.mark.parametrize(
    "edit", [CharAttack(2), CharAttack(5), LookalikeChar(ascii=False), SynSwap("random")], ids=repr
)
def test_so_do_their_other_settings(edit):
    check_edit(edit)


@pytest.mark.parametrize("choice", ["first", "random"])
def test_wordnet_keeps_the_contract(choice, shared_data, monkeypatch):
    monkeypatch.setenv("NLTK_DATA", str(shared_data / "nltk_data"))
    check_edit(WordNetSynSwap(choice))


def test_neighbours_keep_the_contract(tmp_path: Path):
    (tmp_path / "near.json").write_text(
        json.dumps({"boat": ["ship", "vessel"], "tea": ["tea", "infusion"], "panic": []})
    )
    check_edit(WordEmbedSynSwap(file=str(tmp_path / "near.json")))
    check_edit(WordEmbedSynSwap("random", file=str(tmp_path / "near.json")))


@pytest.mark.parametrize("name", sorted(set(EDITS) - OWN))
def test_every_edit_of_queries_has_a_place_in_the_taxonomy(name):
    assert EDITS.class_of(name).category in (CATEGORIES if name != "add_queries" else (DOCUMENT,))


@pytest.mark.parametrize("name", RULES)
@given(text=st.text(max_size=60), seed=st.integers(0, 9))
def test_no_text_breaks_a_rule(name, text, seed):
    edit = EDITS.build(name)
    once = edit.apply(text, draws_for(seed, "item"), Context())
    assert once == edit.apply(text, draws_for(seed, "item"), Context())
    assert once is None or (once.strip() and once.split() != text.split())

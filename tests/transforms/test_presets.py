"""Which methods a run has."""

from __future__ import annotations

import pytest

from shaketable.core.documents import Query
from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.registries import TRANSFORMS
from shaketable.nlp.resources import GENERATOR_MODELS
from shaketable.tasks.query_typos import QueryTypos
from shaketable.transforms.add_queries import AddQueries
from shaketable.transforms.presets import (
    NOISE_TRANSFORMS,
    PAPER_004,
    list_default_methods,
    list_language_methods,
    list_presets,
    select_transforms,
)
from shaketable.transforms.vary import vary


@pytest.fixture(autouse=True)
def nothing_around(tmp_path, monkeypatch):
    """Hide WordNet, vectors and models of this machine."""
    for name in ("NLTK_DATA", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def names(edits) -> list[str]:
    return [TRANSFORMS.spec(edit) for edit in edits]


def test_a_default_run_has_every_rule_and_neither_attacks_nor_models():
    left_out = {*NOISE_TRANSFORMS, *GENERATOR_MODELS, *list_language_methods(), "function", "add_queries"}
    assert set(list_default_methods()) == set(TRANSFORMS) - left_out
    edits, lacking = select_transforms()
    assert set(names(edits)) | set(lacking) == set(list_default_methods())
    assert set(lacking) == {"wordnet_syn_swap", "word_embed_syn_swap"}


def test_the_methods_of_the_paper_and_their_missing_resources():
    """Table 3: three misspellings, two naturalities, one ordering, four paraphrasings."""
    assert len(PAPER_004) == 10
    kinds = [TRANSFORMS.get_class(name).category for name in list_presets()["paper_004"]]
    assert [kinds.count(kind) for kind in dict.fromkeys(kinds)] == [3, 2, 1, 4]
    edits, lacking = select_transforms(["paper_004"])
    assert set(names(edits)) | set(lacking) == set(PAPER_004.values())
    assert set(lacking) == {*GENERATOR_MODELS, "word_embed_syn_swap", "wordnet_syn_swap"}
    assert "t5-base" in lacking["desc_to_title"]


def test_names_and_lists_together_each_method_once():
    edits, lacking = select_transforms(["char_noise(edits=2)", "random_order_swap"], ["ordering"])
    assert names(edits) == ["char_noise(edits=2)", "random_order_swap"]
    assert not lacking


def test_a_category_has_no_attacks():
    edits, _ = select_transforms(categories=["misspelling"])
    assert "drop_letter" in names(edits)
    assert not set(NOISE_TRANSFORMS) & set(names(edits))


def test_a_document_transform_varies_no_query():
    assert "add_queries" not in {name for methods in list_presets().values() for name in methods}
    with pytest.raises(BadInput, match="add_queries is a transform of documents and cannot vary a query"):
        select_transforms(["add_queries"])
    with pytest.raises(BadInput, match="is a transform of documents"):
        vary({"q": Query("oak")}, [AddQueries(n=2)])
    with pytest.raises(BadInput, match=r"add_queries\(n=2\) is a transform of documents"):
        QueryTypos(transforms=("char_noise", "add_queries(n=2)"))
    with pytest.raises(UnknownName, match="no category is called 'document'"):
        select_transforms(categories=["document"])


def test_an_unavailable_named_transform_is_an_error():
    with pytest.raises(BadInput, match="back_translation is not available: the model facebook/m2m100_418M is not at"):
        select_transforms(["back_translation"])
    with pytest.raises(UnknownName, match="did you mean misspelling"):
        select_transforms(categories=["mispelling"])
    with pytest.raises(BadInput, match="no transform has the category 'aspect-change'"):
        select_transforms(categories=["aspect-change"])

"""Which methods a run has."""

from __future__ import annotations

import pytest

from shaketable.edit.expand import AddQueries
from shaketable.edit.methods import ATTACKS, PAPER_004, chosen, default_methods, presets
from shaketable.edit.vary import vary
from shaketable.errors import BadInput, UnknownName
from shaketable.registry import EDITS
from shaketable.task.query_attack import QueryAttack
from shaketable.text.resources import GENERATORS
from shaketable.types import Query


@pytest.fixture(autouse=True)
def nothing_around(tmp_path, monkeypatch):
    """No WordNet, no vectors and no models, whatever this machine has."""
    for name in ("NLTK_DATA", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def names(edits) -> list[str]:
    return [EDITS.spec(edit) for edit in edits]


def test_a_default_run_has_every_rule_and_neither_attacks_nor_models():
    assert set(default_methods()) == set(EDITS) - set(ATTACKS) - set(GENERATORS) - {"function", "add_queries"}
    edits, lacking = chosen()
    assert set(names(edits)) | set(lacking) == set(default_methods())
    assert set(lacking) == {"wordnet_syn_swap", "word_embed_syn_swap"}


def test_the_methods_of_the_paper_and_what_they_lack():
    """Table 3: three misspellings, two naturalities, one ordering, four paraphrasings."""
    assert len(PAPER_004) == 10
    kinds = [EDITS.class_of(name).category for name in presets()["paper_004"]]
    assert [kinds.count(kind) for kind in dict.fromkeys(kinds)] == [3, 2, 1, 4]
    edits, lacking = chosen(["paper_004"])
    assert set(names(edits)) | set(lacking) == set(PAPER_004.values())
    assert set(lacking) == {*GENERATORS, "word_embed_syn_swap", "wordnet_syn_swap"}
    assert "t5-base" in lacking["desc_to_title"]


def test_names_and_lists_together_each_method_once():
    edits, lacking = chosen(["char_attack(edits=2)", "random_order_swap"], ["ordering"])
    assert names(edits) == ["char_attack(edits=2)", "random_order_swap"]
    assert not lacking


def test_a_category_has_no_attacks():
    edits, _ = chosen(categories=["misspelling"])
    assert "drop_letter" in names(edits)
    assert not set(ATTACKS) & set(names(edits))


def test_an_edit_of_documents_varies_no_query():
    assert "add_queries" not in {name for methods in presets().values() for name in methods}
    with pytest.raises(BadInput, match="add_queries is an edit of documents, so it cannot vary a query"):
        chosen(["add_queries"])
    with pytest.raises(BadInput, match="is an edit of documents"):
        vary({"q": Query("oak")}, [AddQueries(n=2)])
    with pytest.raises(BadInput, match=r"add_queries\(n=2\) is an edit of documents"):
        QueryAttack(attacks=("char_attack", "add_queries(n=2)"))
    with pytest.raises(UnknownName, match="no category is called 'document'"):
        chosen(categories=["document"])


def test_what_was_named_must_work():
    with pytest.raises(BadInput, match="back_translation cannot work here: the model facebook/m2m100_418M is not at"):
        chosen(["back_translation"])
    with pytest.raises(UnknownName, match="did you mean misspelling"):
        chosen(categories=["mispelling"])
    with pytest.raises(BadInput, match="no method makes variations of the category 'aspect-change'"):
        chosen(categories=["aspect-change"])

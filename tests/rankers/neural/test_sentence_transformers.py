"""st:FOLDER agrees with sentence-transformers, and objects of sentence-transformers and others are rankers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from weights import BGE_SMALL

from shaketable.core.documents import Collection, Slate
from shaketable.core.errors import BadInput
from shaketable.core.registries import RANKERS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.datasets.load import load
from shaketable.rankers.neural.models import SentenceTransformer
from shaketable.rankers.python import adapt
from shaketable.testing import check_ranker
from tests.rankers.neural import tiny
from tests.rankers.neural.tiny import SLATES

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
NOWHERE = Collection("empty", MemoryCorpus({}), {})
BGE_PREFIX = "Represent this sentence for searching relevant passages: "


@pytest.fixture(scope="module")
def library():
    return pytest.importorskip("sentence_transformers", reason="the dependency group frameworks is not installed")


@pytest.fixture(scope="module")
def bge_small(real_models) -> Path:
    """The real encoder bge-small-en-v1.5."""
    if BGE_SMALL not in real_models:
        pytest.skip(f"{BGE_SMALL} is not built: make models")
    return real_models[BGE_SMALL]


@pytest.fixture(scope="module")
def real_slates() -> list[Slate]:
    """Lists of real texts: short, long and truncated ones."""
    collection = load("sample?split=test")
    docs = tuple(collection.docs[docno] for docno in list(collection.docs)[:24])
    return [Slate(query.text, docs) for query in list(collection.queries.values())[:4]]


def compare_with_library(library, folder: Path, slates: list[Slate], spec: SentenceTransformer, **settings) -> float:
    """Return the largest difference from the cosines of sentence-transformers."""
    model = library.SentenceTransformer(str(folder), device="cpu", local_files_only=True, **settings)
    mine = spec.open(NOWHERE).score(slates)
    theirs = adapt(model, NOWHERE, "library").score(slates)
    return max(float(np.abs(one - other).max()) for one, other in zip(mine, theirs, strict=True))


def test_cosines_of_minilm_are_those_of_the_library(library, minilm, real_slates):
    assert compare_with_library(library, minilm, real_slates, SentenceTransformer(str(minilm))) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["", BGE_PREFIX], ids=["plain", "prefix"])
def test_cosines_of_bge_small_are_those_of_the_library(library, bge_small, real_slates, prefix):
    spec = SentenceTransformer(str(bge_small), query_prefix=prefix)
    assert compare_with_library(library, bge_small, real_slates, spec, prompts={"query": prefix}) < 1e-6


@pytest.mark.parametrize("pooling", ["cls", "mean", "lasttoken", "max"])
def test_poolings_prompts_and_lower_case_are_those_of_the_library(library, tmp_path, pooling):
    prompts = {"query": "fir: ", "document": "elm: "}
    folder = tiny.sentence_transformer(tmp_path, {"embedding_dimension": 32, "pooling_mode": pooling}, prompts=prompts)
    tiny.write(folder / "sentence_bert_config.json", {"max_seq_length": 24, "do_lower_case": True})
    slates = [Slate(slate.query.upper(), slate.docs) for slate in SLATES]
    assert compare_with_library(library, folder, slates, SentenceTransformer(str(folder))) < 1e-6


def make_folder(tmp_path: Path, **reading: object) -> Path:
    pooling = {"embedding_dimension": 32, "pooling_mode": "mean"}
    folder = tiny.sentence_transformer(tmp_path, pooling, prompts={"query": "fir: "})
    tiny.write(folder / "sentence_bert_config.json", reading)
    return folder


def test_lower_case_comes_before_the_tokenizer(tmp_path):
    """The tiny tokenizer knows lower-case words only, unless its normaliser lower-cases; it does not here."""
    folder = make_folder(tmp_path, do_lower_case=True)
    text = (folder / "tokenizer.json").read_text()
    (folder / "tokenizer.json").write_text(text.replace('"lowercase": true', '"lowercase": false'))
    upper, lower = (
        SentenceTransformer(str(folder), query_prefix="").open(NOWHERE).score([Slate(query, SLATES[0].docs)])[0]
        for query in ("OAK", "oak")
    )
    assert upper.tolist() == lower.tolist()
    tiny.write(folder / "sentence_bert_config.json", {"do_lower_case": False})
    changed = SentenceTransformer(str(folder), query_prefix="").open(NOWHERE).score([Slate("OAK", SLATES[0].docs)])[0]
    assert changed.tolist() != lower.tolist()


def test_prefixes_of_a_spec_replace_those_of_the_files(tmp_path):
    folder = make_folder(tmp_path)
    own, other, none = (
        RANKERS.build(f"st(name={str(folder)!r}{more})").open(NOWHERE)
        for more in ("", ", query_prefix='elm: ', passage_prefix='oak '", ", query_prefix=''")
    )
    assert own.net.shape.query_prefix == "fir: "
    assert (other.net.shape.query_prefix, other.net.shape.passage_prefix) == ("elm: ", "oak ")
    assert none.net.shape.query_prefix == ""
    assert len({own.fingerprint, other.fingerprint, none.fingerprint}) == 3
    (with_prefix,) = none.score([Slate(f"fir: {SLATES[0].query}", SLATES[0].docs)])
    assert own.score(SLATES[:1])[0].tolist() == pytest.approx(with_prefix.tolist(), abs=1e-6)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [({"query_prefix": 3}, "query_prefix should be a text"), ({"max_length": 4}, "max_length should be 8 or more")],
)
def test_wrong_parameters_are_named(parameters, said):
    with pytest.raises(BadInput, match=said):
        SentenceTransformer("folder", **parameters)


def test_a_cross_encoder_is_a_pointwise_ranker(library, tmp_path):
    folder = tiny.bert(tmp_path)
    model = library.CrossEncoder(str(folder), device="cpu", max_length=64, local_files_only=True)
    ranker = adapt(model, NOWHERE, "mine")
    expected = RANKERS.build(f"hf:{folder}").open(NOWHERE).score(SLATES)
    logit = [np.log(scores / (1 - scores)) for scores in ranker.score(SLATES)]  # the library adds a sigmoid
    for mine, theirs in zip(logit, expected, strict=True):
        assert mine == pytest.approx(theirs, abs=1e-4)
    assert ranker.pointwise is True
    check_ranker(ranker)


def test_a_classifier_of_two_labels_gets_advice(library, tmp_path):
    model = library.CrossEncoder(str(tiny.bert(tmp_path, logits=2)), device="cpu", local_files_only=True)
    with pytest.raises(BadInput, match="has 2 labels, but a ranker needs one score per pair"):
        adapt(model, NOWHERE, "mine")


def test_a_bi_encoder_is_a_pointwise_ranker(library, tmp_path):
    folder = make_folder(tmp_path)
    model = library.SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    ranker = adapt(model, NOWHERE, "mine")
    assert ranker.pointwise is True
    check_ranker(ranker)


def test_the_rerankers_library_ranks_as_its_model(tmp_path):
    rerankers = pytest.importorskip("rerankers", reason="the dependency group frameworks is not installed")
    folder = tiny.bert(tmp_path)
    model = rerankers.Reranker(str(folder), model_type="cross-encoder", device="cpu", verbose=0)
    ranker = adapt(model, NOWHERE, "mine")
    slates = SLATES[:2]
    for mine, theirs in zip(
        ranker.score(slates), RANKERS.build(f"hf:{folder}").open(NOWHERE).score(slates), strict=True
    ):
        assert mine == pytest.approx(theirs, abs=1e-4)
    assert ranker.pointwise is None


def test_the_reranker_of_llama_index_ranks_as_its_model(library, tmp_path):
    pytest.importorskip("llama_index.core", reason="the dependency group frameworks is not installed")
    from llama_index.core.postprocessor import SentenceTransformerRerank

    folder = tiny.bert(tmp_path)
    ranker = adapt(SentenceTransformerRerank(model=str(folder), top_n=2, device="cpu"), NOWHERE, "mine")
    (mine,) = ranker.score(SLATES[1:2])
    (theirs,) = adapt(library.CrossEncoder(str(folder), device="cpu"), NOWHERE, "model").score(SLATES[1:2])
    best = np.argsort(-theirs)[:2]
    assert mine[best] == pytest.approx(theirs[best], abs=1e-6)
    assert ranker.remark == "1 of 1 lists lacked documents (1 in all), which are ranked last"

"""Bi-encoders: vectors as transformers makes them, sentence-transformers' files read right, and exact search."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from shaketable.core.documents import Doc, rank_docnos
from shaketable.core.errors import BadInput
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp.checkpoints import silence_transformers
from shaketable.rankers.neural import dense
from shaketable.rankers.neural import vectors as shelves
from shaketable.rankers.neural.dense import BiEncoder, read_shape
from shaketable.rankers.neural.scoring import make_ranker
from shaketable.rankers.neural.shapes import DenseShape
from shaketable.rankers.neural.vectors import VectorStore
from shaketable.testing import check_ranker, check_retriever
from tests.processes import in_a_process
from tests.rankers.neural import tiny
from tests.rankers.neural.tiny import SLATES
from tests.toys import text

DOCS = MemoryCorpus({f"d{i}": Doc(text(i % 30, 1 + i % 30 % 9)) for i in range(40)} | {"empty": Doc("")})


def ranker(net, corpus=DOCS):
    return make_ranker("tiny", "mark", net, corpus)


def directly(folder, slates, limit, pool, query_prefix="", passage_prefix=""):
    """Each text alone, by transformers."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with silence_transformers():
        model = AutoModel.from_pretrained(folder).eval()

    def encode(read):
        batch = tokenizer(read, truncation=True, max_length=limit, return_tensors="pt")
        with torch.inference_mode():
            return pool(model(**batch).last_hidden_state[0])

    cosine = torch.nn.CosineSimilarity(dim=0)
    return np.array(
        [
            cosine(encode(query_prefix + slate.query), encode(passage_prefix + doc.text)).item()
            for slate in slates
            for doc in slate.docs
        ]
    )


POOLS = {
    "mean": lambda states: states.mean(0),
    "cls": lambda states: states[0],
    "lasttoken": lambda states: states[-1],
    "max": lambda states: states.max(0).values,
}


@pytest.mark.parametrize("pooling", dense.POOLINGS)
def test_agrees_with_transformers(tmp_path, pooling):
    folder = tiny.encoder(tmp_path)
    net = BiEncoder.from_checkpoint(str(folder), DenseShape(max_length=24, pooling=pooling))
    expected = directly(folder, SLATES, 24, POOLS[pooling])
    assert np.concatenate(ranker(net).score(SLATES)) == pytest.approx(expected, abs=1e-5)
    pairs = [(slate.query, doc.text) for slate in SLATES for doc in slate.docs]
    assert net(**net.collate(net.prepare(pairs))).detach().numpy() == pytest.approx(expected, abs=1e-5)


def test_agrees_with_transformers_on_real_weights(minilm):
    net = BiEncoder.from_checkpoint("minilm", DenseShape(max_length=256))
    expected = directly(minilm, SLATES, 256, POOLS["mean"])
    assert np.concatenate(ranker(net).score(SLATES)) == pytest.approx(expected, abs=1e-5)


def test_reads_the_files_of_sentence_transformers(minilm):
    assert read_shape(minilm) == DenseShape(max_length=256, pooling="mean", cosine=True)


@pytest.mark.parametrize("pooling", [{"pooling_mode_cls_token": True}, {"pooling_mode": "cls"}], ids=["old", "new"])
def test_pooling_and_prompts_are_those_of_the_files(tmp_path, pooling):
    prompts = {"query": "fir: ", "document": "elm: "}
    folder = tiny.sentence_transformer(tmp_path, pooling, prompts=prompts)
    net = BiEncoder.from_checkpoint(str(folder), read_shape(folder))
    assert net.shape == DenseShape(
        max_length=64, pooling="cls", cosine=True, query_prefix="fir: ", passage_prefix="elm: "
    )
    expected = directly(folder, SLATES, 64, POOLS["cls"], "fir: ", "elm: ")
    assert np.concatenate(ranker(net).score(SLATES)) == pytest.approx(expected, abs=1e-5)


def test_a_dot_product_is_not_normalised(tmp_path):
    folder = tiny.sentence_transformer(tmp_path, {"pooling_mode": "mean"}, similarity_fn_name="dot")
    net = BiEncoder.from_checkpoint(str(folder), read_shape(folder))
    (vector,) = ranker(net).encode_texts(["oak"])
    assert not net.shape.cosine
    assert np.linalg.norm(vector) > 1.1


@pytest.mark.parametrize(
    ("pooling", "about", "sentence"),
    [
        ({"pooling_mode": "weightedmean"}, {}, "pools its tokens by weightedmean"),
        ({"pooling_mode": ["cls", "mean"]}, {}, r"pools its tokens by \['cls', 'mean'\]"),
        ({}, {"similarity_fn_name": "euclidean"}, "compares by euclidean"),
        ({"include_prompt": False}, {"prompts": {"query": "q: "}}, "leaves its prompts out"),
    ],
)
def test_unsupported_settings_are_refused(tmp_path, pooling, about, sentence):
    with pytest.raises(BadInput, match=sentence + ".*, which st:NAME does not support"):
        read_shape(tiny.sentence_transformer(tmp_path, pooling, **about))


def test_other_layers_and_no_layers_are_refused(tmp_path):
    folder = tiny.sentence_transformer(tmp_path, {})
    modules = json.loads((folder / "modules.json").read_text())
    tiny.write(folder / "modules.json", [*modules, {"type": "sentence_transformers.models.Dense", "path": "2_Dense"}])
    with pytest.raises(BadInput, match="has a layer Transformer or Pooling or Dense, which st:NAME does not support"):
        read_shape(folder)
    (folder / "modules.json").unlink()
    with pytest.raises(BadInput, match="not a sentence-transformers model"):
        read_shape(folder)
    (folder / "modules.json").write_text("[{")
    with pytest.raises(BadInput, match=r"modules.json: is not JSON"):
        read_shape(folder)


def test_an_unknown_pooling_is_refused(tmp_path):
    with pytest.raises(BadInput, match="there is no pooling 'median'; there are mean, cls, lasttoken, max"):
        BiEncoder.from_checkpoint(str(tiny.encoder(tmp_path)), DenseShape(max_length=0, pooling="median"))


def test_search_is_exact_and_ties_go_to_the_higher_docno(tmp_path):
    opened = ranker(BiEncoder.from_checkpoint(str(tiny.encoder(tmp_path)), DenseShape(max_length=0)))
    queries = [text(i, 2) for i in range(5)]
    vectors = {docno: opened.encode_texts([doc.text])[0][0].astype(np.float64) for docno, doc in DOCS.items()}
    for query, found in zip(queries, opened.search(queries, 12), strict=True):
        (vector,) = opened.encode_queries([query])[0].astype(np.float64)
        scores = {docno: float(np.float32(other @ vector)) for docno, other in vectors.items()}
        assert list(found) == rank_docnos(scores)[:12]
        assert list(found.values()) == pytest.approx([scores[docno] for docno in found], abs=1e-6)


def test_scores_of_search_are_scores_of_slates(tmp_path):
    opened = ranker(BiEncoder.from_checkpoint(str(tiny.encoder(tmp_path)), DenseShape(max_length=0)))
    (found,) = opened.search(["oak elm"], 41)
    (scores,) = opened.score([type(SLATES[0])("oak elm", tuple(DOCS[docno] for docno in found))])
    assert scores == pytest.approx(list(found.values()), abs=1e-6)
    assert len(found) == len(DOCS)


def test_vectors_are_computed_once_and_cached(tmp_path, home):
    net = BiEncoder.from_checkpoint(str(tiny.encoder(tmp_path / "net")), DenseShape(max_length=0))
    first = ranker(net)
    found = first.search(["oak"], 5)
    second = ranker(net)
    second._fresh = None  # what is kept need not be made again
    assert second.search(["oak"], 5) == found
    assert second.vector_store.vectors.shape == (len({doc.text for doc in DOCS.values()}), 32)
    other = MemoryCorpus({"a": Doc("oak")})
    assert list(ranker(net, other).search(["oak"], 5)[0]) == ["a"]
    assert len(list((home / "vectors").iterdir())) == 2


@pytest.mark.parametrize(
    "harm",
    [
        lambda folder: (folder / "vectors.bin").write_bytes(b"broken"),
        lambda folder: os.truncate(folder / "vectors.bin", 4096),
        lambda folder: (folder / "places.bin").unlink(),
        lambda folder: (folder / "about.json").write_text("{}"),
    ],
)
def test_damaged_vectors_are_made_again_and_this_is_said(tmp_path, home, harm):
    net = BiEncoder.from_checkpoint(str(tiny.encoder(tmp_path / "net")), DenseShape(max_length=0))
    found = ranker(net).search(["oak"], 5)
    (folder,) = (home / "vectors").iterdir()
    harm(folder)
    scored = ranker(net)
    assert [doc.tolist() for doc in scored.score(SLATES)] == [doc.tolist() for doc in ranker(net).score(SLATES)]
    again = ranker(net)
    assert again.search(["oak"], 5) == found
    assert again.notice.startswith(
        "the vectors of the collection were computed again, because the cached ones are damaged ("
    )
    third = ranker(net)
    assert third.search(["oak"], 5) == found
    assert third.notice == ""


FULL = """
import resource, sys
import numpy as np
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.core.errors import BadInput
from shaketable.rankers.neural.vectors import open_vector_store
from shaketable.core.documents import Doc

resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
corpus = MemoryCorpus({str(i): Doc(f"text {i}") for i in range(1000)})
try:
    open_vector_store(corpus, "any", lambda texts: [np.ones((1, 128), np.float32) for _ in texts])
except BadInput as error:
    print(error)
"""


def test_a_full_disk_is_one_sentence_and_leaves_nothing(home):
    done = in_a_process(FULL)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("the vectors of the collection cannot be cached (File too large)")
    assert list((home / "vectors").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("modules.json", {"type": "x"}),
        ("modules.json", [{"path": "1_Pooling"}]),
        ("modules.json", [3]),
        ("modules.json", [{"type": "sentence_transformers.models.Pooling", "path": 7}]),
        ("config_sentence_transformers.json", [1]),
        ("config_sentence_transformers.json", {"prompts": "query"}),
        ("sentence_bert_config.json", {"max_seq_length": "long"}),
    ],
)
def test_files_of_sentence_transformers_that_make_no_sense(tmp_path, name, content):
    folder = tiny.sentence_transformer(tmp_path, {"pooling_mode": "mean"})
    tiny.write(folder / name, content)
    with pytest.raises(BadInput, match="has invalid files of sentence-transformers"):
        read_shape(folder)


def test_modules_lie_inside_of_the_folder(tmp_path):
    folder = tiny.sentence_transformer(tmp_path / "st", {"pooling_mode": "mean"})
    (folder / "1_Pooling").rename(tmp_path / "elsewhere")
    modules = json.loads((folder / "modules.json").read_text())
    for place in ("../elsewhere", str(tmp_path / "elsewhere")):
        modules[1]["path"] = place
        tiny.write(folder / "modules.json", modules)
        with pytest.raises(BadInput, match=r"leads to .*elsewhere, outside of the checkpoint"):
            read_shape(folder)


def test_a_collection_without_documents_has_nothing_to_find(tmp_path):
    assert ranker(
        BiEncoder.from_checkpoint(str(tiny.encoder(tmp_path)), DenseShape(max_length=0)), MemoryCorpus({})
    ).search(["a"], 5) == [{}]


def test_a_search_for_nothing_is_refused(tmp_path):
    with pytest.raises(BadInput, match="k must be at least 1, not 0"):
        ranker(BiEncoder.from_checkpoint(str(tiny.encoder(tmp_path)), DenseShape(max_length=0))).search(["a"], 0)


def test_vectors_that_cannot_be_cached(tmp_path, home):
    encoder = BiEncoder.from_checkpoint(str(tiny.encoder(tmp_path / "encoder")), DenseShape(max_length=0))
    expected = ranker(encoder).search(["a"], 3)
    shutil.rmtree(home)
    home.write_text("a file where the folder should be")
    for _ in range(2):
        opened = ranker(encoder)
        assert opened.search(["a"], 3) == expected
        assert "vectors cannot be written (Not a directory)" in opened.notice


def test_many_equal_vectors_and_blocks_are_searched_exactly(monkeypatch):
    """Three blocks of rows, values with many ties: the whole order by brute force."""
    monkeypatch.setattr(shelves, "VECTORS_PER_BLOCK", 10)
    monkeypatch.setattr(shelves, "QUERIES_PER_BLOCK", 2)
    rng = np.random.default_rng(1)
    vectors = rng.integers(0, 2, (25, 3)).astype(np.float32)
    docnos = [f"d{i:02}" for i in range(40)]
    places = rng.permutation(np.concatenate([np.arange(25), rng.integers(0, 25, 15)]))
    from shaketable.datasets.packed_strings import PackedStrings

    shelf = VectorStore(vectors, PackedStrings.build(map(str, range(25))), PackedStrings.build(docnos), places)
    queries = rng.integers(0, 3, (5, 3)).astype(np.float32)
    for k in (1, 7, 40, 50):
        for query, found in zip(queries, shelf.search(queries, k), strict=True):
            scores = {docno: float(vectors[place] @ query) for docno, place in zip(docnos, places, strict=True)}
            assert list(found.items()) == [(docno, scores[docno]) for docno in rank_docnos(scores)[:k]]


def test_keeps_the_contracts(tmp_path):
    opened = ranker(BiEncoder.from_checkpoint(str(tiny.encoder(tmp_path)), DenseShape(max_length=0)))
    check_ranker(opened)
    check_retriever(opened, ["oak", "elm and fir", "willow"])


def test_gradients_reach_every_parameter_and_the_word_embeddings(tmp_path):
    net = BiEncoder.from_checkpoint(str(tiny.encoder(tmp_path)), DenseShape(max_length=0)).train()
    net(**net.collate(net.prepare([("oak", "an oak, a fir"), ("elm tree", "ash")]))).sum().backward()
    assert all(weight.grad is not None for weight in net.parameters())
    assert net.embedding().weight.grad.abs().sum() > 0

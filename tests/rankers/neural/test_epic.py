"""EPIC: both vectors by loops over transformers' own states and logits, entry by entry."""

from __future__ import annotations

from functools import cache
from math import exp, log

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from shaketable.core.documents import Doc, Slate
from shaketable.core.errors import BadInput
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp.checkpoints import silence_transformers
from shaketable.rankers.neural.epic import EPIC
from shaketable.rankers.neural.scoring import make_ranker, score_maxsim
from shaketable.rankers.neural.shapes import EPICShape
from shaketable.testing import check_ranker
from tests.rankers.neural import tiny
from tests.rankers.neural.tiny import SLATES

PAIRS = [(slate.query, doc.text) for slate in SLATES for doc in slate.docs]


def make_net(tmp_path, shape: EPICShape | None = None, kind: str = "bert") -> EPIC:
    torch.manual_seed(3)
    return EPIC.from_checkpoint(str(tiny.write_masked_model(tmp_path, kind)), shape or EPICShape(max_length=0))


def ranker(net):
    return make_ranker("tiny", "mark", net, MemoryCorpus({}))


def a(x: float) -> float:
    return log(1 + log(1 + exp(x)))


def dot(layer: torch.nn.Linear, state: torch.Tensor) -> float:
    return float(layer.weight[0].detach() @ state + layer.bias[0].detach())


@cache
def read(folder, text: str, limit: int):
    """Pieces, their states and logits, and the state of [CLS]: the text alone, by transformers."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with silence_transformers():
        model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    batch = tokenizer(text, truncation=True, max_length=limit, return_tensors="pt")
    with torch.no_grad():
        out = model(**batch, output_hidden_states=True)
    states, ids = out.hidden_states[-1][0], batch["input_ids"][0].tolist()
    return ids[1:-1], states[1:-1], out.logits[0, 1:-1], states[0]


def query_vector(net: EPIC, folder, text: str) -> dict[int, float]:
    ids, states, _, _ = read(folder, text, net.shape.max_length)
    found: dict[int, float] = {}
    for piece, state in zip(ids, states, strict=True):
        found[piece] = found.get(piece, 0.0) + a(dot(net.query_importance, state))
    return found


def text_entry(net: EPIC, folder, text: str, piece: int) -> float:
    _, states, logits, first = read(folder, text, net.shape.max_length)
    quality = 1 / (1 + exp(-dot(net.quality, first)))
    products = [
        a(float(row[piece])) * a(dot(net.text_importance, state)) for state, row in zip(states, logits, strict=True)
    ]
    return quality * max(products, default=0.0)


def test_scores_by_hand(tmp_path):
    net = make_net(tmp_path).eval()
    expected = []
    for query, text in PAIRS:
        weights = query_vector(net, tmp_path, query)
        expected.append(sum(weight * text_entry(net, tmp_path, text, piece) for piece, weight in weights.items()))
    assert np.concatenate(ranker(net).score(SLATES)) == pytest.approx(expected, abs=1e-5)
    with torch.inference_mode():
        assert net(**net.collate(net.prepare(PAIRS))).numpy() == pytest.approx(expected, abs=1e-5)
    assert np.ptp(expected[:4]) > 0.01


def test_vectors_by_hand(tmp_path):
    net = make_net(tmp_path).eval()
    opened = ranker(net)
    (asked,) = opened.encode_queries(["an old oak by an oak"])
    weights = query_vector(net, tmp_path, "an old oak by an oak")
    assert asked.shape == (1, len(tiny.VOCABULARY))
    assert {piece: asked[0, piece] for piece in np.flatnonzero(asked[0])} == pytest.approx(weights, abs=1e-6)
    oak = tiny.VOCABULARY.index("oak")
    once, twice = query_vector(net, tmp_path, "oak"), weights
    assert twice[oak] > 1.2 * once[oak], "each occurrence adds"
    (said,) = opened.encode_texts(["elm, fir"])
    expected = [text_entry(net, tmp_path, "elm, fir", piece) for piece in range(len(tiny.VOCABULARY))]
    assert said[0] == pytest.approx(expected, abs=1e-6)
    assert said.min() > 0, "every piece has some weight"


def test_nothing_said_and_nothing_asked_have_no_weight(tmp_path):
    opened = ranker(make_net(tmp_path))
    assert not opened.encode_texts([""])[0].any()
    assert not opened.encode_queries([""])[0].any()


def test_only_the_largest_entries_are_kept_and_the_error_is_bounded(tmp_path):
    whole, pruned = ranker(make_net(tmp_path / "a")), ranker(make_net(tmp_path / "b", EPICShape(max_length=0, keep=9)))
    query = "willow by an oak, old yew"
    (asked,) = whole.encode_queries([query])
    docs = tuple(Doc(text) for _, text in PAIRS if text)
    (before,), (after,) = whole.score([Slate(query, docs)]), pruned.score([Slate(query, docs)])
    for doc, full, less in zip(docs, before, after, strict=True):
        (vector,), (few,) = whole.encode_texts([doc.text]), pruned.encode_texts([doc.text])
        kept = np.flatnonzero(few[0])
        assert len(kept) == 9
        assert few[0, kept] == pytest.approx(vector[0, kept], abs=1e-6)
        assert vector[0, kept].min() >= np.delete(vector[0], kept).max()
        assert -1e-6 < full - less <= few[0, kept].min() * asked.sum() + 1e-6
    assert (before - after).max() > 0.001, "something was lost"


def test_gradients_are_those_of_the_plain_formula(tmp_path):
    """Winners are found without gradients: the way back must not notice."""
    net = make_net(tmp_path).eval()
    _, states, _, _ = read(tmp_path, "an old oak, a young elm", 64)
    states = states.clone().requires_grad_()
    activated = torch.nn.functional.softplus
    plain = (
        (1 + activated(net.encoder.compute_logits(states))).log() * (1 + activated(net.text_importance(states))).log()
    ).amax(0)
    (expected,) = torch.autograd.grad(plain.square().sum(), states)
    (found,) = torch.autograd.grad(net._max_pool_pieces(states).square().sum(), states)
    torch.testing.assert_close(found, expected)
    assert expected.abs().sum() > 0


def test_gradients_reach_every_parameter_and_the_word_embeddings(tmp_path):
    net = make_net(tmp_path).train()
    net(**net.collate(net.prepare(PAIRS))).sum().backward()
    assert [name for name, weight in net.named_parameters() if weight.grad is None] == []
    assert net.embedding().weight.grad.abs().sum() > 0


def test_truncation_and_what_is_read(tmp_path):
    net = make_net(tmp_path, EPICShape(max_length=10))
    short, long = net.prepare_texts(["oak elm", "oak " * 30])
    assert (short.length, list(short.piece_range), short.truncated) == (4, [1, 2], False)
    assert (long.length, list(long.piece_range), long.truncated) == (10, list(range(1, 9)), True)
    assert make_net(tmp_path / "whole").shape.max_length == 64


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert"])
def test_keeps_the_contract(tmp_path, kind):
    check_ranker(ranker(make_net(tmp_path, kind=kind)))


def test_keeps_the_contract_on_a_bare_encoder(tmp_path):
    check_ranker(ranker(EPIC.from_checkpoint(str(tiny.encoder(tmp_path)), EPICShape(max_length=0))))


def test_invalid_settings_are_refused(tmp_path):
    with pytest.raises(BadInput, match="keep should be the number of vector entries"):
        make_net(tmp_path, EPICShape(max_length=0, keep=-1))


def test_a_query_of_few_pieces_is_compared_on_these_alone():
    """The short way of `score_maxsim` is the long one."""
    rng = np.random.default_rng(0)
    texts = [rng.random((1, 50), np.float32) for _ in range(7)]
    query = np.zeros((1, 50), np.float32)
    assert score_maxsim(query, texts).tolist() == [0.0] * 7
    query[0, [3, 17, 44]] = rng.random(3)
    expected = [float(text[0].astype(np.float64) @ query[0].astype(np.float64)) for text in texts]
    assert score_maxsim(query, texts) == pytest.approx(expected, rel=1e-12)

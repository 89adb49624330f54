"""ColBERT by hand: markers, masks that fill up queries, punctuation left out, and the sum of the nearest."""

from __future__ import annotations

import string

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from shaketable.core.errors import BadInput
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp.checkpoints import silence_transformers
from shaketable.rankers.neural.colbert import ColBERT
from shaketable.rankers.neural.net import EncodedTexts, maxsim
from shaketable.rankers.neural.scoring import make_ranker, score_maxsim
from shaketable.rankers.neural.shapes import ColBERTShape
from shaketable.testing import check_ranker
from tests.rankers.neural import tiny
from tests.rankers.neural.tiny import SLATES

SMALL = ColBERTShape(dim=8, query_length=12, text_length=20)


def ranker(net):
    return make_ranker("tiny", "mark", net, MemoryCorpus({}))


def directly(folder, linear, slates, shape):
    """Token by token, text by text, in loops, with transformers' model and the names of tokens."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with silence_transformers():
        model = AutoModel.from_pretrained(folder).eval()

    def encode(tokens, attended):
        ids = torch.tensor([tokenizer.convert_tokens_to_ids(tokens)])
        mask = torch.tensor([[1] * attended + [0] * (len(tokens) - attended)])
        with torch.inference_mode():
            states = model(input_ids=ids, attention_mask=mask).last_hidden_state[0] @ linear.T
        return [state / state.norm() for state in states]

    scores = []
    for slate in slates:
        read = ["[CLS]", "[unused0]", *tokenizer.tokenize(slate.query)[: shape.query_length - 3], "[SEP]"]
        query = encode(read + ["[MASK]"] * (shape.query_length - len(read)), len(read))
        for doc in slate.docs:
            read = ["[CLS]", "[unused1]", *tokenizer.tokenize(doc.text)[: shape.text_length - 3], "[SEP]"]
            text = [
                v for token, v in zip(read, encode(read, len(read)), strict=True) if token not in string.punctuation
            ]
            scores.append(sum(max(float(q @ d) for d in text) for q in query))
    return np.array(scores)


def test_agrees_with_a_direct_computation(tmp_path):
    folder = tiny.encoder(tmp_path)
    net = ColBERT.from_checkpoint(str(folder), SMALL)
    expected = directly(folder, net.linear.weight.detach(), SLATES, SMALL)
    assert np.concatenate(ranker(net).score(SLATES)) == pytest.approx(expected, abs=1e-5)
    pairs = [(slate.query, doc.text) for slate in SLATES for doc in slate.docs]
    trained = net(**net.collate(net.prepare(pairs))).detach().numpy()  # as in training
    assert trained == pytest.approx(expected, abs=1e-5)


def test_agrees_with_a_direct_computation_on_real_weights(minilm):
    net = ColBERT.from_checkpoint("minilm", ColBERTShape())
    expected = directly(minilm, net.linear.weight.detach(), SLATES, ColBERTShape())
    assert np.concatenate(ranker(net).score(SLATES)) == pytest.approx(expected, rel=2e-6)


def test_queries_are_marked_and_padded_with_masks_without_attention(tmp_path):
    net = ColBERT.from_checkpoint(str(tiny.encoder(tmp_path)), SMALL)
    query, long = net.prepare_queries(["oak, elm", "oak " * 30])
    tokens = net.tokenizer.convert_ids_to_tokens(query.ids.tolist())
    assert tokens == ["[CLS]", "[unused0]", "oak", ",", "elm", "[SEP]", *["[MASK]"] * 6]
    assert (query.attended_tokens, query.truncated, query.compared_mask.tolist()) == (6, False, [True] * 12)
    assert net.tokenizer.convert_ids_to_tokens(long.ids.tolist()) == ["[CLS]", "[unused0]", *["oak"] * 9, "[SEP]"]
    assert (long.attended_tokens, long.truncated) == (12, True)
    batch = net.pack([query, long])
    assert batch["mask"].tolist() == [[1] * 6 + [0] * 6, [1] * 12]
    assert batch["kept"].all()


def test_texts_are_marked_cut_and_lose_punctuation(tmp_path):
    net = ColBERT.from_checkpoint(str(tiny.encoder(tmp_path)), SMALL)
    text, empty, long = net.prepare_texts(["oak, elm!", "", "fir. " * 30])
    assert net.tokenizer.convert_ids_to_tokens(text.ids.tolist()) == [
        "[CLS]",
        "[unused1]",
        "oak",
        ",",
        "elm",
        "!",
        "[SEP]",
    ]
    assert text.compared_mask.tolist() == [True, True, True, False, True, False, True]
    assert (empty.length, long.length, long.truncated) == (3, 20, True)
    assert long.compared_mask.sum() == 3 + 9  # [CLS] [D] [SEP], and 9 of the 17 pieces are words
    assert net.pack([text, empty])["kept"].tolist() == [text.compared_mask.tolist(), [True] * 3 + [False] * 4]


def test_the_sum_of_the_nearest_by_hand():
    """Two vectors of the query: the first finds 0.8, because the vector with 1 is masked; the second finds 0.6."""
    query = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    text = torch.tensor([[[0.8, 0.6], [1.0, 0.0], [0.6, -0.8]]])
    kept = torch.tensor([[True, False, True]])
    both, one = torch.ones(1, 2, dtype=torch.bool), torch.tensor([[True, False]])
    assert maxsim(EncodedTexts(query, both), EncodedTexts(text, kept)).tolist() == pytest.approx([1.4])
    assert maxsim(EncodedTexts(query, one), EncodedTexts(text, kept)).tolist() == pytest.approx([0.8])
    texts = [text[0, [0, 2]].numpy(), text[0, [2]].numpy()]
    assert score_maxsim(query[0].numpy(), texts).tolist() == pytest.approx([1.4, 0.6 - 0.8])
    assert score_maxsim(query[0].numpy(), []).shape == (0,)


def test_sizes_are_those_of_the_paper():
    assert ColBERTShape() == ColBERTShape(dim=128, query_length=32, text_length=180)


def test_keeps_the_contract(tmp_path):
    check_ranker(ranker(ColBERT.from_checkpoint(str(tiny.encoder(tmp_path)), SMALL)))


def test_gradients_reach_every_parameter_and_the_word_embeddings(tmp_path):
    net = ColBERT.from_checkpoint(str(tiny.encoder(tmp_path)), SMALL).train()
    net(**net.collate(net.prepare([("oak", "an oak, a fir"), ("elm tree", "ash")]))).sum().backward()
    assert all(weight.grad is not None for weight in net.parameters())
    assert net.embedding().weight.grad.abs().sum() > 0


def test_a_vocabulary_without_markers_is_refused(tmp_path):
    with pytest.raises(BadInput, match=r"has no \[unused0\], \[unused1\] and \[MASK\]"):
        ColBERT.from_checkpoint(str(tiny.roberta(tmp_path)), SMALL)

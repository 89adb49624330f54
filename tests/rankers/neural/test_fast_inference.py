"""Faster forward passes give the scores of the plain ones, and leave gradients and training alone."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch.nn.functional import linear
from transformers import AutoModelForSequenceClassification, ElectraConfig

from shaketable.core.documents import Doc, Slate
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp.checkpoints import silence_transformers
from shaketable.rankers.neural import fast_inference, scoring
from shaketable.rankers.neural.bert import CrossEncoder
from shaketable.rankers.neural.dense import BiEncoder
from shaketable.rankers.neural.fast_inference import OneDnnLinear, has_onednn_linear
from shaketable.rankers.neural.scoring import make_ranker
from shaketable.rankers.neural.shapes import BertShape, DenseShape
from tests.rankers.neural import tiny
from tests.rankers.neural.tiny import SLATES

PAIRS = [(slate.query, doc.text) for slate in SLATES for doc in slate.docs]
LAKE = "A lake is a body of water surrounded by land, often fed by a river. "
REAL = [Slate("what is a lake", tuple(Doc(LAKE * n) for n in (0, 1, 2, 3, 7, 12)))]


def electra(folder):
    torch.manual_seed(0)
    config = ElectraConfig(vocab_size=len(tiny.VOCABULARY), num_labels=1, embedding_size=32, **tiny.SIZES)
    return tiny._save(AutoModelForSequenceClassification.from_config(config), folder, tiny.wordpiece)


@pytest.mark.parametrize("make", [tiny.bert, tiny.roberta, electra])
def test_the_last_layer_of_the_first_token_gives_the_same_scores(tmp_path, make):
    net = CrossEncoder.from_checkpoint(str(make(tmp_path)), BertShape(max_length=0)).eval()
    batch = net.collate(net.prepare(PAIRS))
    layer = net.model.base_model.encoder.layer[-1]
    widths = []
    layer.register_forward_hook(lambda module, arguments, output: widths.append(output.shape[1]))
    with torch.no_grad():
        plain = net(**batch)
    with torch.inference_mode():
        short = net(**batch)
    assert widths == [batch["input_ids"].shape[1], 1], "the second pass computes one token"
    np.testing.assert_allclose(short.numpy(), plain.numpy(), rtol=1e-6, atol=1e-6)
    assert np.ptp(plain.numpy()) > 0.01


def test_a_bi_encoder_shortens_the_last_layer_only_if_it_reads_the_first_token(tmp_path):
    folder = str(tiny.encoder(tmp_path))
    for pooling in ("cls", "mean"):
        net = BiEncoder.from_checkpoint(folder, DenseShape(max_length=0, pooling=pooling)).eval()
        batch = net.pack(net.prepare_texts([text for _, text in PAIRS]))
        with torch.no_grad():
            plain = net.encode(**batch).values
        with torch.inference_mode():
            np.testing.assert_allclose(net.encode(**batch).values.numpy(), plain.numpy(), rtol=1e-6, atol=1e-6)
        assert ("forward" in vars(net.encoder.encoder.layer[-1])) == (pooling == "cls")


def test_weights_keep_their_names_and_a_net_can_be_saved(tmp_path):
    net = CrossEncoder.from_checkpoint(str(tiny.bert(tmp_path / "a")), BertShape(max_length=0))
    with silence_transformers():
        original = AutoModelForSequenceClassification.from_pretrained(tmp_path / "a")
    assert net.model.state_dict().keys() == original.state_dict().keys()


@pytest.mark.skipif(not has_onednn_linear(), reason="this version of torch has no such operator")
@pytest.mark.parametrize("shape", [(1, 200), (3, 5, 200), (70, 200)])
@pytest.mark.parametrize("with_bias", [True, False])
def test_linear_layers_agree_with_those_of_torch(shape, with_bias):
    generator = torch.Generator().manual_seed(1)
    inputs, weights, bias = (torch.randn(size, generator=generator) for size in (shape, (130, 200), (130,)))
    arguments = (inputs, weights, bias) if with_bias else (inputs, weights, None)
    with torch.inference_mode(), OneDnnLinear():
        found = linear(*arguments)
    torch.testing.assert_close(found, linear(*arguments), rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not has_onednn_linear(), reason="this version of torch has no such operator")
def test_other_functions_types_and_small_layers_stay_as_they_are(monkeypatch):
    monkeypatch.setattr(fast_inference, "_call_onednn", lambda *_: pytest.fail("was called"))
    with torch.inference_mode(), OneDnnLinear():
        linear(torch.ones(2, 3), torch.ones(4, 3), torch.ones(4))
        linear(torch.ones(2, 200, dtype=torch.float64), torch.ones(200, 200, dtype=torch.float64))
        linear(torch.ones(0, 200), torch.ones(200, 200))
        torch.softmax(torch.ones(2, 3), dim=1)


def test_scores_of_real_weights_do_not_depend_on_how_they_are_computed(minilm, monkeypatch):
    torch.manual_seed(1)
    net = CrossEncoder.from_checkpoint("minilm", BertShape(max_length=0), fresh=True)
    (fast,) = make_ranker("minilm", "mark", net, MemoryCorpus({})).score(REAL)
    monkeypatch.setattr(scoring, "OneDnnLinear", nullcontext)
    (plain,) = make_ranker("minilm", "mark", net, MemoryCorpus({})).score(REAL)
    np.testing.assert_allclose(fast, plain, rtol=1e-6, atol=1e-6)

"""DSSM: letter trigrams and the tower by hand."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
import torch

from shaketable.core.documents import Doc
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.neural.dssm import DSSM, build_trigram_vocabulary
from shaketable.rankers.neural.shapes import DSSMShape
from shaketable.rankers.neural.words import Vocabulary

TOKENIZER = Analyzer(stopwords="none", stemmer="none")


def toy() -> DSSM:
    torch.manual_seed(2)
    net = DSSM(Vocabulary(("#ca", "cat", "at#", "#at"), TOKENIZER), DSSMShape((5, 4, 3)))
    with torch.no_grad():
        net.bias.normal_()
    return net.eval()


def test_trigrams_of_a_text_by_hand():
    bag = toy().make_bag("Cat at car")
    # #ca twice, cat, at# twice, #at; "car" and "ar#" are unknown and share the last row
    assert dict(zip(bag.ids.tolist(), (bag.weights * sqrt(14)).round(4).tolist(), strict=True)) == {
        1: 2,
        2: 1,
        3: 2,
        4: 1,
        5: 2,
    }
    assert bag.length == 5


def test_trigrams_of_a_collection_come_by_frequency():
    docs = MemoryCorpus({"1": Doc("cat cat at"), "2": Doc("hat")})
    assert build_trigram_vocabulary(docs, TOKENIZER).words == ("at#", "#ca", "cat")


def test_the_score_by_hand():
    net = toy()
    table, bias = net.trigrams.weight.detach().numpy(), net.bias.detach().numpy()

    def tower(text: str) -> np.ndarray:
        bag = net.make_bag(text)
        state = np.tanh(bag.weights @ table[bag.ids] + bias)
        for layer in net.layers:
            state = np.tanh(layer.weight.detach().numpy() @ state + layer.bias.detach().numpy())
        return state

    q, d = tower("cat"), tower("at at dog")
    expected = 10 * q @ d / np.linalg.norm(q) / np.linalg.norm(d)
    assert net(**net.collate(net.prepare([("cat", "at at dog")]))).item() == pytest.approx(expected, abs=1e-5)
    assert net(**net.collate(net.prepare([("cat", "cat")]))).item() == pytest.approx(10, abs=1e-5)


def test_parameters():
    # padding, four trigrams and the unknown; two layers; γ
    assert sum(p.numel() for p in toy().parameters()) == 6 * 5 + 5 + (5 * 4 + 4) + (4 * 3 + 3) + 1

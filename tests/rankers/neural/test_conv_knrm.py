"""Conv-KNRM against loops over n-grams."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.neural.conv_knrm import ConvKNRM
from shaketable.rankers.neural.shapes import ConvKNRMShape
from shaketable.rankers.neural.words import Vocabulary
from tests.toys import WORDS, text


def toy(**shape: int) -> ConvKNRM:
    torch.manual_seed(1)
    return ConvKNRM(Vocabulary(tuple(WORDS), Analyzer(stemmer="none")), 4, ConvKNRMShape(**shape)).eval()


def grams(net: ConvKNRM, words: list[str], h: int) -> np.ndarray:
    """relu(W · v_{i:i+h} + b) at unit length, zeros beyond the end."""
    vectors = net.words.weight.detach().numpy()
    rows = [vectors[net.vocabulary.numbers[word]] for word in words] + [np.zeros(4)] * h
    weight, bias = (p.detach().numpy() for p in net.convolutions[h - 1].parameters())
    out = []
    for i in range(len(words)):
        gram = np.maximum(0, bias + sum(weight[:, :, j] @ rows[i + j] for j in range(h)))
        out.append(gram / max(1e-12, np.linalg.norm(gram)))
    return np.array(out)


def by_hand(net: ConvKNRM, query: str, passage: str) -> float:
    features = []
    for a, b in product(range(1, 4), repeat=2):
        cosines = grams(net, query.split(), a) @ grams(net, passage.split(), b).T
        for mu, sigma in net.kernels.centres_and_widths:
            soft = np.exp(-((cosines - mu) ** 2) / (2 * sigma**2)).sum(1)
            features.append(0.1 * np.log(1e-6 + soft).sum())
    weight, bias = net.combine.weight.detach().numpy()[0], net.combine.bias.item()
    return float(weight @ np.array(features) + bias)


def test_scores_are_those_of_loops_over_n_grams():
    net = toy(filters=6)
    pairs = [(text(1, 3), text(2, 9)), (text(3, 1), text(4, 2)), (text(5, 4), text(6, 30))]
    expected = [by_hand(net, *pair) for pair in pairs]
    assert net(**net.collate(net.prepare(pairs))).tolist() == pytest.approx(expected, abs=1e-5)


def test_parameters():
    net = toy(filters=128)
    convolutions = sum(128 * 4 * h + 128 for h in (1, 2, 3))
    assert sum(p.numel() for p in net.parameters()) == (len(WORDS) + 1) * 4 + convolutions + 9 * 11 + 1

"""DRMM: histogram bins, gate and score by hand."""

from __future__ import annotations

from math import exp, log, tanh

import numpy as np
import pytest
import torch

from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.neural.drmm import DRMM, log_counts
from shaketable.rankers.neural.shapes import DRMMShape
from shaketable.rankers.neural.words import Vocabulary


def toy() -> DRMM:
    """oak (1, 0), elm (0, 2), fir (0.6, 0.8), ash (-1, 0)."""
    net = DRMM(Vocabulary(("oak", "elm", "fir", "ash"), Analyzer(stemmer="none")), 2, DRMMShape())
    net.load_vectors(np.array([[1, 0], [0, 2], [0.6, 0.8], [-1, 0]], np.float32), frozen=True)
    return net.eval()


def histogram(counts: dict[int, int]) -> list[float]:
    return [log(1 + counts.get(bin, 0)) for bin in range(30)]


def test_bins_by_hand():
    net = toy()
    batch = net.collate(net.prepare([("oak kapok", "elm fir oak oak ash kapok"), ("elm", "elm")]))
    found = log_counts(net.cosines(**batch), batch["text"] != 0, 30)
    # ⌊(cos + 1)/2 · 29⌋: -1 -> 0, 0 -> 14, 0.6 -> 23, 1 -> 29; an unknown word has cosine 0, and 1 with itself
    assert found[0, 0].tolist() == pytest.approx(histogram({14: 2, 23: 1, 29: 2, 0: 1}))
    assert found[0, 1].tolist() == pytest.approx(histogram({14: 5, 29: 1}))
    assert found[1, 0].tolist() == pytest.approx(histogram({29: 1}))


def test_only_exact_matches_are_in_the_last_bin():
    cosines = torch.tensor([[[1.0, 1.0 - 1e-6, 0.95, 1.0000001]]])
    counts = log_counts(cosines, torch.tensor([[True, True, True, False]]), 30).expm1()
    assert counts[0, 0, 28:].tolist() == pytest.approx([2, 1])


def test_gate_and_score_by_hand():
    net = toy()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
        net.gate.weight.copy_(torch.tensor([[1.0, 0.25]]))
        net.matching[0].weight[0, 29] = 0.5  # the first hidden unit sees exact matches
        net.matching[0].weight[1, 23] = -1.0  # the second sees cosines near 0.6
        net.matching[2].weight[0, :2] = torch.tensor([2.0, 1.0])
        net.scale.weight.fill_(3.0)
        net.scale.bias.fill_(0.1)
    net.load_vectors(np.array([[1, 0], [0, 2], [0.6, 0.8], [-1, 0]], np.float32), frozen=True)
    batch = net.collate(net.prepare([("oak elm", "oak fir"), ("oak", "ash ash ash")]))
    gates = [exp(1) / (exp(1) + exp(0.5)), exp(0.5) / (exp(1) + exp(0.5))]
    oak = tanh(2 * tanh(0.5 * log(2)) + tanh(-log(2)))  # an exact match, and one at 0.6
    elm = tanh(0.0)  # cosines 0 and 0.8: in neither bin
    assert net.compute_gates(batch["query"])[0, :, 0].tolist() == pytest.approx(gates)
    assert net.compute_gates(batch["query"])[1, :, 0].tolist() == pytest.approx([1, 0])
    assert net(**batch).tolist() == pytest.approx([3 * (gates[0] * oak + gates[1] * elm) + 0.1, 0.1])


def test_parameters_are_few():
    # bins -> 5 -> 1, the gate, the scale
    assert sum(p.numel() for p in toy().parameters() if p.requires_grad) == (30 * 5 + 5) + (5 + 1) + 2 + 2

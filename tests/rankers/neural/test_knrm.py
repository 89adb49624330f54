"""K-NRM: the kernels by hand."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
import torch

from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.neural.knrm import KNRM, Kernels
from shaketable.rankers.neural.shapes import KNRMShape
from shaketable.rankers.neural.words import Vocabulary

MU = [-0.9, -0.7, -0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]
SIGMA = [0.1] * 10 + [0.001]


def toy() -> KNRM:
    """oak (1, 0), elm (0, 1), fir (0.6, 0.8): the cosine of oak and fir is 0.6."""
    net = KNRM(Vocabulary(("oak", "elm", "fir"), Analyzer(stemmer="none")), 2, KNRMShape())
    net.load_vectors(np.array([[1, 0], [0, 2], [0.6, 0.8]], np.float32), frozen=True)
    return net


def feature(k: int, cosines: list[float]) -> float:
    return 0.1 * log(1e-6 + sum(exp(-((m - MU[k]) ** 2) / (2 * SIGMA[k] ** 2)) for m in cosines))


def test_kernels_by_hand():
    net = toy()
    with torch.no_grad():
        net.combine.weight.copy_(torch.arange(11.0)[None])
        net.combine.bias.fill_(0.5)
    batch = net.collate(net.prepare([("oak", "elm fir oak"), ("oak elm", "fir"), ("oak", "elm fir fir fir")]))
    expected = [
        sum(k * feature(k, [0.0, 0.6, 1.0]) for k in range(11)) + 0.5,
        sum(k * (feature(k, [0.6]) + feature(k, [0.8])) for k in range(11)) + 0.5,
        sum(k * feature(k, [0.0, 0.6, 0.6, 0.6]) for k in range(11)) + 0.5,
    ]
    assert net(**batch).tolist() == pytest.approx(expected, abs=1e-5)


def test_the_last_kernel_counts_exact_matches_and_nothing_else():
    phi = Kernels(11, 0.1, 0.001)(
        torch.tensor([[[1.0, 1.0, 0.99, -1.0]]]), torch.ones(1, 1, dtype=torch.bool), torch.ones(1, 4, dtype=torch.bool)
    )
    assert phi[0, -1].item() == pytest.approx(0.1 * log(2), abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_clamping_small_exponents_changes_no_score(dtype):
    cosines = 2 * torch.rand(4, 3, 50, dtype=dtype, generator=torch.Generator().manual_seed(0)) - 1
    cosines[:, 0] = -1  # far from nearly all kernels
    kernels, asked = Kernels(11, 0.1, 0.001), torch.ones(4, 3, dtype=torch.bool)
    near = [torch.exp(-((cosines - mu) ** 2) / (2 * sigma**2)).sum(2) for mu, sigma in kernels.centres_and_widths]
    plain = 0.1 * (1e-6 + torch.stack(near, 2)).log().sum(1)
    assert torch.equal(kernels(cosines, asked, torch.ones(4, 50, dtype=torch.bool)), plain)


def test_eleven_weights_and_a_bias():
    net = toy()
    assert sum(p.numel() for p in net.parameters() if p.requires_grad) == 12
    assert net.words.weight.shape == (4, 2)
    net.load_vectors(np.ones((3, 2), np.float32), frozen=False)
    assert sum(p.numel() for p in net.parameters() if p.requires_grad) == 12 + 8

"""K-NRM: soft counts of the similarities between query words and text words, at several levels of similarity.

    M_ij    = cos(v_i, v_j)
    K_k(i)  = Σ_j exp(-(M_ij - μ_k)² / 2σ_k²)
    φ_k     = Σ_i log(ε + K_k(i)),  in tenths
    score   = w · φ + b

Xiong, Dai, Callan, Liu, Power. End-to-end neural ad-hoc ranking with kernel pooling. SIGIR 2017, eqs. 1-6. The last
kernel, μ = 1 with a narrow σ, counts exact matches. The paper's tanh around the score does not change the order and
makes good texts tie, so it is left out (as in OpenNIR). Tenths bring φ to the order of 1; the authors' code has
hundredths.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from shaketable.rankers.neural.shapes import KNRMShape
from shaketable.rankers.neural.words import Vocabulary, WordVectorNet

EPSILON = 1e-6
PADDING_COSINE = -1000.0
"""The cosine of padding, far from all kernels."""
MIN_EXPONENT = -80.0
"""The smallest exponent of a kernel: smaller ones add nothing to ε, but underflow and make exp 50 times slower."""


class Kernels(nn.Module):
    """φ of the paper. μ is evenly spaced in (-1, 1), and 1 for exact matches; neither μ nor σ is learned.

    >>> [round(mu, 1) for mu, _ in Kernels(11, 0.1, 0.001).centres_and_widths]
    [-0.9, -0.7, -0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]
    """

    def __init__(self, kernels: int, sigma: float, exact: float):
        super().__init__()
        width = 2 / (kernels - 1)
        self.centres_and_widths = [(-1 + width * (k + 0.5), sigma) for k in range(kernels - 1)] + [(1.0, exact)]

    def forward(self, cosines: Tensor, asked: Tensor, kept: Tensor) -> Tensor:
        """Return φ [n, kernels] of cosines [n, q, t], with masks of the query words [n, q] and text words [n, t]."""
        cosines = cosines.masked_fill(~kept[:, None, :], PADDING_COSINE)
        exponents = (-((cosines - mu) ** 2) / (2 * sigma**2) for mu, sigma in self.centres_and_widths)  # k × [n, q, t]
        near = [exponent.clamp(min=MIN_EXPONENT).exp().sum(2) for exponent in exponents]  # k × [n, q]
        logs = (EPSILON + torch.stack(near, 2)).log()  # [n, q, k]
        return 0.1 * (logs * asked[..., None]).sum(1)  # [n, k]


class KNRM(WordVectorNet):
    """A kernel-pooling ranker on word vectors."""

    kind: ClassVar[str] = "knrm"
    shape_class: ClassVar[type[KNRMShape]] = KNRMShape
    shape: KNRMShape

    def __init__(self, vocabulary: Vocabulary, dim: int, shape: KNRMShape):
        super().__init__(vocabulary, dim, shape)
        self.kernels = Kernels(shape.kernels, shape.sigma, shape.exact)
        self.combine = nn.Linear(shape.kernels, 1)

    def forward(self, query: Tensor, text: Tensor) -> Tensor:  # type: ignore[override]
        features = self.kernels(self.cosines(query, text), query != 0, text != 0)  # [n, k]
        scores: Tensor = self.combine(features)  # [n, 1]
        return scores[:, 0]

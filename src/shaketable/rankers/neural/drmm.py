"""DRMM: a histogram of the similarities of the text's words to each query word; a gate weights the query words.

    z_i^(0) = LCH(w_i ⊗ d)                  ln(1 + the number of cosines in each bin)
    z_i^(l) = tanh(W_l z_i^(l-1) + b_l)     bins -> hidden -> 1
    g_i     = softmax_i(w_g · x_i)          the gate by term vectors (TV)
    score   = a · Σ_i g_i z_i + b

Guo, Fan, Ai, Croft. A deep relevance matching model for ad-hoc retrieval. CIKM 2016, eqs. 1-3. Bin = ⌊(cos + 1)/2 ·
(bins - 1)⌋, so the last bin holds only exact matches; a and b, as in MatchZoo, scale the scores.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from shaketable.rankers.neural.shapes import DRMMShape
from shaketable.rankers.neural.words import Vocabulary, WordVectorNet


class DRMM(WordVectorNet):
    """A deep relevance matching model. Counting has no gradient: word vectors learn through the gate alone."""

    kind: ClassVar[str] = "drmm"
    shape_class: ClassVar[type[DRMMShape]] = DRMMShape
    shape: DRMMShape

    def __init__(self, vocabulary: Vocabulary, dim: int, shape: DRMMShape):
        super().__init__(vocabulary, dim, shape)
        self.matching = nn.Sequential(
            nn.Linear(shape.bins, shape.hidden), nn.Tanh(), nn.Linear(shape.hidden, 1), nn.Tanh()
        )
        self.gate = nn.Linear(dim, 1, bias=False)
        self.scale = nn.Linear(1, 1)
        nn.init.ones_(self.scale.weight)

    @property
    def no_gradients_reason(self) -> str:
        return "DRMM counts the words of a text by their similarity to the query, and a count has no gradient"

    def forward(self, query: Tensor, text: Tensor) -> Tensor:  # type: ignore[override]
        histograms = log_counts(self.cosines(query, text), text != 0, self.shape.bins)  # [n, q, bins]
        z = self.matching(histograms)  # [n, q, 1]
        g = self.compute_gates(query)  # [n, q, 1]
        scores: Tensor = self.scale((g * z).sum(1))  # [n, 1]
        return scores[:, 0]

    def compute_gates(self, query: Tensor) -> Tensor:
        """Return the weights of the query words, which sum to 1: [n, q, 1]."""
        logits: Tensor = self.gate(self.look_up_vectors(query))
        # not -inf: a query without words has only padding, and its gates would be NaN
        return logits.masked_fill((query == 0)[..., None], -1e9).softmax(1)


def log_counts(cosines: Tensor, kept: Tensor, bins: int) -> Tensor:
    """Return LCH: ln(1 + count) of each bin. [n, q, t] and [n, t] -> [n, q, bins]."""
    places = ((cosines.detach().clamp(-1, 1) + 1) / 2 * (bins - 1)).long()  # [n, q, t]
    counts = torch.zeros(*cosines.shape[:2], bins, device=cosines.device)
    counts.scatter_add_(2, places, kept[:, None, :].to(counts.dtype).expand_as(places))
    return counts.log1p()

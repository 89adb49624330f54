"""Conv-KNRM: K-NRM between n-grams, whose vectors are convolutions of word vectors.

    g_i^h   = relu(W_h · v_{i:i+h} + b_h)                  h = 1 .. H words
    M^{a,b} = cos(g^a of the query, g^b of the text)       all H × H pairs of lengths
    score   = w · (φ(M^{1,1}) ⊕ ... ⊕ φ(M^{H,H})) + b      φ as in K-NRM

Dai, Xiong, Callan, Liu. Convolutional neural networks for soft-matching n-grams in ad-hoc search. WSDM 2018, eqs. 2-8.
An n-gram that begins near the end of a text is padded with zeros.
"""

from __future__ import annotations

from itertools import product
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, pad

from shaketable.rankers.neural.knrm import Kernels
from shaketable.rankers.neural.shapes import ConvKNRMShape
from shaketable.rankers.neural.words import Vocabulary, WordVectorNet


class ConvKNRM(WordVectorNet):
    """A kernel-pooling ranker on n-grams of words."""

    kind: ClassVar[str] = "conv_knrm"
    shape_class: ClassVar[type[ConvKNRMShape]] = ConvKNRMShape
    shape: ConvKNRMShape

    def __init__(self, vocabulary: Vocabulary, dim: int, shape: ConvKNRMShape):
        super().__init__(vocabulary, dim, shape)
        self.convolutions = nn.ModuleList(nn.Conv1d(dim, shape.filters, h) for h in range(1, shape.grams + 1))
        self.kernels = Kernels(shape.kernels, shape.sigma, shape.exact)
        self.combine = nn.Linear(shape.grams**2 * shape.kernels, 1)

    def forward(self, query: Tensor, text: Tensor) -> Tensor:  # type: ignore[override]
        features = [
            self.kernels(of_query @ of_text.transpose(1, 2), query != 0, text != 0)  # [n, q, t] -> [n, k]
            for of_query, of_text in product(self.encode_ngrams(query), self.encode_ngrams(text))
        ]
        scores: Tensor = self.combine(torch.cat(features, 1))  # [n, H² k] -> [n, 1]
        return scores[:, 0]

    def encode_ngrams(self, ids: Tensor) -> list[Tensor]:
        """Return unit vectors of the n-grams that begin at each word, for each length: H times [n, w, filters]."""
        words = self.look_up_vectors(ids).transpose(1, 2)  # [n, d, w]
        return [
            normalize(conv(pad(words, (0, h))).relu(), dim=1).transpose(1, 2)
            for h, conv in enumerate(self.convolutions)
        ]

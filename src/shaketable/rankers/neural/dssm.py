"""DSSM: query and text as bags of letter trigrams, each mapped to a small vector; their cosine is the score.

    x       counts of the letter trigrams, at unit length
    l_1     = tanh(W_1 x + b_1)                            eq. 3
    l_i     = tanh(W_i l_{i-1} + b_i)
    score   = γ · cos(l_N(q), l_N(d))                      eqs. 4, 5

Huang, He, Gao, Deng, Acero, Heck. Learning deep structured semantic models for web search using clickthrough data.
CIKM 2013. As there, one network reads both sides (MatchZoo has one for each), and γ starts at 10. The paper reads
titles; here x has unit length so that long texts do not saturate the first layer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from shaketable.core.documents import Corpus
from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.neural.net import EncodedTexts, Encoder, TokenAlignment
from shaketable.rankers.neural.shapes import DSSMShape
from shaketable.rankers.neural.tokens import pad_rows
from shaketable.rankers.neural.words import Floats, Ids, Vocabulary, align_terms, letter_trigrams, select_most_frequent

MAX_TRIGRAMS = 30_000
"""Maximum size of the vocabulary; rarer trigrams share a row."""


class Bag(NamedTuple):
    """The distinct trigrams of a text and their weights."""

    ids: Ids
    weights: Floats
    truncated: bool = False

    @property
    def length(self) -> int:
        return len(self.ids)


class DSSM(Encoder):
    """A deep structured semantic model. The first layer is an embedding table: row t is column t of W_1."""

    kind: ClassVar[str] = "dssm"
    shape_class: ClassVar[type[DSSMShape]] = DSSMShape

    def __init__(self, vocabulary: Vocabulary, shape: DSSMShape):
        super().__init__()
        self.vocabulary = vocabulary
        self.shape = shape
        first, *_ = shape.layers
        self.trigrams = nn.Embedding(len(vocabulary) + 2, first, padding_idx=0)  # padding, known, one for all unknown
        self.bias = nn.Parameter(torch.zeros(first))
        self.layers = nn.ModuleList(nn.Linear(size, after) for size, after in pairwise(shape.layers))
        self.gamma = nn.Parameter(torch.tensor(float(shape.gamma)))

    def prepare_queries(self, queries: Sequence[str]) -> list[Bag]:
        return [self.make_bag(query) for query in queries]

    def prepare_texts(self, texts: Sequence[str]) -> list[Bag]:
        return [self.make_bag(text) for text in texts]

    def make_bag(self, text: str) -> Bag:
        """Return x of the paper in sparse form."""
        numbers, unknown = self.vocabulary.numbers, len(self.vocabulary) + 1
        counts = Counter(
            numbers.get(trigram, unknown)
            for word in self.vocabulary.tokenizer(text)
            for trigram in letter_trigrams(word)
        )
        weights = np.fromiter(counts.values(), np.float32)
        return Bag(np.fromiter(counts, np.int64), weights / max(1.0, float(np.linalg.norm(weights))))

    def pack(self, prepared: Sequence[Bag]) -> dict[str, Tensor]:
        weights = np.zeros((len(prepared), max(1, *(bag.length for bag in prepared))), np.float32)
        for bag, row in zip(prepared, weights, strict=True):
            row[: bag.length] = bag.weights
        return {"ids": pad_rows([bag.ids for bag in prepared], 0), "weights": torch.from_numpy(weights)}

    def encode(self, **batch: Tensor) -> EncodedTexts:
        first = (self.trigrams(batch["ids"]) * batch["weights"][..., None]).sum(1)  # [n, t, h] -> [n, h]
        state = torch.tanh(first + self.bias)
        for layer in self.layers:
            state = torch.tanh(layer(state))  # [n, h']
        # √γ on each side: the product of two such vectors is γ times their cosine
        vectors = normalize(state, dim=1) * self.gamma.clamp(min=0).sqrt()
        return EncodedTexts(vectors[:, None, :], torch.ones(len(vectors), 1, dtype=torch.bool, device=vectors.device))

    def embedding(self) -> nn.Embedding:
        return self.trigrams

    @property
    def no_gradients_reason(self) -> str:
        return "DSSM reads a text as one bag of letter trigrams, so words have no vectors of their own"

    def align_tokens(self, text: str, query: str = "") -> TokenAlignment:
        tokenizer = self.vocabulary.tokenizer
        return TokenAlignment(align_terms(text, tokenizer), np.full(len(tokenizer(text)), -1), lookup=1, start=0)

    def config(self) -> dict[str, Any]:
        return asdict(self.shape)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], folder: Path) -> Self:
        return cls(Vocabulary.read(folder), DSSMShape(tuple(config["layers"]), gamma=config["gamma"]))

    def save_vocabulary(self, folder: Path) -> None:
        self.vocabulary.write(folder)


def build_trigram_vocabulary(corpus: Corpus, tokenizer: Analyzer) -> Vocabulary:
    """Return the vocabulary of letter trigrams of a collection's words."""
    words: Counter[str] = Counter()
    for _, doc in corpus.items():
        words.update(tokenizer(doc.text))
    parts = (letter_trigrams(word) * count for word, count in words.items())
    return Vocabulary(select_most_frequent(parts, MAX_TRIGRAMS), tokenizer)

"""Duet: where a text has the query's words, and what the two are about; two networks whose scores are added.

    local        X_jk = 1 if word j of the text is word k of the query; each of c filters sees a whole column:
                 f_l = MLP(tanh(conv(X)))
    distributed  q = tanh(W · max_i tanh(conv3(v_q)))
                 D = tanh(conv1(pool(tanh(conv3(v_d)))))
                 f_d = MLP(q ⊙ D)
    score        f_l + f_d

Mitra, Diaz, Craswell. Learning to match using local and distributed representations of text for web search. WWW 2017,
eqs. 1-4. Words come as word vectors (as in MatchZoo and Duet v2), not as the paper's trigrams. Lengths are fixed: what
is longer is cut, what is shorter is filled up with zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn
from torch.nn.functional import pad

from shaketable.errors import BadInput
from shaketable.rank.nets.words import OnWords, Pair, Vocabulary, same_words


@dataclass(frozen=True)
class Shape:
    """Filters of both networks, their hidden layers, the pooling window; and how much is read, in words."""

    filters: int = 10
    local: int = 30
    distributed: int = 699
    pool: int = 8
    dropout: float = 0.5
    query_length: int = 16
    text_length: int = 256

    @property
    def pools(self) -> int:
        """Windows of the text that are left after convolution and pooling."""
        return (self.text_length - 2) // self.pool


class Duet(OnWords):
    """A local and a distributed network side by side."""

    kind: ClassVar[str] = "duet"
    shapes = Shape
    shape: Shape

    def __init__(self, vocabulary: Vocabulary, dim: int, shape: Shape):
        if shape.query_length < 3 or shape.pools < 1:
            raise BadInput(f"duet: a query of 3 words and a text of {shape.pool + 2} are the least it can read")
        super().__init__(vocabulary, dim, shape)
        filters = shape.filters
        self.columns = nn.Conv1d(shape.text_length, filters, 1)
        self.local = _mlp(filters * shape.query_length, shape.local, shape.dropout)
        self.query_grams = nn.Conv1d(dim, filters, 3)
        self.query_dense = nn.Linear(filters, filters)
        self.text_grams = nn.Conv1d(dim, filters, 3)
        self.text_pool = nn.MaxPool1d(shape.pool)
        self.text_dense = nn.Conv1d(filters, filters, 1)
        self.distributed = _mlp(filters * shape.pools, shape.distributed, shape.dropout)

    def collate(self, prepared: Sequence[Pair]) -> dict[str, Tensor]:
        lengths = {"query": self.shape.query_length, "text": self.shape.text_length}
        return {key: pad(ids, (0, lengths[key] - ids.shape[1])) for key, ids in super().collate(prepared).items()}

    def forward(self, query: Tensor, text: Tensor) -> Tensor:  # type: ignore[override]
        return (self.locally(query, text) + self.distributedly(query, text))[:, 0]

    def locally(self, query: Tensor, text: Tensor) -> Tensor:
        matches = same_words(query, text).transpose(1, 2).to(self.columns.weight.dtype)  # [n, t, q]
        columns = self.columns(matches).tanh()  # [n, c, q]
        scores: Tensor = self.local(columns.flatten(1))  # [n, 1]
        return scores

    def distributedly(self, query: Tensor, text: Tensor) -> Tensor:
        asked, read = self.vectors(query).transpose(1, 2), self.vectors(text).transpose(1, 2)  # [n, d, q], [n, d, t]
        about = self.query_dense(self.query_grams(asked).tanh().amax(2)).tanh()  # [n, c]
        parts = self.text_dense(self.text_pool(self.text_grams(read).tanh())).tanh()  # [n, c, pools]
        scores: Tensor = self.distributed((about[:, :, None] * parts).flatten(1))  # [n, 1]
        return scores


def _mlp(size: int, hidden: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(nn.Linear(size, hidden), nn.Tanh(), nn.Dropout(dropout), nn.Linear(hidden, 1))

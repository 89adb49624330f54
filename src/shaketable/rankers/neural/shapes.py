"""The shapes of the nets: the sizes and choices in which nets of one kind differ, with their defaults.

A net has a shape, and its learner inherits it, so a default stands here and nowhere else. There is no torch in this
module: learners are listed without it.

What is declared by keyword only cannot be given by its place, in a shape or in a learner.
"""

from __future__ import annotations

from dataclasses import dataclass, field

DEFAULT_MAX_PIECES = 192
"""Pieces that a net on a pretrained model reads, special tokens included: quick where there is no GPU."""


@dataclass(frozen=True, kw_only=True)
class WordsRead:
    """How much is read of a query and of a text, in words."""

    query_length: int = 32
    text_length: int = 512


@dataclass(frozen=True)
class DSSMShape:
    """The sizes of the layers, and γ before training."""

    layers: tuple[int, ...] = (100, 100, 50)
    gamma: float = field(default=10.0, kw_only=True)


@dataclass(frozen=True)
class DRMMShape(WordsRead):
    """The sizes of the histogram and of the hidden layer; and how much is read, in words."""

    bins: int = 30
    hidden: int = 5


@dataclass(frozen=True)
class KNRMShape(WordsRead):
    """The kernels, one of them for exact matches, and their widths; and how much is read, in words."""

    kernels: int = 11
    sigma: float = 0.1
    exact: float = field(default=0.001, kw_only=True)


@dataclass(frozen=True)
class ConvKNRMShape(WordsRead):
    """The longest n-gram, the filters, the kernels as in K-NRM; and how much is read, in words."""

    grams: int = 3
    filters: int = 128
    kernels: int = KNRMShape.kernels
    sigma: float = KNRMShape.sigma
    exact: float = field(default=KNRMShape.exact, kw_only=True)


@dataclass(frozen=True)
class DuetShape(WordsRead):
    """The filters of both networks, their hidden layers, the pooling window; and how much is read, in words."""

    query_length: int = 16
    text_length: int = 256
    filters: int = 10
    local: int = 30
    distributed: int = 699
    input: str = "words"
    pool: int = field(default=8, kw_only=True)
    dropout: float = field(default=0.5, kw_only=True)

    @property
    def pooled_windows(self) -> int:
        """Windows of the text that are left after convolution and pooling."""
        return (self.text_length - 2) // self.pool


@dataclass(frozen=True, kw_only=True)
class BertShape:
    """How many pieces of query and text together are read, special tokens included; 0 is the model's own limit."""

    max_length: int = DEFAULT_MAX_PIECES


@dataclass(frozen=True, kw_only=True)
class MonoT5Shape:
    """How many pieces are read, prompt included. T5 knows no positions, only distances, so any number can be asked."""

    max_length: int = DEFAULT_MAX_PIECES


@dataclass(frozen=True, kw_only=True)
class ColBERTShape:
    """The size of the vectors; and how many pieces are read, special tokens included."""

    dim: int = 128
    query_length: int = 32
    text_length: int = 180


@dataclass(frozen=True, kw_only=True)
class DenseShape:
    """How texts become vectors: how much is read, what the vector is made of, what is put before a text.

    `max_length` counts pieces, special tokens included; 0 is the model's own limit.
    """

    max_length: int = DEFAULT_MAX_PIECES
    pooling: str = "mean"
    cosine: bool = True
    query_prompt: str = ""
    text_prompt: str = ""


@dataclass(frozen=True, kw_only=True)
class EPICShape:
    """How much is read, special tokens included (0: all that the model can), and how much of a text's vector is kept.

    A text has some weight on every piece, for a(x) > 0. With `keep` only its largest entries stay (the paper keeps
    1,000): each entry that goes is at most the smallest one that stays, so a score falls by no more than that times
    Σ_v q[v]. That is little only where training has made most entries small: before it, they are nearly alike.
    """

    max_length: int = DEFAULT_MAX_PIECES
    keep: int = 0
    dropout: float = 0.1

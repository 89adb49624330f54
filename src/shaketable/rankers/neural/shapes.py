"""The shapes of the nets: the sizes and choices of each kind of net, with their defaults.

A net has a shape, and its learner inherits it, so each default is defined only here. This module does not import torch,
so learners can be listed without it.

Keyword-only fields stay keyword-only in learners.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from shaketable.core.errors import BadInput

DEFAULT_MAX_PIECES = 192
"""Input limit in pieces of a net on a pretrained model, special tokens included: fast enough without a GPU."""


@dataclass(frozen=True, kw_only=True)
class WordsRead:
    """The input limits of query and text, in words."""

    query_length: int = 32
    text_length: int = 512


@dataclass(frozen=True)
class DSSMShape:
    """The sizes of the layers, and γ before training."""

    layers: tuple[int, ...] = (100, 100, 50)
    gamma: float = field(default=10.0, kw_only=True)


@dataclass(frozen=True)
class DRMMShape(WordsRead):
    """The sizes of the histogram and of the hidden layer; and the input limits in words."""

    bins: int = 30
    hidden: int = 5


@dataclass(frozen=True)
class KNRMShape(WordsRead):
    """The kernels, one of them for exact matches, and their widths; and the input limits in words."""

    kernels: int = 11
    sigma: float = 0.1
    exact: float = field(default=0.001, kw_only=True)


@dataclass(frozen=True)
class ConvKNRMShape(WordsRead):
    """The longest n-gram, the filters, the kernels as in K-NRM; and the input limits in words."""

    grams: int = 3
    filters: int = 128
    kernels: int = KNRMShape.kernels
    sigma: float = KNRMShape.sigma
    exact: float = field(default=KNRMShape.exact, kw_only=True)


@dataclass(frozen=True)
class DuetShape(WordsRead):
    """The filters of both networks, their hidden layers, the pooling window; and the input limits in words."""

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
        """The number of windows of the text after convolution and pooling."""
        return (self.text_length - 2) // self.pool


@dataclass(frozen=True, kw_only=True)
class BertShape:
    """The input limit of query and text together in pieces, special tokens included; 0 is the model's own limit."""

    max_length: int = DEFAULT_MAX_PIECES


@dataclass(frozen=True, kw_only=True)
class MonoT5Shape:
    """The input limit in pieces, prompt included. T5 has relative positions, so any limit is possible."""

    max_length: int = DEFAULT_MAX_PIECES


@dataclass(frozen=True, kw_only=True)
class ColBERTShape:
    """The size of the vectors; and the input limits in pieces, special tokens included."""

    dim: int = 128
    query_length: int = 32
    text_length: int = 180


@dataclass(frozen=True, kw_only=True)
class DenseShape:
    """The encoding of texts: the input limit, the pooling, and the prefixes of queries and passages.

    `max_length` counts pieces, prefix and special tokens included; 0 is the model's own limit. With `lower_case`, texts
    are lower-cased before the tokenizer reads them.
    """

    max_length: int = DEFAULT_MAX_PIECES
    pooling: str = "mean"
    cosine: bool = True
    query_prefix: str = ""
    passage_prefix: str = ""
    lower_case: bool = False


@dataclass(frozen=True, kw_only=True)
class EPICShape:
    """The input limits, special tokens included (0: the model's own limit), and the entries kept of a text's vector.

    A text has some weight on every piece, as a(x) > 0. `keep` keeps only its largest entries (the paper keeps 1,000):
    each removed entry is at most the smallest kept one, so a score falls by at most that times Σ_v q[v]. That is small
    only after training has made most entries small: before it, they are nearly equal.
    """

    max_length: int = DEFAULT_MAX_PIECES
    keep: int = 0
    dropout: float = 0.1


def check_same_shape(shape: Any, wanted: Any, kind: str, path: str) -> None:
    """Raise `BadInput` if a stored net has another shape than the wanted one, which training cannot change.

    A maximum length of 0 stands for that of the model itself.
    """
    pairs = {f.name: (getattr(shape, f.name), getattr(wanted, f.name)) for f in fields(wanted)}
    other = {name: pair for name, pair in pairs.items() if pair[0] != pair[1] and (name, pair[1]) != ("max_length", 0)}
    if other:
        has = ", ".join(f"{name}={pair[0]!r}" for name, pair in other.items())
        asked = ", ".join(f"{name}={pair[1]!r}" for name, pair in other.items())
        raise BadInput(f"has {has}, and {kind} with {asked} cannot start from it; write {has}", path)

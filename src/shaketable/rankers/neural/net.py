"""The interface of neural rankers for scoring, training and attacks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from shaketable.core.errors import BadInput


class PreparedPair(Protocol):
    """A (query, text) pair as numbers, before batching."""

    @property
    def length(self) -> int:
        """The number of tokens in a batch; pairs of similar length are batched together."""
        ...

    @property
    def truncated(self) -> bool:
        """True if the text was truncated."""
        ...


class Word(NamedTuple):
    """A word of a text: its characters from `start` to `end`, and its tokens.

    Tokens are counted from the text's first one, without special tokens, prompt or query. A word that is truncated
    away, dropped or unknown to the net has none; a word that is cut has only the remaining tokens.
    """

    start: int
    end: int
    tokens: tuple[int, ...]


class TokenAlignment(NamedTuple):
    """The part of a text that a net reads, and the position of its tokens among the embedding lookups."""

    words: list[Word]
    """All words of `nlp.words.find_word_spans`, in order."""
    rows: NDArray[np.int64]
    """The row of `Net.embedding` for each token; -1 if the token has no vector of its own."""
    lookup: int
    """The number of lookups for other vectors (those of the query) before the lookup for the text."""
    start: int
    """The position of the text's first token in that lookup."""


class Net(nn.Module, ABC):
    """A module that computes one score per (query, text) pair.

        net(**net.collate(net.prepare(pairs)))  ->  [n]

    A net is built by its constructor, or by `saving.read_net` from `config`, the files of `save_vocabulary`, and the
    weights. An empty query and an empty text also have a score.
    """

    kind: ClassVar[str]
    """The name of the net in saved models, of its learner, and of its module."""
    shape_class: ClassVar[type[Any]]
    """The dataclass in `rankers.neural.shapes` with its sizes, choices and defaults."""
    family: ClassVar[str] = "neural"
    """The class of ranker in paper 004: neural, or transformer for a net on a transformer."""

    @property
    def mixes_rows(self) -> bool:
        """True if other rows of a batch change the score of a row, so that each row needs a batch of its own."""
        return False

    @abstractmethod
    def prepare(self, pairs: Sequence[tuple[str, str]]) -> list[Any]:
        """Tokenise: return one `PreparedPair` per pair. Texts repeat often, so cache their tokens."""

    @abstractmethod
    def collate(self, prepared: Sequence[Any]) -> dict[str, Tensor]:
        """Return a padded batch, the input of `forward`. Padding must not affect the scores."""

    @abstractmethod
    def forward(self, **batch: Tensor) -> Tensor:
        """Return one score per pair, higher is better: [n]."""

    @abstractmethod
    def embedding(self) -> nn.Embedding:
        """Return the layer that maps tokens to vectors, at which gradients with respect to words are taken."""

    @property
    def no_gradients_reason(self) -> str:
        """The reason why there are no gradients with respect to the words of a text; "" if there are."""
        return f"a net of the kind {self.kind} does not map its tokens to the words of a text"

    def align_tokens(self, text: str, query: str = "") -> TokenAlignment:
        """Return the alignment of a text's words and tokens. Truncation may depend on the query."""
        raise BadInput(self.no_gradients_reason)

    def decode_vocabulary(self) -> list[str]:
        """Return the strings of the rows of `embedding`, where they exist; some may not be words."""
        return []

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Return the JSON-serialisable settings that, with vocabulary and weights, rebuild the net."""

    @classmethod
    @abstractmethod
    def from_config(cls, config: Mapping[str, Any], folder: Path) -> Self:
        """Return the net without weights; `save_vocabulary` wrote `folder`."""

    @abstractmethod
    def save_vocabulary(self, folder: Path) -> None:
        """Write the files of the vocabulary, such as the tokenizer's files or a list of words."""


class EncodedTexts(NamedTuple):
    """The vectors of a batch of texts."""

    values: Tensor
    """[n, t, d]"""
    mask: Tensor
    """[n, t]: False for padding and for tokens that do not count."""


class Encoder(Net):
    """A net that encodes queries and texts separately, into one or several vectors, and compares these.

        score = Σ_i max_j q_i · d_j

    So each distinct query and text is encoded only once.
    """

    @abstractmethod
    def prepare_queries(self, queries: Sequence[str]) -> list[Any]:
        """Tokenise queries: one `PreparedPair` each."""

    @abstractmethod
    def prepare_texts(self, texts: Sequence[str]) -> list[Any]:
        """Tokenise texts: one `PreparedPair` each."""

    @abstractmethod
    def pack(self, prepared: Sequence[Any]) -> dict[str, Tensor]:
        """Return a padded batch of queries or of texts, the input of `encode`."""

    @abstractmethod
    def encode(self, **batch: Tensor) -> EncodedTexts:
        """Return the vectors of a batch."""

    def prepare(self, pairs: Sequence[tuple[str, str]]) -> list[SeparatePair]:
        queries, texts = self.prepare_queries([q for q, _ in pairs]), self.prepare_texts([t for _, t in pairs])
        return list(map(SeparatePair, queries, texts))

    def collate(self, prepared: Sequence[SeparatePair]) -> dict[str, Tensor]:
        queries, texts = self.pack([pair.query for pair in prepared]), self.pack([pair.text for pair in prepared])
        return {f"query_{key}": value for key, value in queries.items()} | {
            f"text_{key}": value for key, value in texts.items()
        }

    def forward(self, **batch: Tensor) -> Tensor:
        queries, texts = (
            self.encode(**{key.removeprefix(side): value for key, value in batch.items() if key.startswith(side)})
            for side in ("query_", "text_")
        )
        return maxsim(queries, texts)


class SeparatePair(NamedTuple):
    """A pair whose query and text are encoded separately."""

    query: Any
    text: Any

    @property
    def length(self) -> int:
        return int(self.query.length + self.text.length)

    @property
    def truncated(self) -> bool:
        return bool(self.text.truncated)


def maxsim(queries: EncodedTexts, texts: EncodedTexts) -> Tensor:
    """Return the sum over the query's vectors of the product with the text's nearest vector: [n].

    Khattab, Zaharia. ColBERT. SIGIR 2020, eq. 3.
    """
    products = queries.values @ texts.values.transpose(1, 2)  # [n, a, b]
    nearest = products.masked_fill(~texts.mask[:, None, :], float("-inf")).amax(dim=2)  # [n, a]
    return nearest.masked_fill(~queries.mask, 0.0).sum(dim=1)

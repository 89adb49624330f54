"""What scoring, training and attacks need of a neural ranker, and no more."""

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
    """A (query, text) pair as numbers, before it meets others in a batch."""

    @property
    def length(self) -> int:
        """What the pair takes in a batch, in tokens: pairs of like length go together."""
        ...

    @property
    def truncated(self) -> bool:
        """Was the text longer than what the net reads?"""
        ...


class Word(NamedTuple):
    """A word of a text: its characters from `start` to `end`, and which tokens of the text are read for it.

    Tokens are counted from the text's first one, without special tokens, prompt or query. A word that is beyond what
    the net reads of the text, or that it drops or does not know how to spell, has none; one that is cut has the rest.
    """

    start: int
    end: int
    tokens: tuple[int, ...]


class TokenAlignment(NamedTuple):
    """What a net reads of a text, and where the vectors of the text's tokens are looked up."""

    words: list[Word]
    """Those of `nlp.words.find_word_spans`, all of them and in order."""
    rows: NDArray[np.int64]
    """For each token that is read its row of `Net.embedding`; -1 where it has no vector of its own."""
    lookup: int
    """How often a forward pass has asked for other vectors (those of the query) before it asks for the text's."""
    start: int
    """The place of the text's first token among the vectors that are asked for then."""


class Net(nn.Module, ABC):
    """A module that gives (query, text) pairs a score each.

        net(**net.collate(net.prepare(pairs)))  ->  [n]

    A net is made by its own constructor, or by `saving.read_net` from `config`, what `save_vocabulary` wrote, and
    the weights. An empty query and an empty text have a score like any other.
    """

    kind: ClassVar[str]
    """What saved models call it, and the learner that trains it; the net's module has the same name."""
    shape_class: ClassVar[type[Any]]
    """The dataclass in `rankers.neural.shapes` that has its sizes and choices, and their defaults."""
    family: ClassVar[str] = "neural"
    """The class of ranker in paper 004: neural, or transformer where it stands on one."""

    @abstractmethod
    def prepare(self, pairs: Sequence[tuple[str, str]]) -> list[Any]:
        """Tokenise: one `PreparedPair` a pair. The same text may come often; remember what can be."""

    @abstractmethod
    def collate(self, prepared: Sequence[Any]) -> dict[str, Tensor]:
        """A padded batch: what `forward` takes. Padding must not show in the scores."""

    @abstractmethod
    def forward(self, **batch: Tensor) -> Tensor:
        """One score a pair, higher is better: [n]."""

    @abstractmethod
    def embedding(self) -> nn.Embedding:
        """The layer that turns tokens into vectors: where gradients with respect to words are taken."""

    @property
    def no_gradients_reason(self) -> str:
        """Nothing if there are gradients with respect to the words of a text; else the reason why there are none."""
        return f"a net of the kind {self.kind} does not tell which of its tokens are a text's words"

    def align_tokens(self, text: str, query: str = "") -> TokenAlignment:
        """Where the words of a text are in what is read of it. How much that is may depend on the query beside it."""
        raise BadInput(self.no_gradients_reason)

    def decode_vocabulary(self) -> list[str]:
        """How the rows of `embedding` are written in a text, as far as they are; what is no word may be among them."""
        return []

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """What, besides vocabulary and weights, makes the same net again: plain values that JSON can hold."""

    @classmethod
    @abstractmethod
    def from_config(cls, config: Mapping[str, Any], folder: Path) -> Self:
        """The net without its weights; `folder` is where `save_vocabulary` wrote."""

    @abstractmethod
    def save_vocabulary(self, folder: Path) -> None:
        """Write what texts are read with: the tokenizer's files, a list of words."""


class EncodedTexts(NamedTuple):
    """What an encoder makes of a batch of texts."""

    values: Tensor
    """[n, t, d]"""
    mask: Tensor
    """[n, t]: False where there is padding, or a token that does not count."""


class Encoder(Net):
    """A net that reads queries and texts apart, into one vector or several, and compares these:

        score = Σ_i max_j q_i · d_j

    So each distinct query and text need be encoded once only.
    """

    @abstractmethod
    def prepare_queries(self, queries: Sequence[str]) -> list[Any]:
        """Tokenise queries: one `PreparedPair` each."""

    @abstractmethod
    def prepare_texts(self, texts: Sequence[str]) -> list[Any]:
        """Tokenise texts: one `PreparedPair` each."""

    @abstractmethod
    def pack(self, prepared: Sequence[Any]) -> dict[str, Tensor]:
        """A padded batch of queries or of texts: what `encode` takes."""

    @abstractmethod
    def encode(self, **batch: Tensor) -> EncodedTexts:
        """The vectors of a batch."""

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
    """A pair whose query and text are read apart."""

    query: Any
    text: Any

    @property
    def length(self) -> int:
        return int(self.query.length + self.text.length)

    @property
    def truncated(self) -> bool:
        return bool(self.text.truncated)


def maxsim(queries: EncodedTexts, texts: EncodedTexts) -> Tensor:
    """For each of the query's vectors the text's nearest one, added up: [n].

    Khattab, Zaharia. ColBERT. SIGIR 2020, eq. 3.
    """
    products = queries.values @ texts.values.transpose(1, 2)  # [n, a, b]
    nearest = products.masked_fill(~texts.mask[:, None, :], float("-inf")).amax(dim=2)  # [n, a]
    return nearest.masked_fill(~queries.mask, 0.0).sum(dim=1)

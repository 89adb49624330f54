"""Duet: a local network for exact matches and a distributed network for topics; their scores are added.

    local        X_jk = 1 if word j of the text is word k of the query; each of c filters sees a whole column:
                 f_l = MLP(tanh(conv(X)))
    distributed  q = tanh(W · max_i tanh(conv3(v_q)))
                 D = tanh(conv1(pool(tanh(conv3(v_d)))))
                 f_d = MLP(q ⊙ D)
    score        f_l + f_d

v are word vectors, one for each word of the vocabulary (as in MatchZoo for Keras, and in Duet v2); or, with
input="trigrams", as in the paper, the counts of each word's letter trigrams, at unit length. Then an unseen word, such
as a misspelt one, is still similar to words that share its letters.

Mitra, Diaz, Craswell. Learning to match using local and distributed representations of text for web search. WWW 2017,
eqs. 1-4. Lengths are fixed: longer inputs are truncated, shorter ones padded with zeros.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from shaketable.core.errors import BadInput
from shaketable.nlp.analyzer import Memo
from shaketable.rankers.neural.net import TokenAlignment
from shaketable.rankers.neural.shapes import DuetShape
from shaketable.rankers.neural.words import (
    Floats,
    Ids,
    Vocabulary,
    WordVectorNet,
    align_terms,
    letter_trigrams,
    match_words,
)

INPUT_CHOICES = "words", "trigrams"


class LetterTrigrams(NamedTuple):
    """The letter trigrams of words: the word, the trigram, and its share of the word's vector."""

    word_positions: Ids
    trigrams: Ids
    weights: Floats


class SpelledPair(NamedTuple):
    """A query and a text as word numbers, and the letter trigrams of these words."""

    query: Ids
    text: Ids
    query_letters: LetterTrigrams
    text_letters: LetterTrigrams
    truncated: bool

    @property
    def length(self) -> int:
        return len(self.query) + len(self.text)


class Duet(WordVectorNet):
    """A local and a distributed network side by side.

    On trigrams, the vocabulary is that of trigrams, and the convolution over three words is a table: row t has, for
    the query and then for the text, the contribution of trigram t to each filter from each of the three words. The last
    row is for unknown trigrams.
    """

    kind: ClassVar[str] = "duet"
    shape_class: ClassVar[type[DuetShape]] = DuetShape
    shape: DuetShape

    def __init__(self, vocabulary: Vocabulary, dim: int, shape: DuetShape):
        if shape.query_length < 3 or shape.pooled_windows < 1:
            raise BadInput(f"duet: a query needs at least 3 words and a text at least {shape.pool + 2}")
        if shape.input not in INPUT_CHOICES:
            raise BadInput(f"duet: input should be {' or '.join(INPUT_CHOICES)}, not {shape.input!r}")
        super().__init__(vocabulary, dim, shape)
        filters = shape.filters
        self.columns = nn.Conv1d(shape.text_length, filters, 1)
        self.local = _build_mlp(filters * shape.query_length, shape.local, shape.dropout)
        on_words = shape.input == "words"
        self.query_grams = nn.Conv1d(dim, filters, 3) if on_words else None
        self.query_dense = nn.Linear(filters, filters)
        self.text_grams = nn.Conv1d(dim, filters, 3) if on_words else None
        self.text_pool = nn.MaxPool1d(shape.pool)
        self.text_dense = nn.Conv1d(filters, filters, 1)
        self.distributed = _build_mlp(filters * shape.pooled_windows, shape.distributed, shape.dropout)
        if not on_words:
            self.words = nn.Embedding(len(vocabulary) + 2, 6 * filters, padding_idx=0)
            nn.init.uniform_(self.words.weight[1:].detach(), -0.5, 0.5)  # word vectors have unit length
            self.query_bias, self.text_bias = (nn.Parameter(torch.zeros(filters)) for _ in range(2))
            self._trigram_cache = Memo(self._count_trigrams)

    def prepare(self, pairs: Sequence[tuple[str, str]]) -> list[Any]:
        if self.shape.input == "words":
            return super().prepare(pairs)
        most, longest, tokenizer = self.shape.query_length, self.shape.text_length, self.vocabulary.tokenizer
        rows = []
        for query, text in pairs:
            asked, said = tokenizer(query)[:most], tokenizer(text)
            letters = self._spell_words(asked), self._spell_words(said[:longest])
            rows.append(SpelledPair(_hash_words(asked), _hash_words(said[:longest]), *letters, len(said) > longest))
        return rows

    def _count_trigrams(self, word: str) -> tuple[Ids, Floats]:
        """Return the trigrams of a word, and their counts at unit length."""
        numbers, unknown = self.vocabulary.numbers, len(self.vocabulary) + 1
        counts = Counter(numbers.get(trigram, unknown) for trigram in letter_trigrams(word))
        shares = np.fromiter(counts.values(), np.float32)
        return np.fromiter(counts, np.int64), shares / np.linalg.norm(shares)

    def _spell_words(self, words: Sequence[str]) -> LetterTrigrams:
        if not words:
            return LetterTrigrams(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
        trigrams, shares = zip(*map(self._trigram_cache.__getitem__, words), strict=True)
        places = np.repeat(np.arange(len(words)), [len(some) for some in trigrams])
        return LetterTrigrams(places, np.concatenate(trigrams), np.concatenate(shares))

    def collate(self, prepared: Sequence[Any]) -> dict[str, Tensor]:
        lengths = {"query": self.shape.query_length, "text": self.shape.text_length}
        ids = super().collate(prepared)
        batch = {key: pad(rows, (0, lengths[key] - rows.shape[1])) for key, rows in ids.items()}
        if self.shape.input == "trigrams":
            for key, length in lengths.items():
                rows: list[LetterTrigrams] = [getattr(row, f"{key}_letters") for row in prepared]
                places = [letters.word_positions + number * length for number, letters in enumerate(rows)]
                batch[f"{key}_places"] = torch.from_numpy(np.concatenate(places))
                batch[f"{key}_trigrams"] = torch.from_numpy(np.concatenate([letters.trigrams for letters in rows]))
                batch[f"{key}_shares"] = torch.from_numpy(np.concatenate([letters.weights for letters in rows]))
        return batch

    @property
    def no_gradients_reason(self) -> str:
        on_words = self.shape.input == "words"
        return "" if on_words else "with input='trigrams' Duet reads letters, so words have no vectors of their own"

    def align_tokens(self, text: str, query: str = "") -> TokenAlignment:
        if self.shape.input == "words":
            return super().align_tokens(text, query)
        tokenizer, longest = self.vocabulary.tokenizer, self.shape.text_length
        rows = np.full(len(tokenizer(text)[:longest]), -1)
        return TokenAlignment(align_terms(text, tokenizer, longest), rows, lookup=1, start=0)

    def decode_vocabulary(self) -> list[str]:
        return super().decode_vocabulary() if self.shape.input == "words" else []

    def forward(self, query: Tensor, text: Tensor, **letters: Tensor) -> Tensor:  # type: ignore[override]
        return (self.score_local(query, text) + self.score_distributed(query, text, **letters))[:, 0]

    def score_local(self, query: Tensor, text: Tensor) -> Tensor:
        matches = match_words(query, text).transpose(1, 2).to(self.columns.weight.dtype)  # [n, t, q]
        columns = self.columns(matches).tanh()  # [n, c, q]
        scores: Tensor = self.local(columns.flatten(1))  # [n, 1]
        return scores

    def score_distributed(self, query: Tensor, text: Tensor, **letters: Tensor) -> Tensor:
        if self.query_grams is not None and self.text_grams is not None:
            asked = self.query_grams(self.look_up_vectors(query).transpose(1, 2))  # [n, c, q - 2]
            read = self.text_grams(self.look_up_vectors(text).transpose(1, 2))  # [n, c, t - 2]
        else:
            asked, read = (
                self._convolve_trigrams(query, "query", letters),
                self._convolve_trigrams(text, "text", letters),
            )
        about = self.query_dense(asked.tanh().amax(2)).tanh()  # [n, c]
        parts = self.text_dense(self.text_pool(read.tanh())).tanh()  # [n, c, pools]
        scores: Tensor = self.distributed((about[:, :, None] * parts).flatten(1))  # [n, 1]
        return scores

    def _convolve_trigrams(self, ids: Tensor, side: str, letters: dict[str, Tensor]) -> Tensor:
        """Return conv3 of words given by their letters: [n, w] -> [n, c, w - 2]."""
        filters, bias = self.shape.filters, self.query_bias if side == "query" else self.text_bias
        first = 0 if side == "query" else 3 * filters
        rows = self.words(letters[f"{side}_trigrams"])[:, first : first + 3 * filters]  # [trigrams, 3c]
        rows = rows * letters[f"{side}_shares"][:, None]
        words = rows.new_zeros(ids.numel(), 3 * filters).index_add(0, letters[f"{side}_places"], rows)
        words = words.view(*ids.shape, 3, filters)  # [n, w, 3, c]: as the first, second and third of three words
        size = ids.shape[1] - 2
        three = torch.stack([words[:, k : k + size, k] for k in range(3)])  # [3, n, w - 2, c]
        return (three.sum(0) + bias).transpose(1, 2)


def _hash_words(words: Sequence[str]) -> Ids:
    """Return a practically unique number for each word: the local network needs only equality of words."""
    return np.fromiter((1 + crc32(word.encode("utf-8", "surrogatepass")) for word in words), np.int64)


def _build_mlp(size: int, hidden: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(nn.Linear(size, hidden), nn.Tanh(), nn.Dropout(dropout), nn.Linear(hidden, 1))

"""Word pieces of pretrained tokenizers: tokenisation, special tokens, truncation and padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shaketable.core.errors import BadInput
from shaketable.nlp.words import find_word_spans
from shaketable.rankers.neural.net import TokenAlignment, Word
from shaketable.rankers.neural.text_cache import ArrayCache

Ids = NDArray[np.int32]
PIECE_CACHE_BYTES = 64 << 20  # pieces and their texts


class WordPieces:
    """A tokenizer without special tokens, with a cache."""

    def __init__(self, tokenizer: Any):
        self.tokenizer = tokenizer
        self._cache: ArrayCache[Ids] = ArrayCache(PIECE_CACHE_BYTES)

    def __call__(self, texts: Sequence[str]) -> list[Ids]:
        return self._cache.get_or_make(texts, self._encode_texts)

    def _encode_texts(self, texts: list[str]) -> list[Ids]:
        return [np.array(ids, dtype=np.int32) for ids in self._tokenize(texts)["input_ids"]]

    def _tokenize(self, texts: Sequence[str], **asked: bool) -> Any:
        # tokenizers refuse lone surrogates
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        return self.tokenizer(clean, add_special_tokens=False, return_attention_mask=False, verbose=False, **asked)

    @property
    def no_gradients_reason(self) -> str:
        """The reason why the pieces of a word are unknown; "" if they are known."""
        return "" if self.tokenizer.is_fast else "its tokenizer does not map pieces to words"

    def align_tokens(self, text: str, lookup: int, start: int, limit: int, prompt: str = "") -> TokenAlignment:
        """Return the alignment of a text truncated to `limit` pieces, which include those of the prompt before it.

        A piece belongs to the first word that it shares a character with. The unknown piece belongs to no word.
        """
        if self.no_gradients_reason:
            raise BadInput(self.no_gradients_reason)
        found = self._tokenize([prompt + text], return_offsets_mapping=True)
        ids, places = found["input_ids"][0][:limit], found["offset_mapping"][0][:limit]
        skipped = len(prompt)
        before = sum(first < skipped for first, _ in places)
        words = find_word_spans(text)
        tokens: list[list[int]] = [[] for _ in words]
        at = 0
        for number, (first, last) in enumerate(places[before:]):
            while at < len(words) and words[at][1] + skipped <= first:
                at += 1
            if at == len(words):
                break
            if last > words[at][0] + skipped and ids[before + number] != self.tokenizer.unk_token_id:
                tokens[at].append(number)
        located = [Word(*span, tuple(some)) for span, some in zip(words, tokens, strict=True)]
        return TokenAlignment(located, np.array(ids[before:], dtype=np.int64), lookup, start + before)

    def decode_vocabulary(self) -> list[str]:
        """Return the strings of the vocabulary's pieces; some are not words or are not tokenised to themselves."""
        return [self.tokenizer.decode([number]).strip() for number in range(len(self.tokenizer))]


@dataclass(frozen=True)
class TokenRow:
    """One row of a batch."""

    ids: Ids
    type_ids: Ids
    truncated: bool

    @property
    def length(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class SpecialTokenFrame:
    """The positions of a tokenizer's special tokens: around one text, or around and between two.

    `special_ids` are the special tokens before, between and after texts, `special_type_ids` and `text_type_ids` the
    segments of these tokens and of the texts.
    """

    special_ids: tuple[Ids, ...]
    special_type_ids: tuple[Ids, ...]
    text_type_ids: tuple[int, ...]
    uses_type_ids: bool
    """True if the model uses segments."""

    @classmethod
    def from_tokenizer(cls, tokenizer: Any, texts: int) -> SpecialTokenFrame:
        """Return the frame, detected from the tokenizer's output for the text "a"."""
        size = len(tokenizer("a", add_special_tokens=False)["input_ids"])
        probe = tokenizer(*["a"] * texts, return_special_tokens_mask=True)
        ids = np.array(probe["input_ids"], dtype=np.int32)
        types = np.array(probe.get("token_type_ids", np.zeros(len(ids))), dtype=np.int32)
        at = np.flatnonzero(np.array(probe["special_tokens_mask"]) == 0)
        if not size or len(at) != size * texts:
            raise BadInput(
                f"the tokenizer makes {len(at)} tokens of {texts} times the text 'a': it cannot be used here"
            )
        starts, ends = at[::size], at[size - 1 :: size] + 1
        gaps = [slice(a, b) for a, b in zip([0, *ends], [*starts, len(ids)], strict=True)]
        return cls(
            tuple(ids[gap] for gap in gaps),
            tuple(types[gap] for gap in gaps),
            tuple(types[starts].tolist()),
            "token_type_ids" in probe,
        )

    def fit_lengths(self, sizes: Sequence[int], limit: int) -> list[int]:
        """Return the truncated sizes of texts, so that with the special tokens they fit into `limit`."""
        return truncate_lengths(sizes, limit - sum(map(len, self.special_ids)))

    def wrap_texts(self, texts: Sequence[Ids], limit: int) -> TokenRow:
        """Return the texts with their special tokens, truncated to `limit`."""
        sizes = [len(text) for text in texts]
        kept = self.fit_lengths(sizes, limit)
        ids, types = [self.special_ids[0]], [self.special_type_ids[0]]
        for text, size, kind, mark, mark_type in zip(
            texts, kept, self.text_type_ids, self.special_ids[1:], self.special_type_ids[1:], strict=True
        ):
            ids += text[:size], mark
            types += np.full(size, kind, np.int32), mark_type
        return TokenRow(np.concatenate(ids), np.concatenate(types), truncated=kept != sizes)


def truncate_lengths(sizes: Sequence[int], max_total: int) -> list[int]:
    """Return the truncated sizes of one or two texts: the longer one is cut first, until both have half.

    >>> truncate_lengths([10, 300], 100), truncate_lengths([300, 200], 101), truncate_lengths([300], 100)
    ([10, 90], [51, 50], [100])
    """
    if sum(sizes) <= max_total:
        return list(sizes)
    if len(sizes) == 1:
        return [max_total]
    first, second = sizes
    short = min(first, second, max_total // 2)
    return [short, max_total - short] if first <= second else [max_total - short, short]


def pad_rows(rows: Sequence[NDArray[np.generic]], fill: int) -> Tensor:
    """Return rows of different lengths as one tensor, padded at the right: [n, longest]."""
    out = np.full((len(rows), max(1, *map(len, rows))), fill, dtype=np.int64)
    for row, place in zip(rows, out, strict=True):
        place[: len(row)] = row
    return torch.from_numpy(out)


def make_attention_mask(sizes: Sequence[int], width: int) -> Tensor:
    """Return 1 for tokens and 0 for padding: [n, width]."""
    return (torch.arange(width) < torch.tensor(sizes)[:, None]).long()

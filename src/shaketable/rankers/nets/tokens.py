"""Word pieces: what a pretrained tokenizer makes of texts, the special tokens around them, and the cut to a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shaketable.errors import BadInput
from shaketable.rankers.nets.memory import Memory
from shaketable.rankers.nets.net import Reading, Word
from shaketable.text.words import spans

Ids = NDArray[np.int32]
REMEMBERED = 64 << 20  # bytes of pieces and texts


class Pieces:
    """The pieces of texts without special tokens; those of texts seen lately are remembered."""

    def __init__(self, tokenizer: Any):
        self.tokenizer = tokenizer
        self._memory: Memory[Ids] = Memory(REMEMBERED)

    def __call__(self, texts: Sequence[str]) -> list[Ids]:
        return self._memory.of(texts, self._make)

    def _make(self, texts: list[str]) -> list[Ids]:
        return [np.array(ids, dtype=np.int32) for ids in self._tokenised(texts)["input_ids"]]

    def _tokenised(self, texts: Sequence[str], **asked: bool) -> Any:
        # a half of a surrogate pair is no character, and tokenizers refuse it
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        return self.tokenizer(clean, add_special_tokens=False, return_attention_mask=False, verbose=False, **asked)

    @property
    def word_gradients(self) -> str:
        """Why the pieces of a word are not known: nothing, if they are."""
        return "" if self.tokenizer.is_fast else "its tokenizer does not tell which pieces a word is made of"

    def reading(self, text: str, lookup: int, start: int, limit: int, prompt: str = "") -> Reading:
        """The words of a text of which `limit` pieces are read, those of a prompt before it among them.

        A piece belongs to the first word that it has a character of. The piece for unknown characters is no word's.
        """
        if self.word_gradients:
            raise BadInput(self.word_gradients)
        found = self._tokenised([prompt + text], return_offsets_mapping=True)
        ids, places = found["input_ids"][0][:limit], found["offset_mapping"][0][:limit]
        skipped = len(prompt)
        before = sum(first < skipped for first, _ in places)
        words = spans(text)
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
        return Reading(located, np.array(ids[before:], dtype=np.int64), lookup, start + before)

    def spellings(self) -> list[str]:
        """How the pieces of the vocabulary are written; not all of them are words, nor read as they are written."""
        return [self.tokenizer.decode([number]).strip() for number in range(len(self.tokenizer))]


@dataclass(frozen=True)
class Tokens:
    """One row of a batch."""

    ids: Ids
    types: Ids
    truncated: bool

    @property
    def length(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Frame:
    """Where a tokenizer puts special tokens: around one text, or around and between two.

    `marks` are the special tokens before, between and after texts, `mark_types` and `text_types` the segments that they
    and the texts belong to.
    """

    marks: tuple[Ids, ...]
    mark_types: tuple[Ids, ...]
    text_types: tuple[int, ...]
    typed: bool
    """Does the model want to know segments?"""

    @classmethod
    def of(cls, tokenizer: Any, texts: int) -> Frame:
        """Found by looking at what the tokenizer does to the text "a"."""
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

    def kept(self, sizes: Sequence[int], limit: int) -> list[int]:
        """How much of texts of these sizes is left, so that `limit` holds with the special tokens."""
        return cut(sizes, limit - sum(map(len, self.marks)))

    def around(self, texts: Sequence[Ids], limit: int) -> Tokens:
        """The texts between their special tokens, cut so that `limit` holds."""
        sizes = [len(text) for text in texts]
        kept = self.kept(sizes, limit)
        ids, types = [self.marks[0]], [self.mark_types[0]]
        for text, size, kind, mark, mark_type in zip(
            texts, kept, self.text_types, self.marks[1:], self.mark_types[1:], strict=True
        ):
            ids += text[:size], mark
            types += np.full(size, kind, np.int32), mark_type
        return Tokens(np.concatenate(ids), np.concatenate(types), truncated=kept != sizes)


def cut(sizes: Sequence[int], room: int) -> list[int]:
    """What is left of one or two texts: the longer one gives way, until both have half.

    >>> cut([10, 300], 100), cut([300, 200], 101), cut([300], 100)
    ([10, 90], [51, 50], [100])
    """
    if sum(sizes) <= room:
        return list(sizes)
    if len(sizes) == 1:
        return [room]
    first, second = sizes
    short = min(first, second, room // 2)
    return [short, room - short] if first <= second else [room - short, short]


def padded(rows: Sequence[NDArray[np.generic]], fill: int) -> Tensor:
    """Rows of unlike length as one tensor, filled up at the right: [n, longest]."""
    out = np.full((len(rows), max(1, *map(len, rows))), fill, dtype=np.int64)
    for row, place in zip(rows, out, strict=True):
        place[: len(row)] = row
    return torch.from_numpy(out)


def attended(sizes: Sequence[int], width: int) -> Tensor:
    """1 for tokens, 0 for padding: [n, width]."""
    return (torch.arange(width) < torch.tensor(sizes)[:, None]).long()

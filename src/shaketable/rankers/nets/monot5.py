"""monoT5: a sequence-to-sequence model is asked whether a text is relevant, and the answer's first word is the score.

    "Query: q Document: d Relevant:"  ->  score = ln p(true) - ln (p(true) + p(false))

at the first step of the decoder.

Nogueira, Jiang, Pradeep, Lin. Document ranking with a pretrained sequence-to-sequence model. Findings of EMNLP 2020.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from shaketable.errors import BadInput
from shaketable.rankers.nets import checkpoints
from shaketable.rankers.nets.checkpoints import Transformer
from shaketable.rankers.nets.net import Net, Reading
from shaketable.rankers.nets.shapes import MonoT5Shape
from shaketable.rankers.nets.tokens import Pieces, Tokens, attended, cut, padded

PROMPT = "Query:", "Document:", "Relevant:"
ANSWERS = "true", "false"


class OnT5(Net):
    """What nets on a T5 share: the model, its tokenizer, and how many pieces of a text are read."""

    family: ClassVar[str] = "transformer"

    def __init__(self, model: Transformer, tokenizer: Any, max_length: int):
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.pieces = Pieces(tokenizer)

    def embedding(self) -> nn.Embedding:
        return checkpoints.word_embedding(self.model)

    def config(self) -> dict[str, Any]:
        return {"model": checkpoints.portable(self.model), "max_length": self.max_length}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], folder: Path) -> Self:
        from transformers import AutoModelForSeq2SeqLM

        model = checkpoints.blank(AutoModelForSeq2SeqLM, config["model"])
        return cls(model, checkpoints.read_tokenizer(folder), config["max_length"])

    def save_vocabulary(self, folder: Path) -> None:
        self.tokenizer.save_pretrained(folder)


class MonoT5(OnT5):
    """A T5 whose first word is compared. Where a pair is too long the longer of the two gives way, never the prompt.

    Pieces never reach from one word into the next, so those of the whole prompt are those of its parts.
    """

    kind: ClassVar[str] = "monot5"
    shapes: ClassVar[type[MonoT5Shape]] = MonoT5Shape

    def __init__(self, model: Transformer, tokenizer: Any, max_length: int):
        super().__init__(model, tokenizer, max_length)
        self._query, self._text, self._end = self.pieces(PROMPT)
        self._end = np.append(self._end, np.int32(tokenizer.eos_token_id))
        self._room = max_length - len(self._query) - len(self._text) - len(self._end)
        self._answers = [int(pieces[0]) for pieces in self.pieces(ANSWERS)]

    @classmethod
    def pretrained(cls, checkpoint: str, shape: MonoT5Shape) -> Self:
        """From a checkpoint of the T5 family."""
        path = checkpoints.checkpoint_folder(checkpoint)
        model, tokenizer = checkpoints.read_t5(path), checkpoints.read_tokenizer(path)
        checkpoints.check_vocabulary(path, tokenizer, model)
        net = cls(model, tokenizer, shape.max_length)
        if len(set(net._answers)) < 2:
            raise BadInput("has a tokenizer that begins true and false with the same piece", path)
        if net._room < 2:
            raise BadInput(f"the prompt leaves no room for a query and a text in max_length={shape.max_length}", path)
        return net

    def prepare(self, pairs: Sequence[tuple[str, str]]) -> list[Tokens]:
        queries, texts = self.pieces([query for query, _ in pairs]), self.pieces([text for _, text in pairs])
        rows = []
        for query, text in zip(queries, texts, strict=True):
            asked, said = cut([len(query), len(text)], self._room)
            ids = np.concatenate([self._query, query[:asked], self._text, text[:said], self._end])
            rows.append(Tokens(ids, ids[:0], asked < len(query) or said < len(text)))
        return rows

    @property
    def word_gradients(self) -> str:
        return self.pieces.word_gradients

    def reading(self, text: str, query: str = "") -> Reading:
        asked, said = cut([len(pieces) for pieces in self.pieces([query, text])], self._room)
        start = len(self._query) + asked + len(self._text)
        return self.pieces.reading(text, lookup=0, start=start, limit=said)

    def spellings(self) -> list[str]:
        return self.pieces.spellings()

    def collate(self, prepared: Sequence[Tokens]) -> dict[str, Tensor]:
        ids = padded([row.ids for row in prepared], self.tokenizer.pad_token_id)
        return {"input_ids": ids, "attention_mask": attended([row.length for row in prepared], ids.shape[1])}

    def forward(self, **batch: Tensor) -> Tensor:
        start = self.model.config.decoder_start_token_id
        first = torch.full((len(batch["input_ids"]), 1), start, device=batch["input_ids"].device)
        logits: Tensor = self.model(**batch, decoder_input_ids=first, use_cache=False).logits  # [n, 1, v]
        true, false = logits[:, 0, self._answers].unbind(1)
        return logsigmoid(true - false)  # as log_softmax has it, but for sure answers, which it would make tie

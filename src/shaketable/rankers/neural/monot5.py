"""monoT5: a sequence-to-sequence model answers whether a text is relevant; the score is the answer's log-probability.

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

from shaketable.core.errors import BadInput
from shaketable.nlp import checkpoints
from shaketable.nlp.checkpoints import Transformer
from shaketable.rankers.neural import pretrained_models
from shaketable.rankers.neural.net import Net, TokenAlignment
from shaketable.rankers.neural.shapes import MonoT5Shape
from shaketable.rankers.neural.tokens import TokenRow, WordPieces, make_attention_mask, pad_rows, truncate_lengths

PROMPT_PARTS = "Query:", "Document:", "Relevant:"
ANSWER_WORDS = "true", "false"


class T5Net(Net):
    """The base of nets on a T5: the model, its tokenizer, and the input limit in pieces."""

    family: ClassVar[str] = "transformer"

    def __init__(self, model: Transformer, tokenizer: Any, max_length: int):
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.pieces = WordPieces(tokenizer)

    def embedding(self) -> nn.Embedding:
        return pretrained_models.get_word_embedding(self.model)

    def config(self) -> dict[str, Any]:
        return {"model": pretrained_models.to_plain_config(self.model), "max_length": self.max_length}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], folder: Path) -> Self:
        from transformers import AutoModelForSeq2SeqLM

        model = checkpoints.build_untrained(AutoModelForSeq2SeqLM, config["model"])
        return cls(model, checkpoints.read_tokenizer(folder), config["max_length"])

    def save_vocabulary(self, folder: Path) -> None:
        self.tokenizer.save_pretrained(folder)


class MonoT5(T5Net):
    """A T5 that answers "true" or "false". If a pair is too long, the longer of the two is truncated, never the prompt.

    Pieces never span two words, so the pieces of the whole prompt are those of its parts.
    """

    kind: ClassVar[str] = "monot5"
    shape_class: ClassVar[type[MonoT5Shape]] = MonoT5Shape

    def __init__(self, model: Transformer, tokenizer: Any, max_length: int):
        super().__init__(model, tokenizer, max_length)
        self._query_prefix, self._text_prefix, self._suffix = self.pieces(PROMPT_PARTS)
        self._suffix = np.append(self._suffix, np.int32(tokenizer.eos_token_id))
        self._max_content_tokens = max_length - len(self._query_prefix) - len(self._text_prefix) - len(self._suffix)
        self._answer_ids = [int(pieces[0]) for pieces in self.pieces(ANSWER_WORDS)]

    @classmethod
    def from_checkpoint(cls, checkpoint: str, shape: MonoT5Shape) -> Self:
        """Build the net from a checkpoint of the T5 family."""
        path = pretrained_models.find_checkpoint_folder(checkpoint)
        model, tokenizer = pretrained_models.read_t5(path), checkpoints.read_tokenizer(path)
        checkpoints.check_vocabulary(path, tokenizer, model)
        net = cls(model, tokenizer, shape.max_length)
        if len(set(net._answer_ids)) < 2:
            raise BadInput("has a tokenizer in which true and false start with the same piece", path)
        if net._max_content_tokens < 2:
            raise BadInput(
                f"the prompt is too long: no tokens are left for a query and a text in max_length={shape.max_length}",
                path,
            )
        return net

    def prepare(self, pairs: Sequence[tuple[str, str]]) -> list[TokenRow]:
        queries, texts = self.pieces([query for query, _ in pairs]), self.pieces([text for _, text in pairs])
        rows = []
        for query, text in zip(queries, texts, strict=True):
            asked, said = truncate_lengths([len(query), len(text)], self._max_content_tokens)
            ids = np.concatenate([self._query_prefix, query[:asked], self._text_prefix, text[:said], self._suffix])
            rows.append(TokenRow(ids, ids[:0], asked < len(query) or said < len(text)))
        return rows

    @property
    def no_gradients_reason(self) -> str:
        return self.pieces.no_gradients_reason

    def align_tokens(self, text: str, query: str = "") -> TokenAlignment:
        asked, said = truncate_lengths([len(pieces) for pieces in self.pieces([query, text])], self._max_content_tokens)
        start = len(self._query_prefix) + asked + len(self._text_prefix)
        return self.pieces.align_tokens(text, lookup=0, start=start, limit=said)

    def decode_vocabulary(self) -> list[str]:
        return self.pieces.decode_vocabulary()

    def collate(self, prepared: Sequence[TokenRow]) -> dict[str, Tensor]:
        ids = pad_rows([row.ids for row in prepared], self.tokenizer.pad_token_id)
        return {"input_ids": ids, "attention_mask": make_attention_mask([row.length for row in prepared], ids.shape[1])}

    def forward(self, **batch: Tensor) -> Tensor:
        start = self.model.config.decoder_start_token_id
        first = torch.full((len(batch["input_ids"]), 1), start, device=batch["input_ids"].device)
        logits: Tensor = self.model(**batch, decoder_input_ids=first, use_cache=False).logits  # [n, 1, v]
        true, false = logits[:, 0, self._answer_ids].unbind(1)
        return logsigmoid(true - false)  # equals log_softmax, which would make very confident answers tie

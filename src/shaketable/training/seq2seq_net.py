"""A sequence-to-sequence model as a net: the score is the likelihood of one text given another.

    score(source, target) = Σ_i ln p(target_i | target_<i, source)

over the pieces of the target and its end mark. The part of a source after a tab, for instance the end of a prompt, is
never truncated.

Raffel et al. Exploring the limits of transfer learning with a unified text-to-text transformer. JMLR 2020.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from torch import Tensor

from shaketable.nlp.checkpoints import Transformer
from shaketable.rankers.neural.monot5 import T5Net
from shaketable.rankers.neural.tokens import Ids, make_attention_mask, pad_rows

IGNORED_LABEL = -100
"""The label of padding, as in transformers."""


@dataclass(frozen=True)
class SourceTargetPieces:
    """A source and a target as pieces."""

    source: Ids
    target: Ids
    truncated: bool

    @property
    def length(self) -> int:
        return len(self.source) + len(self.target)


class Seq2SeqNet(T5Net):
    """A T5 that scores a target by its likelihood given the source."""

    kind: ClassVar[str] = "writer"

    def __init__(self, model: Transformer, tokenizer: Any, max_length: int, target_length: int = 64):
        super().__init__(model, tokenizer, max_length)
        self.target_length = target_length

    def prepare(self, pairs: Sequence[tuple[str, str]]) -> list[SourceTargetPieces]:
        parts = [source.partition("\t")[::2] for source, _ in pairs]
        heads, tails = self.pieces([head for head, _ in parts]), self.pieces([tail for _, tail in parts])
        targets, end = self.pieces([target for _, target in pairs]), np.int32(self.tokenizer.eos_token_id)
        training_data = []
        for head, tail, target in zip(heads, tails, targets, strict=True):
            space = max(0, self.max_length - 1 - len(tail))
            source, written = np.concatenate([head[:space], tail]), target[: self.target_length - 1]
            training_data.append(SourceTargetPieces(np.append(source, end), np.append(written, end), len(head) > space))
        return training_data

    def collate(self, prepared: Sequence[SourceTargetPieces]) -> dict[str, Tensor]:
        ids = pad_rows([row.source for row in prepared], self.tokenizer.pad_token_id)
        mask = make_attention_mask([len(row.source) for row in prepared], ids.shape[1])
        return {
            "input_ids": ids,
            "attention_mask": mask,
            "labels": pad_rows([row.target for row in prepared], IGNORED_LABEL),
        }

    def forward(self, **batch: Tensor) -> Tensor:
        labels = batch.pop("labels")  # [n, t]
        shifted = self.model.prepare_decoder_input_ids_from_labels(labels=labels)
        logits: Tensor = self.model(**batch, decoder_input_ids=shifted, use_cache=False).logits  # [n, t, v]
        written = labels != IGNORED_LABEL
        logs = logits.log_softmax(2).gather(2, labels.where(written, 0)[..., None])[..., 0]  # [n, t]
        return logs.masked_fill(~written, 0.0).sum(1)

    def config(self) -> dict[str, Any]:
        return super().config() | {"target_length": self.target_length}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], folder: Path) -> Self:
        net = super().from_config(config, folder)
        net.target_length = config["target_length"]
        return net

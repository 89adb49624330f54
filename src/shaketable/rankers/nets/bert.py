"""monoBERT: query and text are read together, and a head on the first token says how relevant the text is.

    score = w · pooled([CLS] q [SEP] d [SEP]) + b

Nogueira, Cho. Passage re-ranking with BERT. arXiv 1901.04085.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from torch import Tensor, nn

from shaketable.rankers.nets import checkpoints
from shaketable.rankers.nets.checkpoints import Transformer
from shaketable.rankers.nets.net import Net, Reading
from shaketable.rankers.nets.shapes import BertShape
from shaketable.rankers.nets.tokens import Frame, Pieces, Tokens, attended, padded


class CrossEncoder(Net):
    """Any transformer with a head for sequences: one logit is the score, of two it is their difference.

    The difference is the log of the odds of "relevant"; the probability itself would saturate, and tie.
    """

    kind: ClassVar[str] = "bert"
    family: ClassVar[str] = "transformer"
    shapes: ClassVar[type[BertShape]] = BertShape

    def __init__(self, model: Transformer, tokenizer: Any, max_length: int):
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer
        self.max_length = max_length
        self._pieces = Pieces(tokenizer)
        self._frame = Frame.of(tokenizer, texts=2)

    @classmethod
    def pretrained(cls, checkpoint: str, shape: BertShape, fresh: bool = False) -> Self:
        """From a checkpoint, with its own head, or with a `fresh` one to be trained."""
        path = checkpoints.checkpoint_folder(checkpoint)
        model, tokenizer = checkpoints.read_classifier(path, fresh), checkpoints.read_tokenizer(path)
        checkpoints.check_vocabulary(path, tokenizer, model)
        return cls(model, tokenizer, checkpoints.longest_input(path, tokenizer, model, shape.max_length))

    def prepare(self, pairs: Sequence[tuple[str, str]]) -> list[Tokens]:
        queries, texts = self._pieces([query for query, _ in pairs]), self._pieces([text for _, text in pairs])
        return [self._frame.around(pair, self.max_length) for pair in zip(queries, texts, strict=True)]

    def collate(self, prepared: Sequence[Tokens]) -> dict[str, Tensor]:
        ids = padded([row.ids for row in prepared], self.tokenizer.pad_token_id)
        batch = {"input_ids": ids, "attention_mask": attended([row.length for row in prepared], ids.shape[1])}
        if self._frame.typed:
            batch["token_type_ids"] = padded([row.types for row in prepared], 0)
        return batch

    def forward(self, **batch: Tensor) -> Tensor:
        logits: Tensor = self.model(**batch).logits  # [n, 1 or 2]
        return logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]

    def embedding(self) -> nn.Embedding:
        return checkpoints.word_embedding(self.model)

    @property
    def word_gradients(self) -> str:
        return self._pieces.word_gradients

    def reading(self, text: str, query: str = "") -> Reading:
        before, between, _ = map(len, self._frame.marks)
        asked, said = self._frame.kept([len(pieces) for pieces in self._pieces([query, text])], self.max_length)
        return self._pieces.reading(text, lookup=0, start=before + asked + between, limit=said)

    def spellings(self) -> list[str]:
        return self._pieces.spellings()

    def config(self) -> dict[str, Any]:
        return {"model": checkpoints.portable(self.model), "max_length": self.max_length}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], folder: Path) -> Self:
        from transformers import AutoModelForSequenceClassification

        model = checkpoints.blank(AutoModelForSequenceClassification, config["model"])
        return cls(model, checkpoints.read_tokenizer(folder), config["max_length"])

    def save_vocabulary(self, folder: Path) -> None:
        self.tokenizer.save_pretrained(folder)

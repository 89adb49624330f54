"""monoBERT: a transformer reads query and text together, and a head on the first token computes the score.

    score = w · pooled([CLS] q [SEP] d [SEP]) + b

Nogueira, Cho. Passage re-ranking with BERT. arXiv 1901.04085.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from torch import Tensor, nn

from shaketable.nlp import checkpoints
from shaketable.nlp.checkpoints import Transformer
from shaketable.rankers.neural import pretrained_models
from shaketable.rankers.neural.fast_inference import shorten_last_layer
from shaketable.rankers.neural.net import Net, TokenAlignment
from shaketable.rankers.neural.shapes import BertShape
from shaketable.rankers.neural.tokens import SpecialTokenFrame, TokenRow, WordPieces, make_attention_mask, pad_rows


class CrossEncoder(Net):
    """Any transformer with a classification head: the score is its one logit, or the difference of its two.

    The difference is the log-odds of "relevant"; the probability itself would saturate and tie.
    """

    kind: ClassVar[str] = "bert"
    family: ClassVar[str] = "transformer"
    shape_class: ClassVar[type[BertShape]] = BertShape

    def __init__(self, model: Transformer, tokenizer: Any, max_length: int):
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer
        self.max_length = max_length
        self._pieces = WordPieces(tokenizer)
        self._frame = SpecialTokenFrame.from_tokenizer(tokenizer, texts=2)
        shorten_last_layer(model)  # the head reads the first token

    @classmethod
    def from_checkpoint(cls, checkpoint: str, shape: BertShape, fresh: bool = False) -> Self:
        """Build the net from a checkpoint, with its own head or with a `fresh` one to train."""
        path = pretrained_models.find_checkpoint_folder(checkpoint)
        model, tokenizer = pretrained_models.read_classifier(path, fresh), checkpoints.read_tokenizer(path)
        checkpoints.check_vocabulary(path, tokenizer, model)
        return cls(model, tokenizer, pretrained_models.resolve_max_length(path, tokenizer, model, shape.max_length))

    def prepare(self, pairs: Sequence[tuple[str, str]]) -> list[TokenRow]:
        queries, texts = self._pieces([query for query, _ in pairs]), self._pieces([text for _, text in pairs])
        return [self._frame.wrap_texts(pair, self.max_length) for pair in zip(queries, texts, strict=True)]

    def collate(self, prepared: Sequence[TokenRow]) -> dict[str, Tensor]:
        ids = pad_rows([row.ids for row in prepared], self.tokenizer.pad_token_id)
        batch = {
            "input_ids": ids,
            "attention_mask": make_attention_mask([row.length for row in prepared], ids.shape[1]),
        }
        if self._frame.uses_type_ids:
            batch["token_type_ids"] = pad_rows([row.type_ids for row in prepared], 0)
        return batch

    def forward(self, **batch: Tensor) -> Tensor:
        logits: Tensor = self.model(**batch).logits  # [n, 1 or 2]
        return logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]

    def embedding(self) -> nn.Embedding:
        return pretrained_models.get_word_embedding(self.model)

    @property
    def no_gradients_reason(self) -> str:
        return self._pieces.no_gradients_reason

    def align_tokens(self, text: str, query: str = "") -> TokenAlignment:
        before, between, _ = map(len, self._frame.special_ids)
        asked, said = self._frame.fit_lengths([len(pieces) for pieces in self._pieces([query, text])], self.max_length)
        return self._pieces.align_tokens(text, lookup=0, start=before + asked + between, limit=said)

    def decode_vocabulary(self) -> list[str]:
        return self._pieces.decode_vocabulary()

    def config(self) -> dict[str, Any]:
        return {"model": pretrained_models.to_plain_config(self.model), "max_length": self.max_length}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], folder: Path) -> Self:
        from transformers import AutoModelForSequenceClassification

        model = checkpoints.build_untrained(AutoModelForSequenceClassification, config["model"])
        return cls(model, checkpoints.read_tokenizer(folder), config["max_length"])

    def save_vocabulary(self, folder: Path) -> None:
        self.tokenizer.save_pretrained(folder)

"""The base class of bi-encoders and ColBERT: a pretrained transformer that reads one text at a time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Self

from torch import nn

from shaketable.nlp import checkpoints
from shaketable.nlp.checkpoints import Transformer
from shaketable.rankers.neural import pretrained_models
from shaketable.rankers.neural.net import Encoder
from shaketable.rankers.neural.tokens import WordPieces


class PretrainedEncoder(Encoder):
    """An encoder, its tokenizer, and the shape of the net."""

    family: ClassVar[str] = "transformer"

    def __init__(self, encoder: Transformer, tokenizer: Any, shape: Any):
        super().__init__()
        self.encoder = encoder
        self.tokenizer = tokenizer
        self.shape = shape
        self.pieces = WordPieces(tokenizer)

    @classmethod
    def from_checkpoint(cls, checkpoint: str, shape: Any) -> Self:
        """Build the net from a checkpoint; missing weights are initialised."""
        path = pretrained_models.find_checkpoint_folder(checkpoint)
        encoder, tokenizer = pretrained_models.read_encoder(path), checkpoints.read_tokenizer(path)
        checkpoints.check_vocabulary(path, tokenizer, encoder)
        return cls(encoder, tokenizer, cls.fit_shape(shape, path, tokenizer, encoder))

    @classmethod
    @abstractmethod
    def fit_shape(cls, shape: Any, path: Path, tokenizer: Any, encoder: Transformer) -> Any:
        """Return the shape for this checkpoint; reject settings that do not fit it."""

    def embedding(self) -> nn.Embedding:
        return pretrained_models.get_word_embedding(self.encoder)

    @property
    def no_gradients_reason(self) -> str:
        return self.pieces.no_gradients_reason

    def decode_vocabulary(self) -> list[str]:
        return self.pieces.decode_vocabulary()

    def config(self) -> dict[str, Any]:
        return {"encoder": pretrained_models.to_plain_config(self.encoder), "shape": asdict(self.shape)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], folder: Path) -> Self:
        from transformers import AutoModel

        encoder = pretrained_models.remove_pooler(checkpoints.build_untrained(AutoModel, config["encoder"]))
        return cls(encoder, checkpoints.read_tokenizer(folder), cls.shape_class(**config["shape"]))

    def save_vocabulary(self, folder: Path) -> None:
        self.tokenizer.save_pretrained(folder)

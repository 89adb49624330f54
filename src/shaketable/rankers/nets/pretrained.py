"""What bi-encoders and ColBERT share: a pretrained transformer that reads one text at a time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Self

from torch import nn

from shaketable.rankers.nets import checkpoints
from shaketable.rankers.nets.checkpoints import Transformer
from shaketable.rankers.nets.net import Encoder
from shaketable.rankers.nets.tokens import Pieces


class PretrainedEncoder(Encoder):
    """An encoder, its tokenizer, and the sizes and choices in which nets of a kind differ."""

    family: ClassVar[str] = "transformer"

    def __init__(self, encoder: Transformer, tokenizer: Any, shape: Any):
        super().__init__()
        self.encoder = encoder
        self.tokenizer = tokenizer
        self.shape = shape
        self.pieces = Pieces(tokenizer)

    @classmethod
    def pretrained(cls, checkpoint: str, shape: Any) -> Self:
        """From a checkpoint; what it does not hold is fresh."""
        path = checkpoints.checkpoint_folder(checkpoint)
        encoder, tokenizer = checkpoints.read_encoder(path), checkpoints.read_tokenizer(path)
        checkpoints.check_vocabulary(path, tokenizer, encoder)
        return cls(encoder, tokenizer, cls.fitted(shape, path, tokenizer, encoder))

    @classmethod
    @abstractmethod
    def fitted(cls, shape: Any, path: Path, tokenizer: Any, encoder: Transformer) -> Any:
        """The shape for this checkpoint; refuses what does not go together."""

    def embedding(self) -> nn.Embedding:
        return checkpoints.word_embedding(self.encoder)

    @property
    def word_gradients(self) -> str:
        return self.pieces.word_gradients

    def spellings(self) -> list[str]:
        return self.pieces.spellings()

    def config(self) -> dict[str, Any]:
        return {"encoder": checkpoints.portable(self.encoder), "shape": asdict(self.shape)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], folder: Path) -> Self:
        from transformers import AutoModel

        encoder = checkpoints.without_pooler(checkpoints.blank(AutoModel, config["encoder"]))
        return cls(encoder, checkpoints.read_tokenizer(folder), cls.shapes(**config["shape"]))

    def save_vocabulary(self, folder: Path) -> None:
        self.tokenizer.save_pretrained(folder)

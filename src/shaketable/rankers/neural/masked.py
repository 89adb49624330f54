"""A masked language model: token states, and for each state a logit for every piece of the vocabulary.

The head is the checkpoint's own. A checkpoint without one gets a head that is tied to the embedding table:

    logits = E · h + b

so the piece of a state is likely before any training; only b is new, and it starts at 0.

Devlin, Chang, Lee, Toutanova. BERT: pre-training of deep bidirectional transformers for language understanding. NAACL
2019. Press, Wolf. Using the output embedding to improve language models. EACL 2017.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from shaketable.core.errors import BadInput
from shaketable.nlp import checkpoints
from shaketable.nlp.checkpoints import Transformer
from shaketable.rankers.neural import pretrained_models

HEAD_LAYER_NAMES = (
    ("cls",),
    ("lm_head",),
    ("predictions",),
    ("vocab_transform", "activation", "vocab_layer_norm", "vocab_projector"),
    ("generator_predictions", "generator_lm_head"),
    ("head", "decoder"),
)
"""The layers of the head in transformers' models, in order: BERT's, RoBERTa's and MPNet's, ALBERT's, DistilBERT's,
ELECTRA's, ModernBERT's."""


class MaskedLM(nn.Module):
    """A masked language model; `has_own_head` is True for the checkpoint's head and False for the tied one."""

    def __init__(self, model: Transformer, has_own_head: bool):
        super().__init__()
        self.model = model
        self.has_own_head = has_own_head
        self.bias = None if has_own_head else nn.Parameter(torch.zeros(model.get_input_embeddings().num_embeddings))

    @classmethod
    def from_checkpoint(cls, path: Path) -> Self:
        """Build the model from a checkpoint; reject it if neither head fits."""
        model, own = pretrained_models.read_masked_lm(path)
        if own and not _find_head_layers(model):
            raise BadInput(f"is a {type(model).__name__}, whose head for masked words is not supported", path)
        sizes = model.config.hidden_size, pretrained_models.get_word_embedding(model).embedding_dim
        if not own and sizes[0] != sizes[1]:
            message = "has no head for masked words, and its embeddings cannot replace it (sizes {} and {})"
            raise BadInput(message.format(*sizes), path)
        return cls(model, own)

    @property
    def config(self) -> Any:
        return self.model.config

    def get_input_embeddings(self) -> nn.Embedding:
        return pretrained_models.get_word_embedding(self.model)

    def compute_states(self, **batch: Tensor) -> Tensor:
        """Return the states of the last layer: [n, t, h]."""
        encoder = self.model.base_model if self.has_own_head else self.model
        states: Tensor = encoder(**batch).last_hidden_state
        return states

    def compute_logits(self, states: Tensor) -> Tensor:
        """Return a logit for every piece for each state: [..., h] -> [..., v]."""
        if not self.has_own_head:
            return linear(states, self.get_input_embeddings().weight, self.bias)
        for layer in _find_head_layers(self.model):
            states = layer(states)
        return states

    def to_config(self) -> dict[str, Any]:
        """Return the configuration from which `from_config` builds the same model without weights."""
        return {"model": pretrained_models.to_plain_config(self.model), "own": self.has_own_head}

    @classmethod
    def from_config(cls, about: Mapping[str, Any]) -> Self:
        from transformers import AutoModel, AutoModelForMaskedLM

        if about["own"]:
            return cls(checkpoints.build_untrained(AutoModelForMaskedLM, about["model"]), has_own_head=True)
        return cls(
            pretrained_models.remove_pooler(checkpoints.build_untrained(AutoModel, about["model"])), has_own_head=False
        )


def _find_head_layers(model: Transformer) -> list[Any]:
    """Return the layers of the head; empty if the head is unknown."""
    return next(
        ([getattr(model, name) for name in names] for names in HEAD_LAYER_NAMES if _has_layers(model, names)), []
    )


def _has_layers(model: Transformer, names: tuple[str, ...]) -> bool:
    return all(callable(getattr(model, name, None)) for name in names)

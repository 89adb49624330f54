"""A transformer that fills gaps: states of tokens, and for each state a logit for every piece of the vocabulary.

The head is the checkpoint's own. A checkpoint without one is given a head that is tied to the table of pieces:

    logits = E · h + b

so the piece that a state stands for is likely from the first; only b is new, and it starts at 0.

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

from shaketable.errors import BadInput
from shaketable.rankers.nets import checkpoints
from shaketable.rankers.nets.checkpoints import Transformer

HEADS = (
    ("cls",),
    ("lm_head",),
    ("predictions",),
    ("vocab_transform", "activation", "vocab_layer_norm", "vocab_projector"),
    ("generator_predictions", "generator_lm_head"),
    ("head", "decoder"),
)
"""The layers that make the head of a model of transformers, one after the other: BERT's, RoBERTa's and MPNet's,
ALBERT's, DistilBERT's, ELECTRA's, ModernBERT's."""


class Masked(nn.Module):
    """A masked language model; `own` tells whether the head is the checkpoint's or the tied one."""

    def __init__(self, model: Transformer, own: bool):
        super().__init__()
        self.model = model
        self.own = own
        self.bias = None if own else nn.Parameter(torch.zeros(model.get_input_embeddings().num_embeddings))

    @classmethod
    def pretrained(cls, path: Path) -> Self:
        """From a checkpoint; what cannot be taken for a head of either kind is refused."""
        model, own = checkpoints.read_masked(path)
        if own and not _layers(model):
            raise BadInput(f"is a {type(model).__name__}, whose head for masked words is not known here", path)
        sizes = model.config.hidden_size, checkpoints.word_embedding(model).embedding_dim
        if not own and sizes[0] != sizes[1]:
            message = "has no head for masked words, nor can its pieces be one: states have {} numbers, they {}"
            raise BadInput(message.format(*sizes), path)
        return cls(model, own)

    @property
    def config(self) -> Any:
        return self.model.config

    def get_input_embeddings(self) -> nn.Embedding:
        return checkpoints.word_embedding(self.model)

    def states(self, **batch: Tensor) -> Tensor:
        """The last layer: [n, t, h]."""
        encoder = self.model.base_model if self.own else self.model
        states: Tensor = encoder(**batch).last_hidden_state
        return states

    def logits(self, states: Tensor) -> Tensor:
        """For each state a logit for every piece: [..., h] -> [..., v]."""
        if not self.own:
            return linear(states, self.get_input_embeddings().weight, self.bias)
        for layer in _layers(self.model):
            states = layer(states)
        return states

    def described(self) -> dict[str, Any]:
        """What `blank` makes the same model of, without its weights."""
        return {"model": checkpoints.portable(self.model), "own": self.own}

    @classmethod
    def blank(cls, about: Mapping[str, Any]) -> Self:
        from transformers import AutoModel, AutoModelForMaskedLM

        if about["own"]:
            return cls(checkpoints.blank(AutoModelForMaskedLM, about["model"]), own=True)
        return cls(checkpoints.without_pooler(checkpoints.blank(AutoModel, about["model"])), own=False)


def _layers(model: Transformer) -> list[Any]:
    """The head, layer by layer; empty if it is none of those that are known."""
    return next(([getattr(model, name) for name in names] for names in HEADS if _has(model, names)), [])


def _has(model: Transformer, names: tuple[str, ...]) -> bool:
    return all(callable(getattr(model, name, None)) for name in names)

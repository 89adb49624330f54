"""Pretrained weights: where a checkpoint is, and reading it for a ranker; whatever it lacks is said in one sentence.

All of it comes through `text.door`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import nn

from shaketable.errors import BadInput, MissingExtra
from shaketable.text import door
from shaketable.text.door import Transformer, blank, contents, quiet, read_tokenizer
from shaketable.text.resources import PACKAGED, hub_cache, model_folder

__all__ = ["Transformer", "blank", "contents", "quiet", "read_tokenizer"]
FAMILY = ("t5", "mt5", "umt5")
"""Models of transformers that are a T5."""
SHORTEST = 8
"""Tokens that every ranker reads at least."""


def checkpoint_folder(name: str) -> Path:
    """The folder of a checkpoint: "minilm", a folder, a name in our resources or the hub's cache, or one to fetch."""
    folder = model_folder(name)
    if folder is None and name in PACKAGED:
        raise MissingExtra("neural", f"the checkpoint {name}")
    if folder is None or folder.parent == hub_cache():
        return door.from_hub(name)
    return folder


def read_config(path: Path) -> Any:
    """The configuration of an encoder."""
    config = door.read_config(path)
    if config.is_encoder_decoder:
        raise BadInput(f"is a {config.model_type} model with a decoder; an encoder such as BERT is needed", path)
    return config


def read_encoder(path: Path) -> Transformer:
    """The encoder of a checkpoint, without a head: its output is one vector a token."""
    from transformers import AutoModel

    encoder, missing = door.read_model(AutoModel, path, read_config(path))
    if missing := {name for name in missing if not name.startswith("pooler.")}:
        raise BadInput(f"has no weights for {door.some(missing)}: is this an encoder such as BERT?", path)
    return without_pooler(encoder)


def without_pooler(encoder: Transformer) -> Transformer:
    """Take away the layer over [CLS] that some encoders end with: nothing here reads it."""
    if hasattr(encoder, "pooler"):
        encoder.pooler = None
    return encoder


def read_classifier(path: Path, fresh: bool) -> Transformer:
    """The encoder with a head for sequences: the checkpoint's own, or a fresh one with one logit."""
    from transformers import AutoModelForSequenceClassification

    config = read_config(path)
    if fresh:
        config.num_labels = 1
        return door.read_model(AutoModelForSequenceClassification, path, config)[0]
    made = ", ".join(config.architectures or ["model without a head"])
    if "ForSequenceClassification" not in made:
        raise BadInput(
            f"is a {made}, no cross-encoder: hf: takes models for sequence classification "
            "(a bi-encoder is st:NAME; a generative model cannot be asked for a score here)",
            path,
        )
    if config.num_labels > 2:
        raise BadInput(f"tells {config.num_labels} classes apart; a ranker has one logit, or two", path)
    model, missing = door.read_model(AutoModelForSequenceClassification, path, config)
    if missing:
        raise BadInput(f"has no weights for {door.some(missing)}: its head was never trained", path)
    return model


def read_masked(path: Path) -> tuple[Transformer, bool]:
    """The encoder with its head for masked words, and True; where there is none the encoder alone, and False."""
    from transformers import AutoModelForMaskedLM

    config = read_config(path)
    if not any(name.endswith(("ForMaskedLM", "ForPreTraining")) for name in config.architectures or []):
        return read_encoder(path), False
    model, missing = door.read_model(AutoModelForMaskedLM, path, config)
    if missing:
        raise BadInput(f"has no weights for {door.some(missing)}: is this a masked language model such as BERT?", path)
    return model, True


def read_t5(path: Path) -> Transformer:
    """A T5 with its decoder, which reads a text and writes another."""
    kind = door.read_config(path).model_type
    if kind not in FAMILY:
        raise BadInput(f"is a {kind} model; one of the T5 family is needed ({', '.join(FAMILY)})", path)
    return door.read_generator(path)


def check_vocabulary(path: Path, tokenizer: Any, model: Transformer) -> None:
    """Refuse a tokenizer that was made for another model."""
    known = word_embedding(model).num_embeddings
    if len(tokenizer) > known:
        raise BadInput(f"has a tokenizer of {len(tokenizer)} pieces and a model that knows {known} of them", path)


def word_embedding(model: Transformer) -> nn.Embedding:
    """The table of the word pieces' vectors."""
    table: nn.Embedding = model.get_input_embeddings()
    return table


def portable(model: Transformer) -> dict[str, Any]:
    """A model's configuration as plain values, without the place that it came from."""
    config: dict[str, Any] = json.loads(model.config.to_json_string(use_diff=False))
    return {key: value for key, value in config.items() if key not in ("_name_or_path", "transformers_version")}


def longest_input(path: Path, tokenizer: Any, model: Transformer, asked: int) -> int:
    """How many tokens a model reads: what was asked for, or (0) all that its positions allow.

    A table of positions with a padding row (RoBERTa's) starts to count behind it.
    """
    limits = [tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None) or 1 << 30]
    for name, table in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(table, nn.Embedding):
            limits.append(table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1))
    if not all(isinstance(limit, int | float) and limit >= SHORTEST for limit in limits):
        raise BadInput(f"says that it reads {limits[:2]} tokens at most, which makes no sense", path)
    most = min(limits)
    if asked > most:
        raise BadInput(f"reads {most} tokens at most; max_length={asked} is more", path)
    return asked or most

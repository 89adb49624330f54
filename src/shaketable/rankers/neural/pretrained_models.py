"""Pretrained models of nets: find a checkpoint and read an encoder, classifier, masked language model or T5 from it.

`nlp.checkpoints` reads the files; this module rejects checkpoints that do not fit a net.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

from torch import nn

from shaketable.core.errors import BadInput
from shaketable.core.extras import format_install_command
from shaketable.nlp import checkpoints
from shaketable.nlp.checkpoints import Transformer
from shaketable.nlp.resources import (
    MINILM,
    MINILM_HUB_NAME,
    MINILM_PACKAGE,
    find_hub_cache,
    find_model_folder,
    find_packaged_minilm,
)

T5_MODEL_TYPES = ("t5", "mt5", "umt5")
"""Model types of transformers that are a T5."""
MIN_INPUT_TOKENS = 8
"""The minimum number of input tokens of every ranker."""


def find_checkpoint_folder(name: str) -> Path:
    """Return the folder of a checkpoint: a folder, or a name in our resources, the hub's cache or the hub.

    "minilm" is sentence-transformers/all-MiniLM-L6-v2; if it is at none of these places, the copy of the extra offline.
    """
    if name == MINILM:
        try:
            return find_checkpoint_folder(MINILM_HUB_NAME)
        except BadInput as error:
            if packaged := find_packaged_minilm():
                return packaged
            raise BadInput(f"{error}; to install a copy: {format_install_command('offline')}") from error
    folder = find_model_folder(name)
    if folder is None or folder.parent == find_hub_cache():
        return checkpoints.fetch_from_hub(name)
    return folder


def describe_origin(folder: Path) -> str:
    """Return a sentence on the copy of the default encoder that is used."""
    if folder == find_packaged_minilm():
        package = MINILM_PACKAGE.replace("_", "-")
        return f"the weights are the copy of {MINILM_HUB_NAME} in the package {package} {version(package)}"
    return f"the weights are {MINILM_HUB_NAME} at {folder}"


def read_config(path: Path) -> Any:
    """Read the configuration of an encoder."""
    config = checkpoints.read_config(path)
    if config.is_encoder_decoder:
        raise BadInput(f"is a {config.model_type} model with a decoder; an encoder such as BERT is needed", path)
    return config


def read_encoder(path: Path) -> Transformer:
    """Read the encoder of a checkpoint without a head: its output is one vector per token."""
    from transformers import AutoModel

    encoder, missing = checkpoints.read_model(AutoModel, path, read_config(path))
    if missing := {name for name in missing if not name.startswith("pooler.")}:
        raise BadInput(
            f"has no weights for {checkpoints.format_few_names(missing)}: is this an encoder such as BERT?", path
        )
    return remove_pooler(encoder)


def remove_pooler(encoder: Transformer) -> Transformer:
    """Remove the layer over [CLS] that some encoders end with: no net uses it."""
    if hasattr(encoder, "pooler"):
        encoder.pooler = None
    return encoder


def read_classifier(path: Path, fresh: bool) -> Transformer:
    """Read an encoder with a classification head: the one of the checkpoint, or a fresh one with one logit."""
    from transformers import AutoModelForSequenceClassification

    config = read_config(path)
    if fresh:
        config.num_labels = 1
        return checkpoints.read_model(AutoModelForSequenceClassification, path, config)[0]
    made = ", ".join(config.architectures or ["model without a head"])
    if "ForSequenceClassification" not in made:
        raise BadInput(
            f"is a {made}, not a cross-encoder: hf: needs a model for sequence classification (use st:NAME for a "
            "bi-encoder; generative models are not supported)",
            path,
        )
    if config.num_labels > 2:
        raise BadInput(f"has {config.num_labels} classes; a ranker has one logit, or two", path)
    model, missing = checkpoints.read_model(AutoModelForSequenceClassification, path, config)
    if missing:
        raise BadInput(f"has no weights for {checkpoints.format_few_names(missing)}: its head was never trained", path)
    return model


def read_masked_lm(path: Path) -> tuple[Transformer, bool]:
    """Return an encoder with its masked-word head, and True; without such a head the encoder alone, and False."""
    from transformers import AutoModelForMaskedLM

    config = read_config(path)
    if not any(name.endswith(("ForMaskedLM", "ForPreTraining")) for name in config.architectures or []):
        return read_encoder(path), False
    model, missing = checkpoints.read_model(AutoModelForMaskedLM, path, config)
    if missing:
        raise BadInput(
            f"has no weights for {checkpoints.format_few_names(missing)}: is this a masked language model such as "
            "BERT?",
            path,
        )
    return model, True


def read_t5(path: Path) -> Transformer:
    """Read a T5 with its decoder."""
    kind = checkpoints.read_config(path).model_type
    if kind not in T5_MODEL_TYPES:
        raise BadInput(f"is a {kind} model; one of the T5 family is needed ({', '.join(T5_MODEL_TYPES)})", path)
    return checkpoints.read_generator(path)


def get_word_embedding(model: Transformer) -> nn.Embedding:
    """Return the embedding table of the word pieces."""
    table: nn.Embedding = model.get_input_embeddings()
    return table


def to_plain_config(model: Transformer) -> dict[str, Any]:
    """Return the configuration of a model as plain values, without the path that it came from."""
    config: dict[str, Any] = json.loads(model.config.to_json_string(use_diff=False))
    return {key: value for key, value in config.items() if key not in ("_name_or_path", "transformers_version")}


def resolve_max_length(path: Path, tokenizer: Any, model: Transformer, requested_length: int) -> int:
    """Return the maximum input tokens of a model: the requested number, or (0) all that its positions allow.

    A position table with a padding row (RoBERTa's) starts to count after it.
    """
    limits = [tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None) or 1 << 30]
    for name, table in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(table, nn.Embedding):
            limits.append(table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1))
    if not all(isinstance(limit, int | float) and limit >= MIN_INPUT_TOKENS for limit in limits):
        raise BadInput(f"has an invalid maximum length: {limits[:2]} tokens", path)
    most = min(limits)
    if requested_length > most:
        raise BadInput(f"reads {most} tokens at most; max_length={requested_length} is more", path)
    return requested_length or most

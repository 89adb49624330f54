"""Tiny ONNX checkpoints on disk, built by hand, and the same arithmetic in numpy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.rankers.neural import tiny

SIZE = 6
RNG = np.random.default_rng(5)
PIECES = RNG.normal(size=(len(tiny.VOCABULARY), SIZE)).astype(np.float32)
SEGMENTS = RNG.normal(size=(2, SIZE)).astype(np.float32)
HEADS = {n: RNG.normal(size=(SIZE, n)).astype(np.float32) for n in (1, 2, 3)}


def weight(name: str, array: np.ndarray) -> Any:
    return numpy_helper.from_array(array, name)


def save(
    folder: Path, nodes: list[Any], weights: Sequence[Any], outputs: Sequence[str], inputs: Sequence[str], path: str
) -> Path:
    """Write a graph beside the settings and the tokenizer of a tiny BERT, whose weights are removed."""
    tiny.bert(folder) if outputs == ["logits"] else tiny.encoder(folder)
    (folder / "model.safetensors").unlink()
    values = [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "t"]) for name in inputs]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(nodes, "tiny", values, results, list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (folder / path).parent.mkdir(exist_ok=True)
    onnx.save(model, folder / path)
    return folder


def mean_nodes(states: str) -> list[Any]:
    """Return nodes that compute the mean of the tokens that the mask keeps, as "mean"."""
    return [
        helper.make_node("Cast", ["attention_mask"], ["kept"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["kept", "last"], ["weights"]),
        helper.make_node("Mul", [states, "weights"], ["masked"]),
        helper.make_node("ReduceSum", ["masked", "middle"], ["sums"], keepdims=0),
        helper.make_node("ReduceSum", ["weights", "middle"], ["counts"], keepdims=0),
        helper.make_node("Div", ["sums", "counts"], ["mean"]),
    ]


AXES = [weight("last", np.array([2])), weight("middle", np.array([1]))]


def cross_encoder(folder: Path, logits: int = 1, *, quantised: bool = False, path: str = "model.onnx") -> Path:
    """The mean of piece and segment vectors, times a head; if quantised, with a scale for each batch."""
    nodes = [
        helper.make_node("Gather", ["pieces", "input_ids"], ["words"]),
        helper.make_node("Gather", ["segments", "token_type_ids"], ["sides"]),
        helper.make_node("Add", ["words", "sides"], ["states"]),
    ]
    if quantised:
        nodes += [
            helper.make_node("DynamicQuantizeLinear", ["states"], ["bytes", "scale", "zero"]),
            helper.make_node("DequantizeLinear", ["bytes", "scale", "zero"], ["rounded"]),
        ]
    nodes += mean_nodes("rounded" if quantised else "states")
    nodes += [helper.make_node("MatMul", ["mean", "head"], ["logits"])]
    weights = [weight("pieces", PIECES), weight("segments", SEGMENTS), weight("head", HEADS[logits]), *AXES]
    inputs = ["input_ids", "attention_mask", "token_type_ids"]
    save(folder, nodes, weights, ["logits"], inputs, path)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    tiny.write(folder / "tokenizer_config.json", settings | {"model_input_names": inputs})
    return folder


def compute_logits(ids: Sequence[int], types: Sequence[int], logits: int = 1) -> np.ndarray:
    return (PIECES[list(ids)] + SEGMENTS[list(types)]).mean(axis=0) @ HEADS[logits]


def bi_encoder(folder: Path, output: str = "last_hidden_state") -> Path:
    """One vector for each token, or for each text."""
    nodes = [helper.make_node("Gather", ["pieces", "input_ids"], ["states"])]
    if output == "sentence_embedding":
        nodes += [*mean_nodes("states"), helper.make_node("Identity", ["mean"], [output])]
    else:
        nodes += [
            helper.make_node("Cast", ["attention_mask"], ["unused"], to=TensorProto.FLOAT),
            helper.make_node("Identity", ["states"], [output]),
        ]
    return save(
        folder, nodes, [weight("pieces", PIECES), *AXES], [output], ["input_ids", "attention_mask"], "model.onnx"
    )


def edit_model(folder: Path, edit: Any) -> Path:
    """Change the ONNX file of a folder with a function of the parsed model."""
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    edit(model)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return folder

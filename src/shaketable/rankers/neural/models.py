"""Neural rankers as values: bi-encoders, cross-encoders of the Hugging Face hub, and models that training saved.

Torch is imported when a ranker is opened. A cross-encoder or a ColBERT on a bare checkpoint has an untrained head, so
these are learners, in `training`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, ClassVar, cast

from shaketable.core.documents import Collection, fingerprint
from shaketable.core.errors import MissingExtra, UnknownName, check_parameter
from shaketable.core.protocols import Ranker
from shaketable.core.registries import RANKERS
from shaketable.executors import device
from shaketable.nlp.checkpoints import fingerprint_checkpoint
from shaketable.nlp.onnx_checkpoints import fingerprint_onnx_checkpoint
from shaketable.nlp.resources import MINILM
from shaketable.rankers.neural.prefixes import reword_prefixes
from shaketable.rankers.neural.shapes import BertShape, DenseShape, MonoT5Shape

if TYPE_CHECKING:
    from shaketable.rankers.neural.net import Net

KIND_PATTERN = r"[a-z][a-z0-9_]*"
"""The pattern of a net's kind: a module name, so it cannot leave the folder of nets."""


def find_net_class(kind: str) -> type[Net]:
    """Return the class of the nets of a kind, from the module of `rankers.neural` with the name of the kind."""
    known = [module.name for module in iter_modules([str(Path(__file__).parent)])]
    if re.fullmatch(KIND_PATTERN, kind) and kind in known and (found := _find_net(kind)):
        return found
    raise UnknownName("neural model", kind, filter(_find_net, known))


def _find_net(module: str) -> type[Net] | None:
    """Return the net whose kind is the name of this module of `rankers.neural`; None for most modules."""
    net: type[Net] = import_net_module("net").Net
    classes = (
        thing
        for thing in vars(import_net_module(module)).values()
        if isinstance(thing, type) and issubclass(thing, net)
    )
    return next((one for one in classes if vars(one).get("kind") == module), None)


@dataclass(frozen=True)
class Dense:
    """Dense retrieval: the cosine of the encoder's vectors of query and text.

    It also searches the collection. `max_length` counts word pieces, special tokens included; the rest of a text is
    truncated. A `precision` other than float32 is faster on a GPU, and less exact.

    Reimers, Gurevych. Sentence-BERT. EMNLP 2019.

    checkpoint  the name of the encoder on the hub, or its folder
    max_length  the maximum number of word pieces of a text
    pooling     how the vectors of the word pieces become one: mean, cls, lasttoken or max
    precision   float32, bfloat16 or float16
    """

    checkpoint: str = MINILM
    max_length: int = 256
    pooling: str = DenseShape.pooling
    precision: str = "float32"
    extra: ClassVar[str] = "neural"

    def __post_init__(self) -> None:
        _check_length("dense", self.max_length)

    def open(self, collection: Collection) -> Ranker:
        path, dense = _find_checkpoint(self.checkpoint), import_net_module("dense")
        net = dense.BiEncoder.from_checkpoint(str(path), DenseShape(max_length=self.max_length, pooling=self.pooling))
        ranker: Any = _open_ranker(self, path, net, collection)
        if self.checkpoint == MINILM:
            ranker.origin = import_net_module("pretrained_models").describe_origin(path)
        return cast("Ranker", ranker)


@dataclass(frozen=True)
class SentenceTransformer:
    """A sentence-transformers bi-encoder, written st:NAME: a hub name or a folder, with the settings in its files.

    `query_prefix` and `passage_prefix` come before each query and passage, such as 'query: ' and 'passage: ' for e5;
    by default, they are the prompts in the files. `max_length` 0 is the limit in the files.
    """

    name: str = field(
        metadata={
            "says": "The name of the model on the hub, or its folder.",
            "example": "sentence-transformers/all-MiniLM-L6-v2",
        }
    )
    query_prefix: str | None = None
    passage_prefix: str | None = None
    max_length: int = 0
    precision: str = "float32"
    extra: ClassVar[str] = "neural"

    def __post_init__(self) -> None:
        _check_length("st", self.max_length)
        for name in ("query_prefix", "passage_prefix"):
            value = getattr(self, name)
            check_parameter("st", value is None or isinstance(value, str), name, "a text", value)

    def open(self, collection: Collection) -> Ranker:
        path = _find_checkpoint(self.name)
        net = import_net_module("dense").BiEncoder.from_checkpoint(str(path), self._read_shape(path))
        return _open_ranker(self, path, net, collection)

    def reword_prompts(self) -> dict[str, SentenceTransformer]:
        """Return the same ranker with other prefixes, by the name of the change; empty if it has no prefix."""
        shape = self._read_shape(_find_checkpoint(self.name))
        others = reword_prefixes(shape.query_prefix, shape.passage_prefix)
        return {
            change: replace(self, query_prefix=query, passage_prefix=passage)
            for change, (query, passage) in others.items()
        }

    def _read_shape(self, path: Path) -> DenseShape:
        """Return the shape in the files, with the parameters of this model."""
        shape: DenseShape = import_net_module("dense").read_shape(path)
        return replace(
            shape,
            max_length=self.max_length or shape.max_length,
            query_prefix=shape.query_prefix if self.query_prefix is None else self.query_prefix,
            passage_prefix=shape.passage_prefix if self.passage_prefix is None else self.passage_prefix,
        )


@dataclass(frozen=True)
class HuggingFaceCrossEncoder:
    """A Hugging Face cross-encoder, written hf:NAME: any model for sequence classification with one or two logits.

    `max_length` 0 is the model's own limit.
    """

    name: str = field(
        metadata={
            "says": "The name of the model on the hub, or its folder.",
            "example": "cross-encoder/ms-marco-MiniLM-L6-v2",
        }
    )
    max_length: int = 0
    precision: str = "float32"
    extra: ClassVar[str] = "neural"

    def __post_init__(self) -> None:
        _check_length("hf", self.max_length)

    def open(self, collection: Collection) -> Ranker:
        path = _find_checkpoint(self.name)
        net = import_net_module("bert").CrossEncoder.from_checkpoint(str(path), BertShape(max_length=self.max_length))
        return _open_ranker(self, path, net, collection)


@dataclass(frozen=True)
class T5:
    """A monoT5, written t5:NAME: the probability of "true" when the model is asked whether a text is relevant.

    `max_length` counts pieces, the prompt included.

    Nogueira, Jiang, Pradeep, Lin. Document ranking with a pretrained sequence-to-sequence model. 2020.
    """

    name: str = field(
        metadata={
            "says": "The name of the model on the hub, or its folder.",
            "example": "castorini/monot5-base-msmarco",
        }
    )
    max_length: int = 512
    precision: str = "float32"
    extra: ClassVar[str] = "neural"

    def __post_init__(self) -> None:
        fine = isinstance(self.max_length, int) and self.max_length >= 16
        check_parameter("t5", fine, "max_length", "16 or more", self.max_length)

    def open(self, collection: Collection) -> Ranker:
        path = _find_checkpoint(self.name)
        net = import_net_module("monot5").MonoT5.from_checkpoint(str(path), MonoT5Shape(max_length=self.max_length))
        return _open_ranker(self, path, net, collection)


@dataclass(frozen=True)
class Onnx:
    """An ONNX cross-encoder or bi-encoder, written onnx:FOLDER: model.onnx, tokenizer.json and config.json.

    onnxruntime runs it on the CPU. `max_length` 0 is the model's own limit. A bi-encoder without the files of
    sentence-transformers needs a `pooling`. A file that is quantised dynamically reads one text at a time, because the
    other texts of a batch would change its scores.
    """

    folder: str = field(
        metadata={"says": "The folder with model.onnx, tokenizer.json and config.json.", "example": "./onnx-model"}
    )
    max_length: int = 0
    pooling: str = ""
    extra: ClassVar[str] = "onnx"

    def __post_init__(self) -> None:
        _check_length("onnx", self.max_length)

    def open(self, collection: Collection) -> Ranker:
        folder, nets = Path(self.folder).expanduser(), import_net_module("onnx_nets")
        net = nets.read_onnx_net(folder, self.max_length, self.pooling)
        mark = fingerprint_onnx_checkpoint(
            folder, (net.model if net.kind == "onnx_cross_encoder" else net.encoder).graph
        )
        return _make_ranker(self, mark, net, collection, "float32")


@dataclass(frozen=True)
class TrainedNet:
    """A trained neural ranker by its folder."""

    folder: str
    precision: str = "float32"

    def open(self, collection: Collection) -> Ranker:
        saving, folder = import_net_module("saving"), Path(self.folder)
        net, mark = saving.read_net(folder), saving.compute_fingerprint(folder)
        ranker: Ranker = import_net_module("scoring").make_ranker(
            self.folder, mark, net, collection.docs, _choose_precision(self)
        )
        return ranker

    def read_card(self) -> dict[str, Any]:
        """Return the training card."""
        about: dict[str, Any] = import_net_module("saving").read_description(Path(self.folder)).get("card", {})
        return about


def _find_checkpoint(checkpoint: str) -> Path:
    path: Path = import_net_module("pretrained_models").find_checkpoint_folder(checkpoint)
    return path


def _open_ranker(
    model: Dense | SentenceTransformer | HuggingFaceCrossEncoder | T5, path: Path, net: Any, collection: Collection
) -> Ranker:
    return _make_ranker(model, fingerprint_checkpoint(path), net, collection, _choose_precision(model))


def _make_ranker(model: Any, files_digest: str, net: Any, collection: Collection, precision: str) -> Ranker:
    mark = fingerprint(net.kind, files_digest, json.dumps(net.config(), sort_keys=True))
    ranker: Ranker = import_net_module("scoring").make_ranker(
        RANKERS.spec(model), mark, net, collection.docs, precision
    )
    return ranker


def _choose_precision(model: Dense | SentenceTransformer | HuggingFaceCrossEncoder | T5 | TrainedNet) -> str:
    """Return the precision of the model, or that of the device settings if the model has the default one."""
    usual = type(model).precision
    return device.get_device_settings().dtype or usual if model.precision == usual else model.precision


def import_net_module(module: str) -> Any:
    """Import a module that needs torch."""
    try:
        for needed in ("torch", "transformers", "safetensors"):
            import_module(needed)
    except ImportError as error:
        raise MissingExtra("neural", "a neural ranker") from error
    return import_module(f"shaketable.rankers.neural.{module}")


def _check_length(name: str, value: int) -> None:
    fine = isinstance(value, int) and (value == 0 or value >= 8)
    check_parameter(name, fine, "max_length", "8 or more, or 0 for the model's own", value)

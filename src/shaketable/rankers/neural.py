"""Neural rankers as values: bi-encoders, cross-encoders of the Hugging Face hub, and what `train` saved.

Torch is imported where one is opened. A cross-encoder or a ColBERT on a bare checkpoint has a head that knows nothing,
so these are learners, in `train`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, ClassVar

from shaketable.errors import MissingExtra, UnknownName, check
from shaketable.rankers.nets.shapes import BertShape, DenseShape, MonoT5Shape
from shaketable.registry import RANKERS
from shaketable.score import hardware
from shaketable.types import Collection, Ranker, fingerprint

if TYPE_CHECKING:
    from shaketable.rankers.nets.net import Net

KIND = r"[a-z][a-z0-9_]*"
"""How a kind of net is spelled: the name of a module, and nothing that leads out of the folder of nets."""


def net_class(kind: str) -> type[Net]:
    """The class of the nets of a kind: the one in the module `rankers.nets.KIND` that calls itself so."""
    known = [module.name for module in iter_modules([str(Path(__file__).with_name("nets"))])]
    if re.fullmatch(KIND, kind) and kind in known and (found := _net_in(kind)):
        return found
    raise UnknownName("neural model", kind, filter(_net_in, known))


def _net_in(module: str) -> type[Net] | None:
    """The net in a module of `rankers.nets` that is called as the module is; most modules there have none."""
    net: type[Net] = _nets("net").Net
    classes = (thing for thing in vars(_nets(module)).values() if isinstance(thing, type) and issubclass(thing, net))
    return next((one for one in classes if vars(one).get("kind") == module), None)


@dataclass(frozen=True)
class Dense:
    """Dense retrieval: the cosine of two vectors that an encoder makes of query and text.

    It searches the collection too. `max_length` counts word pieces, special tokens included; what a text has beyond it
    is not read. `precision` other than float32 is faster on a GPU, and less exact.

    Reimers, Gurevych. Sentence-BERT. EMNLP 2019.
    """

    checkpoint: str = "minilm"
    max_length: int = 256
    pooling: str = DenseShape.pooling
    precision: str = "float32"
    extra: ClassVar[str] = "neural"

    def __post_init__(self) -> None:
        _check_length("dense", self.max_length)

    def open(self, collection: Collection) -> Ranker:
        path, dense = _folder(self.checkpoint), _nets("dense")
        net = dense.BiEncoder.pretrained(str(path), DenseShape(max_length=self.max_length, pooling=self.pooling))
        return _opened(self, path, net, collection)


@dataclass(frozen=True)
class ST:
    """A sentence-transformers bi-encoder, written st:NAME: a hub name or a folder, read as its own files say."""

    name: str
    precision: str = "float32"
    extra: ClassVar[str] = "neural"

    def open(self, collection: Collection) -> Ranker:
        path, dense = _folder(self.name), _nets("dense")
        return _opened(self, path, dense.BiEncoder.pretrained(str(path), dense.described(path)), collection)


@dataclass(frozen=True)
class HF:
    """A Hugging Face cross-encoder, written hf:NAME: any model for sequence classification with one or two logits.

    `max_length` 0 is the model's own.
    """

    name: str
    max_length: int = 0
    precision: str = "float32"
    extra: ClassVar[str] = "neural"

    def __post_init__(self) -> None:
        _check_length("hf", self.max_length)

    def open(self, collection: Collection) -> Ranker:
        path = _folder(self.name)
        net = _nets("bert").CrossEncoder.pretrained(str(path), BertShape(max_length=self.max_length))
        return _opened(self, path, net, collection)


@dataclass(frozen=True)
class T5:
    """A monoT5, written t5:NAME: how likely the word "true" is when it is asked whether a text is relevant.

    `max_length` counts pieces, the prompt included.

    Nogueira, Jiang, Pradeep, Lin. Document ranking with a pretrained sequence-to-sequence model. 2020.
    """

    name: str
    max_length: int = 512
    precision: str = "float32"
    extra: ClassVar[str] = "neural"

    def __post_init__(self) -> None:
        fine = isinstance(self.max_length, int) and self.max_length >= 16
        check("t5", fine, "max_length", "16 or more", self.max_length)

    def open(self, collection: Collection) -> Ranker:
        path = _folder(self.name)
        net = _nets("monot5").MonoT5.pretrained(str(path), MonoT5Shape(max_length=self.max_length))
        return _opened(self, path, net, collection)


@dataclass(frozen=True)
class Trained:
    """A neural ranker that was trained here, by its folder."""

    folder: str
    precision: str = "float32"

    def open(self, collection: Collection) -> Ranker:
        saving, folder = _nets("saving"), Path(self.folder)
        net, mark = saving.read_net(folder), saving.mark(folder)
        ranker: Ranker = _nets("scoring").ranker_of(self.folder, mark, net, collection.docs, _precision(self))
        return ranker

    def card(self) -> dict[str, Any]:
        """What is known of its training."""
        about: dict[str, Any] = _nets("saving").read(Path(self.folder)).get("card", {})
        return about


def _folder(checkpoint: str) -> Path:
    path: Path = _nets("checkpoints").checkpoint_folder(checkpoint)
    return path


def _opened(model: Dense | ST | HF | T5, path: Path, net: Any, collection: Collection) -> Ranker:
    settings = json.dumps(net.config(), sort_keys=True)
    mark = fingerprint(net.kind, _nets("checkpoints").contents(path), settings)
    ranker: Ranker = _nets("scoring").ranker_of(RANKERS.spec(model), mark, net, collection.docs, _precision(model))
    return ranker


def _precision(model: Dense | ST | HF | T5 | Trained) -> str:
    """What the model says or, where it says nothing else than usual, what was chosen for all (`score.hardware`)."""
    usual = type(model).precision
    return hardware.chosen().dtype or usual if model.precision == usual else model.precision


def _nets(module: str) -> Any:
    """A module with torch in it."""
    try:
        for needed in ("torch", "transformers", "safetensors"):
            import_module(needed)
    except ImportError as error:
        raise MissingExtra("neural", "a neural ranker") from error
    return import_module(f"shaketable.rankers.nets.{module}")


def _check_length(name: str, value: int) -> None:
    fine = isinstance(value, int) and (value == 0 or value >= 8)
    check(name, fine, "max_length", "8 or more, or 0 for the model's own", value)

"""Neural rankers as values: bi-encoders, cross-encoders of the Hugging Face hub, and what `train` saved.

Torch is imported where one is opened. A cross-encoder or a ColBERT on a bare checkpoint has a head that knows nothing,
so these are learners, in `train`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from shaketable.errors import MissingExtra, check
from shaketable.registry import RANKERS, Catalogue
from shaketable.types import Collection, Ranker, fingerprint

NETS = Catalogue(
    "neural model",
    {
        "bert": "shaketable.rankers.nets.bert:CrossEncoder",
        "colbert": "shaketable.rankers.nets.colbert:ColBERT",
        "dense": "shaketable.rankers.nets.dense:BiEncoder",
        "monot5": "shaketable.rankers.nets.t5:MonoT5",
        "epic": "shaketable.rankers.nets.epic:EPIC",
        "dssm": "shaketable.rankers.nets.dssm:DSSM",
        "drmm": "shaketable.rankers.nets.drmm:DRMM",
        "knrm": "shaketable.rankers.nets.knrm:KNRM",
        "conv_knrm": "shaketable.rankers.nets.conv_knrm:ConvKNRM",
        "duet": "shaketable.rankers.nets.duet:Duet",
    },
)
"""The kinds of saved nets."""


@dataclass(frozen=True)
class Dense:
    """Dense retrieval: the cosine of two vectors that an encoder makes of query and text.

    It searches the collection too. `max_length` counts word pieces, special tokens included; what a text has beyond it
    is not read. `precision` other than float32 is faster on a GPU, and less exact.

    Reimers, Gurevych. Sentence-BERT. EMNLP 2019.
    """

    checkpoint: str = "minilm"
    max_length: int = 256
    pooling: str = "mean"
    precision: str = "float32"

    def __post_init__(self) -> None:
        _check_length("dense", self.max_length)

    def open(self, collection: Collection) -> Ranker:
        path, dense = _found(self.checkpoint), _nets("dense")
        net = dense.BiEncoder.pretrained(str(path), dense.Shape(self.max_length, self.pooling))
        return _opened(self, path, net, collection)


@dataclass(frozen=True)
class ST:
    """A sentence-transformers bi-encoder, written st:NAME: a hub name or a folder, read as its own files say."""

    name: str
    precision: str = "float32"

    def open(self, collection: Collection) -> Ranker:
        path, dense = _found(self.name), _nets("dense")
        return _opened(self, path, dense.BiEncoder.pretrained(str(path), dense.described(path)), collection)


@dataclass(frozen=True)
class HF:
    """A Hugging Face cross-encoder, written hf:NAME: any model for sequence classification with one or two logits.

    `max_length` 0 is the model's own.
    """

    name: str
    max_length: int = 0
    precision: str = "float32"

    def __post_init__(self) -> None:
        _check_length("hf", self.max_length)

    def open(self, collection: Collection) -> Ranker:
        path = _found(self.name)
        return _opened(self, path, _nets("bert").CrossEncoder.pretrained(str(path), self.max_length), collection)


@dataclass(frozen=True)
class T5:
    """A monoT5, written t5:NAME: how likely the word "true" is when it is asked whether a text is relevant.

    `max_length` counts pieces, the prompt included.

    Nogueira, Jiang, Pradeep, Lin. Document ranking with a pretrained sequence-to-sequence model. 2020.
    """

    name: str
    max_length: int = 512
    precision: str = "float32"

    def __post_init__(self) -> None:
        fine = isinstance(self.max_length, int) and self.max_length >= 16
        check("t5", fine, "max_length", "16 or more", self.max_length)

    def open(self, collection: Collection) -> Ranker:
        path = _found(self.name)
        return _opened(self, path, _nets("t5").MonoT5.pretrained(str(path), self.max_length), collection)


@dataclass(frozen=True)
class Trained:
    """A neural ranker that was trained here, by its folder."""

    folder: str
    precision: str = "float32"

    def open(self, collection: Collection) -> Ranker:
        saving, folder = _nets("saving"), Path(self.folder)
        net, mark = saving.load(folder), saving.mark(folder)
        ranker: Ranker = _nets("scoring").ranker_of(self.folder, mark, net, collection.docs, self.precision)
        return ranker

    def card(self) -> dict[str, Any]:
        """What is known of its training."""
        about: dict[str, Any] = _nets("saving").read(Path(self.folder)).get("card", {})
        return about


def load(folder: Path) -> Trained:
    """The saved neural model in a folder."""
    return Trained(str(folder))


def _found(checkpoint: str) -> Path:
    path: Path = _nets("checkpoints").find(checkpoint)
    return path


def _opened(model: Dense | ST | HF | T5, path: Path, net: Any, collection: Collection) -> Ranker:
    settings = json.dumps(net.config(), sort_keys=True)
    mark = fingerprint(net.kind, _nets("checkpoints").contents(path), settings)
    ranker: Ranker = _nets("scoring").ranker_of(RANKERS.spec(model), mark, net, collection.docs, model.precision)
    return ranker


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

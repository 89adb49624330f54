"""Rankers by name: the name is what tables, plots, gates, failures and provenance call a ranker."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from shaketable.errors import BadInput
from shaketable.rankers.python import adapt
from shaketable.registry import RANKERS
from shaketable.types import Collection, Model, Ranker

Thing = TypeVar("Thing")
NAMED = r"([\w.+-]+)=(.+)"
"""NAME=SPEC. No text form of a ranker begins like that: parameters stand in parentheses, addresses have a colon."""


@dataclass(frozen=True, eq=False)
class Given:
    """A ranker, a function or whatever else `rankers.python.adapt` takes, as a model: it lives in this process only."""

    thing: Any
    name: str

    def open(self, collection: Collection) -> Ranker:
        return adapt(self.thing, collection, self.name)


def several(things: Any) -> list[Any]:
    """Things in a list; one that was given without a list, such as a text, is a list of one.

    >>> several("bm25"), several(("bm25", "ql")), several(None)
    (['bm25'], ['bm25', 'ql'], [None])
    """
    alone = isinstance(things, str | Path) or not isinstance(things, Iterable)
    return [things] if alone else list(things)


def named_models(rankers: Any) -> dict[str, Model]:
    """name -> model, of texts ("bm25(k1=0.9)", "mine=http://host/rerank") and of objects, or a mapping of both by name.

    Two of one name are told apart, and so are two models of one server, by their names before its address.

    >>> list(named_models(["bm25", "short=bm25(b=0.1)", "bm25"]))
    ['bm25', 'short', 'bm25 (2)']
    >>> list(named_models([f"http(url='http://h:1/rerank', model={name!r})" for name in ("small", "large")]))
    ['small at h:1', 'large at h:1']
    """
    if isinstance(rankers, Mapping):
        return {name: _model(thing, name)[1] for name, thing in rankers.items()}
    models: dict[str, Model] = {}
    for thing in several(rankers):
        name, model = _model(thing, "")
        models[told_apart(name, models)] = model
    return models


def told_apart(name: str, taken: Mapping[str, Any]) -> str:
    """The name, or the next one with a number that nobody has yet."""
    return name if name not in taken else next(n for i in count(2) if (n := f"{name} ({i})") not in taken)


def split_name(text: str) -> tuple[str, str]:
    """The name and the rest of NAME=REST; no name where there is none.

    >>> split_name("mine=http://h/rerank?model=x"), split_name("http://h/rerank?model=x")
    (('mine', 'http://h/rerank?model=x'), ('', 'http://h/rerank?model=x'))
    """
    match = re.fullmatch(NAMED, text.strip(), re.DOTALL)
    return (match[1], match[2]) if match else ("", text.strip())


def _model(thing: Any, name: str) -> tuple[str, Model]:
    if isinstance(thing, str | Path):
        given, text = split_name(str(thing))
        if not re.search(r"[/(:]", text) and text not in RANKERS and (Path(text) / "model.json").is_file():
            text = f"./{text}"  # a model folder in the current one, named without a slash
        model: Model = RANKERS.build(text)
        return name or given or _called(model), model
    if callable(getattr(thing, "open", None)) and not hasattr(thing, "score"):
        return name or _called(thing), thing
    own = name or str(getattr(thing, "name", "") or getattr(thing, "__name__", type(thing).__name__))
    if not own:
        raise BadInput(f"a ranker needs a name: {thing!r} has none")
    return own, Given(thing, own)


def _called(model: Model) -> str:
    """What a model is called that nobody named: by itself, if it has a shorter name than its text form."""
    return getattr(model, "called", "") or RANKERS.spec(model)

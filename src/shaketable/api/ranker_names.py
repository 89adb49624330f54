"""Names of rankers in tables, plots, gates, failures and provenance."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from shaketable.core.documents import Collection
from shaketable.core.errors import BadInput
from shaketable.core.protocols import Model, Ranker
from shaketable.core.registries import RANKERS
from shaketable.rankers.frameworks import find_reranker
from shaketable.rankers.python import adapt

RankerLike = str | Path | Model | Ranker | Callable[..., object]
"""The text of a ranker, a model, a ranker, or a function or another object that `rankers.python.adapt` takes."""
Rankers = RankerLike | Sequence[RankerLike] | Mapping[str, RankerLike]
"""One ranker or several, or a mapping that gives them their names."""
NAME_SPEC_PATTERN = r"([\w.+-]+)=(.+)"
"""NAME=SPEC. No spec begins like that: parameters are in parentheses, and addresses have a colon."""


@dataclass(frozen=True, eq=False)
class InMemoryModel:
    """A model of a ranker or function that exists in this process only."""

    source_object: Any
    name: str

    def open(self, collection: Collection) -> Ranker:
        return adapt(self.source_object, collection, self.name)


def as_list(things: Any) -> list[Any]:
    """Return a list; a single value, such as a text, becomes a list of one.

    >>> as_list("bm25"), as_list(("bm25", "ql")), as_list(None)
    (['bm25'], ['bm25', 'ql'], [None])
    """
    alone = isinstance(things, str | Path) or not isinstance(things, Iterable)
    return [things] if alone else list(things)


def build_models(rankers: Rankers) -> dict[str, Model]:
    """Return name -> model, for texts ("bm25(k1=0.9)", "mine=http://host/rerank") and objects.

    A second ranker of the same name gets a number; models of one server are named by model and address.

    >>> list(build_models(["bm25", "short=bm25(b=0.1)", "bm25"]))
    ['bm25', 'short', 'bm25 (2)']
    >>> list(build_models([f"http(url='http://h:1/rerank', model={name!r})" for name in ("small", "large")]))
    ['small at h:1', 'large at h:1']
    """
    if isinstance(rankers, Mapping):
        return {name: _build_model(thing, name)[1] for name, thing in rankers.items()}
    models: dict[str, Model] = {}
    things: list[Any] = [rankers] if find_reranker(rankers) else as_list(rankers)  # some components are iterable
    for thing in things:
        name, model = _build_model(thing, "")
        models[make_unique_name(name, models)] = model
    return models


def make_unique_name(name: str, taken: Mapping[str, Any]) -> str:
    """Return the name, with the next free number if it is taken."""
    return name if name not in taken else next(n for i in count(2) if (n := f"{name} ({i})") not in taken)


def split_name(text: str) -> tuple[str, str]:
    """Split NAME=REST into name and rest; the name is empty if there is none.

    >>> split_name("mine=http://h/rerank?model=x"), split_name("http://h/rerank?model=x")
    (('mine', 'http://h/rerank?model=x'), ('', 'http://h/rerank?model=x'))
    """
    match = re.fullmatch(NAME_SPEC_PATTERN, text.strip(), re.DOTALL)
    return (match[1], match[2]) if match else ("", text.strip())


def _build_model(thing: RankerLike, name: str) -> tuple[str, Model]:
    if isinstance(thing, str | Path):
        given, text = split_name(str(thing))
        if not re.search(r"[/(:]", text) and text not in RANKERS and (Path(text) / "model.json").is_file():
            text = f"./{text}"  # a model folder in the current folder, named without a slash
        model: Model = RANKERS.build(text)
        return name or given or _find_default_name(model), model
    if callable(getattr(thing, "open", None)) and not hasattr(thing, "score"):
        opened: Any = thing
        return name or _find_default_name(opened), opened
    own = name or str(getattr(thing, "name", "") or getattr(thing, "__name__", type(thing).__name__))
    if not own:
        raise BadInput(f"a ranker needs a name: {thing!r} has none")
    return own, InMemoryModel(thing, own)


def _find_default_name(model: Model) -> str:
    """Return the display name of a model, or its text form."""
    return getattr(model, "display_name", "") or RANKERS.spec(model)

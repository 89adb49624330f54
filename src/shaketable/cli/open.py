"""From words on the command line to collections and models."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from shaketable.errors import BadInput
from shaketable.registry import RANKERS
from shaketable.types import Collection, Model


def open_collection(data: str, split: str | None, candidates: Path | None = None) -> Collection:
    """The collection, cut to a split: the one named, or "test" where there is one; "all" cuts nothing."""
    from shaketable.data.beir import in_split
    from shaketable.data.load import load

    if split not in (None, "all"):
        return load(data, split, candidates)
    whole = load(data, None, candidates)
    return in_split(whole, "test") if split is None and "test" in whole.splits else whole


def validation_split(collection: Collection) -> str | None:
    """The split to validate on, where the collection has one that is made for it."""
    return next((name for name in ("validation", "dev") if name in collection.splits), None)


def open_models(texts: Iterable[str]) -> dict[str, Model]:
    """name -> model, each named by its own text form; two of one name would be told apart by nobody."""
    models: dict[str, Model] = {}
    for text in texts:
        model = RANKERS.build(text)
        name = RANKERS.spec(model)
        if name in models:
            raise BadInput(f"ranker {name} is named twice")
        models[name] = model
    return models

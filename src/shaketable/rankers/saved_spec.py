"""A folder that holds a ranker as a spec, such as a formula with tuned parameters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shaketable.core.documents import Collection
from shaketable.core.errors import BadInput
from shaketable.core.protocols import Ranker
from shaketable.core.registries import RANKERS
from shaketable.rankers import persistence as folders

KIND = "formula"


def save(ranker: str, folder: str | Path, card: Mapping[str, Any], *, overwrite: bool = False) -> None:
    """Write a model folder that holds the spec of a ranker, such as "bm25(b=0.5)"; `card` describes the training."""
    folders.write_model(folder, {"kind": KIND, "ranker": ranker, "card": dict(card)}, overwrite=overwrite)


def open_folder(folder: str | Path, collection: Collection) -> Ranker:
    """Return the ranker in a folder."""
    text = folders.read_verified(folder).metadata.get("ranker")
    if not isinstance(text, str):
        raise BadInput("does not name its ranker; train the model again", folder)
    ranker: Ranker = RANKERS.build(text).open(collection)
    return ranker

"""A folder that holds a ranker by its text form, such as a formula with the parameters that were chosen for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shaketable.errors import BadInput
from shaketable.rankers import folder as folders
from shaketable.registry import RANKERS
from shaketable.types import Collection, Ranker

KIND = "formula"


def save(ranker: str, folder: str | Path, card: Mapping[str, Any], *, overwrite: bool = False) -> None:
    """Write the folder."""
    folders.write(folder, {"kind": KIND, "ranker": ranker, "card": dict(card)}, overwrite=overwrite)


def open_folder(folder: str | Path, collection: Collection) -> Ranker:
    """The ranker in a folder."""
    text = folders.opened(folder).about.get("ranker")
    if not isinstance(text, str):
        raise BadInput("does not say which ranker it holds; train the model again", folder)
    ranker: Ranker = RANKERS.build(text).open(collection)
    return ranker

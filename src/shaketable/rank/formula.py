"""A folder that holds a ranker by its text form, such as a formula with the parameters that were chosen for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shaketable.errors import BadInput
from shaketable.files import written_whole
from shaketable.registry import RANKERS
from shaketable.types import Collection, Ranker


def save(ranker: str, folder: Path, card: Mapping[str, Any], *, overwrite: bool = False) -> None:
    """Write the folder."""
    path = folder / "model.json"
    if path.exists() and not overwrite:
        raise BadInput("is a model already; name another folder, or say --overwrite", folder)
    with written_whole(path) as out:
        json.dump({"kind": "formula", "ranker": ranker, "card": dict(card)}, out, indent=1, allow_nan=False)


def open_folder(folder: Path, collection: Collection) -> Ranker:
    """The ranker in a folder."""
    about = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    text = about.get("ranker")
    if not isinstance(text, str):
        raise BadInput("does not say which ranker it is", folder / "model.json")
    ranker: Ranker = RANKERS.build(text).open(collection)
    return ranker

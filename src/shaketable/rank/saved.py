"""A model folder among rankers."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shaketable.rank import formula, ltr, neural, runfile
from shaketable.types import Collection, Ranker

KINDS = {"formula": formula, "recorded": runfile}
"""What a folder may hold besides nets and models on features, by the word `kind` of its model.json."""


@dataclass(frozen=True)
class Saved:
    """A ranker that `shaketable train` left in a folder."""

    path: str

    def open(self, collection: Collection) -> Ranker:
        """Read the folder, and take statistics from the collection."""
        about = _about(Path(self.path))
        if about.get("kind") in KINDS:
            opened: Ranker = KINDS[about["kind"]].open_folder(Path(self.path), collection)
            return opened
        if "schema" in about:
            return neural.Trained(self.path).open(collection)
        return replace(ltr.load(self.path).open(collection), name=self.path)

    def card(self) -> dict[str, Any]:
        """What is known of its training."""
        card: dict[str, Any] = _about(Path(self.path)).get("card", {})
        return card


def _about(folder: Path) -> dict[str, Any]:
    """What model.json says; what cannot be read is for whoever reads it to complain of."""
    try:
        about = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return about if isinstance(about, dict) else {}

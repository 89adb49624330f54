"""A model folder among rankers."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from shaketable.rank import ltr, neural
from shaketable.types import Collection, Ranker


@dataclass(frozen=True)
class Saved:
    """A ranker that `shaketable train` left in a folder."""

    path: str

    def open(self, collection: Collection) -> Ranker:
        """Read the folder, and take statistics from the collection."""
        if _is_net(Path(self.path)):
            return neural.Trained(self.path).open(collection)
        return replace(ltr.load(self.path).open(collection), name=self.path)


def _is_net(folder: Path) -> bool:
    """Does the folder say that it holds a net? What cannot be read is for whoever reads it to complain of."""
    try:
        about = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(about, dict) and "schema" in about

"""A model folder among rankers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shaketable.rank.ltr import FittedRanker, load
from shaketable.types import Collection


@dataclass(frozen=True)
class Saved:
    """A ranker that `shaketable train` left in a folder."""

    path: str

    def open(self, collection: Collection) -> FittedRanker:
        """Read the folder, and take statistics from the collection."""
        return replace(load(self.path).open(collection), name=self.path)

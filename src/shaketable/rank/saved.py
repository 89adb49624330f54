"""A model folder among rankers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shaketable.rank import folder, ltr, neural
from shaketable.types import Collection, Ranker


@dataclass(frozen=True)
class Saved:
    """A ranker that `shaketable train` left in a folder."""

    path: str

    def open(self, collection: Collection) -> Ranker:
        """Read the folder, and take statistics from the collection."""
        if folder.read(self.path).about["kind"] in ltr.KINDS:
            return replace(ltr.load(self.path).open(collection), name=self.path)
        return neural.Trained(self.path).open(collection)

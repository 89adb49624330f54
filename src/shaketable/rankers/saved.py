"""A model folder among rankers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from shaketable.rankers import folder, formula, ltr, neural, runfile, smoothed
from shaketable.types import Collection, Ranker

KINDS = {formula.KIND: formula, runfile.KIND: runfile, smoothed.KIND: smoothed}
"""What a folder may hold besides nets and models on features."""


@dataclass(frozen=True)
class Saved:
    """A ranker that `shaketable train` left in a folder."""

    path: str

    def open(self, collection: Collection) -> Ranker:
        """Read the folder, and take statistics from the collection."""
        kind = folder.read(self.path).about["kind"]
        if kind in KINDS:
            opened: Ranker = KINDS[kind].open_folder(self.path, collection)
            return opened
        if kind in ltr.KINDS:
            return replace(ltr.read_model(self.path).open(collection), name=self.path)
        return neural.Trained(self.path).open(collection)

    def card(self) -> dict[str, Any]:
        """What is known of its training."""
        card: dict[str, Any] = folder.read(self.path).about.get("card", {})
        return card

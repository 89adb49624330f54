"""A model folder as a ranker."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from shaketable.core.documents import Collection
from shaketable.core.protocols import Ranker
from shaketable.core.registries import MODEL_FORMATS
from shaketable.rankers import ltr, persistence
from shaketable.rankers.neural import models


@dataclass(frozen=True)
class SavedModel:
    """A ranker that `shaketable train` saved in a folder."""

    path: str = field(metadata={"says": "The folder of the model.", "example": "./model"})

    def open(self, collection: Collection) -> Ranker:
        """Read the folder and return the ranker with the statistics of the collection."""
        kind = persistence.read_manifest(self.path).metadata["kind"]
        if kind in MODEL_FORMATS:
            ranker: Ranker = import_module(MODEL_FORMATS[kind]).open_folder(self.path, collection)
            return ranker
        if kind in ltr.MODEL_KINDS:
            return replace(ltr.read_model(self.path).open(collection), name=self.path)
        return models.TrainedNet(self.path).open(collection)

    def read_card(self) -> dict[str, Any]:
        """Return the training card."""
        card: dict[str, Any] = persistence.read_manifest(self.path).metadata.get("card", {})
        return card

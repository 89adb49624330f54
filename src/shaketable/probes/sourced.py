"""Probes whose texts come from a file: a data set as it is published, or the pairs that come with the package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shaketable.data.pairs import DataSet
from shaketable.probes.ground import Ground


@dataclass(frozen=True)
class Sourced:
    """What such probes share: a path, "" for the bundled pairs."""

    path: str = ""

    symmetric: ClassVar[bool] = False
    source: ClassVar[DataSet]

    def lacking(self, ground: Ground) -> str:
        """Which data set is missing, what it looks like and where it is from; "" if it is there."""
        return self.source.lacking(self.path) if self.path else ""

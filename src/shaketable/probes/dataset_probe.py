"""Probes whose texts come from a file: a data set as it is published, or the pairs that come with the package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shaketable.datasets.pairs import PairDataset
from shaketable.probes.context import ProbeContext


@dataclass(frozen=True)
class DatasetProbe:
    """What such probes share: a path, "" for the bundled pairs."""

    path: str = ""

    symmetric: ClassVar[bool] = False
    source: ClassVar[PairDataset]

    def unavailable_reason(self, context: ProbeContext) -> str:
        """Which data set is missing, what it looks like and where it is from; "" if it is there."""
        return self.source.unavailable_reason(self.path) if self.path else ""

"""Base class of probes that read their texts from a published data set or from the bundled pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shaketable.datasets.pairs import PairDataset
from shaketable.probes.context import ProbeContext


@dataclass(frozen=True)
class DatasetProbe:
    """A probe that reads a data set; an empty path selects the bundled pairs.

    path  the file or folder of the data set
    """

    path: str = ""

    symmetric: ClassVar[bool] = False
    source: ClassVar[PairDataset]

    def unavailable_reason(self, context: ProbeContext) -> str:
        """Return a description of the missing data set and its source, or "" if it is present."""
        return self.source.unavailable_reason(self.path) if self.path else ""

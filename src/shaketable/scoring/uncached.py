"""A ranker whose scores are never cached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shaketable.core.documents import Scores, Slate
from shaketable.core.protocols import Ranker


@dataclass(frozen=True, eq=False)
class Uncached:
    """A wrapper of a ranker whose scores the engine neither looks up nor stores, and whose near ties stay separate.

    The wrapper passes on the attributes that say how to call the ranker. Its `cached` is False, lists are always scored
    whole, and it has no `noise`, so near scores do not become ties.
    """

    ranker: Ranker
    cached = False
    pointwise = False

    @property
    def name(self) -> str:
        return str(getattr(self.ranker, "name", type(self.ranker).__name__))

    @property
    def max_concurrency(self) -> int:
        return int(getattr(self.ranker, "max_concurrency", 1))

    @property
    def chunk(self) -> int:
        return int(getattr(self.ranker, "chunk", 0))

    @property
    def status(self) -> Any:
        """The text beside the progress bar, such as the reason for a wait."""
        return getattr(self.ranker, "status", "")

    def score(self, slates: Sequence[Slate]) -> Sequence[Scores]:
        return self.ranker.score(slates)

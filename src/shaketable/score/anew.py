"""A ranker that is asked anew each time: nothing that is kept, in memory or on disk, answers in its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shaketable.types import Ranker, Scores, Slate


@dataclass(frozen=True, eq=False)
class Anew:
    """Another ranker, whose answers are neither looked up nor kept, nor smoothed: each is as it was given.

    What the road knows of a ranker it asks by attributes; this one has those that say how to ask, and `cached` is
    False. That it has no `noise` lets scores come as they are, however near to each other.
    """

    ranker: Ranker
    cached = False

    @property
    def name(self) -> str:
        return str(getattr(self.ranker, "name", type(self.ranker).__name__))

    @property
    def in_flight(self) -> int:
        return int(getattr(self.ranker, "in_flight", 1))

    @property
    def chunk(self) -> int:
        return int(getattr(self.ranker, "chunk", 0))

    @property
    def status(self) -> Any:
        """What it waits for, for a progress display."""
        return getattr(self.ranker, "status", "")

    def score(self, slates: Sequence[Slate]) -> Sequence[Scores]:
        return self.ranker.score(slates)

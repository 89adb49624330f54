"""A ranker whose scores are never cached."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
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


@dataclass(frozen=True, eq=False)
class Timed(Uncached):
    """An uncached ranker with the time of each list; a server gets one list per call."""

    seconds: dict[Slate, float] = field(default_factory=dict)

    @property
    def chunk(self) -> int:
        return min(1, int(getattr(self.ranker, "chunk", 0)))

    def score(self, slates: Sequence[Slate]) -> Sequence[Scores]:
        started = time.perf_counter()
        answers = self.ranker.score(slates)
        if len(slates) == 1:
            self.seconds[slates[0]] = time.perf_counter() - started
        return answers

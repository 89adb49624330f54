"""A limit on the work of rankers, for audits with a budget."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from shaketable.core.errors import LimitReached
from shaketable.scoring.chunks import split_chunks
from shaketable.scoring.traits import RankerTraits
from shaketable.scoring.units import SlateUnits, Unit, WorkUnit


@dataclass
class WorkLimit:
    """A limit on the pairs, the requests and the time of some rankers; the others work without a limit.

    Pairs count when they are first requested, whether they are cached on disk or not. So an audit that is repeated, or
    resumed after a kill, stops at the same pairs.

    Parameters
    ----------
    rankers
        The names of the rankers whose work counts.
    max_pairs, max_requests
        The largest numbers of query-document pairs and of requests.
    deadline_s
        The value of `time.monotonic()` after which the rankers get no more work.
    """

    rankers: frozenset[str] = frozenset()
    max_pairs: float = inf
    max_requests: float = inf
    deadline_s: float = inf
    pairs: int = 0
    requests: int = 0

    @property
    def remaining_pairs(self) -> float:
        """The number of pairs that may still be requested."""
        return self.max_pairs - self.pairs

    def take(self, ranker: str, pairs: int, requests: int) -> None:
        """Count work that is about to start; raise `LimitReached`, and count nothing, if it exceeds the limit."""
        if ranker not in self.rankers:
            return
        if pairs and self.pairs + pairs > self.max_pairs:
            raise LimitReached(f"{ranker} needs {pairs:,} more pairs, and {max(self.remaining_pairs, 0):,.0f} are left")
        if requests and self.requests + requests > self.max_requests:
            left = max(self.max_requests - self.requests, 0)
            raise LimitReached(f"{ranker} needs {requests:,} more requests, and {left:,.0f} are left")
        if pairs or requests:
            self.check_time(ranker)
        self.pairs += pairs
        self.requests += requests

    def check_time(self, ranker: str) -> None:
        """Raise `LimitReached` after the deadline."""
        if ranker in self.rankers and time.monotonic() > self.deadline_s:
            raise LimitReached(f"the time of the budget is over, so {ranker} gets no more requests")


def count_work(
    ranker: Any, traits: RankerTraits, unit_type: WorkUnit[Unit], units: Sequence[Unit], default_chunk: int
) -> tuple[int, int]:
    """Return the pairs and the requests that units cost; a ranker without concurrent requests is not a server."""
    weights = list(map(unit_type.weight, units))
    if traits.max_concurrency == 1:
        return sum(weights), 0
    if hasattr(ranker, "count_requests"):
        return sum(weights), int(ranker.count_requests(units)) if isinstance(unit_type, SlateUnits) else 0
    queries = [unit_type.query(unit) for unit in units]
    size = traits.chunk or default_chunk
    return sum(weights), sum(1 for _ in split_chunks(list(range(len(units))), weights, lambda: size, queries))

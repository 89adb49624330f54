"""Anytime-valid evidence of drift: a conformal test martingale over replays of the same lists.

Each replay has one number, its distance from a reference. If the ranker does not change, the distances are
exchangeable, so the rank of the newest among all is uniform, and so is the p below. Bets on small p form a martingale:
whatever the number of looks, it exceeds 1/0.05 = 20 with probability at most 5 % (Ville's inequality).

Vovk, Gammerman, Shafer. Algorithmic learning in a random world, chapter 8. Springer 2022.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import log

EVIDENCE_LIMIT = 20.0
"""Evidence of at least 1/0.05 is an alarm: at most 5 % of unchanged rankers ever reach it."""


def bet(p: float) -> float:
    """Return the gain of a bet on small p: the mean of ε p^(ε-1) over all ε from 0 to 1. Its mean over p is 1.

    >>> round(bet(0.01), 1), round(bet(0.5), 2), round(bet(1.0), 2)
    (4.5, 0.64, 0.5)
    """
    p = min(max(p, 1e-12), 1 - 1e-9)
    gain = (1 - p + p * log(p)) / (p * log(p) ** 2)
    return gain if p < 0.9999 else 0.5  # the limit, where both parts of the fraction vanish


@dataclass
class DriftEvidence:
    """The evidence that the newest replays are farther from the reference than the earlier ones.

    A drift may begin at any replay. So the evidence is the mean of the martingales that begin at replay 1, 2, ..., with
    the weights 1/(j (j + 1)); martingales that have not begun count as 1. `distances` are those of all replays so far.
    """

    distances: list[float]
    begun: float = 0.0
    """The weighted sum of the martingales that have begun."""
    replays: int = 0
    _sorted: list[float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._sorted = sorted(self.distances)

    def add(self, distance: float, tie_breaker: float) -> float:
        """Add a replay and return its p; `tie_breaker` is a uniform random number that splits ties.

        >>> evidence = DriftEvidence([1.0, 2.0, 3.0])
        >>> evidence.add(4.0, 1.0), evidence.add(1.5, 1.0)
        (0.25, 0.8)
        """
        insort(self._sorted, distance)
        self.distances.append(distance)
        total = len(self._sorted)
        greater = total - bisect_right(self._sorted, distance)
        equal = bisect_right(self._sorted, distance) - bisect_left(self._sorted, distance)
        p = (greater + tie_breaker * equal) / total
        self.replays += 1
        self.begun = (self.begun + 1 / (self.replays * (self.replays + 1))) * bet(p)
        return p

    @property
    def value(self) -> float:
        """The evidence; 1 at the start."""
        return self.begun + 1 / (self.replays + 1)

    @property
    def is_alarm(self) -> bool:
        return self.value >= EVIDENCE_LIMIT


def highest_evidence(start: Iterable[float], distances: Iterable[float], tie_breakers: Iterable[float]) -> float:
    """Return the highest evidence that a series of replays reaches; for simulations."""
    evidence = DriftEvidence(list(start))
    highest = 1.0
    for distance, tie_breaker in zip(distances, tie_breakers, strict=False):
        evidence.add(distance, tie_breaker)
        highest = max(highest, evidence.value)
    return highest

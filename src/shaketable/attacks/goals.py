"""Attack goals. A case of several lists pursues the goal in all of them."""

from __future__ import annotations

from dataclasses import dataclass

from shaketable.core.attack_types import Ranks
from shaketable.core.errors import check_parameter


@dataclass(frozen=True)
class Promote:
    """Decrease the mean rank over the lists.

    >>> Promote().utility((3, 5)) > Promote().utility((4, 5)), Promote().is_reached((1, 1))
    (True, True)
    """

    def utility(self, ranks: Ranks) -> float:
        return -sum(ranks) / len(ranks)

    def is_reached(self, ranks: Ranks) -> bool:
        return max(ranks) == 1


@dataclass(frozen=True)
class Demote:
    """Increase the mean rank over the lists."""

    def utility(self, ranks: Ranks) -> float:
        return sum(ranks) / len(ranks)

    def is_reached(self, ranks: Ranks) -> bool:
        return False


@dataclass(frozen=True)
class Top:
    """Reach the top k: the number of lists where it succeeds counts first, the mean rank second.

    >>> Top(10).utility((10, 90)) > Top(10).utility((11, 11)), Top(10).is_reached((10, 2))
    (True, True)
    """

    k: int = 10

    def __post_init__(self) -> None:
        check_parameter("top", self.k >= 1, "k", "1 or more", self.k)

    def utility(self, ranks: Ranks) -> float:
        inside = sum(place <= self.k for place in ranks)
        mean = sum(ranks) / len(ranks)
        return inside + 1 / (1 + mean)  # the second term is below 1

    def is_reached(self, ranks: Ranks) -> bool:
        return max(ranks) <= self.k

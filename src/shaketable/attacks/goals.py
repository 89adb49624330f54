"""What attacks are after. A case of several lists wants it in all of them."""

from __future__ import annotations

from dataclasses import dataclass

from shaketable.core.attack_types import Ranks
from shaketable.core.errors import check_parameter


@dataclass(frozen=True)
class Promote:
    """To stand higher: the mean place over the lists becomes smaller.

    >>> Promote().utility((3, 5)) > Promote().utility((4, 5)), Promote().is_reached((1, 1))
    (True, True)
    """

    def utility(self, ranks: Ranks) -> float:
        return -sum(ranks) / len(ranks)

    def is_reached(self, ranks: Ranks) -> bool:
        return max(ranks) == 1


@dataclass(frozen=True)
class Demote:
    """To stand lower: the mean place over the lists becomes larger."""

    def utility(self, ranks: Ranks) -> float:
        return sum(ranks) / len(ranks)

    def is_reached(self, ranks: Ranks) -> bool:
        return False


@dataclass(frozen=True)
class Top:
    """To be among the first k: the number of lists where it is counts first, the mean place second.

    >>> Top(10).utility((10, 90)) > Top(10).utility((11, 11)), Top(10).is_reached((10, 2))
    (True, True)
    """

    k: int = 10

    def __post_init__(self) -> None:
        check_parameter("top", self.k >= 1, "k", "1 or more", self.k)

    def utility(self, ranks: Ranks) -> float:
        inside = sum(place <= self.k for place in ranks)
        mean = sum(ranks) / len(ranks)
        return inside + 1 / (1 + mean)  # the second part is below 1

    def is_reached(self, ranks: Ranks) -> bool:
        return max(ranks) <= self.k

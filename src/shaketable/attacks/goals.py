"""What attacks are after. A case of several lists wants it in all of them."""

from __future__ import annotations

from dataclasses import dataclass

from shaketable.errors import check
from shaketable.types import Places


@dataclass(frozen=True)
class Promote:
    """To stand higher: the mean place over the lists becomes smaller.

    >>> Promote().worth((3, 5)) > Promote().worth((4, 5)), Promote().reached((1, 1))
    (True, True)
    """

    def worth(self, places: Places) -> float:
        return -sum(places) / len(places)

    def reached(self, places: Places) -> bool:
        return max(places) == 1


@dataclass(frozen=True)
class Demote:
    """To stand lower: the mean place over the lists becomes larger."""

    def worth(self, places: Places) -> float:
        return sum(places) / len(places)

    def reached(self, places: Places) -> bool:
        return False


@dataclass(frozen=True)
class Top:
    """To be among the first k: the number of lists where it is counts first, the mean place second.

    >>> Top(10).worth((10, 90)) > Top(10).worth((11, 11)), Top(10).reached((10, 2))
    (True, True)
    """

    k: int = 10

    def __post_init__(self) -> None:
        check("top", self.k >= 1, "k", "1 or more", self.k)

    def worth(self, places: Places) -> float:
        inside = sum(place <= self.k for place in places)
        mean = sum(places) / len(places)
        return inside + 1 / (1 + mean)  # the second part is below 1

    def reached(self, places: Places) -> bool:
        return max(places) <= self.k

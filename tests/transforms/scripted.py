"""Chance with the dice fixed, so that a test can say what must come out."""

from __future__ import annotations

from shaketable.core.seeding import ItemRandom


class Scripted(ItemRandom):
    """Draws whose `below` gives the numbers it was told; running out is an error."""

    def __init__(self, *numbers: int):
        super().__init__(bytes(64))
        self.numbers = list(numbers)

    def randbelow(self, n: int) -> int:
        number = self.numbers.pop(0)
        assert 0 <= number < n, f"{number} is not below {n}"
        return number

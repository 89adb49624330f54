"""A random number generator with fixed draws, so that a test knows the result."""

from __future__ import annotations

from shaketable.core.seeding import ItemRandom


class Scripted(ItemRandom):
    """A generator that returns the given numbers; too few numbers are an error."""

    def __init__(self, *numbers: int):
        super().__init__(bytes(64))
        self.numbers = list(numbers)

    def randbelow(self, n: int) -> int:
        number = self.numbers.pop(0)
        assert 0 <= number < n, f"{number} is not below {n}"
        return number

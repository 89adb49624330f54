"""Gates: rules on headline numbers that decide an exit code."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from shaketable.errors import BadInput, UnknownName
from shaketable.types import Result

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True)
class Gate:
    """A rule such as "bm25.nDCG@10>=0.4"; without a ranker it holds for all of them."""

    key: str
    sign: str
    bound: float

    @classmethod
    def parse(cls, rule: str) -> Gate:
        """Read a rule.

        >>> Gate.parse("nDCG@10 >= 0.4")
        Gate(key='nDCG@10', sign='>=', bound=0.4)
        """
        match = re.fullmatch(r"\s*(.+?)\s*(>=|<=|>|<)\s*([-+.\deE]+)\s*", rule)
        try:
            if match:
                return cls(match[1], match[2], float(match[3]))
        except ValueError:
            pass
        raise BadInput(f"cannot read the rule {rule!r}: write NUMBER'S NAME, one of >= <= > <, and a bound")


@dataclass(frozen=True)
class Verdict:
    """What became of a gate: the number it looked at, and whether the rule held."""

    gate: Gate
    name: str
    value: float

    @property
    def held(self) -> bool:
        return _COMPARE[self.gate.sign](self.value, self.gate.bound)

    def __str__(self) -> str:
        word = "held" if self.held else "FAILED"
        return f"{word}: {self.name} = {self.value:.4f} ({self.gate.sign} {self.gate.bound:g})"


def verdicts(gates: Sequence[Gate], results: Iterable[Result]) -> list[Verdict]:
    """A verdict for each gate and each number it names; a gate that names none is an error, never a pass."""
    numbers = {key: value for result in results for key, value in result.headline.items()}
    found = []
    for gate in gates:
        named = [key for key in numbers if key == gate.key or key.endswith(f".{gate.key}")]
        if not named:
            raise UnknownName("headline number", gate.key, numbers)
        found += [Verdict(gate, key, numbers[key]) for key in named]
    return found

"""Gates: rules on findings that decide an exit code."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from shaketable.errors import BadInput, UnknownName
from shaketable.types import Finding, Result

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True)
class Ruling:
    """What became of a rule for one ranker, in words: `said` is one sentence."""

    rule: str
    ranker: str
    status: Literal["held", "failed", "warned"]
    said: str

    def __str__(self) -> str:
        return f"{self.status}: {self.rule}: {self.said}"


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
        match = re.fullmatch(r"(.+?)\s*(>=|<=|>|<)\s*([-+.0-9eE]+)", rule.strip()) if len(rule) < 500 else None
        try:
            if match:
                return cls(match[1], match[2], float(match[3]))
        except ValueError:
            pass
        raise BadInput(
            f"cannot read the rule {rule[:200]!r}: write the name of a finding, a sign (>=, <=, > or <) and a number, "
            "for example nDCG@10>=0.4"
        )


@dataclass(frozen=True)
class Verdict:
    """What became of a gate: the number it looked at, and whether the rule held."""

    gate: Gate
    finding: Finding

    @property
    def held(self) -> bool:
        return _COMPARE[self.gate.sign](self.finding.value, self.gate.bound)

    @property
    def said(self) -> str:
        """The number and its bound, in words."""
        one = self.finding
        return f"{one.ranker}.{one.name} is {one.value:.4f}, and should be {self.gate.sign} {self.gate.bound:g}"

    def __str__(self) -> str:
        word = "held" if self.held else "FAILED"
        one = self.finding
        return f"{word}: {one.ranker}.{one.name} = {one.value:.4f} ({self.gate.sign} {self.gate.bound:g})"


def verdicts(gates: Sequence[Gate], results: Iterable[Result]) -> list[Verdict]:
    """A verdict for each gate and each finding it names; a gate that names none is an error, never a pass."""
    findings = [finding for result in results for finding in result.findings]
    outcomes = []
    for gate in gates:
        named = [one for one in findings if gate.key in (one.name, f"{one.ranker}.{one.name}")]
        if not named:
            raise UnknownName("finding", gate.key, {f"{one.ranker}.{one.name}" for one in findings})
        # two tasks may have found the same number, one of them without a word on what it is compared with
        compared = {(one.ranker, one.name, one.value, one.where) for one in named if one.against}
        once = [one for one in named if one.against or (one.ranker, one.name, one.value, one.where) not in compared]
        outcomes += [Verdict(gate, one) for one in once]
    return outcomes

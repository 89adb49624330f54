"""One rule for every claim: its measured interval decides, and means alone decide nothing.

A claim says that a number lies on one side of a bound, or between two. A measurement of it *holds* if its 95 % interval
lies wholly on that side, it is *refuted* if the interval lies wholly on the other, and otherwise it is *inconclusive*.
A claim holds if all its measurements hold, and is refuted if one is. A claim without measurements is *not tested*.

Errors shrink with the square root of the number of queries. So an inconclusive measurement of n queries, whose interval
reaches w from its estimate towards the bound (1.96 standard errors), is decided by about n (w / |estimate - bound|)²
queries if the estimate stays the same. If the estimate equals the bound, no number of queries decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import inf, isfinite
from typing import Any, Final, Literal, TypeAlias

from shaketable.measures.status import MAX_DECIDING_QUERIES, count_narrowing_queries

Verdict: TypeAlias = Literal["holds", "refuted", "inconclusive", "not tested"]
HOLDS: Final = "holds"
REFUTED: Final = "refuted"
INCONCLUSIVE: Final = "inconclusive"
NOT_TESTED: Final = "not tested"
VERDICTS: tuple[Verdict, ...] = (HOLDS, REFUTED, INCONCLUSIVE, NOT_TESTED)
STORED_DIGITS = 4
"""The significant digits of a stored number, which are also those of a printed one."""


@dataclass(frozen=True)
class Side:
    """The numbers for which a claim is true: above one bound, below another, or between both."""

    above: float = -inf
    below: float = inf

    def __post_init__(self) -> None:
        if not self.above < self.below or not (isfinite(self.above) or isfinite(self.below)):
            raise ValueError(f"a side needs a bound, and above < below, not above {self.above:g}, below {self.below:g}")

    def __str__(self) -> str:
        if isfinite(self.above) and isfinite(self.below):
            return f"between {self.above:g} and {self.below:g}"
        return f"> {self.above:g}" if isfinite(self.above) else f"< {self.below:g}"

    def contains(self, value: float) -> bool:
        """Return True if the claim is true for this number."""
        return self.above < value < self.below

    def find_open_bounds(self, value: float) -> tuple[float, ...]:
        """Return the bounds that an interval around this number must exclude to be decided."""
        if self.contains(value):
            return tuple(bound for bound in (self.above, self.below) if isfinite(bound))
        return (self.above if value <= self.above else self.below,)


@dataclass(frozen=True)
class Measurement:
    """One number for a claim, with its 95 % interval.

    Parameters
    ----------
    claim
        The id of the claim.
    ranker
        The ranker, or the difference of two: "minilm-l12 - bm25".
    collection
        The collection.
    value, low, high
        The estimate and the ends of its interval.
    n
        The number of independent cases, mostly queries.
    training
        The name of a toy training in claims.toml; empty if the ranker learned nothing here, or enough.
    """

    claim: str
    ranker: str
    collection: str
    value: float
    low: float
    high: float
    n: int
    training: str = ""

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high or self.n < 1:
            raise ValueError(f"{self.claim}, {self.ranker}: {self} is no estimate within an interval")

    def __str__(self) -> str:
        numbers = self.value, self.low, self.high
        digits = max(len(repr(number).partition(".")[2]) for number in numbers)
        value, low, high = (f"{number:.{digits}f}" for number in numbers)
        return f"{value} [{low}, {high}]"

    def to_row(self) -> dict[str, Any]:
        """Return the row for the table `measurements` of a page, rounded as it is printed."""
        rounded = {name: float(f"{getattr(self, name):.{STORED_DIGITS}g}") for name in ("value", "low", "high")}
        return asdict(self) | rounded


def judge(found: Measurement, side: Side) -> Verdict:
    """Return the verdict of one measurement.

    >>> drop = Measurement("typos", "bm25", "rag24", -13.3, -17.5, -9.3, 86)
    >>> judge(drop, Side(below=0)), judge(drop, Side(above=-10)), judge(drop, Side(below=-20))
    ('holds', 'inconclusive', 'refuted')
    """
    if side.contains(found.low) and side.contains(found.high):
        return HOLDS
    if found.high <= side.above or found.low >= side.below:
        return REFUTED
    return INCONCLUSIVE


def join_verdicts(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict of a claim from those of its measurements.

    >>> join_verdicts([HOLDS, INCONCLUSIVE]), join_verdicts([HOLDS, REFUTED]), join_verdicts([])
    ('inconclusive', 'refuted', 'not tested')
    """
    known = set(verdicts)
    if not known:
        return NOT_TESTED
    return REFUTED if REFUTED in known else HOLDS if known == {HOLDS} else INCONCLUSIVE


def count_needed_cases(found: Measurement, side: Side) -> int:
    """Return about how many cases would decide an inconclusive measurement; 0 if none, or too many, would.

    >>> count_needed_cases(Measurement("typos", "dssm", "rag24", -5.0, -10.0, 0.5, 86), Side(below=0))
    105
    """
    ratios = []
    for bound in side.find_open_bounds(found.value):
        reach = found.value - found.low if bound < found.value else found.high - found.value
        ratios.append(reach / abs(found.value - bound) if found.value != bound else inf)
    return count_narrowing_queries(found.n, max(ratios))


def explain_verdict(found: Measurement, side: Side, cases: str = "queries") -> str:
    """Return the verdict of a measurement in words, with what would decide it."""
    verdict = judge(found, side)
    if verdict != INCONCLUSIVE:
        return verdict
    if found.value in (side.above, side.below):
        return f"{verdict}: cannot be decided, the estimate equals the bound"
    needed = count_needed_cases(found, side)
    many = f"about {needed:,}" if needed else f"more than {MAX_DECIDING_QUERIES:,}"
    return f"{verdict}: {many} {cases} would decide"

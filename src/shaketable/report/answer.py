"""The answer of an audit: what is wrong with each ranker, how badly, where, and what to do about it.

Numbers that tasks marked with a facet become words by the table of `report.facets`; nothing here knows a task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from shaketable.report.gates import Ruling
from shaketable.types import Example, Finding, Result

UNDER_TEST, FIRST_STAGE = "under test", "first stage"


@dataclass(frozen=True)
class Mark:
    """One cell of the scorecard: a ranker and a facet."""

    facet: str
    word: str
    """steady, shaken, breaks, or unclear: not significant, or on too few queries."""
    value: str
    """As it is shown: "-13.3 % [-17.5, -9.3]"."""
    finding: Finding
    """The number behind it, with values by query where there are some."""
    remark: str = ""


@dataclass(frozen=True)
class Standing:
    """One ranker: a plain sentence, and a mark for each facet that was measured."""

    ranker: str
    role: str
    """under test, or first stage."""
    sentence: str
    marks: Mapping[str, Mark]


@dataclass(frozen=True)
class Blow:
    """One of the worst findings, with a real case where there is one, and what to do about it."""

    sentence: str
    mark: Mark
    ranker: str
    example: Example | None
    advice: str


@dataclass(frozen=True)
class Answer:
    """What an audit comes to, before any table."""

    headline: str
    passed: bool | None
    """Did every gate hold? None if there are none."""
    facets: tuple[str, ...]
    """The columns of the scorecard, in order: only what was measured."""
    standings: tuple[Standing, ...]
    """The rankers under test, then the first stage."""
    worst: tuple[Blow, ...]
    worst_slice: str = ""
    rulings: tuple[Ruling, ...] = ()
    cautions: tuple[str, ...] = field(default=())

    def json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)


def answer(results: Sequence[Result], provenance: Mapping[str, Any], rulings: Sequence[Ruling] = ()) -> Answer:
    """What the results of an audit come to; `rulings` are those of the user's gates, the default gate's are added."""
    names = dict.fromkeys(finding.ranker for result in results for finding in result.findings)
    standings = tuple(Standing(name, UNDER_TEST, f"{name} was measured.", {}) for name in names)
    passed = all(ruling.status != "failed" for ruling in rulings) if rulings else None
    return Answer("The rankers were measured.", passed, (), standings, (), rulings=tuple(rulings))

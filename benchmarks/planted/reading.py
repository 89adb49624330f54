"""Facts of verdicts and comparisons; no other module of this benchmark reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias

from shaketable.measures.facets import find_test

RANKER = "planted"
"""The name of the ranker under test in every audit, so that two audits are compared by name."""
OWN_ORDER_RULE, NOT_BELOW_RULE = "ranks by itself", "is not below the first stage"
ALARM_STATUSES = ("warn", "fail")
Outcome: TypeAlias = Literal["named", "misnamed", "silent"]


@dataclass(frozen=True)
class Reading:
    """The facts of a verdict about the ranker under test.

    cells   facet -> (status, name of the finding, value)
    rules   rule of the gate -> status
    passed  True, False, or None if the verdict is inconclusive
    """

    cells: Mapping[str, tuple[str, str, str]]
    rules: Mapping[str, str]
    passed: bool | None

    @property
    def alarms(self) -> list[str]:
        """The facets that warn or fail."""
        return [facet for facet, (status, _, _) in self.cells.items() if status in ALARM_STATUSES]

    @property
    def failures(self) -> list[str]:
        """The facets and gate rules that fail."""
        failed = [facet for facet, (status, _, _) in self.cells.items() if status == "fail"]
        return failed + [rule for rule, status in self.rules.items() if status == "fail"]

    @property
    def headline(self) -> str:
        """PASSED, PASSED with warnings, FAILED or INCONCLUSIVE."""
        if self.passed is False or self.failures:
            return "FAILED"
        if self.passed is None or {"inconclusive", "not tested"} & set(self.rules.values()):
            return "INCONCLUSIVE"
        return "PASSED with warnings" if self.alarms else "PASSED"

    def judge(self, expected: Mapping[str, Sequence[str]], gate_rules: Sequence[str]) -> Outcome:
        """Return whether the verdict names the flaw, raises another alarm (misnamed), or raises none (silent)."""
        for facet, patterns in expected.items():
            status, finding, _ = self.cells.get(facet, ("", "", ""))
            test = find_test(finding) or finding
            if status in ALARM_STATUSES and any(fnmatchcase(test.lower(), pattern) for pattern in patterns):
                return "named"
        if any(self.rules.get(rule) == "fail" for rule in gate_rules):
            return "named"
        return "misnamed" if self.alarms or self.failures else "silent"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Reading:
        cells = {facet: (cell[0], cell[1], cell[2]) for facet, cell in plain["cells"].items()}
        return cls(cells, plain["rules"], plain["passed"])


def read_verdict(audit: Any) -> Reading:
    """Return the facts of an audit's verdict about the ranker under test."""
    verdict = audit.verdict
    (about,) = (one for one in verdict.ranker_verdicts if one.ranker == RANKER)
    cells = {facet: (cell.status, cell.finding.name, cell.value) for facet, cell in about.facet_cells.items()}
    rules = {result.rule: result.status for result in verdict.gate_results if result.ranker == RANKER}
    return Reading(cells, rules, verdict.passed)


def is_found_worse(comparison: Any) -> bool:
    """Return True if a comparison finds the new audit worse than the earlier one."""
    return bool(comparison.outcome == "worse")

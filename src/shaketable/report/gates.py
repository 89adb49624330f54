"""Gates: rules on the findings of an audit, which decide the exit code.

A gate is a bound of a number (`Threshold`), no loss against an earlier audit (`NoRegression`), or the status of a facet
(`FacetStatus`). You write a threshold as a text, "nDCG@10>=0.4", and all gates in a file (see
`shaketable.report.rules`).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.results import Finding, Result
from shaketable.measures.regression import SIGNIFICANCE_LEVEL, FindingDelta, compare_findings
from shaketable.measures.status import FAIL, INCONCLUSIVE, PASS, Status
from shaketable.report import format_number
from shaketable.report.comparability import check_comparable

if TYPE_CHECKING:
    from shaketable.report.verdict import RankerVerdict

FailureStatus: TypeAlias = Literal["fail", "warn"]

FINDING_STATISTICS = ("low", "high", "p", "n")
"""Statistics of a finding that a rule may use instead of its value: nDCG@10.low is the lower end of the interval."""

_COMPARATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True)
class GateResult:
    """The result of a rule for one ranker; `message` is one sentence, and `subject` the finding or facet."""

    rule: str
    ranker: str
    status: Status
    message: str
    subject: str = ""

    def __str__(self) -> str:
        return f"{self.status}: {self.rule}: {self.message}"


@dataclass(frozen=True)
class GateInput:
    """The input of gates: findings, rankers under test, the facet statuses of each ranker, and the provenance."""

    findings: tuple[Finding, ...]
    tested_rankers: tuple[str, ...]
    facet_statuses: Mapping[tuple[str, str], Status] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def from_results(
        cls,
        results: Iterable[Result],
        ranker_verdicts: Sequence[RankerVerdict] = (),
        provenance: Mapping[str, Any] | None = None,
    ) -> GateInput:
        """Build the input from the results of an audit and the verdicts on its rankers.

        Without verdicts, or if the first stage is the only ranker, all rankers are under test.
        """
        findings = tuple(finding for result in results for finding in result.findings)
        named = tuple(one.ranker for one in ranker_verdicts if one.role == "under test")
        statuses = {
            (one.ranker, cell.facet): cell.status for one in ranker_verdicts for cell in one.facet_cells.values()
        }
        tested = named or tuple(dict.fromkeys(one.ranker for one in findings))
        return cls(findings, tested, statuses, provenance or {})

    def select_findings(self, key: str, ranker: str = "") -> list[Finding]:
        """Return the findings with a name, each once, of the rankers under test or of `ranker`.

        A name is "finding" or "ranker.finding"; a star matches any text. A name without a finding is an error.
        """
        about = [
            one
            for one in self.findings
            if (matches_pattern(ranker, one.ranker) if ranker else one.ranker in self.tested_rankers)
        ]
        found = _select_by_name(key, about, lambda one: one.name)
        if not found and not ranker:
            found = _select_by_name(key, self.findings, lambda one: f"{one.ranker}.{one.name}")
        if not found:
            if ranker and not about:
                raise UnknownName("ranker", ranker, {one.ranker for one in self.findings})
            known = {one.name for one in about} if ranker else {f"{one.ranker}.{one.name}" for one in self.findings}
            raise UnknownName("finding", key, known)
        # two tasks may report the same number, one of them without the ranker of the comparison
        compared = {(one.ranker, one.name, one.value, one.where) for one in found if one.against}
        once = (one for one in found if one.against or (one.ranker, one.name, one.value, one.where) not in compared)
        return list({(one.ranker, one.name, one.value, one.where, one.against, one.task): one for one in once}.values())


class Gate(Protocol):
    """A rule on the results of one ranker or, without a ranker, of all rankers under test."""

    @property
    def ranker(self) -> str: ...

    def evaluate(self, gate_input: GateInput) -> list[GateResult]: ...


@dataclass(frozen=True)
class Threshold:
    """A bound of a number of each ranker under test, "nDCG@10>=0.4", or of one ranker, "bm25.nDCG@10.low>=0.35"."""

    finding: str
    comparator: str
    bound: float
    statistic: str = ""
    ranker: str = ""
    failure_status: FailureStatus = FAIL
    text: str = field(default="", compare=False)

    @classmethod
    def parse(cls, rule: str) -> Threshold:
        """Return the threshold of a rule, with or without the name of a ranker.

        >>> gate = Threshold.parse("nDCG@10.low >= 0.4")
        >>> gate.finding, gate.statistic, gate.comparator, gate.bound
        ('nDCG@10', 'low', '>=', 0.4)
        """
        match = re.fullmatch(r"(.+?)\s*(>=|<=|>|<)\s*([-+.0-9eE]+)", rule.strip()) if len(rule) < 500 else None
        try:
            if match:
                name, part = split_statistic(match[1])
                return cls(name, match[2], float(match[3]), part, text=rule.strip())
        except ValueError:
            pass
        raise BadInput(
            f"cannot read the rule {rule[:200]!r}: write the name of a finding, a sign (>=, <=, > or <) and a number, "
            "for example nDCG@10>=0.4"
        )

    def __str__(self) -> str:
        about = f"{self.ranker}.{self.finding}" if self.ranker else self.finding
        return self.text or f"{about}{f'.{self.statistic}' if self.statistic else ''}{self.comparator}{self.bound:g}"

    def evaluate(self, gate_input: GateInput) -> list[GateResult]:
        return [self._evaluate_finding(one) for one in gate_input.select_findings(self.finding, self.ranker)]

    def _evaluate_finding(self, one: Finding) -> GateResult:
        value = float(getattr(one, self.statistic or "value"))
        what = f"{one.ranker}.{one.name}{f'.{self.statistic}' if self.statistic else ''}{_format_where(one)}"
        held = _COMPARATORS[self.comparator](value, self.bound)
        subject = f"{one.name}{_format_where(one)}"
        if isnan(value):  # a missing number violates every rule
            said = f"{what} is not known, so the rule is not met"
            return GateResult(str(self), one.ranker, self.failure_status, said, subject)
        said = f"{what} is {format_number(value)}, and should be {self.comparator} {self.bound:g}"
        return GateResult(str(self), one.ranker, PASS if held else self.failure_status, said, subject)


@dataclass(frozen=True)
class NoRegression:
    """A rule that a number is not worse than in an earlier audit by more than `tolerance`.

    If `relative` is True, the tolerance is a share of the old value. If `significant` is True, only a significant loss
    violates the rule, by the paired test over queries, corrected for the number of findings that the rule names (see
    `shaketable.measures.regression`). The rule compares a ranker with the ranker of the same name in the earlier audit,
    or with the only ranker under test there.
    """

    finding: str
    baseline: GateInput = field(repr=False)
    tolerance: float = 0.0
    relative: bool = False
    significant: bool = False
    ranker: str = ""
    baseline_folder: str = ""
    failure_status: FailureStatus = FAIL

    def __str__(self) -> str:
        whose = f"{self.ranker}.{self.finding}" if self.ranker else self.finding
        size = (
            f" by more than {100 * self.tolerance:g} %"
            if self.relative
            else f" by more than {self.tolerance:g}"
            if self.tolerance
            else ""
        )
        return f"{whose} not {'significantly ' if self.significant else ''}worse than in {self.baseline_folder}{size}"

    def evaluate(self, gate_input: GateInput) -> list[GateResult]:
        found = gate_input.select_findings(self.finding, self.ranker)
        # the audits may have different tasks: compare only findings of the same task
        check_comparable(
            self.baseline.provenance, gate_input.provenance, (self.baseline_folder, "this audit"), ["tasks"]
        )
        return [
            self._evaluate_delta(delta) for delta in compare_findings([(self._find_earlier(one), one) for one in found])
        ]

    def _find_earlier(self, one: Finding) -> Finding:
        """Return the corresponding finding of the baseline."""
        alike = [old for old in self.baseline.select_findings(one.name, "*") if old.where == one.where]
        own = [old for old in alike if old.ranker == one.ranker]
        lone = [old for old in alike if self.baseline.tested_rankers == (old.ranker,)]
        if not (own or lone):
            raise BadInput(f"the audit {self.baseline_folder} has no ranker to compare {one.ranker} with: {self}")
        same = [old for old in own or lone if old.task == one.task]
        return (same or own or lone)[0]

    def _evaluate_delta(self, delta: FindingDelta) -> GateResult:
        ranker, what = delta.new.ranker, f"{delta.new.ranker}.{delta.new.name}{_format_where(delta.new)}"
        subject = f"{delta.new.name}{_format_where(delta.new)}"
        if isnan(delta.loss):
            said = f"{what} is not known, so the rule is not met"
            return GateResult(str(self), ranker, self.failure_status, said, subject)
        lost = delta.loss > self.tolerance * (abs(delta.before) if self.relative else 1)
        lost = lost and (delta.status == "worse" or not self.significant)
        said = (
            f"{what} went from {format_number(delta.before)} to "
            f"{format_number(delta.after)}{_describe_significance(delta)}"
        )
        if self.significant and delta.status == "not tested":
            return GateResult(str(self), ranker, INCONCLUSIVE, said, subject)
        return GateResult(str(self), ranker, self.failure_status if lost else PASS, said, subject)


@dataclass(frozen=True)
class FacetStatus:
    """A rule that a facet, such as "query typos", has none of these statuses; "*" matches every facet."""

    facet: str
    forbidden_statuses: tuple[Status, ...] = (FAIL,)
    ranker: str = ""
    failure_status: FailureStatus = FAIL

    def __str__(self) -> str:
        whose = f"{self.ranker}'s " if self.ranker else ""
        facet = "any facet" if self.facet == "*" else self.facet
        return f"the status of {whose}{facet} is not {' or '.join(self.forbidden_statuses)}"

    def evaluate(self, gate_input: GateInput) -> list[GateResult]:
        about = {
            (ranker, facet): status
            for (ranker, facet), status in gate_input.facet_statuses.items()
            if matches_pattern(self.facet, facet)
            and (matches_pattern(self.ranker, ranker) if self.ranker else ranker in gate_input.tested_rankers)
        }
        if not about:
            rankers = {ranker for ranker, _ in gate_input.facet_statuses}
            if self.ranker and not any(matches_pattern(self.ranker, ranker) for ranker in rankers):
                raise UnknownName("ranker", self.ranker, rankers)
            raise UnknownName("measured facet", self.facet, {facet for _, facet in gate_input.facet_statuses})
        return [
            GateResult(
                str(self),
                ranker,
                self.failure_status if status in self.forbidden_statuses else PASS,
                f"{ranker}'s {facet}: {status}",
                facet,
            )
            for (ranker, facet), status in about.items()
        ]


def evaluate_gates(gates: Iterable[Gate], gate_input: GateInput) -> list[GateResult]:
    """Return the results of each gate for each ranker and number that it names."""
    return [result for gate in gates for result in gate.evaluate(gate_input)]


def has_passed(gate_results: Iterable[GateResult]) -> bool:
    """Return True if no gate fails; a warning is no failure."""
    return all(result.status != FAIL for result in gate_results)


def matches_pattern(pattern: str, name: str) -> bool:
    """Return True if the pattern matches the name; a star matches any text.

    >>> matches_pattern("drop(*)", "drop(1-char)"), matches_pattern("drop(1-char)", "drop(2-char)")
    (True, False)
    >>> matches_pattern("a*b*a", "abba"), matches_pattern("ab*ba", "aba"), matches_pattern("*", "")
    (True, False, True)
    """
    first, *others = pattern.split("*")
    if not others:
        return name == pattern
    *middle, last = others
    start, end = len(first), len(name) - len(last)
    if not (name.startswith(first) and name.endswith(last)) or start > end:
        return False
    for part in middle:  # the earliest match of each part leaves most to the others; a regex would try all of them
        if (found := name.find(part, start, end)) < 0:
            return False
        start = found + len(part)
    return True


def split_statistic(name: str) -> tuple[str, str]:
    """Split a name into finding and statistic (one of `FINDING_STATISTICS`, or "").

    >>> split_statistic("nDCG@10.low"), split_statistic("nDCG@10")
    (('nDCG@10', 'low'), ('nDCG@10', ''))
    """
    before, dot, after = name.rpartition(".")
    return (before, after) if dot and before and after in FINDING_STATISTICS else (name, "")


def _select_by_name(key: str, findings: Iterable[Finding], name: Callable[[Finding], str]) -> list[Finding]:
    """Return findings of exactly this name, else those that match it as a pattern (T*Risk is a name)."""
    some = list(findings)
    return [one for one in some if name(one) == key] or [
        one for one in some if "*" in key and matches_pattern(key, name(one))
    ]


def _format_where(one: Finding) -> str:
    return f" ({one.where})" if one.where else ""


def _describe_significance(delta: FindingDelta) -> str:
    if isnan(delta.corrected_p):
        return ", without values by query to test it"
    few = "" if delta.has_enough_queries else ", too few for a test"
    return (
        f" (p = {format_number(delta.corrected_p)} over {delta.n} queries{few}; below {SIGNIFICANCE_LEVEL} is "
        "significant)"
    )

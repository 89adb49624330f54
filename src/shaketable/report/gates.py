"""Gates: rules on what an audit found, which decide an exit code.

A gate is a value: a bound of a number (`Bound`), no loss against an earlier audit (`NoLoss`), or the word of a facet
(`Worded`). A user writes the first as a text, "nDCG@10>=0.4", and all of them in a file (`report.rules`).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from shaketable.errors import BadInput, UnknownName
from shaketable.measure.regression import LEVEL, Drift, drifts
from shaketable.report import number
from shaketable.report.comparable import check_comparable
from shaketable.types import Finding, Result

if TYPE_CHECKING:
    from shaketable.report.answer import Standing

Status: TypeAlias = Literal["held", "failed", "warned"]
Severity: TypeAlias = Literal["failed", "warned"]

PARTS = ("low", "high", "p", "n")
"""What a rule may ask of a finding instead of its value: nDCG@10.low is the lower end of the interval."""

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
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
    status: Status
    said: str

    def __str__(self) -> str:
        return f"{self.status}: {self.rule}: {self.said}"


@dataclass(frozen=True)
class Seen:
    """What gates look at: findings, the rankers under test, the word of each ranker's facets, and the provenance."""

    findings: tuple[Finding, ...]
    tested: tuple[str, ...]
    words: Mapping[tuple[str, str], str] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        results: Iterable[Result],
        standings: Sequence[Standing] = (),
        provenance: Mapping[str, Any] | None = None,
    ) -> Seen:
        """Of the results of an audit, and of where its rankers stand; without that all rankers are under test.

        Where the first stage is the only ranker, it is the one that somebody wants to know about.
        """
        findings = tuple(finding for result in results for finding in result.findings)
        named = tuple(one.ranker for one in standings if one.role == "under test")
        words = {(one.ranker, mark.facet): mark.word for one in standings for mark in one.marks.values()}
        tested = named or tuple(dict.fromkeys(one.ranker for one in findings))
        return cls(findings, tested, words, provenance or {})

    def named(self, key: str, ranker: str = "") -> list[Finding]:
        """The findings of a name, each once, of the rankers under test; of any ranker if it is named as well.

        A name is that of a finding, or a ranker's and a finding's with a dot between them; a star stands for anything.
        What names nothing is an error, never a pass.
        """
        about = [one for one in self.findings if (matches(ranker, one.ranker) if ranker else one.ranker in self.tested)]
        found = _called(key, about, lambda one: one.name)
        if not found and not ranker:
            found = _called(key, self.findings, lambda one: f"{one.ranker}.{one.name}")
        if not found:
            if ranker and not about:
                raise UnknownName("ranker", ranker, {one.ranker for one in self.findings})
            known = {one.name for one in about} if ranker else {f"{one.ranker}.{one.name}" for one in self.findings}
            raise UnknownName("finding", key, known)
        # two tasks may have found the same number, one of them without a word on what it is compared with
        compared = {(one.ranker, one.name, one.value, one.where) for one in found if one.against}
        once = (one for one in found if one.against or (one.ranker, one.name, one.value, one.where) not in compared)
        return list({(one.ranker, one.name, one.value, one.where, one.against, one.task): one for one in once}.values())


class Gate(Protocol):
    """A rule that an audit must keep, about a ranker or, without one, about all that are under test."""

    @property
    def ranker(self) -> str: ...

    def rulings(self, seen: Seen) -> list[Ruling]: ...


@dataclass(frozen=True)
class Bound:
    """A number of each ranker under test has a bound: "nDCG@10>=0.4", or "bm25.nDCG@10.low>=0.35" for one ranker."""

    finding: str
    sign: str
    bound: float
    part: str = ""
    ranker: str = ""
    broken: Severity = "failed"
    text: str = field(default="", compare=False)

    @classmethod
    def parse(cls, rule: str) -> Bound:
        """Read a rule; the finding's name may have that of a ranker before it.

        >>> gate = Bound.parse("nDCG@10.low >= 0.4")
        >>> gate.finding, gate.part, gate.sign, gate.bound
        ('nDCG@10', 'low', '>=', 0.4)
        """
        match = re.fullmatch(r"(.+?)\s*(>=|<=|>|<)\s*([-+.0-9eE]+)", rule.strip()) if len(rule) < 500 else None
        try:
            if match:
                name, part = split_part(match[1])
                return cls(name, match[2], float(match[3]), part, text=rule.strip())
        except ValueError:
            pass
        raise BadInput(
            f"cannot read the rule {rule[:200]!r}: write the name of a finding, a sign (>=, <=, > or <) and a number, "
            "for example nDCG@10>=0.4"
        )

    def __str__(self) -> str:
        about = f"{self.ranker}.{self.finding}" if self.ranker else self.finding
        return self.text or f"{about}{f'.{self.part}' if self.part else ''}{self.sign}{self.bound:g}"

    def rulings(self, seen: Seen) -> list[Ruling]:
        return [self._ruling(one) for one in seen.named(self.finding, self.ranker)]

    def _ruling(self, one: Finding) -> Ruling:
        value = float(getattr(one, self.part or "value"))
        what = f"{one.ranker}.{one.name}{f'.{self.part}' if self.part else ''}{_where(one)}"
        held = _COMPARE[self.sign](value, self.bound)
        if isnan(value):  # a number that is not there keeps no rule
            return Ruling(str(self), one.ranker, self.broken, f"{what} is not known, so the rule cannot hold")
        said = f"{what} is {number(value)}, and should be {self.sign} {self.bound:g}"
        return Ruling(str(self), one.ranker, "held" if held else self.broken, said)


@dataclass(frozen=True)
class NoLoss:
    """A number is not worse than in an earlier audit, by more than `by` (of the old value, if `relative`).

    With `significant`, only a loss that chance could hardly have made breaks the rule: by the paired test over queries,
    corrected for the number of findings that the rule names (`measure.regression`). A ranker is compared with the one
    of its name in the earlier audit, or with the only one that was under test there.
    """

    finding: str
    baseline: Seen = field(repr=False)
    by: float = 0.0
    relative: bool = False
    significant: bool = False
    ranker: str = ""
    folder: str = ""
    broken: Severity = "failed"

    def __str__(self) -> str:
        whose = f"{self.ranker}.{self.finding}" if self.ranker else self.finding
        size = (
            f" by more than {100 * self.by:g} %" if self.relative else f" by more than {self.by:g}" if self.by else ""
        )
        return f"{whose} not {'significantly ' if self.significant else ''}worse than in {self.folder}{size}"

    def rulings(self, seen: Seen) -> list[Ruling]:
        found = seen.named(self.finding, self.ranker)
        # the tasks may be others: a finding is compared with the one of the same task
        check_comparable(self.baseline.provenance, seen.provenance, (self.folder, "this audit"), ["tasks"])
        return [self._ruling(drift) for drift in drifts([(self._earlier(one), one) for one in found])]

    def _earlier(self, one: Finding) -> Finding:
        """The same finding in the baseline."""
        alike = [old for old in self.baseline.named(one.name, "*") if old.where == one.where]
        own = [old for old in alike if old.ranker == one.ranker]
        lone = [old for old in alike if self.baseline.tested == (old.ranker,)]
        if not (own or lone):
            raise BadInput(f"the audit {self.folder} has no ranker to compare {one.ranker} with: {self}")
        same = [old for old in own or lone if old.task == one.task]
        return (same or own or lone)[0]

    def _ruling(self, drift: Drift) -> Ruling:
        ranker, what = drift.new.ranker, f"{drift.new.ranker}.{drift.new.name}{_where(drift.new)}"
        if isnan(drift.loss):
            return Ruling(str(self), ranker, self.broken, f"{what} is not known, so the rule cannot hold")
        lost = drift.loss > self.by * (abs(drift.before) if self.relative else 1)
        lost = lost and (drift.status == "worse" or not self.significant)
        said = f"{what} went from {number(drift.before)} to {number(drift.after)}{_chance(drift)}"
        return Ruling(str(self), ranker, self.broken if lost else "held", said)


@dataclass(frozen=True)
class Worded:
    """A facet, such as "query typos", is not called by one of these words; "*" stands for every facet."""

    facet: str
    words: tuple[str, ...] = ("breaks",)
    ranker: str = ""
    broken: Severity = "failed"

    def __str__(self) -> str:
        whose = f"{self.ranker}'s " if self.ranker else ""
        return f"{whose}{'any facet' if self.facet == '*' else self.facet} not called {' or '.join(self.words)}"

    def rulings(self, seen: Seen) -> list[Ruling]:
        about = {
            (ranker, facet): word
            for (ranker, facet), word in seen.words.items()
            if matches(self.facet, facet) and (matches(self.ranker, ranker) if self.ranker else ranker in seen.tested)
        }
        if not about:
            rankers = {ranker for ranker, _ in seen.words}
            if self.ranker and not any(matches(self.ranker, ranker) for ranker in rankers):
                raise UnknownName("ranker", self.ranker, rankers)
            raise UnknownName("measured facet", self.facet, {facet for _, facet in seen.words})
        return [
            Ruling(str(self), ranker, self.broken if word in self.words else "held", f"{ranker}'s {facet}: {word}")
            for (ranker, facet), word in about.items()
        ]


def rulings(gates: Iterable[Gate], seen: Seen) -> list[Ruling]:
    """What becomes of each gate, for each ranker and number that it names."""
    return [ruling for gate in gates for ruling in gate.rulings(seen)]


def finding_names(gates: Iterable[Gate]) -> list[str]:
    """The findings that gates name, each with its ranker where that is named too; patterns are left out.

    >>> finding_names([Bound.parse("nDCG@10.low>=0.4"), Bound.parse("drop(*)>=-5"), Worded("query typos")])
    ['nDCG@10']
    """
    names = [(gate.ranker, gate.finding) for gate in gates if isinstance(gate, Bound | NoLoss)]
    return [".".join(filter(None, name)) for name in names if "*" not in "".join(name)]


def all_held(found: Iterable[Ruling]) -> bool:
    """Did nothing fail? A warning is no failure."""
    return all(ruling.status != "failed" for ruling in found)


def matches(pattern: str, name: str) -> bool:
    """Is this the name, where a star stands for anything?

    >>> matches("drop(*)", "drop(1-char)"), matches("drop(1-char)", "drop(2-char)")
    (True, False)
    """
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None


def split_part(name: str) -> tuple[str, str]:
    """The name of a finding, and the part of it that is asked for.

    >>> split_part("nDCG@10.low"), split_part("nDCG@10")
    (('nDCG@10', 'low'), ('nDCG@10', ''))
    """
    before, dot, after = name.rpartition(".")
    return (before, after) if dot and before and after in PARTS else (name, "")


def _called(key: str, findings: Iterable[Finding], name: Callable[[Finding], str]) -> list[Finding]:
    """Findings of exactly this name, and only without one those that the pattern fits: T*Risk is a name."""
    some = list(findings)
    return [one for one in some if name(one) == key] or [one for one in some if "*" in key and matches(key, name(one))]


def _where(one: Finding) -> str:
    return f" ({one.where})" if one.where else ""


def _chance(drift: Drift) -> str:
    if isnan(drift.corrected):
        return ", and there are no values by query to test it by"
    few = "" if drift.enough else ", which are too few to tell"
    return f" (p = {number(drift.corrected)} over {drift.n} queries{few}; below {LEVEL} is significant)"

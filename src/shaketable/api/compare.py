"""`compare`: the findings and queries in which a new audit is worse than an earlier one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shaketable.api.audit import Audit, read_audit
from shaketable.core.errors import BadInput, NotComparable, UnknownName, truncate
from shaketable.core.results import Failure, Finding
from shaketable.measures.regression import compare_findings, restrict_to_common
from shaketable.measures.status import FAIL, PASS, WARN
from shaketable.report.comparability import PROVENANCE_PARTS, check_comparable
from shaketable.report.comparison import DEFAULT_MARGIN_PERCENT, AuditComparison, ComparedAudit, VerdictChange
from shaketable.report.finding_table import FindingTable
from shaketable.report.gates import matches_pattern
from shaketable.report.page import compose_imprint

STATUSES_BEST_FIRST = (PASS, WARN, FAIL)
"""The statuses that have an order; an inconclusive facet is neither better nor worse."""


def compare(
    base: str | Path | Audit,
    new: str | Path | Audit,
    *,
    base_ranker: str = "",
    new_ranker: str = "",
    findings: str | Iterable[str] = (),
    allow_mismatch: str | Iterable[str] = (),
    allow_edited: bool = False,
    margin: float = DEFAULT_MARGIN_PERCENT,
) -> AuditComparison:
    """Compare a new audit with an earlier one and return the changes.

    Rankers with the same name are paired, and the remaining rankers in their order. The first stage is compared only if
    there is no other ranker.

    Parameters
    ----------
    base
        The earlier audit: its folder, its results.json, or an `Audit`.
    new
        The new audit, in one of the same forms.
    base_ranker
        The name of the only ranker of `base` to compare; all rankers by default.
    new_ranker
        The name of the ranker of `new` that replaces `base_ranker`.
    findings
        Names or patterns, such as "drop(*)", of the findings to compare; all by default. With fewer findings, the
        correction for multiple comparisons is smaller, so that smaller differences are significant.
    allow_mismatch
        Parts in which the audits may differ: "data", "lists", "tasks" or "seed". By default, all four must agree.
    allow_edited
        If True, compare audits whose results.json was edited.
    margin
        A percentage of the earlier value. The outcome is "not worse" only if the interval excludes a loss of
        effectiveness beyond it (a test of non-inferiority).

    Returns
    -------
    AuditComparison
        The changed findings with p-values, the queries that lost most, new failures and changed verdicts.

    Raises
    ------
    NotComparable
        If the audits differ in a part that `allow_mismatch` does not name, or have no finding in common.

    Examples
    --------
    >>> import shaketable as st
    >>> st.compare("audit-main", "audit-branch", findings="nDCG@10").outcome  # doctest: +SKIP
    'not worse'
    """
    if not 0 < margin < 100:
        raise BadInput(f"the margin should be a percentage between 0 and 100, not {margin:g}")
    allowed = _parse_allowed(allow_mismatch)
    old, now = _open_side(base, allow_edited), _open_side(new, allow_edited)
    check_comparable(old.provenance, now.provenance, (old.name, now.name), allowed)
    pairs, remarks = _pair_rankers(old, now, base_ranker, new_ranker)
    wanted = [findings] if isinstance(findings, str) else list(findings)
    both = [pair for was, name in pairs.items() for pair in _find_common_findings(old, now, was, name, pairs, wanted)]
    if not both:
        raise NotComparable(f"{old.name} and {now.name} have no finding in common for {_join_names(pairs)}")
    return AuditComparison(
        old.name,
        now.name,
        pairs,
        FindingTable(compare_findings(both, int(now.provenance.get("seed", 0)))),
        tuple(failure for was, name in pairs.items() for failure in _find_new_failures(old, now, was, name)),
        tuple(turn for was, name in pairs.items() for turn in _find_verdict_changes(old, now, was, name)),
        {**old.audit.queries, **now.audit.queries},
        (*remarks, *_describe_version_changes(old, now)),
        margin,
        (old.describe(), now.describe()),
    )


@dataclass(frozen=True)
class _AuditSide:
    """One of the two audits, and its name in messages."""

    name: str
    audit: Audit

    @property
    def provenance(self) -> Mapping[str, Any]:
        return self.audit.provenance

    @property
    def rankers(self) -> list[str]:
        return list(dict.fromkeys(finding.ranker for finding in self.audit.findings))

    def describe(self) -> ComparedAudit:
        """Return the parts of the audit that the page of a comparison shows."""
        audit = self.audit
        return ComparedAudit(compose_imprint(audit.facts, audit.provenance), audit.verdict, audit.first_documents)


def _open_side(audit: str | Path | Audit, allow_edited: bool) -> _AuditSide:
    if isinstance(audit, Audit):
        return _AuditSide(audit.title, audit)
    return _AuditSide(truncate(str(audit)), read_audit(audit, allow_edited=allow_edited))


def _parse_allowed(allow_mismatch: str | Iterable[str]) -> set[str]:
    allowed = {allow_mismatch} if isinstance(allow_mismatch, str) else set(allow_mismatch)
    for name in allowed - PROVENANCE_PARTS.keys():
        raise UnknownName("part of an audit", name, PROVENANCE_PARTS)
    return allowed


def _pair_rankers(
    old: _AuditSide, new: _AuditSide, base_ranker: str, new_ranker: str
) -> tuple[dict[str, str], list[str]]:
    """Return earlier ranker -> new ranker, and remarks on rankers without a counterpart."""
    for side, name in ((old, base_ranker), (new, new_ranker)):
        if name and name not in side.rankers:
            raise UnknownName(f"ranker of {side.name}", name, side.rankers)
    if base_ranker or new_ranker:
        return {
            base_ranker or _find_counterpart(old, new_ranker): new_ranker or _find_counterpart(new, base_ranker),
        }, []
    before, after = old.audit.gate_input.tested_rankers, new.audit.gate_input.tested_rankers
    pairs = {name: name for name in before if name in after}
    gone, come = ([name for name in side if name not in pairs] for side in (before, after))
    if len(gone) == len(come):
        return pairs | dict(zip(gone, come, strict=True)), []
    if not pairs:
        raise BadInput(
            f"{old.name} has {_join_names(before)}, and {new.name} has {_join_names(after)}: choose with "
            "--base-ranker and --new-ranker"
        )
    missing = [f"{name} is only in {side.name} and is not compared." for side, names in ((old, gone), (new, come))
               for name in names]  # fmt: skip
    return pairs, missing


def _find_counterpart(side: _AuditSide, name: str) -> str:
    """Return the ranker of one audit that corresponds to a ranker of the other."""
    if name in side.rankers:
        return name
    if len(side.audit.gate_input.tested_rankers) != 1:
        raise BadInput(
            f"{side.name} has {_join_names(side.audit.gate_input.tested_rankers)}: choose one to compare with {name}"
        )
    return side.audit.gate_input.tested_rankers[0]


def _find_common_findings(
    old: _AuditSide, new: _AuditSide, was: str, name: str, pairs: Mapping[str, str], wanted: Sequence[str]
) -> list[tuple[Finding, Finding]]:
    """Return the findings that two rankers have in common, each number once."""
    earlier: dict[tuple[str, ...], list[Finding]] = {}
    for one in old.audit.findings:
        if one.ranker == was:
            earlier.setdefault(_make_key(one), []).append(one)
    found: dict[tuple[Any, ...], tuple[Finding, Finding]] = {}
    for one in new.audit.findings:
        match = _match_finding(one, earlier.get(_make_key(one), ()), pairs) if one.ranker == name else None
        if match and (not wanted or any(matches_pattern(text, one.name) for text in wanted)):
            numbers = (match.value, one.value, *match.values.values(), *one.values.values())
            found.setdefault((one.name, one.where, numbers), restrict_to_common(match, one))
    known = {one.name for one in new.audit.findings if one.ranker == name}
    for text in wanted:
        if not any(matches_pattern(text, one) for one in known):
            raise UnknownName("finding", text, known)
    return list(found.values())


def _make_key(one: Finding) -> tuple[str, ...]:
    return one.task, one.name, one.where


def _match_finding(one: Finding, alike: Sequence[Finding], renamed: Mapping[str, str]) -> Finding | None:
    """Return the earlier finding of the same name; of several, the finding against the same ranker."""
    if len(alike) == 1:
        return alike[0]
    return next((old for old in alike if renamed.get(old.against, old.against) == one.against), None)


def _find_new_failures(old: _AuditSide, new: _AuditSide, was: str, name: str) -> list[Failure]:
    """Return the failures on queries on which the ranker did not fail before, each query once."""

    def of(side: _AuditSide, ranker: str) -> dict[str, Failure]:
        every = (failure for result in side.audit.results for failure in result.failures)
        return {failure.query: failure for failure in every if failure.ranker == ranker}

    known = of(old, was)
    return [failure for query, failure in of(new, name).items() if query not in known]


def _find_verdict_changes(old: _AuditSide, new: _AuditSide, was: str, name: str) -> list[VerdictChange]:
    def of(side: _AuditSide, whose: str) -> dict[str, str]:
        statuses = side.audit.gate_input.facet_statuses
        return {facet: word for (ranker, facet), word in statuses.items() if ranker == whose}

    before, after = of(old, was), of(new, name)
    return [
        VerdictChange(name, facet, before[facet], word)
        for facet, word in after.items()
        if word in STATUSES_BEST_FIRST
        and before.get(facet) in STATUSES_BEST_FIRST
        and STATUSES_BEST_FIRST.index(word) > STATUSES_BEST_FIRST.index(before[facet])
    ]


def _describe_version_changes(old: _AuditSide, new: _AuditSide) -> list[str]:
    before, after = (dict(side.provenance.get("versions", {})) for side in (old, new))
    differ = [f"{name} {before.get(name)} and {after.get(name)}" for name in before if before[name] != after.get(name)]
    return [f"The audits were made by different versions: {', '.join(differ)}."] if differ else []


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(names) or "no ranker"

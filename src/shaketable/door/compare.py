"""Two audits in; out comes whether the new version is worse, in which findings, and on which queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shaketable.door.audit import Audit, read_audit
from shaketable.errors import BadInput, NotComparable, UnknownName, cut
from shaketable.measure.facets import BREAKS, SHAKEN, STEADY
from shaketable.measure.regression import drifts
from shaketable.report.comparable import PARTS, check_comparable
from shaketable.report.comparison import AuditComparison, Turn
from shaketable.report.gates import matches
from shaketable.types import Failure, Finding

WORSE = (STEADY, SHAKEN, BREAKS)
"""Words of facets; one that is unclear became neither better nor worse."""


def compare(
    base: str | Path | Audit,
    new: str | Path | Audit,
    *,
    base_ranker: str = "",
    new_ranker: str = "",
    findings: str | Iterable[str] = (),
    despite: str | Iterable[str] = (),
) -> AuditComparison:
    """Compare a new audit with an earlier one; each is a folder, a results.json, or an audit.

    The ranker may be another one: those of one name are compared, the others in the order in which they come, or the
    two that are named. The first stage is compared only where there is nothing else. Data, lists, tasks and seed must
    be the same, unless they are named in `despite`. `findings` are names or patterns, such as "drop(*)", of those to
    compare; fewer of them are tested more sharply.
    """
    allowed = _allowed(despite)
    old, now = _side(base), _side(new)
    check_comparable(old.provenance, now.provenance, (old.name, now.name), allowed)
    pairs, remarks = _paired(old, now, base_ranker, new_ranker)
    wanted = [findings] if isinstance(findings, str) else list(findings)
    both = [pair for was, name in pairs.items() for pair in _common(old, now, was, name, pairs, wanted)]
    if not both:
        raise NotComparable(f"{old.name} and {now.name} have no finding in common for {_listed(pairs)}")
    return AuditComparison(
        old.name,
        now.name,
        pairs,
        tuple(drifts(both, int(now.provenance.get("seed", 0)))),
        tuple(failure for was, name in pairs.items() for failure in _new_failures(old, now, was, name)),
        tuple(turn for was, name in pairs.items() for turn in _turns(old, now, was, name)),
        {**old.audit.queries, **now.audit.queries},
        (*remarks, *_versions(old, now)),
    )


@dataclass(frozen=True)
class _Side:
    """One of the two audits, and what messages call it."""

    name: str
    audit: Audit

    @property
    def provenance(self) -> Mapping[str, Any]:
        return self.audit.provenance

    @property
    def rankers(self) -> list[str]:
        return list(dict.fromkeys(finding.ranker for finding in self.audit.findings))


def _side(audit: str | Path | Audit) -> _Side:
    if isinstance(audit, Audit):
        return _Side(audit.title, audit)
    return _Side(cut(str(audit)), read_audit(audit))


def _allowed(despite: str | Iterable[str]) -> set[str]:
    allowed = {despite} if isinstance(despite, str) else set(despite)
    for name in allowed - PARTS.keys():
        raise UnknownName("part of an audit", name, PARTS)
    return allowed


def _paired(old: _Side, new: _Side, base_ranker: str, new_ranker: str) -> tuple[dict[str, str], list[str]]:
    """Which ranker took the place of which, and remarks on those that have no counterpart."""
    for side, name in ((old, base_ranker), (new, new_ranker)):
        if name and name not in side.rankers:
            raise UnknownName(f"ranker of {side.name}", name, side.rankers)
    if base_ranker or new_ranker:
        return {
            base_ranker or _counterpart(old, new_ranker): new_ranker or _counterpart(new, base_ranker),
        }, []
    before, after = old.audit.seen.tested, new.audit.seen.tested
    pairs = {name: name for name in before if name in after}
    gone, come = ([name for name in side if name not in pairs] for side in (before, after))
    if len(gone) == len(come):
        return pairs | dict(zip(gone, come, strict=True)), []
    if not pairs:
        raise BadInput(
            f"{old.name} has {_listed(before)}, and {new.name} has {_listed(after)}: say which to compare by "
            "--base-ranker and --new-ranker"
        )
    missing = [f"{name} is only in {side.name}, and is not compared." for side, names in ((old, gone), (new, come))
               for name in names]  # fmt: skip
    return pairs, missing


def _counterpart(side: _Side, name: str) -> str:
    """The ranker of a side that goes with a name of the other one."""
    if name in side.rankers:
        return name
    if len(side.audit.seen.tested) != 1:
        raise BadInput(f"{side.name} has {_listed(side.audit.seen.tested)}: say which to compare with {name}")
    return side.audit.seen.tested[0]


def _common(
    old: _Side, new: _Side, was: str, name: str, pairs: Mapping[str, str], wanted: Sequence[str]
) -> list[tuple[Finding, Finding]]:
    """The findings that two rankers have in common, each number once."""
    earlier: dict[tuple[str, ...], list[Finding]] = {}
    for one in old.audit.findings:
        if one.ranker == was:
            earlier.setdefault(_key(one), []).append(one)
    found: dict[tuple[Any, ...], tuple[Finding, Finding]] = {}
    for one in new.audit.findings:
        match = _same(one, earlier.get(_key(one), ()), pairs) if one.ranker == name else None
        if match and (not wanted or any(matches(text, one.name) for text in wanted)):
            numbers = (match.value, one.value, *match.values.values(), *one.values.values())
            found.setdefault((one.name, one.where, numbers), (match, one))
    known = {one.name for one in new.audit.findings if one.ranker == name}
    for text in wanted:
        if not any(matches(text, one) for one in known):
            raise UnknownName("finding", text, known)
    return list(found.values())


def _key(one: Finding) -> tuple[str, ...]:
    return one.task, one.name, one.where


def _same(one: Finding, alike: Sequence[Finding], renamed: Mapping[str, str]) -> Finding | None:
    """Which of the earlier findings of its name it is: the only one, or the one that is against the same ranker."""
    if len(alike) == 1:
        return alike[0]
    return next((old for old in alike if renamed.get(old.against, old.against) == one.against), None)


def _new_failures(old: _Side, new: _Side, was: str, name: str) -> list[Failure]:
    """Queries that a ranker fails on now and did not fail on before, each once."""

    def of(side: _Side, ranker: str) -> dict[str, Failure]:
        every = (failure for result in side.audit.results for failure in result.failures)
        return {failure.query: failure for failure in every if failure.ranker == ranker}

    known = of(old, was)
    return [failure for query, failure in of(new, name).items() if query not in known]


def _turns(old: _Side, new: _Side, was: str, name: str) -> list[Turn]:
    before, after = ({facet: word for (ranker, facet), word in side.audit.seen.words.items() if ranker == whose}
                     for side, whose in ((old, was), (new, name)))  # fmt: skip
    return [
        Turn(name, facet, before[facet], word)
        for facet, word in after.items()
        if word in WORSE and before.get(facet) in WORSE and WORSE.index(word) > WORSE.index(before[facet])
    ]


def _versions(old: _Side, new: _Side) -> list[str]:
    before, after = (dict(side.provenance.get("versions", {})) for side in (old, new))
    differ = [f"{name} {before.get(name)} and {after.get(name)}" for name in before if before[name] != after.get(name)]
    return [f"The audits were made by different versions: {', '.join(differ)}."] if differ else []


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "no ranker"

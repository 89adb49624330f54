"""Statuses of audits with a budget beside those of exhaustive audits of the same rankers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.planted.audits import AuditRow
from benchmarks.planted.design import Point, draw_flawed, list_sound
from benchmarks.planted.tables import Limit, format_table

SHARES = (0.2, 0.03)
"""The shares of the pairs of an exhaustive audit."""
QUICK_SHARES = (0.7, 0.5)
"""Shares for an audit of two tasks; smaller shares do not suffice for one facet."""
FLAWED_AUDITS, SOUND_AUDITS = 20, 6
MIN_KEPT_PERCENT = 95.0
DECIDED = ("pass", "warn", "fail")
OPPOSITES = ({"pass", "fail"},)


@dataclass(frozen=True)
class StatusChange:
    """The status of a facet in an exhaustive audit and with a budget; "not tested" if the budget excludes the facet."""

    point: Point
    facet: str
    before: str
    after: str


def draw_points(collections: Sequence[str], quick: bool) -> list[Point]:
    """Return the exhaustive audits: flawed rankers of both strengths, and sound ones."""
    flawed, sound = draw_flawed(collections), list_sound(collections)
    if quick:
        return flawed[:1]
    return [*flawed[:FLAWED_AUDITS], *sound[:: max(1, len(sound) // SOUND_AUDITS)]]


def limit_points(rows: Sequence[AuditRow], share: float) -> list[Point]:
    """Return the audits of the same rankers with a share of the pairs."""
    return [replace(row.point, budget=round(share * row.pairs)) for row in rows]


def list_changes(full: Sequence[AuditRow], limited: Sequence[AuditRow]) -> list[StatusChange]:
    """Return the decided statuses of exhaustive audits, with the statuses of the same facets within a budget."""
    found = {replace(row.point, budget=0): row.reading.cells for row in limited}
    return [
        StatusChange(row.point, facet, status, found[row.point].get(facet, ("not tested",))[0])
        for row in full
        for facet, (status, _, _) in row.reading.cells.items()
        if status in DECIDED
    ]


def count_used(full: Sequence[AuditRow], limited: Sequence[AuditRow]) -> float:
    """Return the share of the exhaustive pairs that the limited audits used."""
    return sum(row.pairs for row in limited) / sum(row.pairs for row in full)


def describe_budgets(full: Sequence[AuditRow], limited: Mapping[float, Sequence[AuditRow]]) -> Iterator[str]:
    """Yield the statuses within each budget by the status of the exhaustive audit, and the changed ones."""
    pairs = sum(row.pairs for row in full)
    yield f"Statuses with a budget, beside those of {len(full)} exhaustive audits ({pairs:,} pairs)"
    rows = []
    changed = []
    for share, audits in limited.items():
        changes = list_changes(full, audits)
        counts = Counter((one.before, one.after) for one in changes)
        for before in DECIDED:
            of = [counts[before, after] for after in (*DECIDED, "inconclusive", "not tested")]
            rows.append((f"{share:.0%}", f"{count_used(full, audits):.1%}", before, *of))
        changed += [
            f"{share:.0%}: {one.point.key}: {one.facet} {one.before} -> {one.after}"
            for one in changes
            if one.before != one.after and one.after in DECIDED
        ]
    header = ("budget", "pairs used", "exhaustive", *DECIDED, "inconclusive", "not tested")
    yield from format_table(header, rows)
    yield from changed


def check_budgets(full: Sequence[AuditRow], limited: Mapping[float, Sequence[AuditRow]]) -> Iterator[Limit]:
    """Yield the limits: a fifth of the pairs keeps the statuses, and no budget turns a pass into a failure."""
    largest, smallest = max(limited), min(limited)
    changes = list_changes(full, limited[largest])
    kept = 100 * sum(one.before == one.after for one in changes) / len(changes)
    yield Limit(
        f"with {largest:.0%} of the pairs, {kept:.1f} % of {len(changes)} decided statuses are the same "
        f"(at least {MIN_KEPT_PERCENT:g} %)",
        kept >= MIN_KEPT_PERCENT,
    )
    for share in (largest, smallest):
        turned = [one for one in list_changes(full, limited[share]) if {one.before, one.after} in OPPOSITES]
        yield Limit(f"with {share:.0%} of the pairs, {len(turned)} facets change between pass and fail (0)", not turned)

"""The default gate: rules that every ranker under test should meet.

A missing test is not a pass: a rule that was not tested, or not decided, leaves the verdict inconclusive and says what
would decide it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from shaketable.measures.facets import (
    ATTACK,
    DOCUMENT_FORM,
    EFFECTIVENESS,
    GAIN_OVER_FIRST_STAGE,
    INPUT_ORDER,
    LANGUAGES_FACET,
    PROBES_FACET,
    REPEATABILITY,
    TYPOS,
    WORDING,
)
from shaketable.measures.significance import MIN_QUERIES
from shaketable.measures.status import FAIL, INCONCLUSIVE, NOT_TESTED, PASS, SIGNIFICANCE_LEVEL, WARN, Status
from shaketable.report import format_cell, join_names
from shaketable.report.gates import GateResult, matches_pattern
from shaketable.report.scorecard import FacetCell, Scorecard, sort_facets

HAS_OWN_ORDER, NOT_BELOW_FIRST_STAGE, NO_FACET_FAILS, FACETS_TESTED = (
    "ranks by itself",
    "is not below the first stage",
    "no facet fails",
    "required facets are decided",
)
DEFAULT_GATE_RULES = (HAS_OWN_ORDER, NOT_BELOW_FIRST_STAGE, NO_FACET_FAILS, FACETS_TESTED)
"""The rules of the default gate; each applies to every ranker under test."""
REQUIRED_FACETS = (TYPOS, WORDING, REPEATABILITY, INPUT_ORDER, DOCUMENT_FORM, PROBES_FACET, ATTACK)
"""The facets that must pass, warn or fail before a verdict can be "passed". Effectiveness has a rule of its own, and
variance, risk and slices split its evidence into parts that small collections cannot decide.
"""
ACCEPTED_ROUNDING = 0.05
"""How much worse than the accepted value a number may be: cells show one decimal."""


@dataclass(frozen=True)
class AcceptedFinding:
    """A known failure of a facet that a team accepts until a date; a worse value fails again.

    `value` is the accepted value of the finding that decides the facet, in its own unit. `expires` is the last day.
    """

    facet: str
    ranker: str
    value: float
    reason: str
    expires: date

    def covers(self, cell: FacetCell, today: date) -> bool:
        """Return True if the cell's number is not worse than the accepted value, up to rounding, and the date holds."""
        finding = cell.finding
        worse = finding.value - self.value if finding.better == "lower" else self.value - finding.value
        named = matches_pattern(self.ranker, finding.ranker) if self.ranker else True
        return named and cell.facet == self.facet and today <= self.expires and worse <= ACCEPTED_ROUNDING


def record_accepted(provenance: Mapping[str, Any], accepted: Sequence[AcceptedFinding], today: date) -> dict[str, Any]:
    """Return the provenance with accepted findings and the date of the decision, so that a saved verdict stays."""
    rows = [asdict(one) | {"expires": one.expires.isoformat()} for one in accepted]
    return {**provenance, "accepted": rows, "accepted_on": today.isoformat()} if rows else dict(provenance)


def read_recorded_accepted(provenance: Mapping[str, Any]) -> tuple[list[AcceptedFinding], date | None]:
    """Return the accepted findings of a provenance, and the date on which they were applied."""
    rows = [{**row, "expires": date.fromisoformat(row["expires"])} for row in provenance.get("accepted", ())]
    day = provenance.get("accepted_on")
    return [AcceptedFinding(**row) for row in rows], date.fromisoformat(day) if day else None


def apply_default_gate(
    card: Scorecard, accepted: Sequence[AcceptedFinding] = (), today: date | None = None
) -> Iterator[GateResult]:
    """Yield the result of each rule with measured numbers for a ranker under test."""
    shown = format_cell(card.ranker)
    yield _check_own_order(card, shown)
    yield _check_effectiveness(card, shown)
    failing, warning = (_select_facets(card, status) for status in (FAIL, WARN))
    known = {facet: one for facet in failing for one in accepted if today and one.covers(card.cells[facet], today)}
    failing = [facet for facet in failing if facet not in known]
    for facet, one in known.items():
        said = f"{card.cells[facet].text}. Accepted until {one.expires.isoformat()}: {one.reason}"
        yield GateResult(f"{facet} (accepted)", card.ranker, WARN, said)
    status: Status = FAIL if failing else WARN if warning else PASS if card.cells else NOT_TESTED
    verb = "fails in" if failing else "warns in" if warning else "fails in none of"
    named = failing or warning or sort_facets(card.cells)
    said = f"{shown} {verb} {join_names(named)}." if named else f"No facet of {shown} was tested."
    yield GateResult(NO_FACET_FAILS, card.ranker, status, said)
    yield _check_required(card, shown)


def _check_own_order(card: Scorecard, shown: str) -> GateResult:
    if card.own_order is None:
        said = f"The order of {shown} was not compared with the first stage; run the task first-stage."
        return GateResult(HAS_OWN_ORDER, card.ranker, NOT_TESTED, said)
    said = f"{shown} has an order of its own in {card.own_order.value:.1f} % of the lists"
    if card.is_copy:
        return GateResult(
            HAS_OWN_ORDER, card.ranker, FAIL, f"{said}: it repeats the first stage or ties all documents."
        )
    return GateResult(HAS_OWN_ORDER, card.ranker, PASS, f"{said}.")


def _check_effectiveness(card: Scorecard, shown: str) -> GateResult:
    cell = card.cells.get(EFFECTIVENESS)
    if cell is None or cell.finding.name != GAIN_OVER_FIRST_STAGE:
        said = f"{shown} was not compared with a first stage; add judgements and run the task first-stage."
        return GateResult(NOT_BELOW_FIRST_STAGE, card.ranker, NOT_TESTED, said)
    finding, said = cell.finding, f"{shown} {describe_effectiveness(card)}."
    if finding.n < MIN_QUERIES:
        return GateResult(NOT_BELOW_FIRST_STAGE, card.ranker, INCONCLUSIVE, said)
    if finding.value < 0 and finding.p < SIGNIFICANCE_LEVEL:
        return GateResult(NOT_BELOW_FIRST_STAGE, card.ranker, FAIL, said)
    undecided = cell.status == INCONCLUSIVE and not card.is_copy
    return GateResult(NOT_BELOW_FIRST_STAGE, card.ranker, INCONCLUSIVE if undecided else PASS, said)


def _check_required(card: Scorecard, shown: str) -> GateResult:
    asked = (LANGUAGES_FACET,) if LANGUAGES_FACET in card.cells else ()  # an audit tests it only if you ask for it
    required = (*REQUIRED_FACETS, *asked)
    missing = [facet for facet in required if facet not in card.cells]
    undecided = [f for f in required if f in card.cells and card.cells[f].status == INCONCLUSIVE]
    parts = [f"{shown} was not tested in {join_names(missing)}"] if missing else []
    parts += [f"{format_cell(f)} is inconclusive ({card.cells[f].remark})" for f in undecided]
    if not parts:
        return GateResult(FACETS_TESTED, card.ranker, PASS, f"{shown} is decided in {join_names(required)}.")
    status: Status = NOT_TESTED if missing else INCONCLUSIVE
    return GateResult(FACETS_TESTED, card.ranker, status, f"{'; '.join(parts)}.")


def describe_effectiveness(card: Scorecard) -> str:
    """Describe the effectiveness of a ranker relative to the first stage."""
    cell = card.cells[EFFECTIVENESS]
    finding = cell.finding
    if finding.name != GAIN_OVER_FIRST_STAGE:
        return "was not compared with a first stage"
    size = f"({finding.value:+.1f} %)"
    if finding.n < MIN_QUERIES:
        return f"was tested on {finding.n} queries, too few for a verdict on its effectiveness {size}"
    if finding.value < 0 and finding.p < SIGNIFICANCE_LEVEL:
        return f"is {'far ' if cell.status == FAIL else ''}worse than the first stage {size}"
    if finding.value > 0 and finding.p < SIGNIFICANCE_LEVEL:
        return f"is better than the first stage {size}"
    return f"is not significantly different from the first stage {size}"


def _select_facets(card: Scorecard, status: Status) -> list[str]:
    return sort_facets([facet for facet, cell in card.cells.items() if cell.status == status])

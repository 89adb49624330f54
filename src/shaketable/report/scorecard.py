"""The scorecard of an audit: one cell per ranker and facet, decided by the worst finding of the facet.

A facet is a panel of tests, and its cell names the test that decided. Effectiveness comes first: a ranker without an
order of its own, or with a bad one, never passes a facet, because it has nothing to lose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from shaketable.core.results import Finding
from shaketable.measures.facets import (
    COMPETITION,
    EFFECTIVENESS,
    FACETS,
    GAIN_OVER_FIRST_STAGE,
    OWN_ORDER_SHARE,
    UNSERVED_INCREASE,
    UNSERVED_SHARE,
    Facet,
    find_test,
    get_facet,
    name_test,
)
from shaketable.measures.regression import compare_findings
from shaketable.measures.significance import MIN_QUERIES
from shaketable.measures.status import (
    FAIL,
    INCONCLUSIVE,
    PASS,
    WARN,
    ClassifiedFinding,
    Status,
    classify_findings,
)
from shaketable.report import format_cell, format_number, format_signed, join_names

MIN_OWN_ORDER_PERCENT = 10.0
"""The share of lists, in per cent, below which a ranker counts as a copy of the first stage."""
MAX_TESTS = 3
"""The maximum number of tests that a remark names."""
BASELINE_REMARK = "the others are compared with it"
LOW_EFFECTIVENESS_REMARK, NO_OWN_ORDER_REMARK = "it has little to lose", "the order is not its own"
NO_WORSE_REMARK = "not significantly worse than the first stage"
NO_FIRST_STAGE_REMARK = "not compared with a first stage"
TEST_DESCRIPTIONS = {
    "1-char": "one typing error in a query",
    "word": "one changed word of a query",
    "misspelling": "a misspelt query",
    "naturality": "a query in a less natural form",
    "ordering": "another order of a query's words",
    "paraphrasing": "a paraphrase of a query",
}
"""The test in the brackets of a finding's name -> the test in plain words."""


@dataclass(frozen=True)
class FacetCell:
    """One cell of the scorecard: a ranker and a facet."""

    facet: str
    status: Status
    value: str
    """The number with its unit: "-13.3 %"."""
    measure: str
    """The number in words: "change of nDCG@10 by upper_case"."""
    bound: str
    """The end of the 95 % interval that decides the status: "at least -9.3 %", or "0 of 24, up to 14.2 %"."""
    finding: Finding
    """The finding that decided, with values by query if there are any."""
    remark: str = ""
    first_stage: str = ""
    """The number of the first stage: "100.0 %"; empty if there is none."""
    untested: tuple[str, ...] = ()
    """The tests of the panel on too few queries."""

    @property
    def about(self) -> str:
        """What the number measures, its bound, the number of the first stage, and the remark."""
        inside = [self.bound, f"first stage {self.first_stage}" if self.first_stage else "", self.remark]
        more = "; ".join(part for part in inside if part)
        return f"{self.measure} ({more})" if more else self.measure

    @property
    def text(self) -> str:
        """The number and what it measures."""
        return f"{self.value} {self.about}"


@dataclass(frozen=True)
class Scorecard:
    """The cells of one ranker, with the classified finding behind each, and the share of lists in its own order."""

    ranker: str
    cells: Mapping[str, FacetCell]
    decided_by: Mapping[str, ClassifiedFinding]
    own_order: Finding | None = None

    @property
    def is_copy(self) -> bool:
        """True if the ranker returns the order of the first stage."""
        return self.own_order is not None and self.own_order.value < MIN_OWN_ORDER_PERCENT

    @property
    def is_ineffective(self) -> bool:
        """True if the ranker fails in effectiveness, so that its passes mean little."""
        return EFFECTIVENESS in self.cells and self.cells[EFFECTIVENESS].status == FAIL


def build_scorecards(
    findings: Sequence[Finding],
    rankers: Sequence[str],
    baseline: str = "",
    left_out: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Scorecard]:
    """Return ranker -> scorecard; `baseline` is the first stage if it is one of the rankers.

    `left_out` has the tests of facets that a budget does not cover. A facet with such tests does not pass.
    """
    by_name: dict[tuple[str, str], Finding] = {(one.ranker, one.name): one for one in findings if not one.where}
    cards = {name: _build_scorecard(name, findings, by_name, baseline) for name in rankers}
    return {name: _withhold_partial_passes(card, left_out or {}) for name, card in cards.items()}


def sort_facets(facets: Iterable[str]) -> list[str]:
    """Return facets in the order of the scorecard, those of plug-ins last."""
    known = [facet.name for facet in FACETS]
    return sorted(facets, key=lambda name: known.index(name) if name in known else len(known))


def describe_test(finding: Finding) -> str:
    """Return the test of a finding in plain words; its baseline if it has no test."""
    test = find_test(finding.name)
    return format_cell(TEST_DESCRIPTIONS.get(test, test) or finding.against)


def _build_scorecard(
    ranker: str, findings: Sequence[Finding], by_name: Mapping[tuple[str, str], Finding], baseline: str
) -> Scorecard:
    own = [one for one in findings if one.ranker == ranker]
    marked = [one for one in own if one.facet and isfinite(one.value)]
    cells: dict[str, FacetCell] = {}
    decided: dict[str, ClassifiedFinding] = {}
    for name in sort_facets({one.facet for one in marked}):
        facet = get_facet(name)
        worst, untested = _find_worst([one for one in marked if one.facet == name], facet, by_name, baseline)
        if name == COMPETITION and worst.finding.n < MIN_QUERIES:
            continue  # few collections have a competition; one of a few queries decides nothing
        if ranker == baseline and facet.relative_to_first_stage:
            worst = replace(worst, status=PASS, remark=BASELINE_REMARK)
        decided[name] = worst
        first = by_name.get((baseline, worst.finding.name)) if baseline and ranker != baseline else None
        cells[name] = _build_cell(name, worst, first, untested, own)
    card = Scorecard(ranker, cells, decided, by_name.get((ranker, OWN_ORDER_SHARE)))
    if ranker == baseline:
        return card
    if card.is_copy:
        return _withhold_passes(card, dict.fromkeys(cells, NO_OWN_ORDER_REMARK))
    return _withhold_passes(card, dict.fromkeys(cells, LOW_EFFECTIVENESS_REMARK)) if card.is_ineffective else card


def _find_worst(
    findings: Sequence[Finding], facet: Facet, by_name: Mapping[tuple[str, str], Finding], baseline: str
) -> tuple[ClassifiedFinding, tuple[str, ...]]:
    """Return the worst finding of a facet, and the tests that are left out because they have too few queries."""
    scaled = [one for one in findings if facet.find_scale(one)] or list(findings)
    enough = [one for one in scaled if one.n >= MIN_QUERIES]
    few = [one for one in scaled if one.n < MIN_QUERIES]
    # a test on few queries counts if its whole interval is beyond the fail threshold
    classified = [*classify_findings(enough, facet), *(one for one in classify_findings(few, facet) if enough)]
    classified = [one for one in classified if one.finding.n >= MIN_QUERIES or one.status == FAIL]
    classified = classified or classify_findings(few, facet)
    judged = _soften_failures(classified, facet, by_name, baseline)
    worst = min(judged, key=lambda one: one.sort_key)
    if not enough:  # the cell itself says that there are too few queries
        return worst, ()
    left_out = {find_test(one.name) for one in few} - {find_test(one.finding.name) for one in judged}
    return worst, tuple(sorted(left_out - {""}))


def _soften_failures(
    classified: Sequence[ClassifiedFinding], facet: Facet, by_name: Mapping[tuple[str, str], Finding], baseline: str
) -> list[ClassifiedFinding]:
    """Return failures as warnings if the facet fails only beside the first stage and the ranker is not worse there.

    The comparisons with the first stage are corrected together, because one of several tests differs by chance.
    """
    if not facet.fails_beside:
        return list(classified)
    pairs = {}
    for one in classified:
        for panel in facet.fails_beside if baseline and one.status == FAIL else ():
            name = name_test(panel, find_test(one.finding.name))
            mine, first = by_name.get((one.finding.ranker, name)), by_name.get((baseline, name))
            if mine is not None and first is not None:
                pairs[one.finding.name, panel] = first, mine
    deltas = dict(zip(pairs, compare_findings(pairs.values()), strict=True))

    def soften(one: ClassifiedFinding) -> ClassifiedFinding:
        beside = [delta for (name, _), delta in deltas.items() if name == one.finding.name]
        worse = any(delta.status == "worse" and delta.loss >= facet.margin_beside for delta in beside)
        if one.status != FAIL or worse:
            return one
        return replace(one, status=WARN, remark=NO_WORSE_REMARK if beside else NO_FIRST_STAGE_REMARK)

    return [soften(one) for one in classified]


def _build_cell(
    facet: str, worst: ClassifiedFinding, first: Finding | None, untested: tuple[str, ...], own: Sequence[Finding]
) -> FacetCell:
    finding, remark = worst.finding, worst.remark
    unit = _find_unit(worst)
    measure = worst.scale.measure.format(what=describe_test(finding)) if worst.scale else format_cell(finding.name)
    if finding.name == UNSERVED_INCREASE:
        share = next((one for one in own if one.name == UNSERVED_SHARE), None)
        measure += f", {_format_value(share.value, '%')} in all" if share else ""
    elif facet == EFFECTIVENESS and finding.name == GAIN_OVER_FIRST_STAGE:
        mean = next((one for one in own if one.facet == facet and one.name != finding.name), None)
        measure += f", {mean.name} {format_number(mean.value, 3)}" if mean else ""
    elif facet == EFFECTIVENESS:
        remark = remark if remark == BASELINE_REMARK else NO_FIRST_STAGE_REMARK
    if finding.judged_before > finding.judged_after and "judged" not in remark:
        judged = f"judged@10 {finding.judged_before:.0f} % before, {finding.judged_after:.0f} % after"
        remark = f"{remark}; {judged}" if remark else judged
    return FacetCell(
        facet,
        worst.status,
        _format_value(finding.value, unit),
        measure,
        _format_bound(worst, unit),
        finding,
        remark,
        _format_value(first.value, unit) if first is not None else "",
        untested,
    )


def _find_unit(one: ClassifiedFinding) -> str:
    if one.scale is not None:
        return one.scale.unit
    return "%" if one.finding.name.endswith("%") or one.finding.name.startswith("%") else ""


def _format_value(value: float, unit: str) -> str:
    """Format a number with its unit.

    >>> _format_value(-13.31, "+%"), _format_value(100.0, "%"), _format_value(0.4931, "")
    ('-13.3 %', '100.0 %', '0.493')
    >>> _format_value(-0.04, "+%"), _format_value(-0.0001, "")
    ('0.0 %', '0.000')
    """
    decimals = 1 if unit else 3
    text = format_signed(value, decimals) if abs(value) < 10_000 else format_number(value)
    text = text if unit == "+%" else text.removeprefix("+")
    return f"{text} %" if unit else text


def _format_bound(one: ClassifiedFinding, unit: str) -> str:
    """Return the end of the interval that decides the status, in words, with the count of a rate."""
    finding = one.finding
    if not isfinite(finding.low) or not isfinite(finding.high):
        return ""
    upwards = finding.better == "lower"  # a loss is a larger number
    near, far = (finding.low, finding.high) if upwards else (finding.high, finding.low)
    if one.scale is None or one.status == INCONCLUSIVE:
        low, high = one.corrected_interval
        ends = f"95 % interval {_format_value(low, unit)} to {_format_value(high, unit)}"
    elif one.status == PASS:
        ends = f"{'up to' if upwards else 'at worst'} {_format_value(far, unit)}"
    else:
        ends = f"{'at least' if upwards else 'at best'} {_format_value(near, unit)}"
    count = _format_count(finding) if unit == "%" else ""
    return f"{count}, {ends}" if count else ends


def _format_count(finding: Finding) -> str:
    """Return the count of events of a rate over cases, "3 of 50"; empty if queries have several cases."""
    values = list(finding.values.values())
    if not values or any(value not in (0.0, 100.0) for value in values):
        return ""
    return f"{sum(value == 100.0 for value in values)} of {len(values)}"


def _withhold_partial_passes(card: Scorecard, left_out: Mapping[str, Sequence[str]]) -> Scorecard:
    """Return the scorecard with a pass made inconclusive if the budget leaves out tests of its facet."""
    remarks = {
        facet: f"the budget leaves out {len(tests)} test{'s' if len(tests) > 1 else ''}: {join_names(tests, MAX_TESTS)}"
        for facet, tests in left_out.items()
    }
    return _withhold_passes(card, remarks)


def _withhold_passes(card: Scorecard, remarks: Mapping[str, str]) -> Scorecard:
    """Return the scorecard with the passes of facets made inconclusive, for the reasons in `remarks`."""
    cells = {
        name: replace(cell, status=INCONCLUSIVE, remark=remarks[name])
        if cell.status == PASS and name in remarks
        else cell
        for name, cell in card.cells.items()
    }
    decided = {
        name: replace(one, status=INCONCLUSIVE) if one.status == PASS and name in remarks else one
        for name, one in card.decided_by.items()
    }
    return replace(card, cells=cells, decided_by=decided)

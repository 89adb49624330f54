"""The verdict of an audit: the status of each ranker in each facet, the worst findings, and advice.

Findings with a facet get a status by the table of `shaketable.measures.facets`; this module knows no task.
Effectiveness comes first: a ranker without an order of its own, or with a bad one, never passes a facet, because it has
nothing to lose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite, isnan
from typing import Any

from shaketable.core.results import Example, Finding, Result
from shaketable.measures.facets import (
    EFFECTIVENESS,
    FACETS,
    GAIN_OVER_FIRST_STAGE,
    OWN_ORDER_SHARE,
    PERTURBATION_DESCRIPTIONS,
    classify_finding,
    get_facet,
)
from shaketable.measures.significance import MIN_QUERIES
from shaketable.measures.status import FAIL, INCONCLUSIVE, PASS, SIGNIFICANCE_LEVEL, STATUSES_WORST_FIRST, WARN, Status
from shaketable.report import format_cell, format_number
from shaketable.report.gates import GateResult, has_passed

UNDER_TEST, FIRST_STAGE = "under test", "first stage"
HAS_OWN_ORDER, NOT_BELOW_FIRST_STAGE, NO_FACET_FAILS = (
    "ranks by itself",
    "is not below the first stage",
    "no facet fails",
)
DEFAULT_GATE_RULES = (HAS_OWN_ORDER, NOT_BELOW_FIRST_STAGE, NO_FACET_FAILS)
"""The rules of the default gate; each applies to every ranker under test."""
MIN_OWN_ORDER_PERCENT = 5.0
"""The share of lists, in per cent, below which a ranker counts as having no order of its own."""
BASELINE_REMARK = "the others are compared with it"
LOW_EFFECTIVENESS_REMARK, NO_OWN_ORDER_REMARK = "it has little to lose", "the order is not its own"
MAX_WORST_FINDINGS = 3
MAX_QUERY_CHARS = 60
"""The maximum number of characters of a query in a sentence."""


@dataclass(frozen=True)
class FacetCell:
    """One cell of the scorecard: a ranker and a facet."""

    facet: str
    status: Status
    value: str
    """The formatted number: "-13.3 % [-17.5, -9.3]"."""
    finding: Finding
    """The finding of the cell, with values by query if there are any."""
    remark: str = ""


@dataclass(frozen=True)
class RankerVerdict:
    """The verdict on one ranker: a plain sentence, and a cell for each tested facet."""

    ranker: str
    role: str
    """`UNDER_TEST` or `FIRST_STAGE`."""
    sentence: str
    facet_cells: Mapping[str, FacetCell]


@dataclass(frozen=True)
class WorstFinding:
    """One of the worst findings, with an example if there is one, and advice."""

    sentence: str
    facet_cell: FacetCell
    ranker: str
    example: Example | None
    advice: str


@dataclass(frozen=True)
class Verdict:
    """The conclusions of an audit."""

    headline: str
    passed: bool | None
    """True if no gate fails, None if there are no gates."""
    facets: tuple[str, ...]
    """The tested facets, in the order of the columns of the scorecard."""
    ranker_verdicts: tuple[RankerVerdict, ...]
    """The rankers under test, then the first stage."""
    worst_findings: tuple[WorstFinding, ...]
    worst_slice: str = ""
    gate_results: tuple[GateResult, ...] = ()
    cautions: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values without the values by query of findings, which are in the results."""
        plain = asdict(self)
        cells = [cell for one in plain["ranker_verdicts"] for cell in one["facet_cells"].values()]
        for cell in [*cells, *(one["facet_cell"] for one in plain["worst_findings"])]:
            del cell["finding"]["values"]
        return plain


@dataclass(frozen=True)
class _JudgedFinding:
    """A finding of a facet, its status, and its loss divided by the threshold of `FAIL`."""

    finding: Finding
    status: Status
    remark: str
    loss_ratio: float

    @property
    def sort_key(self) -> tuple[bool, int, float]:
        """The key that sorts the worst first, and findings on too few queries last."""
        return self.finding.n < MIN_QUERIES, STATUSES_WORST_FIRST.index(self.status), -self.loss_ratio


def build_verdict(
    results: Sequence[Result], provenance: Mapping[str, Any], gate_results: Sequence[GateResult] = ()
) -> Verdict:
    """Return the verdict on the results of an audit; it adds the results of the default gate to `gate_results`."""
    findings = [finding for result in results for finding in result.findings]
    first = str(provenance.get("baseline", ""))
    rankers = [name for name in _list_rankers(findings, provenance) if name != first]
    cards = {name: _build_scorecard([one for one in findings if one.ranker == name]) for name in rankers}
    cards |= (
        {first: _build_scorecard([one for one in findings if one.ranker == first], is_baseline=True)} if first else {}
    )
    own = {one.ranker: one for one in findings if one.name == OWN_ORDER_SHARE}
    ranker_verdicts = tuple(
        RankerVerdict(
            name,
            FIRST_STAGE if name == first else UNDER_TEST,
            _describe_ranker(name, card, own.get(name), name == first, len(cards) == 1),
            {facet: one.facet_cell for facet, one in card.items()},
        )
        for name, card in cards.items()
    )
    found = {facet for card in cards.values() for facet in card}
    facets = [facet.name for facet in FACETS if facet.name in found]
    facets += sorted(found - set(facets))
    every = (
        *gate_results,
        *(result for name in rankers for result in _apply_default_gate(name, cards[name], own.get(name))),
    )
    return Verdict(
        _compose_headline(ranker_verdicts, every),
        has_passed(every) if every else None,
        tuple(facets),
        ranker_verdicts,
        tuple(
            _select_worst_findings(
                {name: card for name, card in cards.items() if not _has_no_own_order(own.get(name))}, first, results
            )
        ),
        _describe_worst_slice(findings, [name for name in rankers or [first] if not _has_no_own_order(own.get(name))]),
        every,
        tuple(_list_cautions(results, provenance, findings)),
    )


def _list_rankers(findings: Sequence[Finding], provenance: Mapping[str, Any]) -> list[str]:
    """Return the names of the rankers in the order of the command line."""
    given = provenance.get("rankers", {})
    return [*given, *dict.fromkeys(one.ranker for one in findings if one.ranker not in given)]


@dataclass(frozen=True)
class _ScoredCell:
    """A cell, and the finding that decided its status."""

    facet_cell: FacetCell
    judged_finding: _JudgedFinding


def _build_scorecard(findings: Sequence[Finding], *, is_baseline: bool = False) -> dict[str, _ScoredCell]:
    """Return facet -> the cell of its worst finding."""
    marked = [one for one in findings if one.facet and isfinite(one.value)]
    names = _sort_facets(list({one.facet for one in marked}))
    card = {name: _build_cell(name, [one for one in marked if one.facet == name]) for name in names}
    if is_baseline:
        return {
            name: _as_baseline_cell(one) if get_facet(name).relative_to_first_stage else one
            for name, one in card.items()
        }
    own = next((one for one in findings if one.name == OWN_ORDER_SHARE), None)
    worth = card.get(EFFECTIVENESS)
    if _has_no_own_order(own):
        return {name: _as_inconclusive(one, NO_OWN_ORDER_REMARK) for name, one in card.items()}
    if worth and worth.facet_cell.status == FAIL:
        return {name: _as_inconclusive(one, LOW_EFFECTIVENESS_REMARK) for name, one in card.items()}
    return card


def _build_cell(facet: str, findings: Sequence[Finding]) -> _ScoredCell:
    of = get_facet(facet)
    cases = []
    for one in findings:
        scale = of.find_scale(one)
        status, remark = classify_finding(one, scale)
        loss_ratio = scale.compute_loss(one, one.value) / scale.fail_threshold if scale else 0.0
        cases.append(_JudgedFinding(one, status, remark, loss_ratio))
    scaled = [case for case in cases if of.find_scale(case.finding)]
    worst = min(scaled or cases, key=lambda case: case.sort_key)
    # show the ranker's own number; the comparison with the first stage only decides the status
    shown = next((one for one in findings if of.relative_to_first_stage and of.find_scale(one) is None), worst.finding)
    remark = worst.remark
    if of.relative_to_first_stage and not scaled:
        remark = "not compared with a first stage"
    elif shown is not worst.finding:
        beside = f"{_format_value(facet, worst.finding)} relative to {format_cell(worst.finding.against)}"
        remark = f"{beside}, {remark}" if remark else beside
    return _ScoredCell(FacetCell(facet, worst.status, _format_value(facet, shown), shown, remark), worst)


def _as_baseline_cell(one: _ScoredCell) -> _ScoredCell:
    return _ScoredCell(
        replace(one.facet_cell, status=PASS, remark=BASELINE_REMARK), replace(one.judged_finding, status=PASS)
    )


def _as_inconclusive(one: _ScoredCell, remark: str) -> _ScoredCell:
    """Return the cell with `PASS` replaced by `INCONCLUSIVE`, for a ranker that can pass no facet."""
    if one.facet_cell.status != PASS:
        return one
    return _ScoredCell(
        replace(one.facet_cell, status=INCONCLUSIVE, remark=remark), replace(one.judged_finding, status=INCONCLUSIVE)
    )


def _format_value(facet: str, finding: Finding) -> str:
    """Format a number and its interval."""
    scale = get_facet(facet).find_scale(finding)
    unit = scale.unit if scale else "%" if finding.name.endswith("%") or finding.name.startswith("%") else ""
    sign, decimals = ("+" if unit == "+%" else ""), (1 if unit else 3)

    def shown(value: float) -> str:
        return f"{value + 0.0:{sign}.{decimals}f}" if abs(value) < 10_000 else format_number(value)

    text = f"{shown(finding.value)}{' %' if unit else ''}"
    if isnan(finding.low) or isnan(finding.high):
        return text
    return f"{text} [{shown(finding.low)}, {shown(finding.high)}]"


def _has_no_own_order(own: Finding | None) -> bool:
    """Return True if the ranker has no order of its own."""
    return own is not None and own.value < MIN_OWN_ORDER_PERCENT


def _describe_ranker(name: str, card: Mapping[str, _ScoredCell], own: Finding | None, first: bool, alone: bool) -> str:
    """Describe the effectiveness of a ranker, and the facets in which it fails, warns and passes."""
    name = format_cell(name)
    if _has_no_own_order(own) and not first:
        return f"{name} has no order of its own: it adds nothing to the first stage, and its other facets say nothing."
    worth = card.get(EFFECTIVENESS)
    if first:
        compared = "without a ranker to compare it with" if alone else "with which the others are compared"
        start = f"{name} is the first stage, {compared}"
    elif worth is None:
        start = f"The effectiveness of {name} was not tested"
    else:
        start = f"{name} {_describe_effectiveness(worth)}"
        if worth.facet_cell.status == FAIL:
            return f"{start}: the facets that it passes say nothing, because it has little to lose."
    by = {
        status: _sort_facets([facet for facet, one in card.items() if one.facet_cell.status == status])
        for status in (FAIL, WARN, PASS)
    }
    facets = {
        "fails": [facet for facet in by[FAIL] if facet != EFFECTIVENESS],
        "warns": [facet for facet in by[WARN] if facet != EFFECTIVENESS],
        "passes": [facet for facet in by[PASS] if not get_facet(facet).relative_to_first_stage],
    }
    said = _join_names([f"{verb} in {_join_names(names)}" for verb, names in facets.items() if names])
    return f"{start}; it {said}." if said else f"{start}."


def _describe_effectiveness(one: _ScoredCell) -> str:
    """Describe the effectiveness of a ranker relative to the first stage."""
    finding = one.judged_finding.finding
    if finding.name != GAIN_OVER_FIRST_STAGE:
        return "was not compared with a first stage"
    size = f"({finding.value:+.1f} %)"
    if finding.n < MIN_QUERIES:
        return f"was tested on {finding.n} queries, too few for a verdict on its effectiveness {size}"
    if finding.value < 0 and finding.p < SIGNIFICANCE_LEVEL:
        return f"is {'far ' if one.facet_cell.status == FAIL else ''}worse than the first stage {size}"
    if finding.value > 0 and finding.p < SIGNIFICANCE_LEVEL:
        return f"is better than the first stage {size}"
    return f"is not significantly different from the first stage {size}"


def _apply_default_gate(name: str, card: Mapping[str, _ScoredCell], own: Finding | None) -> Iterator[GateResult]:
    """Return the results of the default rules with measured numbers for a ranker under test."""
    shown = format_cell(name)
    if own is not None:
        said = f"{shown} has an order of its own in {own.value:.1f} % of the lists"
        yield GateResult(HAS_OWN_ORDER, name, FAIL if _has_no_own_order(own) else PASS, f"{said}.")
    worth = card.get(EFFECTIVENESS)
    if worth and worth.judged_finding.finding.name == GAIN_OVER_FIRST_STAGE:
        finding = worth.judged_finding.finding
        few = finding.n < MIN_QUERIES
        below = finding.value < 0 and finding.p < SIGNIFICANCE_LEVEL and not few
        said = f"{shown} {_describe_effectiveness(worth)}."
        yield GateResult(
            NOT_BELOW_FIRST_STAGE,
            name,
            FAIL if below else WARN if worth.facet_cell.status == INCONCLUSIVE else PASS,
            said,
        )
    scored = {facet: one for facet, one in card.items() if get_facet(facet).scales}
    if scored:
        failing, warning = ([f for f, one in scored.items() if one.facet_cell.status == s] for s in (FAIL, WARN))
        verb = "fails in" if failing else "warns in" if warning else "fails in none of"
        said = f"{shown} {verb} {_join_names(_sort_facets(failing or warning or list(scored)))}."
        yield GateResult(NO_FACET_FAILS, name, FAIL if failing else WARN if warning else PASS, said)


def _compose_headline(ranker_verdicts: Sequence[RankerVerdict], gate_results: Sequence[GateResult]) -> str:
    """Return one sentence on the rankers that fail or else warn."""
    tested = [one for one in ranker_verdicts if one.role == UNDER_TEST]
    if not any(one.facet_cells for one in ranker_verdicts):
        return "These tasks produce no verdict; see the tables."
    if not tested:
        return next(one.sentence for one in ranker_verdicts)
    if len(tested) == 1:
        return tested[0].sentence
    failed = list(dict.fromkeys(result.ranker for result in gate_results if result.status == FAIL))
    if failed:
        fine = [one.ranker for one in tested if one.ranker not in failed]
        rest = f"; {_join_names(fine)} {'passes' if len(fine) == 1 else 'pass'}" if fine else ""
        return f"{_join_names(failed)} {'fails' if len(failed) == 1 else 'fail'}{rest}."
    warned = [one.ranker for one in tested if any(cell.status == WARN for cell in one.facet_cells.values())]
    if warned:
        return f"No ranker fails; {_join_names(warned)} {'warns' if len(warned) == 1 else 'warn'}."
    return "No ranker fails or warns in a tested facet."


def _select_worst_findings(
    cards: Mapping[str, Mapping[str, _ScoredCell]], first: str, results: Sequence[Result]
) -> Iterator[WorstFinding]:
    """Return the worst findings: rankers under test before the first stage, different facets if possible."""
    bad = [
        one
        for card in cards.values()
        for facet, one in card.items()
        if one.facet_cell.status in (FAIL, WARN) and (facet == EFFECTIVENESS or not _fails_effectiveness(card))
    ]

    def order(one: _ScoredCell) -> tuple[bool, Any]:
        return one.facet_cell.finding.ranker == first, one.judged_finding.sort_key

    bad.sort(key=order)
    worst = {one.facet_cell.facet: one for one in reversed(bad)}
    others = [one for one in bad if one is not worst[one.facet_cell.facet]]
    for one in sorted([*sorted(worst.values(), key=order), *others][:MAX_WORST_FINDINGS], key=order):
        facet, finding = one.facet_cell.facet, one.judged_finding.finding
        example = _find_example(finding, results)
        said = _describe_loss(facet, finding)
        sentence = f"{said}: {_describe_example(example)}." if example else f"{said}."
        yield WorstFinding(sentence, one.facet_cell, finding.ranker, example, get_facet(facet).advice)


def _fails_effectiveness(card: Mapping[str, _ScoredCell]) -> bool:
    """Return True if the ranker fails in effectiveness, so that its other facets are meaningless."""
    return EFFECTIVENESS in card and card[EFFECTIVENESS].facet_cell.status == FAIL


def _describe_loss(facet: str, finding: Finding) -> str:
    """Describe the loss of a finding in a sentence without its full stop."""
    scale = get_facet(facet).find_scale(finding)
    if scale is None:
        return f"{format_cell(finding.ranker)}: {facet} is {_format_value(facet, finding)}"
    inside = finding.name.partition("(")[2].removesuffix(")")
    what = PERTURBATION_DESCRIPTIONS.get(inside, inside) or finding.against
    return scale.sentence.format(
        ranker=format_cell(finding.ranker),
        loss=scale.compute_loss(finding, finding.value),
        what=format_cell(what),
        of=format_cell(finding.against),
    )


def _find_example(finding: Finding, results: Sequence[Result]) -> Example | None:
    """Return an example of the ranker from the result of the finding, of the same perturbation if it names one."""
    inside = finding.name.partition("(")[2].removesuffix(")")
    for result in results:
        if finding in result.findings:
            own = [one for one in result.examples if one.ranker == finding.ranker]
            alike = [one for one in own if inside and one.change.partition(":")[0] == inside]
            return next(iter(alike), None) if inside else next(iter(own), None)
    return None


def _describe_example(example: Example) -> str:
    """Describe an example in words."""
    query = format_cell(example.after if len(example.after) <= 4 * MAX_QUERY_CHARS else example.query, MAX_QUERY_CHARS)
    parts = [f"'{query}'"]
    if isfinite(example.value_before) and isfinite(example.value_after):
        parts.append(f"goes from {example.value_before:.2f} to {example.value_after:.2f}")
    if example.document and example.rank_before and example.rank_after != example.rank_before:
        after = f"to rank {example.rank_after}" if example.rank_after else "out of the list"
        parts.append(f"document {format_cell(example.document, 30)} from rank {example.rank_before} {after}")
    return ", ".join([" ".join(parts[:2]), *parts[2:]])


def _describe_worst_slice(findings: Sequence[Finding], rankers: Sequence[str]) -> str:
    """Describe the slice of queries with the lowest significant mean; "" if there is none."""
    slices = [
        one
        for one in findings
        if one.where and one.name.startswith("worst slice of ") and one.p < SIGNIFICANCE_LEVEL and one.ranker in rankers
    ]
    if not slices:
        return ""
    worst = min(slices, key=lambda one: one.p)
    what = format_cell(worst.name.removeprefix("worst slice of "))
    return (
        f"{format_cell(worst.ranker)} serves the queries of {format_cell(worst.where)} worst: the mean {what} is "
        f"{format_number(worst.value, 3)} [{format_number(worst.low, 3)}, {format_number(worst.high, 3)}] over "
        f"{worst.n} queries."
    )


def _list_cautions(
    results: Sequence[Result], provenance: Mapping[str, Any], findings: Sequence[Finding]
) -> Iterator[str]:
    """Return sentences on the limits of the data and of the measurement."""
    collection = provenance.get("collection", {})
    count = int(collection.get("queries", 0))
    if collection.get("source") == "sample":
        yield f"These numbers come from the bundled sample of {count} queries: a demonstration, not a benchmark."
    if limit := provenance.get("limit"):
        yield f"Only the first {limit} queries were used."
    if 0 < count < MIN_QUERIES:
        yield f"There are only {count} queries: a facet needs {MIN_QUERIES} to pass, warn or fail."
    if collection and not collection.get("judgements"):
        yield "There are no judgements: statuses say how far rankings move, not how good they are."
    if failures := sum(len(result.failures) for result in results):
        yield f"{failures} times a ranker failed on a query; those cases are not counted."
    skipped: Mapping[str, str] = provenance.get("skipped") or {}
    for why in dict.fromkeys(skipped.values()):
        tasks = [format_cell(task, MAX_QUERY_CHARS) for task, reason in skipped.items() if reason == why]
        yield f"Not tested, {format_cell(why).removesuffix('.')}: {', '.join(tasks)}."
    for name, remark in (provenance.get("remarks") or {}).items():
        yield f"{format_cell(name)}: {format_cell(remark).removesuffix('.')}."


def _sort_facets(facets: Sequence[str]) -> list[str]:
    known = [facet.name for facet in FACETS]
    return sorted(facets, key=lambda name: known.index(name) if name in known else len(known))


def _join_names(names: Sequence[str]) -> str:
    """Join names with commas and "and".

    >>> _join_names(["a", "b", "c"])
    'a, b and c'
    """
    shown = [format_cell(name) for name in names]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)

"""The verdict of an audit: its outcome, the status of each ranker in each facet, the worst findings, and advice.

Findings with a facet get a status by `shaketable.measures.status`; this module knows no task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any, Literal, TypeAlias

from shaketable.core.results import Example, Finding, Result
from shaketable.measures.facets import (
    ATTACK,
    COMPETITION,
    EFFECTIVENESS,
    FACETS,
    PROMPT_WORDING,
    SHIFT,
    SLICES,
    find_test,
    get_facet,
)
from shaketable.measures.significance import MIN_QUERIES
from shaketable.measures.status import FAIL, INCONCLUSIVE, NOT_TESTED, PASS, WARN, ClassifiedFinding
from shaketable.report import format_cell, join_names
from shaketable.report.default_gate import (
    DEFAULT_GATE_RULES,
    HAS_OWN_ORDER,
    apply_default_gate,
    describe_effectiveness,
    read_recorded_accepted,
)
from shaketable.report.gates import GateResult, has_passed
from shaketable.report.scorecard import FacetCell, Scorecard, build_scorecards, describe_test, sort_facets

UNDER_TEST, FIRST_STAGE = "under test", "first stage"
MAX_WORST_FINDINGS = 3
PRINTED_COLUMNS = 100
"""The width of a verdict as text."""
MAX_NAMES = 3
"""The maximum number of rankers that the headline names."""
MAX_QUERY_CHARS = 60
"""The maximum number of characters of a query in a sentence."""
CAUGHT = "caught"
"""Findings on detectors: the share of attacked texts that one finds, "caught(recipe/detector) %"."""
MIN_CAUGHT_PERCENT = 50.0
"""The share of attacked texts from which the advice names a detector."""
Outcome: TypeAlias = Literal["passed", "failed", "inconclusive", ""]
"""The outcome of the gates; "" if there are none."""
NO_VERDICT = "These tasks produce no verdict; see the tables."


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
    outcome: Outcome
    facets: tuple[str, ...]
    """The tested facets, in the order of the scorecard."""
    ranker_verdicts: tuple[RankerVerdict, ...]
    """The rankers under test, then the first stage."""
    worst_findings: tuple[WorstFinding, ...]
    gate_results: tuple[GateResult, ...] = ()
    untested: tuple[str, ...] = ()
    """Sentences on facets that were not tested, with the reasons that are known."""
    cautions: tuple[str, ...] = ()
    small_tests: tuple[str, ...] = ()
    """Sentences on tests with too few queries to decide anything."""

    @property
    def passed(self) -> bool | None:
        """True if all rules hold, False if one fails, None if the outcome is inconclusive or there are no rules."""
        return {"passed": True, "failed": False}.get(self.outcome)

    def __str__(self) -> str:
        """Return the lines that a terminal of `PRINTED_COLUMNS` columns shows."""
        from shaketable.report.terminal_summary import render_lines

        return "\n".join(line.plain for line in render_lines(self, PRINTED_COLUMNS))

    def _repr_html_(self) -> str:
        from shaketable.report.notebook import render_audit

        return render_audit("Verdict", self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values without the values by query of findings, which are in the results."""
        plain = asdict(self) | {"passed": self.passed}
        cells = [cell for one in plain["ranker_verdicts"] for cell in one["facet_cells"].values()]
        for cell in [*cells, *(one["facet_cell"] for one in plain["worst_findings"])]:
            del cell["finding"]["values"]
        return plain


def build_verdict(
    results: Sequence[Result], provenance: Mapping[str, Any], gate_results: Sequence[GateResult] = ()
) -> Verdict:
    """Return the verdict on the results of an audit; it adds the results of the default gate to `gate_results`.

    The provenance may have accepted failures of facets (`default_gate.record_accepted`).
    """
    accepted, today = read_recorded_accepted(provenance)
    findings = [finding for result in results for finding in result.findings]
    first = str(provenance.get("baseline", ""))
    tested = [name for name in _list_rankers(findings, provenance) if name != first]
    left_out = provenance.get("plan", {}).get("left out", {})
    cards = build_scorecards(findings, [*tested, *([first] if first else [])], first, left_out)
    every = (
        *gate_results,
        *(one for name in tested for one in apply_default_gate(cards[name], accepted, today)),
    )
    ranker_verdicts = tuple(
        RankerVerdict(
            name,
            FIRST_STAGE if name == first else UNDER_TEST,
            _describe_ranker(card, name == first, len(cards) == 1),
            card.cells,
        )
        for name, card in cards.items()
    )
    if not provenance.get("rankers") and any(result.conclusions for result in results):
        # an evaluation of runs tests no facet of robustness but effectiveness, and states its own conclusions
        ranker_verdicts = tuple(replace(one, facet_cells={}) for one in ranker_verdicts)
        cards = {}
    has_cells = any(card.cells for card in cards.values())
    every = every if has_cells else tuple(gate_results)  # the default gate has nothing to judge
    outcome = decide_outcome(every)
    said = [format_cell(text) for result in results for text in result.conclusions]
    if has_cells or not said:
        said = [_compose_headline(ranker_verdicts, every, outcome), *said]
    return Verdict(
        " ".join(said),
        outcome,
        tuple(sort_facets({facet for card in cards.values() for facet in card.cells})),
        ranker_verdicts,
        tuple(_select_worst_findings(cards, first, results, provenance.get("queries") or {})),
        every,
        tuple(_list_untested(cards, provenance)) if has_cells else (),
        tuple(_list_cautions(results, provenance)),
        tuple(_list_small_tests(cards)),
    )


def decide_outcome(gate_results: Sequence[GateResult]) -> Outcome:
    """Return the outcome: a missing or undecided test is not a pass."""
    if not gate_results:
        return ""
    if not has_passed(gate_results):
        return "failed"
    undecided = any(one.status in (INCONCLUSIVE, NOT_TESTED) for one in gate_results)
    return "inconclusive" if undecided else "passed"


def _list_rankers(findings: Sequence[Finding], provenance: Mapping[str, Any]) -> list[str]:
    """Return the names of the rankers in the order of the command line."""
    given = provenance.get("rankers", {})
    return [*given, *dict.fromkeys(one.ranker for one in findings if one.ranker not in given)]


def _describe_ranker(card: Scorecard, first: bool, alone: bool) -> str:
    """Describe the effectiveness of a ranker, and the facets in which it fails, warns and passes."""
    name = format_cell(card.ranker)
    if card.is_copy and not first:
        return _describe_copies([card.ranker])
    if first:
        compared = "without a ranker to compare it with" if alone else "with which the others are compared"
        start = f"{name} is the first stage, {compared}"
    elif EFFECTIVENESS not in card.cells:
        start = f"The effectiveness of {name} was not tested"
    else:
        start = f"{name} {describe_effectiveness(card)}"
        if card.is_ineffective:
            return f"{start}: the facets that it passes say nothing, because it has little to lose."
    groups = {
        verb: sort_facets(
            facet
            for facet, cell in card.cells.items()
            if cell.status == status and facet != EFFECTIVENESS and not (first and facet_is_relative(facet))
        )
        for verb, status in (("fails in", FAIL), ("warns in", WARN), ("is inconclusive in", INCONCLUSIVE))
    }
    passes = sum(cell.status == PASS and not facet_is_relative(facet) for facet, cell in card.cells.items())
    said = [f"{verb} {join_names(names)}" for verb, names in groups.items() if names]
    said += [f"passes {passes} other facet{'s' if passes > 1 else ''}"] if passes and said else []
    every = "the one tested facet" if passes == 1 else f"all {passes} tested facets"
    said += [f"passes {every}"] if passes and len(said) == 0 else []
    return f"{start}; it {join_names(said)}." if said else f"{start}."


def _describe_copies(rankers: Sequence[str]) -> str:
    """Describe rankers that return the order of the first stage or no order."""
    names = join_names(rankers, MAX_NAMES)
    if len(rankers) == 1:
        return (
            f"{names} has no order of its own: it repeats the first stage or ties all documents, and its other facets "
            "say nothing."
        )
    return (
        f"{names} have no order of their own: they repeat the first stage or tie all documents, and their other "
        "facets say nothing."
    )


def facet_is_relative(facet: str) -> bool:
    """Return True if a facet compares a ranker with the first stage."""
    return get_facet(facet).relative_to_first_stage


def _compose_headline(
    ranker_verdicts: Sequence[RankerVerdict], gate_results: Sequence[GateResult], outcome: Outcome
) -> str:
    """Return one or two sentences on the rankers that fail, warn, or cannot be decided."""
    tested = [one for one in ranker_verdicts if one.role == UNDER_TEST]
    if not any(one.facet_cells for one in ranker_verdicts):
        return "No facet was tested; the rules decide." if gate_results else NO_VERDICT
    if not tested:
        return next(one.sentence for one in ranker_verdicts)
    if len(tested) == 1:
        return tested[0].sentence
    failed = list(dict.fromkeys(result.ranker for result in gate_results if result.status == FAIL))
    if failed:
        fine = [one.ranker for one in tested if one.ranker not in failed]
        rest = f"; {join_names(fine, MAX_NAMES)} {'does' if len(fine) == 1 else 'do'} not" if fine else ""
        said = f"{join_names(failed, MAX_NAMES)} {'fails' if len(failed) == 1 else 'fail'}{rest}."
        copies = [one.ranker for one in gate_results if one.rule == HAS_OWN_ORDER and one.status == FAIL]
        return f"{said} {_describe_copies(copies)}" if copies else said
    warned = [one.ranker for one in tested if any(cell.status == WARN for cell in one.facet_cells.values())]
    said = (
        f"No ranker fails; {join_names(warned, MAX_NAMES)} {'warns' if len(warned) == 1 else 'warn'}." if warned else ""
    )
    if outcome == INCONCLUSIVE:
        open_rules = (INCONCLUSIVE, NOT_TESTED)
        unclear = list(dict.fromkeys(one.ranker for one in gate_results if one.status in open_rules))
        said = f"{said or 'No ranker fails.'} Not every required test of {join_names(unclear, MAX_NAMES)} is decided."
    return said or "No ranker fails or warns in a tested facet."


def _select_worst_findings(
    cards: Mapping[str, Scorecard], first: str, results: Sequence[Result], texts: Mapping[str, str]
) -> Iterator[WorstFinding]:
    """Yield the worst findings, of different facets: rankers under test before the first stage."""
    bad = [
        (facet, card, card.decided_by[facet])
        for card in cards.values()
        if not card.is_copy or card.ranker == first
        for facet in card.cells
        if card.decided_by[facet].status in (FAIL, WARN) and (facet == EFFECTIVENESS or not card.is_ineffective)
    ]
    bad.sort(key=lambda one: (one[1].ranker == first, one[2].sort_key))
    worst: dict[str, tuple[Scorecard, ClassifiedFinding]] = {}
    for facet, card, classified in bad:
        worst.setdefault(facet, (card, classified))
    for facet, (card, classified) in list(worst.items())[:MAX_WORST_FINDINGS]:
        example = _find_example(classified.finding, results)
        said = _describe_loss(facet, classified)
        sentence = f"{said}: {_describe_example(example, texts)}." if example else f"{said}."
        advice = _advise(facet, classified.finding, results)
        yield WorstFinding(sentence, card.cells[facet], card.ranker, example, advice)


def _describe_loss(facet: str, one: ClassifiedFinding) -> str:
    """Describe the loss of a finding in a sentence without its full stop."""
    finding = one.finding
    if one.scale is None:
        return f"{format_cell(finding.ranker)}: {facet} is {finding.value:g}"
    test, what = find_test(finding.name), describe_test(finding)
    if test and what == format_cell(test) and finding.facet != SLICES:
        what = f"the {one.scale.test_noun} {what}"
    said = one.scale.sentence.format(
        ranker=format_cell(finding.ranker), loss=one.loss, what=what, of=format_cell(finding.against)
    )
    return said if said.startswith(format_cell(finding.ranker)) else said[:1].upper() + said[1:]


def _advise(facet: str, finding: Finding, results: Sequence[Result]) -> str:
    """Return the advice on a finding; for an attack, the measured effect of the best detector replaces it."""
    if facet != ATTACK:
        return get_facet(facet).advice
    start = f"{CAUGHT}({find_test(finding.name)}/"
    every = (one for result in results for one in result.findings)
    caught = [one for one in every if one.ranker == finding.ranker and one.name.startswith(start)]
    if not caught:
        return get_facet(facet).advice
    best = max(caught, key=lambda one: one.value)
    detector = format_cell(find_test(best.name).rpartition("/")[2])
    if best.value < MIN_CAUGHT_PERCENT:
        return (
            f"The best of {len(caught)} detectors ({detector}) finds {best.value:.0f} % of these texts, so a filter "
            "does not help; 'shaketable train --defence' trains against attacks."
        )
    return f"The detector {detector} finds {best.value:.0f} % of these texts; the ranker 'guarded' applies it first."


def _find_example(finding: Finding, results: Sequence[Result]) -> Example | None:
    """Return an example of the ranker from the result of the finding, of the same test if it names one."""
    scale = get_facet(finding.facet).find_scale(finding)
    test = find_test(finding.name) or (scale.example_change if scale else "")
    for result in results:
        if finding in result.findings:
            own = [one for one in result.examples if one.ranker == finding.ranker]
            alike = [one for one in own if test and one.change.partition(":")[0] == test]
            return next(iter(alike), None) if test else next(iter(own), None)
    return None


def _describe_example(example: Example, texts: Mapping[str, str]) -> str:
    """Describe an example in words; `texts` has the texts of queries by id."""
    # an example of two texts names its query by the text and no document
    names_query = bool(example.document) or example.query in texts
    is_query = names_query and len(example.after) <= 4 * MAX_QUERY_CHARS
    query = format_cell(example.after if is_query else texts.get(example.query, example.query), MAX_QUERY_CHARS)
    parts = []
    if isfinite(example.value_before) and isfinite(example.value_after):
        parts.append(f"'{query}' goes from {example.value_before:.2f} to {example.value_after:.2f}")
    else:
        parts.append(f"for the query '{query}'")
    if example.document and example.rank_before and example.rank_after != example.rank_before:
        after = f"to rank {example.rank_after}" if example.rank_after else "out of the list"
        parts.append(f"document {format_cell(example.document, 30)} moves from rank {example.rank_before} {after}")
    return ", ".join(parts)


def _list_untested(cards: Mapping[str, Scorecard], provenance: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences on facets without a number, and on skipped tasks."""
    found = {facet for card in cards.values() for facet in card.cells}
    # few collections have the data, an audit trains rankers only if you ask, and few rankers have prompts
    optional = (COMPETITION, SHIFT, PROMPT_WORDING)
    missing = [facet.name for facet in FACETS if facet.name not in found and facet.name not in optional]
    skipped: Mapping[str, str] = provenance.get("skipped") or {}
    if missing:
        yield f"Not tested: {join_names(missing)}."
    for why in dict.fromkeys(skipped.values()):
        tasks = [format_cell(task, MAX_QUERY_CHARS) for task, reason in skipped.items() if reason == why]
        yield f"Skipped, {format_cell(why).removesuffix('.')}: {', '.join(tasks)}."


def _list_small_tests(cards: Mapping[str, Scorecard]) -> Iterator[str]:
    """Yield a sentence for each facet that has tests with too few queries beside decided ones."""
    few = {(facet, test) for card in cards.values() for facet, cell in card.cells.items() for test in cell.untested}
    for facet in sort_facets({facet for facet, _ in few}):
        tests = sorted(test for name, test in few if name == facet)
        yield f"Tests of {facet} on fewer than {MIN_QUERIES} queries, which decide nothing: {'; '.join(tests)}."


def _list_cautions(results: Sequence[Result], provenance: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences on the limits of the data and of the measurement."""
    collection = provenance.get("collection", {})
    count = int(collection.get("queries", 0))
    if collection.get("source") == "sample":
        yield f"These numbers come from the bundled sample of {count} queries: a demonstration, not a benchmark."
    if limit := provenance.get("limit"):
        yield f"Only the first {limit} queries were used."
    if 0 < count < MIN_QUERIES:
        yield f"There are only {count} queries: a facet needs {MIN_QUERIES} to pass or warn."
    if collection and not collection.get("judgements"):
        yield "There are no judgements: statuses say how far rankings move, not how good they are."
    if failures := sum(len(result.failures) for result in results):
        yield f"{failures} times a ranker failed on a query; those cases are not counted."
    for name, remark in (provenance.get("remarks") or {}).items():
        yield f"{format_cell(name)}: {format_cell(remark).removesuffix('.')}."


__all__ = [
    "DEFAULT_GATE_RULES",
    "FIRST_STAGE",
    "UNDER_TEST",
    "FacetCell",
    "RankerVerdict",
    "Verdict",
    "WorstFinding",
    "build_verdict",
]

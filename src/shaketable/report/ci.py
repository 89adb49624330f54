"""Gate results for continuous integration: JUnit XML, Markdown for a summary or a pull request, and a badge."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

from shaketable.measures.status import FAIL, INCONCLUSIVE, NOT_TESTED, PASS, WARN
from shaketable.report import format_cell
from shaketable.report.gates import GateResult
from shaketable.report.tables import escape_markdown, to_markdown
from shaketable.report.verdict import FacetCell, Verdict

STATUS_ICONS = {FAIL: "❌", WARN: "⚠️", INCONCLUSIVE: "❔", NOT_TESTED: "➖", PASS: "✅"}


def render_junit(gate_results: Sequence[GateResult], suite: str = "shaketable") -> str:
    """Render a JUnit test case for each gate result.

    A warning passes, with its message as output. A rule that was not tested, or not decided, is skipped. The name of a
    case is unique and has no number in it, so that a build server recognises the case in the next build.

    >>> print(render_junit([GateResult("AP>=0.4", "mine", "fail", "mine.AP is 0.3")]).splitlines()[2].strip())
    <testcase classname="shaketable.mine" name="AP&gt;=0.4">
    """
    counts = Counter(one.status for one in gate_results)
    skipped = counts[INCONCLUSIVE] + counts[NOT_TESTED]
    about = {"name": _format_text(suite), "tests": str(len(gate_results)), "failures": str(counts[FAIL]), "errors": "0"}
    root = ElementTree.Element("testsuite", about | {"skipped": str(skipped)})
    for one, (ranker, name) in zip(gate_results, _name_cases(gate_results), strict=True):
        case = ElementTree.SubElement(root, "testcase", {"classname": ranker, "name": name})
        message, whole = _format_text(one.message), _format_text(str(one))
        if one.status == FAIL:
            ElementTree.SubElement(case, "failure", {"message": message}).text = whole
        elif one.status in (INCONCLUSIVE, NOT_TESTED):
            ElementTree.SubElement(case, "skipped", {"message": f"{one.status}: {message}"})
        elif one.status == WARN:
            ElementTree.SubElement(case, "system-out").text = whole
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _name_cases(gate_results: Sequence[GateResult]) -> Iterator[tuple[str, str]]:
    """Yield the class and the name of each case; the subject is added to a rule on several numbers."""
    rules = Counter((one.ranker, one.rule) for one in gate_results)
    seen: Counter[tuple[str, str]] = Counter()
    for one in gate_results:
        subject = f" [{one.subject}]" if rules[one.ranker, one.rule] > 1 and one.subject else ""
        key = f"shaketable.{_format_text(one.ranker)}", _format_text(f"{one.rule}{subject}")
        seen[key] += 1
        yield key if seen[key] == 1 else (key[0], f"{key[1]} ({seen[key]})")


def _format_text(text: str) -> str:
    """Return a line of text without expressions of a workflow or a template, which a later step might evaluate.

    >>> _format_text("${{ secrets.KEY }}") == "${\u200b{ secrets.KEY }}"
    True
    """
    return re.sub(r"\{(?=[{%])", "{\u200b", format_cell(text))


def build_badge(gate_results: Sequence[GateResult]) -> dict[str, Any]:
    """Build the JSON of a shields.io endpoint badge: https://shields.io/badges/endpoint-badge.

    >>> build_badge([GateResult("AP>=0.4", "mine", "fail", "mine.AP is 0.3")])["message"]
    '1 of 1 gates fail'
    """
    counts = Counter(one.status for one in gate_results)
    failed, warned = counts[FAIL], counts[WARN]
    if failed:
        message, color = f"{failed} of {len(gate_results)} gates fail", "red"
    elif undecided := counts[INCONCLUSIVE] + counts[NOT_TESTED]:
        message, color = f"inconclusive, {undecided} of {len(gate_results)} gates not decided", "lightgrey"
    elif warned:
        message, color = f"pass, {warned} {'warning' if warned == 1 else 'warnings'}", "yellow"
    else:
        message, color = PASS, "brightgreen"
    return {"schemaVersion": 1, "label": "robustness", "message": message, "color": color}


def render_summary(title: str, verdict: Verdict, gate_results: Sequence[GateResult]) -> str:
    """Render an audit in Markdown: its result, its headline, the gates, the scorecard, and the worst findings."""
    import pandas as pd

    order = sorted(gate_results, key=lambda one: list(STATUS_ICONS).index(one.status))
    gates = pd.DataFrame(
        [(f"{STATUS_ICONS[one.status]} {one.status}", one.ranker, one.rule, one.message) for one in order],
        columns=["status", "ranker", "rule", "found"],
    )
    card = pd.DataFrame(
        [
            (one.ranker, *(_format_facet_cell(one.facet_cells.get(facet)) for facet in verdict.facets))
            for one in verdict.ranker_verdicts
        ],
        columns=["ranker", *verdict.facets],
    )
    parts = [
        f"### {escape_markdown(format_cell(title))}: {build_badge(gate_results)['message']}",
        escape_markdown(format_cell(verdict.headline)),
    ]
    parts += [to_markdown(gates)] if len(gates) else []
    parts += [to_markdown(card)] if verdict.facets else []
    parts += (
        ["\n".join(f"- {escape_markdown(format_cell(one.sentence))}" for one in verdict.worst_findings)]
        if verdict.worst_findings
        else []
    )
    parts += (
        ["\n".join(f"> {escape_markdown(format_cell(one))}" for one in verdict.cautions)] if verdict.cautions else []
    )
    return "\n\n".join(parts) + "\n"


def _format_facet_cell(facet_cell: FacetCell | None) -> str:
    return NOT_TESTED if facet_cell is None else f"{facet_cell.status}: {facet_cell.text}"

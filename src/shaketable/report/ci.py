"""Gate results for continuous integration: JUnit XML, Markdown for a summary or a pull request, and a badge."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from shaketable.measures.facets import FAIL, INCONCLUSIVE, NOT_TESTED, PASS, WARN
from shaketable.report import format_cell
from shaketable.report.gates import GateResult
from shaketable.report.tables import escape_markdown, to_markdown
from shaketable.report.verdict import FacetCell, Verdict

STATUS_ICONS = {FAIL: "❌", WARN: "⚠️", INCONCLUSIVE: "❔", NOT_TESTED: "➖", PASS: "✅"}


def render_junit(gate_results: Sequence[GateResult], suite: str = "shaketable") -> str:
    """Render a JUnit test case for each gate result; a warning passes, with its message as output.

    >>> print(render_junit([GateResult("AP>=0.4", "mine", "fail", "mine.AP is 0.3")]).splitlines()[2].strip())
    <testcase classname="shaketable.mine" name="AP&gt;=0.4">
    """
    failed, warned = ([one for one in gate_results if one.status == status] for status in (FAIL, WARN))
    about = {"name": _format_text(suite), "tests": str(len(gate_results)), "failures": str(len(failed)), "errors": "0"}
    root = ElementTree.Element("testsuite", about)
    for one in gate_results:
        # the name has no message, so that a build server recognises the case in the next build
        name = {"classname": f"shaketable.{_format_text(one.ranker)}", "name": _format_text(one.rule)}
        case = ElementTree.SubElement(root, "testcase", name)
        if one in failed:
            ElementTree.SubElement(case, "failure", {"message": _format_text(one.message)}).text = _format_text(
                str(one)
            )
        elif one in warned:
            ElementTree.SubElement(case, "system-out").text = _format_text(str(one))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


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
    failed, warned = (sum(one.status == status for one in gate_results) for status in (FAIL, WARN))
    if failed:
        message, color = f"{failed} of {len(gate_results)} gates fail", "red"
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
    return NOT_TESTED if facet_cell is None else f"{facet_cell.status}: {facet_cell.value}"

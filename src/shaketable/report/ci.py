"""Rulings for machines that build software: JUnit's XML, Markdown for a summary or a pull request, and a badge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from shaketable.report import cell, clean
from shaketable.report.answer import Answer
from shaketable.report.gates import Ruling
from shaketable.report.tables import escaped_markdown, markdown


def junit(rulings: Sequence[Ruling], suite: str = "shaketable") -> str:
    """A test case for each ruling, in the form that build servers read; a warning passes and says so.

    >>> print(junit([Ruling("AP>=0.4", "mine", "failed", "mine.AP is 0.3")]).splitlines()[2].strip())
    <testcase classname="shaketable.mine" name="AP&gt;=0.4">
    """
    failed, warned = ([one for one in rulings if one.status == status] for status in ("failed", "warned"))
    about = {"name": clean(suite), "tests": str(len(rulings)), "failures": str(len(failed)), "errors": "0"}
    root = ElementTree.Element("testsuite", about)
    for one in rulings:
        # without what was found, so that a build server knows the case again in the next build
        name = {"classname": f"shaketable.{cell(one.ranker)}", "name": cell(one.rule)}
        case = ElementTree.SubElement(root, "testcase", name)
        if one in failed:
            ElementTree.SubElement(case, "failure", {"message": cell(one.said)}).text = cell(str(one))
        elif one in warned:
            ElementTree.SubElement(case, "system-out").text = cell(str(one))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def badge(rulings: Sequence[Ruling]) -> dict[str, Any]:
    """What a shields.io endpoint answers: https://shields.io/badges/endpoint-badge.

    >>> badge([Ruling("AP>=0.4", "mine", "failed", "mine.AP is 0.3")])["message"]
    '1 of 1 gates failed'
    """
    failed, warned = (sum(one.status == status for one in rulings) for status in ("failed", "warned"))
    if failed:
        message, color = f"{failed} of {len(rulings)} gates failed", "red"
    elif warned:
        message, color = f"passed, {warned} {'warning' if warned == 1 else 'warnings'}", "yellow"
    else:
        message, color = "passed", "brightgreen"
    return {"schemaVersion": 1, "label": "robustness", "message": message, "color": color}


def summary(title: str, found: Answer, rulings: Sequence[Ruling]) -> str:
    """An audit in Markdown: whether it passed, its headline, the gates, the scorecard, and the worst findings."""
    import pandas as pd

    words = {"failed": "❌ failed", "warned": "⚠️ warned", "held": "✅ held"}
    order = sorted(rulings, key=lambda one: list(words).index(one.status))
    gates = pd.DataFrame(
        [(words[one.status], one.ranker, one.rule, one.said) for one in order],
        columns=["gate", "ranker", "rule", "what was found"],
    )
    card = pd.DataFrame(
        [(one.ranker, *(_mark(one.marks.get(facet)) for facet in found.facets)) for one in found.standings],
        columns=["ranker", *found.facets],
    )
    parts = [
        f"### {escaped_markdown(cell(title))}: {badge(rulings)['message']}",
        escaped_markdown(cell(found.headline)),
    ]
    parts += [markdown(gates)] if len(gates) else []
    parts += [markdown(card)] if found.facets else []
    parts += ["\n".join(f"- {escaped_markdown(cell(blow.sentence))}" for blow in found.worst)] if found.worst else []
    parts += ["\n".join(f"> {escaped_markdown(cell(one))}" for one in found.cautions)] if found.cautions else []
    return "\n\n".join(parts) + "\n"


def _mark(mark: Any) -> str:
    return "" if mark is None else f"{mark.word}: {mark.value}"

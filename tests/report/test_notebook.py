"""What a notebook shows, and the frames that it computes with."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest
from pandas.api.types import is_numeric_dtype

import shaketable as st
from shaketable.api.audit import Audit
from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.results import MARK_SUFFIX, Figure
from shaketable.report import format_frame
from shaketable.report.comparison import AuditComparison
from shaketable.report.finding_table import CHANGE_COLUMNS, FINDING_COLUMNS
from shaketable.report.notebook import render_result

from .samples import hostile

TASKS = ("effectiveness", "first-stage", "query-typos(draws=1)", "probes(probes=('shuffle-words', 'length-given-tf'))")


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHAKETABLE_HOME", str(tmp_path_factory.mktemp("home")))
        return st.audit("sample", ["bm25", "ql"], TASKS, max_queries=22)


@pytest.fixture(scope="module")
def comparison(audit: Audit) -> AuditComparison:
    return st.compare(audit, audit)


def test_a_printed_verdict_is_what_the_terminal_shows(audit: Audit) -> None:
    lines = str(audit.verdict).splitlines()
    assert lines[0].startswith(f"{audit.verdict.outcome.upper()}: ")
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 100


def test_an_audit_shows_its_scorecard(audit: Audit) -> None:
    html = audit._repr_html_()
    assert html.count("<td") == len(audit.verdict.facets) * 2
    for one in audit.verdict.ranker_verdicts:
        assert all(cell.value in html and cell.measure in html for cell in one.facet_cells.values())
    assert "<style" not in html
    assert "<script" not in html


def test_findings_of_audits_and_comparisons_have_one_shape(audit: Audit, comparison: AuditComparison) -> None:
    own, changed = audit.findings.to_frame(), comparison.findings.to_frame()
    assert tuple(own.columns) == FINDING_COLUMNS
    assert tuple(changed.columns) == (*FINDING_COLUMNS, *CHANGE_COLUMNS)
    numbers = ["value", "low", "high", "p", "queries"]
    assert all(is_numeric_dtype(frame[name]) for frame in (own, changed) for name in numbers)
    assert len(own) == len(audit.findings) == len(audit.to_frame())
    first = audit.findings[0]
    assert own.iloc[0]["value"] == first.value
    assert {one.name for one in comparison.findings} <= {one.name for one in audit.findings}
    assert (changed["value"] == 0).all(), "an audit does not differ from itself"
    assert "findings" in audit.findings._repr_html_()


def test_a_table_is_a_frame_and_its_numbers_are_numbers(audit: Audit) -> None:
    frame = audit.table("probes: text manipulation")
    assert is_numeric_dtype(frame["bm25"])
    assert list(frame.columns).index(f"bm25{MARK_SUFFIX}") == list(frame.columns).index("bm25") + 1
    shown = {name: texts for name, _, texts in format_frame(frame)}
    assert f"bm25{MARK_SUFFIX}" not in shown
    assert all(text.rstrip("°").replace(" (few)", "") for text in shown["bm25"])
    with pytest.raises(UnknownName):
        audit.table("no such table")


def test_a_figure_has_its_chart(audit: Audit) -> None:
    figure = audit["query-typos"].figures[0]
    chart = figure.chart()
    assert chart.to_dict(validate=False)["$schema"].startswith("https://vega.github.io")
    assert "<svg" in figure._repr_html_()
    with pytest.raises(BadInput, match="has no data"):
        Figure("bars", "t", "Loose", "x", "y").chart()


def test_results_and_comparisons_show_themselves(audit: Audit, comparison: AuditComparison) -> None:
    assert audit["query-typos"].question in audit["query-typos"]._repr_html_()
    assert comparison.summary in comparison._repr_html_()
    assert "<script>" not in render_result(hostile())


def test_show_opens_the_page(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address))
    path = audit.show()
    assert opened == [path.as_uri()]
    assert Path(path).read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_an_evaluation_states_who_is_best() -> None:
    qrels = {f"q{i}": {"d1": 1, "d2": 0} for i in range(25)}
    good = {qid: {"d1": 2.0, "d2": 1.0} for qid in qrels}
    bad = {qid: {"d1": 1.0, "d2": 2.0} for qid in list(qrels)[:24]} | {"q24": {"d1": 2.0, "d2": 1.0}}
    found = st.evaluate(qrels, {"good": good, "bad": bad}).verdict
    assert (
        found.headline == "good has the highest nDCG@10, 1.0000, significantly higher than that of every other system."
    )
    assert found.outcome == ""
    assert not found.facets

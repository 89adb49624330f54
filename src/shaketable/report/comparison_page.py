"""The page of a comparison: two scorecards, the changes with intervals, and the queries that lost most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from shaketable.core.errors import MissingExtra
from shaketable.core.extras import use_python_strings
from shaketable.core.results import Figure
from shaketable.measures.facets import EFFECTIVENESS, FACETS
from shaketable.measures.regression import FindingDelta
from shaketable.report import format_cell
from shaketable.report.charts import draw_svg
from shaketable.report.comparison import (
    FINDINGS_TABLE_NOTE,
    MAX_FINDINGS_SHOWN,
    MAX_QUERIES_SHOWN,
    AuditComparison,
    ComparedAudit,
)
from shaketable.report.document_lists import DocumentList, compare_lists
from shaketable.report.page_data import PageData, build_table
from shaketable.report.templates import render_template
from shaketable.report.verdict import Verdict

BAND_STYLES = {"worse": "failed", "not worse": "passed", "inconclusive": "inconclusive"}
CHANGES_TABLE, MAX_DRAWN_CHANGES = "changes", 25
MAX_ROWS = 5_000


@dataclass(frozen=True)
class _LostQuery:
    """A query that lost by a finding, with the lists of both audits."""

    query: str
    text: str
    before: str
    after: str
    lists: tuple[DocumentList, DocumentList] | None


@use_python_strings()
def render_comparison_page(comparison: AuditComparison) -> str:
    """Return the page of a comparison as HTML."""
    data = PageData(comparison.query_texts, MAX_ROWS)
    frame = comparison.to_frame().rename(columns={"value": "change"})
    frame = frame[[name for name in _CHANGE_COLUMNS if not frame[name].isin([""]).all()]]
    changes = build_table(CHANGES_TABLE, frame, data.add_table(CHANGES_TABLE, frame, "changes.csv"))
    context: dict[str, Any] = {
        "title": f"{format_cell(comparison.new)} compared with {format_cell(comparison.base)}",
        "comparison": comparison,
        "band": BAND_STYLES[comparison.outcome],
        "scorecards": list(_select_scorecards(comparison)),
        "relative_facets": [facet.name for facet in FACETS if facet.relative_to_first_stage],
        "changes": replace(changes, folded=False),
        "drawing": _draw_changes(comparison),
        "lost": [(_describe_delta(delta), list(_list_lost_queries(comparison, delta)))
                 for delta in _select_findings(comparison)],
        "note": FINDINGS_TABLE_NOTE,
        "data": data.pack(MAX_ROWS),
    }  # fmt: skip
    return render_template("comparison.html", context)


_CHANGE_COLUMNS = (
    *("ranker", "finding", "facet", "where", "status", "before", "after", "change", "low", "high", "p", "queries"),
    *("lost", "better"),
)


def _select_scorecards(comparison: AuditComparison) -> Iterator[tuple[str, ComparedAudit, Verdict]]:
    """Yield the name, the audit and the verdict of both audits, with the compared rankers only."""
    if comparison.audits is None:
        return
    for name, audit, rankers in zip(
        (comparison.base, comparison.new),
        comparison.audits,
        (set(comparison.rankers), set(comparison.rankers.values())),
        strict=True,
    ):
        kept = tuple(one for one in audit.verdict.ranker_verdicts if one.ranker in rankers)
        if kept and audit.verdict.facets:
            yield format_cell(name), audit, replace(audit.verdict, ranker_verdicts=kept)


def _draw_changes(comparison: AuditComparison) -> Markup:
    """Draw the changes of percentages with their intervals; "" if there are none, or without the plotting libraries."""
    frame = comparison.to_frame()
    known = frame[frame["low"].notna() & frame["finding"].str.contains("%|drop|gain", regex=True)]
    chosen = known.reindex(known["effect"].abs().sort_values(ascending=False).index)[:MAX_DRAWN_CHANGES]
    table = chosen[["finding", "value", "low", "high", "ranker"]].rename(columns={"value": "change"})
    figure = Figure(
        "bars", CHANGES_TABLE, "Changes", "finding", "change", "ranker" if len(comparison.rankers) > 1 else ""
    )
    try:
        return Markup(draw_svg(figure, table.reset_index(drop=True))) if len(table) else Markup("")
    except MissingExtra:
        return Markup("")


def _select_findings(comparison: AuditComparison) -> list[FindingDelta]:
    """Return the findings whose queries the page shows: effectiveness first, then the worst."""
    worst = comparison.find_worst_findings()
    return sorted(worst, key=lambda delta: delta.facet != EFFECTIVENESS)[:MAX_FINDINGS_SHOWN]


def _describe_delta(delta: FindingDelta) -> str:
    where = f" ({delta.where})" if delta.where else ""
    return f"{format_cell(delta.name)}{format_cell(where)} of {format_cell(delta.ranker)}"


def _list_lost_queries(comparison: AuditComparison, delta: FindingDelta) -> Iterator[_LostQuery]:
    for qid in delta.find_worst_queries(MAX_QUERIES_SHOWN):
        before, after = delta.old.values[qid], delta.new.values[qid]
        yield _LostQuery(
            qid,
            format_cell(comparison.query_texts.get(qid, "")),
            format_cell(float(before)),
            format_cell(float(after)),
            _find_lists(comparison, delta, qid),
        )


def _find_lists(comparison: AuditComparison, delta: FindingDelta, qid: str) -> tuple[DocumentList, DocumentList] | None:
    """Return the lists of a query in both audits; None if an audit did not keep them."""
    if comparison.audits is None:
        return None
    old, new = (audit.first_documents for audit in comparison.audits)
    before = old.docnos.get(delta.old.ranker, {}).get(qid)
    after = new.docnos.get(delta.new.ranker, {}).get(qid)
    if not before or not after:
        return None
    excerpts: Mapping[str, str] = {**old.excerpts, **new.excerpts}
    return compare_lists(before, after, (f"before: {delta.old.ranker}", f"after: {delta.new.ranker}"), excerpts)

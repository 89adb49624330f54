"""Audits, results and figures as HTML for notebooks, and pages in the browser.

Notebooks have light or dark themes and remove style sheets, so every style is an attribute, and a cell that has a
background also has a text colour.
"""

from __future__ import annotations

import tempfile
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from shaketable.core.errors import MissingExtra
from shaketable.core.results import Figure, Result
from shaketable.measures.status import FAIL, INCONCLUSIVE, NOT_TESTED, PASS, WARN
from shaketable.report import clean, format_cell, format_frame
from shaketable.report.charts import draw_svg
from shaketable.report.scorecard import BASELINE_REMARK
from shaketable.report.system_table import render_html
from shaketable.report.verdict import FIRST_STAGE, RankerVerdict, Verdict, facet_is_relative

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.report.comparison import AuditComparison

MAX_ROWS, MAX_CELL_CHARS = 20, 200
"""The number of rows of a table in a notebook, and of characters in a cell; the frame has all."""
STATUS_STYLES = {
    PASS: "background:#d5e8f5;color:#0b3d62",
    WARN: "background:#fbe6a8;color:#4d3800",
    FAIL: "background:#b3430a;color:#ffffff",
    INCONCLUSIVE: "background:#eceef0;color:#454c53",
    NOT_TESTED: "background:#eceef0;color:#454c53",
}
_LEFT, _RIGHT = "text-align:left;vertical-align:top", "text-align:right;vertical-align:top"


def show_page(html: str) -> Path:
    """Write a page to a temporary folder, open it in the browser, and return its path."""
    path = Path(tempfile.mkdtemp(prefix="shaketable-")) / "report.html"
    path.write_text(html, encoding="utf-8")
    webbrowser.open(path.as_uri())
    return path


def render_audit(title: str, verdict: Verdict) -> str:
    """Return the verdict of an audit with its scorecard."""
    outcome = f"{verdict.outcome.capitalize()}. " if verdict.outcome else ""
    said = [Markup("<h3>{}</h3>").format(title), Markup("<p><b>{}</b>{}</p>").format(outcome, verdict.headline)]
    if verdict.facets:
        said.append(render_scorecard(verdict))
    said += [Markup("<p>{}</p>").format(text) for text in (*verdict.untested, *verdict.cautions)]
    return clean(Markup("\n").join(said))


def render_scorecard(verdict: Verdict) -> Markup:
    """Return the scorecard: a row for each facet and a column for each ranker."""
    shown = verdict.ranker_verdicts
    names = [f"{one.ranker} (first stage)" if one.role == FIRST_STAGE else one.ranker for one in shown]
    heads = [Markup('<th style="{}">{}</th>').format(_LEFT, name) for name in names]
    rows = [
        Markup('<tr><th style="{}">{}</th>{}</tr>').format(
            _LEFT,
            facet,
            Markup("").join(_render_cell(one, facet) for one in shown),
        )
        for facet in verdict.facets
    ]
    head = Markup('<tr><th style="{}">facet</th>{}</tr>').format(_LEFT, Markup("").join(heads))
    return Markup("<table><thead>{}</thead><tbody>{}</tbody></table>").format(head, Markup("\n").join(rows))


def _render_cell(ranker_verdict: RankerVerdict, facet: str) -> Markup:
    cell = ranker_verdict.facet_cells.get(facet)
    if cell is None:
        is_baseline = ranker_verdict.role == FIRST_STAGE and facet_is_relative(facet)
        return Markup('<td style="{}">{}</td>').format(_LEFT, BASELINE_REMARK if is_baseline else NOT_TESTED)
    style = f"{_LEFT};{STATUS_STYLES[cell.status]}"
    first = Markup("<br><small>first stage {}</small>").format(cell.first_stage) if cell.first_stage else ""
    return Markup('<td style="{}"><b>{}</b> {}<br><small>{}</small>{}</td>').format(
        style, cell.status, cell.value, cell.measure, first
    )


def render_comparison(comparison: AuditComparison) -> str:
    """Return the outcome of a comparison, the findings that changed, and the queries that lost most."""
    said = [Markup("<h3>{}</h3><p>{}</p>").format(comparison.headline.capitalize(), comparison.summary)]
    for status in ("worse", "better"):
        if len(frame := comparison.to_brief_frame(status)):
            said.append(Markup(render_frame(frame, f"what became {status}")))
    said += [Markup(render_frame(frame, title)) for title, frame in comparison.find_worst_queries().items()]
    return clean(Markup("\n").join(said))


def render_result(result: Result) -> str:
    """Return the question of a result, its conclusions, its main tables and its first plot."""
    said = [Markup("<h3>{}</h3>").format(result.question)]
    said += [Markup("<p>{}</p>").format(text) for text in result.conclusions]
    if result.system_table:
        said.append(render_html(result.system_table))
    shown = [name for name in result.brief if name in result.tables] or list(result.tables)[:1]
    said += [Markup(render_frame(result.tables[name], name)) for name in shown[: 0 if result.system_table else 2]]
    said += [Markup(render_figure(figure)) for figure in result.figures[:1]]
    others = [name for name in result.tables if name not in shown]
    if others:
        said.append(Markup("<p><small>Further tables: {}.</small></p>").format(", ".join(map(format_cell, others))))
    return clean(Markup("\n").join(said))


def render_figure(figure: Figure) -> str:
    """Return a figure as SVG with its caption; without the plotting libraries, the reason."""
    try:
        svg = Markup(draw_svg(figure, figure.data)) if figure.data is not None else Markup("")
    except MissingExtra as error:
        svg = Markup("<p>{}</p>").format(str(error))
    title, caption = format_cell(figure.title), format_cell(figure.caption)
    return clean(Markup("<h4>{}</h4>{}<p><small>{}</small></p>").format(title, svg, caption))


def render_frame(frame: pd.DataFrame, title: str) -> str:
    """Return the first rows of a frame as a table; numbers are formatted as in the report."""
    columns = format_frame(frame.iloc[:MAX_ROWS], MAX_CELL_CHARS)
    styles = [_RIGHT if numeric else _LEFT for _, numeric, _ in columns]
    heads = [
        Markup('<th style="{}">{}</th>').format(style, name)
        for (name, _, _), style in zip(columns, styles, strict=True)
    ]
    texts = zip(*(cells for _, _, cells in columns), strict=True)
    rows = [
        Markup("<tr>{}</tr>").format(
            Markup("").join(
                Markup('<td style="{}">{}</td>').format(style, text) for style, text in zip(styles, row, strict=True)
            )
        )
        for row in texts
    ]
    more = f" (the first {MAX_ROWS} of {len(frame)} rows)" if len(frame) > MAX_ROWS else ""
    return clean(
        Markup("<p><b>{}</b>{}</p><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(
            format_cell(title), more, Markup("").join(heads), Markup("\n").join(rows)
        )
    )

"""Results as one HTML page that needs no network and no second file.

The script of the page is optional: it sorts, filters and exports tables and shows the queries of a number. The content
security policy has the hash of the script, so that a browser runs no script that a text in the page may contain.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup, escape

from shaketable.core.errors import MissingExtra
from shaketable.core.extras import use_python_strings
from shaketable.core.results import MAX_TEXT_CHARS, Example, Failure, Figure, Finding, Result
from shaketable.files.atomic import atomic_write
from shaketable.measures.facets import FACETS
from shaketable.measures.status import FAIL, INCONCLUSIVE, NOT_TESTED, PASS, WARN
from shaketable.report import MISSING_TEXT, clean, format_cell, format_column, format_percent, is_numeric
from shaketable.report.charts import MAX_DRAWN_ROWS, assign_page_colors, draw_svg
from shaketable.report.colours import DARK_MODE_COLORS
from shaketable.report.diff import mark_differences
from shaketable.report.files import make_csv_names, make_safe_name
from shaketable.report.glossary import TERMS, build_term_pattern, find_term
from shaketable.report.system_table import render_html
from shaketable.report.tables import LATEX_ESCAPES

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.report.gates import GateResult
    from shaketable.report.verdict import FacetCell, Verdict

MAX_PAGE_BYTES = 2_000_000
ROW_LIMITS = (1_000_000, 5_000, 1_000, 200, 60, 15)
"""Limits of rows per table; the page uses the first limit that makes it small enough."""
MAX_TOTAL_ROWS = 400_000
"""The rows of all tables up to which the page tries the first limit; more rows would exceed `MAX_PAGE_BYTES` anyway."""
MAX_OPEN_ROWS, PREVIEW_ROWS = 50, 10
"""A table with more than `MAX_OPEN_ROWS` rows is folded, as are tables per query; without the script, a folded table
has `PREVIEW_ROWS` rows."""
MAX_CELL_CHARS = 400
QUERY_COLUMN, RANKER_COLUMN, QUERIES_KEY = "query", "ranker", "queries"
"""Columns of tables per query, and the key of the texts of queries in a provenance."""


@dataclass(frozen=True)
class _PageColumn:
    name: str
    style: str


@dataclass(frozen=True)
class _PageTable:
    """A table of the page: `number` is its index in the data that the script reads; `rows` are those in the HTML.

    `detail` is the table per query from which the rows are computed; both have the columns `shared_columns`.
    """

    number: int
    name: str
    columns: list[_PageColumn]
    rows: list[tuple[str, ...]]
    count: int
    folded: bool
    csv: str = ""
    source: str = ""
    detail: str = ""
    shared_columns: tuple[str, ...] = ()

    @property
    def hidden(self) -> int:
        return self.count - len(self.rows)


@dataclass(frozen=True)
class _Drawing:
    figure: Figure
    svg: Markup
    sample_note: str = ""
    detail: str = ""
    shared_columns: tuple[str, ...] = ()
    no_drawing_reason: str = ""


@dataclass(frozen=True)
class _Section:
    result: Result
    numbers: Mapping[str, int]
    """The numbers of the tables by name."""
    drawings: list[_Drawing]
    tables: list[_PageTable]
    findings: _PageTable
    examples: _PageTable
    failures: _PageTable


@dataclass(frozen=True)
class _Case:
    """One of the worst findings, formatted for the page."""

    worst_finding: Any
    before: Markup
    after: Markup
    rank_change: str


class _Data:
    """The data of the script: every table as texts, the queries, and the details of each cell of the scorecard."""

    def __init__(self, queries: Mapping[str, str], max_rows: int) -> None:
        self.queries = queries
        self.max_rows = max_rows
        self.tables: list[dict[str, Any]] = []
        self.columns: list[list[list[str]]] = []
        self.facet_cells: list[dict[str, Any]] = []

    def add_table(self, name: str, frame: pd.DataFrame, file: str, max_chars: int = MAX_TEXT_CHARS) -> int:
        """Add the first `max_rows` rows of a table, with texts of at most `max_chars` characters.

        Return the number of the table.
        """
        columns = [frame.iloc[: self.max_rows, i] for i in range(frame.shape[1])]
        self.columns.append([format_column(column, max_chars) for column in columns])
        self.tables.append(
            {"name": format_cell(name), "file": file, "numeric": [is_numeric(column) for column in columns]}
        )
        self.tables[-1]["columns"] = [format_cell(column) for column in frame.columns]
        return len(self.tables) - 1

    def pack(self, rows: int) -> str:
        """Return the data as base64 of gzipped JSON, with at most `rows` rows per table and queries per cell."""
        tables = [
            table | {"cells": [column[:rows] for column in columns]}
            for table, columns in zip(self.tables, self.columns, strict=True)
        ]
        cells = [cell | {"values": cell["values"][:rows]} for cell in self.facet_cells]
        named = {*islice(self.queries, rows), *(qid for cell in cells for qid, _ in cell["values"])}
        queries = {qid: text for qid, text in self.queries.items() if qid in named}
        whole = {
            "tables": tables,
            "queries": queries,
            "facet_cells": cells,
            "latex": LATEX_ESCAPES,
            "missing": MISSING_TEXT,
        }
        text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
        return base64.b64encode(gzip.compress(clean(text).encode(), 9, mtime=0)).decode()


def write_page(
    path: Path,
    title: str,
    summary: Mapping[str, str],
    results: Sequence[Result],
    provenance: Mapping[str, object],
    verdict: Verdict | None = None,
) -> None:
    """Write the page to a file."""
    with atomic_write(path) as out:
        out.write(render_page(title, summary, results, provenance, verdict))


@use_python_strings()
def render_page(
    title: str,
    summary: Mapping[str, str],
    results: Sequence[Result],
    provenance: Mapping[str, object],
    verdict: Verdict | None = None,
) -> str:
    """Return the page as HTML; without the plotting libraries, a note replaces the plots.

    Long tables show their first rows and the name of the CSV file with all rows.
    """
    queries = provenance.get(QUERIES_KEY)
    texts = (
        {str(qid): format_cell(text, MAX_TEXT_CHARS) for qid, text in queries.items()}
        if isinstance(queries, Mapping)
        else {}
    )
    total = sum(len(frame) for result in results for frame in result.tables.values())
    limits = ROW_LIMITS if total <= MAX_TOTAL_ROWS else ROW_LIMITS[1:]
    data = _Data(texts, limits[0])
    drawings, no_plots = _draw_figures(results)
    sections = _build_sections(results, drawings, data)
    keys = [_add_cell_details(ranker, cell, sections, data) for ranker, cell in _list_facet_cells(verdict)]
    context: dict[str, Any] = {
        "title": title,
        "summary": summary,
        "sections": sections,
        "verdict": verdict,
        "cell_numbers": {key: number for number, key in enumerate(keys)},
        "cell_sections": [cell["section"] for cell in data.facet_cells],
        "cases": [_build_case(one) for one in verdict.worst_findings] if verdict else [],
        "counts": _count_statuses(verdict),
        "open_gates": _sort_open_gates(verdict),
        "relative_facets": [facet.name for facet in FACETS if facet.relative_to_first_stage],
        "provenance": list(_flatten({key: value for key, value in provenance.items() if key != QUERIES_KEY})),
        "no_plots": no_plots,
        "on_dark": DARK_MODE_COLORS,
        "terms": TERMS,
        "style": Markup(_read_resource("page.css")),
        "script": Markup(_read_resource("page.js")),
        "policy": Markup(build_content_policy()),
    }
    template = _build_environment().from_string(_read_resource("page.html"))
    text = ""
    for rows in limits:
        text = clean(template.render(context, data=data.pack(rows), most=rows))
        if len(text.encode()) <= MAX_PAGE_BYTES:
            break
    return text


def build_content_policy() -> str:
    """Return the content security policy: inline styles, and only the script with this hash."""
    digest = base64.b64encode(hashlib.sha256(_read_resource("page.js").encode()).digest()).decode()
    allowed = f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return f"default-src 'none'; base-uri 'none'; form-action 'none'; {allowed}"


@cache
def _read_resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _build_environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["terms"] = _link_terms
    environment.filters["heading"] = _annotate_heading
    environment.filters["systems"] = render_html
    return environment


def _link_terms(text: str) -> Markup:
    """Return a text with a link to the glossary at the first occurrence of each term."""
    link = Markup('<a class="term" href="#{anchor}" title="{meaning}">{word}</a>')
    return _replace_terms(
        text, lambda word: link.format(anchor=find_term(word).anchor, meaning=find_term(word).meaning, word=word)
    )


def _annotate_heading(text: str) -> Markup:
    """Return a heading with a tooltip on each term; a click on a link would not sort the table."""
    hint = Markup('<abbr title="{meaning}">{word}</abbr>')
    return _replace_terms(text, lambda word: hint.format(meaning=find_term(word).meaning, word=word))


def _replace_terms(text: str, make_markup: Callable[[str], Markup]) -> Markup:
    parts, end = [], 0
    seen = set()
    for match in build_term_pattern().finditer(text):
        word = match.group()
        if find_term(word) not in seen:
            seen.add(find_term(word))
            parts += [escape(text[end : match.start()]), make_markup(word)]
            end = match.end()
    return Markup("").join([*parts, escape(text[end:])])


def _draw_figures(results: Sequence[Result]) -> tuple[list[list[_Drawing]], str]:
    """Return the figures of each result; without the plotting libraries, no figures and the reason."""
    colors = assign_page_colors(results)
    try:
        return [[_draw_figure(result, figure, colors) for figure in result.figures] for result in results], ""
    except MissingExtra as error:
        return [[] for _ in results], f"This page has no plots: {error}"


def _draw_figure(result: Result, figure: Figure, colors: Mapping[str, str]) -> _Drawing:
    table = result.tables[figure.table]
    roles = [name for name in dict.fromkeys((figure.x, figure.y, figure.color)) if name in table]
    detail, by = _find_detail_table(figure.table, table[roles], result)
    # `draw_svg` rebuilds the SVG from an allowlist, so it needs no escaping
    svg = Markup(draw_svg(figure, table, colors, by))
    return _Drawing(figure, svg, _describe_sample(table), detail, by, "" if svg else _explain_no_drawing(figure, table))


def _explain_no_drawing(figure: Figure, table: pd.DataFrame) -> str:
    if len(table) > MAX_DRAWN_ROWS and table[figure.y].notna().any():
        return f"Not drawn: more than {MAX_DRAWN_ROWS:,} points. The table '{figure.table}' has the values."
    return "No plot: the table has no values."


def _describe_sample(table: pd.DataFrame) -> str:
    """Describe the number of queries behind the numbers of a table."""
    if QUERY_COLUMN in table:
        return f"It shows {_format_query_count(table[QUERY_COLUMN].nunique())}."
    counts = table[QUERIES_KEY].dropna() if QUERIES_KEY in table else ()
    if not len(counts):
        return ""
    least, most = int(min(counts)), int(max(counts))
    return (
        f"Each number rests on {_format_query_count(least)}."
        if least == most
        else f"Numbers rest on {least} to {most} queries."
    )


def _format_query_count(count: int) -> str:
    return "one query" if count == 1 else f"{count} queries"


def _find_detail_table(name: str, frame: pd.DataFrame, result: Result) -> tuple[str, tuple[str, ...]]:
    """Return the table per query that shares most columns with a table, and these columns; "" if there is none."""
    found = {
        other: tuple(_find_shared_columns(frame, rows))
        for other, rows in result.tables.items()
        if other != name and {QUERY_COLUMN, RANKER_COLUMN} <= set(rows) and QUERY_COLUMN not in frame
    }
    best = max(found, key=lambda other: len(found[other]), default="")
    return (best, found[best]) if best and found[best] else ("", ())


def _find_shared_columns(frame: pd.DataFrame, rows: pd.DataFrame) -> Iterator[str]:
    """Yield the text columns that two tables share."""
    for column in map(str, frame.columns):
        if (
            column.strip()
            and column in rows
            and not is_numeric(rows[column])
            and set(frame[column]) & set(rows[column])
        ):
            yield column


def _build_sections(results: Sequence[Result], drawings: Sequence[list[_Drawing]], data: _Data) -> list[_Section]:
    names = make_csv_names(results)
    sections = []
    for position, (result, drawn) in enumerate(zip(results, drawings, strict=True)):
        tables = []
        for name, frame in result.tables.items():
            file = names[position, name]
            table = _build_table(
                name, frame, data.add_table(name, frame, file), file, bool(result.brief) and name not in result.brief
            )
            detail, by = _find_detail_table(name, frame, result)
            tables.append(replace(table, source=result.sources.get(name, ""), detail=detail, shared_columns=by))
        findings = _build_frame(result.findings, Finding).drop(columns=["task", "facet", "values"], errors="ignore")
        examples = _build_frame(result.examples, Example)
        failures = _build_frame(result.failures, Failure)
        extra = {"findings": findings, "examples": examples, "failures": failures}
        beside = [
            _build_table(
                name,
                frame,
                data.add_table(name, frame, f"{make_safe_name(result.task)}-{name}.csv", MAX_CELL_CHARS),
                folded=name != "failures",
            )
            for name, frame in extra.items()
        ]
        beside[1] = _mark_example_changes(beside[1], result.examples)
        numbers = {table.name: table.number for table in tables}
        sections.append(_Section(result, numbers, drawn, tables, *beside))
    return sections


def _build_frame(things: Sequence[Any], kind: type[Any]) -> pd.DataFrame:
    """Return findings, examples or failures as a table without empty columns."""
    import pandas as pd

    names = [field.name for field in fields(kind)]
    rows = [[getattr(thing, name) for name in names] for thing in things]
    return pd.DataFrame(rows, columns=names).dropna(axis="columns", how="all")


def _build_table(name: str, frame: pd.DataFrame, number: int, csv: str = "", folded: bool = False) -> _PageTable:
    folded = (
        folded or len(frame) > (PREVIEW_ROWS if QUERY_COLUMN in frame else MAX_OPEN_ROWS) or name.endswith("per query")
    )
    columns = [frame.iloc[: PREVIEW_ROWS if folded else MAX_OPEN_ROWS, i] for i in range(frame.shape[1])]
    texts = [format_column(column, MAX_CELL_CHARS) for column in columns]
    heads = [_PageColumn(format_cell(c.name), _select_style(c, text)) for c, text in zip(columns, texts, strict=True)]
    stars = [i for i, head in enumerate(heads) if not head.name.strip()]
    for right, i in enumerate(reversed(stars)):
        heads[i] = _PageColumn("*", f"star r{min(right, 2)}")
    return _PageTable(number, name, heads, list(zip(*texts, strict=True)), len(frame), folded, csv)


def _mark_example_changes(table: _PageTable, examples: Sequence[Example]) -> _PageTable:
    """Return the table with the differences between texts of examples marked."""
    names = [column.name for column in table.columns]
    rows = []
    for row, example in zip(table.rows, examples, strict=False):
        texts = dict(zip(names, row, strict=True))
        texts["before"], texts["after"] = mark_differences(example.before, example.after)
        rows.append(tuple(texts.values()))
    return replace(table, rows=rows)


def _select_style(column: pd.Series[Any], texts: Sequence[str]) -> str:
    """Return the CSS class of a column: numbers are right-aligned, long texts may break anywhere."""
    long = max(map(len, texts), default=0) > 40
    return "n" if is_numeric(column) else "t" if long else ""


def _list_facet_cells(verdict: Verdict | None) -> Iterator[tuple[str, FacetCell]]:
    for one in verdict.ranker_verdicts if verdict else ():
        for facet in verdict.facets if verdict else ():
            if facet in one.facet_cells:
                yield one.ranker, one.facet_cells[facet]


def _add_cell_details(ranker: str, facet_cell: FacetCell, sections: Sequence[_Section], data: _Data) -> tuple[str, str]:
    """Add the details of a cell, worst query first, and return its key in the scorecard."""
    finding = facet_cell.finding
    position = next(
        (i for i, one in enumerate(sections) if any(_is_same_finding(f, finding) for f in one.result.findings)), 0
    )
    tables = sections[position].result.tables if sections else {}
    sign = 1 if finding.better == "higher" else -1
    shown = format_percent if "%" in facet_cell.value else format_cell
    data.facet_cells.append(
        {
            "title": f"{ranker}: {facet_cell.facet}",
            "status": f"{facet_cell.status}: {facet_cell.text}",
            "about": f"{finding.name}{f', {finding.where}' if finding.where else ''}, over {finding.n} queries; "
            f"{finding.better} is better.",
            "name": finding.name,
            "ranker": ranker,
            "values": [[q, shown(float(v))] for q, v in sorted(finding.values.items(), key=lambda one: sign * one[1])],
            "details": [
                sections[position].numbers[name]
                for name in tables
                if {QUERY_COLUMN, RANKER_COLUMN} <= set(tables[name])
            ],
            "section": position + 1,
        }
    )
    return ranker, facet_cell.facet


def _is_same_finding(one: Finding, other: Finding) -> bool:
    return (one.task, one.ranker, one.name, one.where) == (other.task, other.ranker, other.name, other.where)


def _build_case(worst_finding: Any) -> _Case:
    example: Example | None = worst_finding.example
    if example is None:
        return _Case(worst_finding, Markup(""), Markup(""), "")
    before, after = mark_differences(example.before, example.after)
    return _Case(worst_finding, before, after, _describe_rank_change(example))


def _describe_rank_change(example: Example) -> str:
    """Describe the ranks of a document before and after; "" if they are not known."""
    old, new = example.rank_before, example.rank_after
    if not example.document or (not old and not new):
        return ""
    if not new:
        return f"The document {example.document} was at rank {old} and is no longer in the list."
    if not old:
        return f"The document {example.document} was not in the list and is now at rank {new}."
    verb = "rose" if new < old else "fell" if new > old else "stayed"
    way = f"from rank {old} to rank {new}" if new != old else f"at rank {old}"
    return f"The document {example.document} {verb} {way}."


def _sort_open_gates(verdict: Verdict | None) -> list[GateResult]:
    """Return the gate results that do not pass, failures first."""
    order = (FAIL, WARN, INCONCLUSIVE, NOT_TESTED)
    shown = [one for one in verdict.gate_results if one.status in order] if verdict else []
    return sorted(shown, key=lambda one: order.index(one.status))


def _count_statuses(verdict: Verdict | None) -> dict[str, int]:
    statuses = [result.status for result in verdict.gate_results] if verdict else []
    return {status: statuses.count(status) for status in (FAIL, WARN, INCONCLUSIVE, NOT_TESTED, PASS)}


def _flatten(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Flatten nested mappings: {"a": {"b": 1}} becomes ("a.b", "1")."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flatten(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        yield name, ", ".join(format_cell(item, MAX_TEXT_CHARS) for item in value)
    else:
        yield name, format_cell(value, MAX_TEXT_CHARS)

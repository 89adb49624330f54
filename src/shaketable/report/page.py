"""Results as one HTML page that needs no network and no second file.

The first section is the verdict; each task has a section of its own. The script of the page shows one section at a
time, sorts, filters and exports tables, and shows the queries of a number. Without the script, all sections follow each
other. The content security policy has the hash of the script, so that a browser runs no script that a text in the page
may contain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from shaketable.core.errors import MissingExtra
from shaketable.core.extras import use_python_strings
from shaketable.core.results import MAX_TEXT_CHARS, Example, Failure, Figure, Finding, Result
from shaketable.files.atomic import atomic_write
from shaketable.measures.facets import FACETS
from shaketable.measures.status import FAIL, INCONCLUSIVE, NOT_TESTED, PASS, WARN, Status
from shaketable.report import format_cell, format_percent
from shaketable.report.charts import MAX_DRAWN_ROWS, assign_page_colors, draw_svg
from shaketable.report.default_gate import DEFAULT_GATE_RULES
from shaketable.report.diff import mark_differences
from shaketable.report.document_lists import DocumentList, compare_lists
from shaketable.report.files import make_csv_names, make_safe_name
from shaketable.report.finding_table import FindingTable
from shaketable.report.first_documents import FirstDocuments
from shaketable.report.glossary import TERMS
from shaketable.report.page_data import (
    MAX_CELL_CHARS,
    QUERIES_KEY,
    QUERY_COLUMN,
    RANKER_COLUMN,
    PageData,
    PageTable,
    build_frame,
    build_table,
    find_detail_table,
)
from shaketable.report.templates import render_template

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.report.gates import GateResult
    from shaketable.report.verdict import FacetCell, Verdict

MAX_PAGE_BYTES = 2_000_000
ROW_LIMITS = (1_000_000, 5_000, 1_000, 200, 60, 15)
"""Limits of rows per table; the page uses the first limit that makes it small enough."""
MAX_TOTAL_ROWS = 400_000
"""The rows of all tables up to which the page tries the first limit; more rows would exceed `MAX_PAGE_BYTES` anyway."""
MAX_OPEN_DRAWINGS = 4
"""The number of plots of a section that are not folded."""
MAX_MAIN_ROWS = 15
"""The number of rows up to which the main table of a result without plots or without a facet is not folded."""
QUERIES_FILE = "queries.csv"
STATUSES_WORST_FIRST: tuple[Status, ...] = (FAIL, WARN, INCONCLUSIVE, NOT_TESTED, PASS)


@dataclass(frozen=True)
class _Drawing:
    figure: Figure
    svg: Markup
    sample_note: str = ""
    detail: str = ""
    shared_columns: tuple[str, ...] = ()
    no_drawing_reason: str = ""


@dataclass(frozen=True)
class _Part:
    """A result on the page, inside a section."""

    anchor: str
    result: Result
    numbers: Mapping[str, int]
    """The numbers of the tables by name."""
    drawings: list[_Drawing]
    tables: list[PageTable]
    findings: PageTable
    examples: PageTable
    failures: PageTable

    @property
    def open_drawings(self) -> list[_Drawing]:
        return [one for one in self.drawings if not one.figure.folded][:MAX_OPEN_DRAWINGS]

    @property
    def folded_drawings(self) -> list[_Drawing]:
        return [one for one in self.drawings if one not in self.open_drawings]


@dataclass(frozen=True)
class _Section:
    """A facet with its cells, its tests and the results that it has first; or a result without a facet."""

    anchor: str
    label: str
    parts: tuple[_Part, ...]
    cells: tuple[tuple[str, FacetCell], ...] = ()
    panel: PageTable | None = None
    """The findings of all tests of the facet."""
    elsewhere: tuple[tuple[str, str], ...] = ()
    """The sections that have other results with this facet: anchor and label."""

    @property
    def question(self) -> str:
        return self.parts[0].result.question if self.parts else ""

    @property
    def failure_count(self) -> int:
        return sum(part.failures.count for part in self.parts)

    @property
    def status(self) -> str:
        """The worst status of the rankers; "" without cells."""
        statuses = [cell.status for _, cell in self.cells]
        return min(statuses, key=STATUSES_WORST_FIRST.index, default="").replace(" ", "-")


@dataclass(frozen=True)
class _Case:
    """One of the worst findings, formatted for the page."""

    worst_finding: Any
    before: Markup
    after: Markup
    rank_change: str
    lists: tuple[DocumentList, DocumentList] | None = None


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
    first_documents: FirstDocuments | None = None,
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
    data = PageData(texts, limits[0], first_documents)
    data.baseline = str(provenance.get("baseline", ""))
    drawings, no_plots = _draw_figures(results)
    cells = list(_list_facet_cells(verdict))
    parts = _build_parts(results, drawings, data)
    sections = _build_sections(parts, cells, verdict.facets if verdict else (), data)
    measure, queries_table = _build_queries_table(results, data)
    context: dict[str, Any] = {
        "title": title,
        "imprint": compose_imprint(summary, provenance),
        "summary": summary,
        "sections": sections,
        "menu": {
            "facets": [one for one in sections if one.cells],
            "further tasks" if verdict and verdict.facets else "results": [one for one in sections if not one.cells],
        },
        "verdict": verdict,
        "links": dict(_add_cell_details(ranker, cell, parts, data) for ranker, cell in cells),
        "cases": [_build_case(one, data.first_documents.excerpts) for one in verdict.worst_findings] if verdict else [],
        "counts": _count_statuses(verdict),
        "own_gates": _select_open_gates(verdict),
        "other_gates": _select_gates(verdict),
        "relative_facets": [facet.name for facet in FACETS if facet.relative_to_first_stage],
        "queries": queries_table,
        "measure": measure,
        "provenance": list(_flatten({key: value for key, value in provenance.items() if key != QUERIES_KEY})),
        "no_plots": no_plots,
        "terms": TERMS,
    }
    text = ""
    for rows in limits:
        text = render_template("page.html", context | {"data": data.pack(rows)})
        if len(text.encode()) <= MAX_PAGE_BYTES:
            break
    return text


def compose_imprint(summary: Mapping[str, str], provenance: Mapping[str, Any]) -> str:
    """Return the collection, the number of queries, the date and the version in one line."""
    versions = provenance.get("versions")
    version = versions.get("shaketable", "") if isinstance(versions, Mapping) else ""
    parts = [summary.get("collection", ""), f"{summary['queries']} queries" if "queries" in summary else ""]
    return " · ".join(filter(None, [*parts, summary.get("date", ""), f"Shaketable {version}" if version else ""]))


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
    detail, by = find_detail_table(figure.table, table[roles], result)
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


def _build_parts(results: Sequence[Result], drawings: Sequence[list[_Drawing]], data: PageData) -> list[_Part]:
    names = make_csv_names(results)
    parts = []
    for position, (result, drawn) in enumerate(zip(results, drawings, strict=True)):
        tables = []
        for name, frame in result.tables.items():
            file = names[position, name]
            number = data.add_table(name, frame, file.replace("/", "-"))
            table = build_table(name, frame, number, f"tables/{file}", folded=True)
            detail, by = find_detail_table(name, frame, result)
            tables.append(replace(table, source=result.sources.get(name, ""), detail=detail, shared_columns=by))
        has_facet = any(one.facet for one in result.findings)
        if not result.system_table and not (drawn and has_facet):  # nothing else says what was found
            shown = result.brief or tuple(result.tables)[:1]
            tables = [_unfold(one, result.tables[one.name]) if one.name in shown else one for one in tables]
        numbers = {table.name: table.number for table in tables}
        parts.append(_Part(f"s{position + 1}", result, numbers, drawn, tables, *_build_beside(result, data)))
    return parts


def _build_sections(
    parts: Sequence[_Part], cells: Sequence[tuple[str, FacetCell]], facets: Sequence[str], data: PageData
) -> list[_Section]:
    """Return a section for each facet, in the order of the scorecard, then one for each result without a facet.

    A result with several facets is in the section of the first one; the others link to it.
    """
    sections: list[_Section] = []
    homes: dict[str, tuple[str, str]] = {}
    for facet in facets:
        anchor = f"facet-{make_safe_name(facet)}-{len(sections) + 1}"
        alike = [part for part in parts if any(one.facet == facet for one in part.result.findings)]
        own = [part for part in alike if part.anchor not in homes]
        elsewhere = dict.fromkeys(homes[part.anchor] for part in alike if part.anchor in homes)
        homes |= {part.anchor: (anchor, facet) for part in own}
        panel = _build_panel(facet, [part.result for part in alike], data)
        mine = tuple((ranker, cell) for ranker, cell in cells if cell.facet == facet)
        sections.append(_Section(anchor, facet, tuple(own), mine, panel, tuple(elsewhere)))
    rest = [part for part in parts if part.anchor not in homes]
    return sections + [_Section(f"task-{part.anchor}", format_cell(part.result.task), (part,)) for part in rest]


def _build_panel(facet: str, results: Sequence[Result], data: PageData) -> PageTable:
    """Return the findings of all tests of a facet as a table."""
    findings = FindingTable(one for result in results for one in result.findings if one.facet == facet)
    frame = findings.to_frame().drop(columns=["facet", "task"])
    frame = frame[[name for name in frame.columns if not frame[name].isin(["", None]).all()]]
    number = data.add_table(facet, frame, f"{make_safe_name(facet)}.csv")
    return build_table(facet, frame, number, folded=True)


def _unfold(table: PageTable, frame: pd.DataFrame) -> PageTable:
    """Return the table open, unless it is long or per query."""
    shown = build_table(table.name, frame, table.number, table.csv, folded=len(frame) > MAX_MAIN_ROWS)
    return replace(shown, source=table.source, detail=table.detail, shared_columns=table.shared_columns)


def _build_beside(result: Result, data: PageData) -> tuple[PageTable, PageTable, PageTable]:
    """Return the findings, examples and failures of a result as tables."""
    frames = {
        "findings": build_frame(result.findings, Finding, ("task", "facet", "values")),
        "examples": build_frame(result.examples, Example, ("list_before", "list_after")),
        "failures": build_frame(result.failures, Failure),
    }
    findings, examples, failures = (
        build_table(
            name,
            frame,
            data.add_table(name, frame, f"{make_safe_name(result.task)}-{name}.csv", MAX_CELL_CHARS),
            folded=name != "failures",
        )
        for name, frame in frames.items()
    )
    return findings, _mark_example_changes(examples, result.examples), failures


def _mark_example_changes(table: PageTable, examples: Sequence[Example]) -> PageTable:
    """Return the table with the differences between texts of examples marked."""
    names = [column.name for column in table.columns]
    rows = []
    for row, example in zip(table.rows, examples, strict=False):
        texts = dict(zip(names, row, strict=True))
        texts["before"], texts["after"] = mark_differences(example.before, example.after)
        rows.append(tuple(texts.values()))
    return replace(table, rows=rows)


def _build_queries_table(results: Sequence[Result], data: PageData) -> tuple[str, PageTable]:
    """Return the table of all queries, and the measure whose values it has for each ranker; "" if there is none."""
    import pandas as pd

    findings = [one for result in results for one in result.findings if one.facet == "effectiveness" and one.values]
    measure = next((one.name for one in findings if not one.name.endswith("%")), "")
    values = {one.ranker: one.values for one in findings if one.name == measure and not one.where}
    rows = [
        {QUERY_COLUMN: qid, "as asked": text, **{name: of.get(qid) for name, of in values.items()}}
        for qid, text in data.queries.items()
        if any(qid in of for of in values.values()) or any(qid in of for of in data.first_documents.docnos.values())
    ]
    frame = pd.DataFrame(rows, columns=[QUERY_COLUMN, "as asked", *values])
    return measure, build_table("queries", frame, data.add_table("queries", frame, QUERIES_FILE))


def _list_facet_cells(verdict: Verdict | None) -> Iterator[tuple[str, FacetCell]]:
    for one in verdict.ranker_verdicts if verdict else ():
        for facet in verdict.facets if verdict else ():
            if facet in one.facet_cells:
                yield one.ranker, one.facet_cells[facet]


def _add_cell_details(
    ranker: str, facet_cell: FacetCell, parts: Sequence[_Part], data: PageData
) -> tuple[tuple[str, str], tuple[int, str]]:
    """Add the details of a cell, worst query first; return its key in the scorecard, its number and its result."""
    finding = facet_cell.finding
    part = next((one for one in parts if _has_finding(one.result, finding)), parts[0] if parts else None)
    tables = part.result.tables if part else {}
    examples = part.result.examples if part else ()
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
                part.numbers[name] for name in tables if part and {QUERY_COLUMN, RANKER_COLUMN} <= set(tables[name])
            ],
            "lists": {
                one.query: (one.change, one.list_before, one.list_after)
                for one in reversed(examples)  # the first example of a query is the largest change
                if one.ranker == ranker and one.list_after
            },
        }
    )
    return (ranker, facet_cell.facet), (len(data.facet_cells) - 1, part.anchor if part else "overview")


def _has_finding(result: Result, finding: Finding) -> bool:
    key = (finding.task, finding.ranker, finding.name, finding.where)
    return any((one.task, one.ranker, one.name, one.where) == key for one in result.findings)


def _build_case(worst_finding: Any, excerpts: Mapping[str, str]) -> _Case:
    example: Example | None = worst_finding.example
    if example is None:
        return _Case(worst_finding, Markup(""), Markup(""), "")
    before, after = mark_differences(example.before, example.after)
    lists = compare_lists(example.list_before, example.list_after, ("before", "after"), excerpts)
    return _Case(worst_finding, before, after, _describe_rank_change(example), lists if example.list_after else None)


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


def _select_gates(verdict: Verdict | None) -> list[GateResult]:
    """Return the gate results, failures first."""
    every = list(verdict.gate_results) if verdict else []
    return sorted(every, key=lambda one: STATUSES_WORST_FIRST.index(one.status))


def _select_open_gates(verdict: Verdict | None) -> list[GateResult]:
    """Return the results of the user's own gates that do not pass; the scorecard shows those of the default gate."""
    return [one for one in _select_gates(verdict) if one.status != PASS and one.rule not in DEFAULT_GATE_RULES]


def _count_statuses(verdict: Verdict | None) -> dict[str, int]:
    statuses = [result.status for result in verdict.gate_results] if verdict else []
    return {status: statuses.count(status) for status in STATUSES_WORST_FIRST}


def _flatten(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Flatten nested mappings: {"a": {"b": 1}} becomes ("a.b", "1")."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flatten(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        yield name, ", ".join(format_cell(item, MAX_TEXT_CHARS) for item in value)
    else:
        yield name, format_cell(value, MAX_TEXT_CHARS)

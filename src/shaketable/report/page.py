"""Results to one HTML page that needs nothing else: no network, no second file, one small script of ours.

All of it can be read without the script, which sorts, filters, opens what is behind a number and hands out tables. Its
hash stands in the page's policy, so that a browser runs no other, whatever the texts in the page say.
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

from shaketable.errors import MissingExtra
from shaketable.extras import python_strings
from shaketable.files import written_whole
from shaketable.report import NOTHING, cell, cells, clean, is_numeric, percent
from shaketable.report.charts import draw, page_colors
from shaketable.report.colours import ON_DARK
from shaketable.report.diff import marked
from shaketable.report.files import csv_names, safe_name
from shaketable.report.glossary import TERMS, pattern, term
from shaketable.report.tables import LATEX
from shaketable.types import Example, Failure, Figure, Finding, Result

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.report.answer import Answer, Mark

MOST_BYTES = 2_000_000
ROWS = (1_000_000, 5_000, 1_000, 200, 60, 15)
"""How many rows of a table are in the page: the first of these with which it is small enough."""
OPEN, GLIMPSE = 50, 10
"""A table with more rows than the first is folded, as tables per query always are. Of a folded one as many rows as the
second says can be read without the script."""
MOST_TEXT = 400
QUERY, RANKER, TEXTS = "query", "ranker", "queries"
"""Columns of tables per query; and where a provenance has the texts of the queries."""


@dataclass(frozen=True)
class _Column:
    name: str
    style: str


@dataclass(frozen=True)
class _Table:
    """A table of the page: `number` is its place in the data that the script reads; `rows` are those in the HTML.

    `detail` is the table per query that the rows of this one rest on, found by the columns `by`, where the headings of
    columns may name rankers.
    """

    number: int
    name: str
    columns: list[_Column]
    rows: list[tuple[str, ...]]
    count: int
    folded: bool
    csv: str = ""
    source: str = ""
    detail: str = ""
    by: tuple[str, ...] = ()

    @property
    def hidden(self) -> int:
        return self.count - len(self.rows)


@dataclass(frozen=True)
class _Drawing:
    figure: Figure
    svg: Markup
    rests_on: str = ""
    detail: str = ""
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Section:
    result: Result
    numbers: Mapping[str, int]
    """The numbers of its tables by their names."""
    drawings: list[_Drawing]
    tables: list[_Table]
    findings: _Table
    examples: _Table
    failures: _Table


@dataclass(frozen=True)
class _Case:
    """One of the worst findings as the page shows it."""

    blow: Any
    before: Markup
    after: Markup
    moved: str


class _Data:
    """What the script reads: every table as texts, the queries, and what is behind each mark of the scorecard."""

    def __init__(self, queries: Mapping[str, str]) -> None:
        self.queries = queries
        self.tables: list[dict[str, Any]] = []
        self.columns: list[list[list[str]]] = []
        self.marks: list[dict[str, Any]] = []

    def add(self, name: str, frame: pd.DataFrame, file: str, most: int = 0) -> int:
        """Take a table in, its texts cut to `most` characters if that is given; its number."""
        columns = [frame.iloc[:, i] for i in range(frame.shape[1])]
        self.columns.append([cells(column, most) for column in columns])
        self.tables.append({"name": cell(name), "file": file, "numeric": [is_numeric(column) for column in columns]})
        self.tables[-1]["columns"] = [cell(column) for column in frame.columns]
        return len(self.tables) - 1

    def packed(self, rows: int) -> str:
        """All of it as text: JSON, gzip, base64, with so many rows of each table, and queries of each mark, at most."""
        tables = [
            table | {"cells": [column[:rows] for column in columns]}
            for table, columns in zip(self.tables, self.columns, strict=True)
        ]
        marks = [mark | {"values": mark["values"][:rows]} for mark in self.marks]
        named = {*islice(self.queries, rows), *(qid for mark in marks for qid, _ in mark["values"])}
        queries = {qid: text for qid, text in self.queries.items() if qid in named}
        whole = {"tables": tables, "queries": queries, "marks": marks, "latex": LATEX, "nothing": NOTHING}
        text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
        return base64.b64encode(gzip.compress(clean(text).encode(), 9, mtime=0)).decode()


def write_page(
    path: Path,
    title: str,
    summary: Mapping[str, str],
    results: Sequence[Result],
    provenance: Mapping[str, object],
    answer: Answer | None = None,
) -> None:
    """Write the page to a file."""
    with written_whole(path) as out:
        out.write(page(title, summary, results, provenance, answer))


@python_strings()
def page(
    title: str,
    summary: Mapping[str, str],
    results: Sequence[Result],
    provenance: Mapping[str, object],
    answer: Answer | None = None,
) -> str:
    """The page; without the libraries that draw, it has everything but the plots and says so.

    Of tables that are too long for it, it has the first rows and names the file that has all.
    """
    queries = provenance.get(TEXTS)
    data = _Data({str(qid): cell(text) for qid, text in queries.items()} if isinstance(queries, Mapping) else {})
    drawings, no_plots = _drawings(results)
    sections = _sections(results, drawings, data)
    asked = [_asked(standing.ranker, mark, sections, data) for standing, mark in _marks(answer)]
    said: dict[str, Any] = {
        "title": title,
        "summary": summary,
        "sections": sections,
        "answer": answer,
        "asked": {key: place for place, key in enumerate(asked)},
        "behind_marks": [mark["section"] for mark in data.marks],
        "cases": [_case(blow) for blow in answer.worst] if answer else [],
        "counts": _counts(answer),
        "provenance": list(_flat({key: value for key, value in provenance.items() if key != TEXTS})),
        "no_plots": no_plots,
        "on_dark": ON_DARK,
        "terms": TERMS,
        "style": Markup(_resource("page.css")),
        "script": Markup(_resource("page.js")),
        "policy": Markup(policy()),
    }
    template = _environment().from_string(_resource("page.html"))
    text = ""
    for rows in ROWS:
        text = clean(template.render(said, data=data.packed(rows), most=rows))
        if len(text.encode()) <= MOST_BYTES:
            break
    return text


def policy() -> str:
    """What a browser may do with the page: style it, and run the one script that has this hash."""
    digest = base64.b64encode(hashlib.sha256(_resource("page.js").encode()).digest()).decode()
    allowed = f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return f"default-src 'none'; base-uri 'none'; form-action 'none'; {allowed}"


@cache
def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["terms"] = _linked
    environment.filters["heading"] = _heading
    return environment


def _linked(text: str) -> Markup:
    """A text with a link to the glossary at the first place of each term."""
    link = Markup('<a class="term" href="#{anchor}" title="{meaning}">{word}</a>')
    return _with_terms(text, lambda word: link.format(anchor=term(word).anchor, meaning=term(word).meaning, word=word))


def _heading(text: str) -> Markup:
    """The heading of a column, whose terms tell what they mean; links would be in the way of sorting."""
    hint = Markup('<abbr title="{meaning}">{word}</abbr>')
    return _with_terms(text, lambda word: hint.format(meaning=term(word).meaning, word=word))


def _with_terms(text: str, made: Callable[[str], Markup]) -> Markup:
    parts, end = [], 0
    seen = set()
    for match in pattern().finditer(text):
        word = match.group()
        if term(word) not in seen:
            seen.add(term(word))
            parts += [escape(text[end : match.start()]), made(word)]
            end = match.end()
    return Markup("").join([*parts, escape(text[end:])])


def _drawings(results: Sequence[Result]) -> tuple[list[list[_Drawing]], str]:
    """The drawings of each result; none at all, and the reason, where the libraries that draw are missing."""
    colors = page_colors(results)
    try:
        return [[_drawing(result, figure, colors) for figure in result.figures] for result in results], ""
    except MissingExtra as error:
        return [[] for _ in results], f"This page has no plots: {error}"


def _drawing(result: Result, figure: Figure, colors: Mapping[str, str]) -> _Drawing:
    table = result.tables[figure.table]
    roles = [name for name in dict.fromkeys((figure.x, figure.y, figure.color)) if name in table]
    detail, by = _detail(figure.table, table[roles], result)
    # `draw` has rebuilt the SVG from a list of harmless parts: it is the one thing not escaped here
    svg = Markup(draw(figure, table, colors, by))
    return _Drawing(figure, svg, _rests_on(table), detail, by)


def _rests_on(table: pd.DataFrame) -> str:
    """How many queries the numbers of a table rest on, in a sentence."""
    if QUERY in table:
        return f"It shows {_queries(table[QUERY].nunique())}."
    counts = table[TEXTS].dropna() if TEXTS in table else ()
    if not len(counts):
        return ""
    least, most = int(min(counts)), int(max(counts))
    return (
        f"Each number rests on {_queries(least)}." if least == most else f"Numbers rest on {least} to {most} queries."
    )


def _queries(count: int) -> str:
    return "one query" if count == 1 else f"{count} queries"


def _detail(name: str, frame: pd.DataFrame, result: Result) -> tuple[str, tuple[str, ...]]:
    """The table per query that a table rests on, and the columns that both have; "" if there is none.

    Of several it is the one that shares most columns with it.
    """
    found = {
        other: tuple(_shared(frame, rows))
        for other, rows in result.tables.items()
        if other != name and {QUERY, RANKER} <= set(rows) and QUERY not in frame
    }
    best = max(found, key=lambda other: len(found[other]), default="")
    return (best, found[best]) if best and found[best] else ("", ())


def _shared(frame: pd.DataFrame, rows: pd.DataFrame) -> Iterator[str]:
    """The columns of texts that two tables share."""
    for column in map(str, frame.columns):
        if (
            column.strip()
            and column in rows
            and not is_numeric(rows[column])
            and set(frame[column]) & set(rows[column])
        ):
            yield column


def _sections(results: Sequence[Result], drawings: Sequence[list[_Drawing]], data: _Data) -> list[_Section]:
    names = csv_names(results)
    sections = []
    for position, (result, drawn) in enumerate(zip(results, drawings, strict=True)):
        tables = []
        for name, frame in result.tables.items():
            file = names[position, name]
            table = _table(
                name, frame, data.add(name, frame, file), file, bool(result.brief) and name not in result.brief
            )
            detail, by = _detail(name, frame, result)
            tables.append(replace(table, source=result.sources.get(name, ""), detail=detail, by=by))
        findings = _frame(result.findings, Finding).drop(columns=["task", "facet", "values"], errors="ignore")
        examples = _frame(result.examples, Example)
        failures = _frame(result.failures, Failure)
        extra = {"findings": findings, "examples": examples, "failures": failures}
        beside = [
            _table(
                name,
                frame,
                data.add(name, frame, f"{safe_name(result.task)}-{name}.csv", MOST_TEXT),
                folded=name != "failures",
            )
            for name, frame in extra.items()
        ]
        beside[1] = _compared(beside[1], result.examples)
        numbers = {table.name: table.number for table in tables}
        sections.append(_Section(result, numbers, drawn, tables, *beside))
    return sections


def _frame(things: Sequence[Any], kind: type[Any]) -> pd.DataFrame:
    """Findings, examples or failures as a table; columns that hold nothing are left out."""
    import pandas as pd

    names = [field.name for field in fields(kind)]
    rows = [[getattr(thing, name) for name in names] for thing in things]
    return pd.DataFrame(rows, columns=names).dropna(axis="columns", how="all")


def _table(name: str, frame: pd.DataFrame, number: int, csv: str = "", folded: bool = False) -> _Table:
    folded = folded or len(frame) > (GLIMPSE if QUERY in frame else OPEN) or name.endswith("per query")
    columns = [frame.iloc[: GLIMPSE if folded else OPEN, i] for i in range(frame.shape[1])]
    texts = [cells(column, MOST_TEXT) for column in columns]
    heads = [_Column(cell(c.name), _style(c, text)) for c, text in zip(columns, texts, strict=True)]
    stars = [place for place, head in enumerate(heads) if not head.name.strip()]
    for right, place in enumerate(reversed(stars)):
        heads[place] = _Column("*", f"star r{min(right, 2)}")
    return _Table(number, name, heads, list(zip(*texts, strict=True)), len(frame), folded, csv)


def _compared(table: _Table, examples: Sequence[Example]) -> _Table:
    """The examples with their texts marked where they differ."""
    names = [column.name for column in table.columns]
    rows = []
    for row, example in zip(table.rows, examples, strict=False):
        texts = dict(zip(names, row, strict=True))
        texts["before"], texts["after"] = marked(example.before, example.after)
        rows.append(tuple(texts.values()))
    return replace(table, rows=rows)


def _style(column: pd.Series[Any], texts: Sequence[str]) -> str:
    """Numbers are set flush right, long texts may break anywhere."""
    long = max(map(len, texts), default=0) > 40
    return "n" if is_numeric(column) else "t" if long else ""


def _marks(answer: Answer | None) -> Iterator[tuple[Any, Mark]]:
    for standing in answer.standings if answer else ():
        for facet in answer.facets if answer else ():
            if facet in standing.marks:
                yield standing, standing.marks[facet]


def _asked(ranker: str, mark: Mark, sections: Sequence[_Section], data: _Data) -> tuple[str, str]:
    """Take in what is behind a mark, worst query first; what the scorecard calls it by."""
    finding = mark.finding
    place = next((i for i, one in enumerate(sections) if any(_same(f, finding) for f in one.result.findings)), 0)
    tables = sections[place].result.tables if sections else {}
    sign = 1 if finding.better == "higher" else -1
    shown = percent if "%" in mark.value else cell
    data.marks.append(
        {
            "title": f"{ranker}: {mark.facet}",
            "said": f"{mark.word}: {mark.value}" + (f" ({mark.remark})" if mark.remark else ""),
            "about": f"{finding.name}{f', {finding.where}' if finding.where else ''}, over {finding.n} queries; "
            f"{finding.better} is better.",
            "name": finding.name,
            "ranker": ranker,
            "values": [[q, shown(float(v))] for q, v in sorted(finding.values.items(), key=lambda one: sign * one[1])],
            "details": [sections[place].numbers[name] for name in tables if {QUERY, RANKER} <= set(tables[name])],
            "section": place + 1,
        }
    )
    return ranker, mark.facet


def _same(one: Finding, other: Finding) -> bool:
    return (one.task, one.ranker, one.name, one.where) == (other.task, other.ranker, other.name, other.where)


def _case(blow: Any) -> _Case:
    example: Example | None = blow.example
    if example is None:
        return _Case(blow, Markup(""), Markup(""), "")
    before, after = marked(example.before, example.after)
    return _Case(blow, before, after, _moved(example))


def _moved(example: Example) -> str:
    """Which document moved from where to where, in a sentence; "" if that is not known."""
    old, new = example.place_before, example.place_after
    if not example.document or (not old and not new):
        return ""
    if not new:
        return f"The document {example.document} stood at place {old} and is no longer in the list."
    if not old:
        return f"The document {example.document} was not in the list and stands at place {new}."
    verb = "rose" if new < old else "fell" if new > old else "stayed"
    way = f"from place {old} to place {new}" if new != old else f"at place {old}"
    return f"The document {example.document} {verb} {way}."


def _counts(answer: Answer | None) -> dict[str, int]:
    statuses = [ruling.status for ruling in answer.rulings] if answer else []
    return {status: statuses.count(status) for status in ("failed", "warned", "held")}


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Nested mappings as lines: {"a": {"b": 1}} is ("a.b", "1")."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        yield name, ", ".join(cell(item) for item in value)
    else:
        yield name, cell(value)

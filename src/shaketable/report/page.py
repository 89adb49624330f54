"""Results to one HTML page that needs nothing else: no script, no network, no second file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from shaketable.errors import MissingExtra
from shaketable.files import written_whole
from shaketable.report import cell, clean, is_numeric
from shaketable.report.charts import ON_DARK, draw, page_colors
from shaketable.report.diff import marked
from shaketable.report.files import csv_names
from shaketable.types import Example, Figure, Finding, Result

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.report.answer import Answer

MOST_BYTES = 2_000_000
ROWS = (200, 60, 15)
"""How many rows of a table are shown: the first of these with which the page is small enough."""
OPEN = 50
"""A table that has more rows is folded, as tables per query always are."""
MOST_TEXT = 400


@dataclass(frozen=True)
class _Column:
    name: str
    style: Markup


@dataclass(frozen=True)
class _Table:
    name: str
    columns: list[_Column]
    rows: list[tuple[str, ...]]
    count: int
    csv: str = ""

    @property
    def folded(self) -> bool:
        return self.name.endswith("per query") or self.count > OPEN

    @property
    def hidden(self) -> int:
        return self.count - len(self.rows)


@dataclass(frozen=True)
class _Drawing:
    figure: Figure
    svg: Markup


@dataclass(frozen=True)
class _Section:
    result: Result
    drawings: list[_Drawing]
    tables: list[_Table]
    findings: _Table
    examples: _Table
    failures: _Table


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


def page(
    title: str,
    summary: Mapping[str, str],
    results: Sequence[Result],
    provenance: Mapping[str, object],
    answer: Answer | None = None,
) -> str:
    """The page; without the libraries that draw, it has everything but the plots and says so."""
    drawings, no_plots = _drawings(results)
    template = _environment().from_string(resources.files(__package__).joinpath("page.html").read_text("utf-8"))
    text = ""
    for rows in ROWS:
        text = clean(
            template.render(
                title=title,
                summary=summary,
                sections=_sections(results, drawings, rows),
                provenance=list(_flat(provenance)),
                no_plots=no_plots,
                on_dark=ON_DARK,
            )
        )
        if len(text.encode()) <= MOST_BYTES:
            break
    return text


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _drawings(results: Sequence[Result]) -> tuple[list[list[_Drawing]], str]:
    """The drawings of each result; none at all, and the reason, where the libraries that draw are missing."""
    colors = page_colors(results)
    try:
        return [
            # `draw` has rebuilt the SVG from a list of harmless parts: it is the one thing not escaped here
            [_Drawing(figure, Markup(draw(figure, result.tables[figure.table], colors))) for figure in result.figures]
            for result in results
        ], ""
    except MissingExtra as error:
        return [[] for _ in results], f"This page has no plots: {error}"


def _sections(results: Sequence[Result], drawings: Sequence[list[_Drawing]], rows: int) -> list[_Section]:
    import pandas as pd

    names = csv_names(results)
    sections = []
    for position, (result, drawn) in enumerate(zip(results, drawings, strict=True)):
        tables = [_table(name, frame, rows, names[position, name]) for name, frame in result.tables.items()]
        findings = pd.DataFrame(map(asdict, result.findings), columns=[f.name for f in fields(Finding)])
        findings = findings.drop(columns=["task", "facet", "values"]).dropna(axis="columns", how="all")
        examples = pd.DataFrame(map(asdict, result.examples), columns=[f.name for f in fields(Example)])
        examples = examples.dropna(axis="columns", how="all")
        failures = pd.DataFrame(map(asdict, result.failures), columns=["ranker", "query", "reason"])
        extra = {"findings": findings, "examples": examples, "failures": failures}
        beside = [_table(name, frame, rows) for name, frame in extra.items()]
        beside[1] = _compared(beside[1], result.examples)
        sections.append(_Section(result, drawn, tables, *beside))
    return sections


def _table(name: str, frame: pd.DataFrame, rows: int, csv: str = "") -> _Table:
    shown = [frame.iloc[:rows, i] for i in range(frame.shape[1])]
    texts = [[cell(value, MOST_TEXT) for value in column] for column in shown]
    columns = [_Column(cell(c.name), _style(c, text)) for c, text in zip(shown, texts, strict=True)]
    return _Table(name, columns, list(zip(*texts, strict=True)), len(frame), csv)


def _compared(table: _Table, examples: Sequence[Example]) -> _Table:
    """The examples with their texts marked where they differ."""
    names = [column.name for column in table.columns]
    rows = []
    for row, example in zip(table.rows, examples, strict=False):
        texts = dict(zip(names, row, strict=True))
        texts["before"], texts["after"] = marked(example.before, example.after)
        rows.append(tuple(texts.values()))
    return replace(table, rows=rows)


def _style(column: pd.Series[Any], texts: Sequence[str]) -> Markup:
    """Numbers are set flush right, long texts may break anywhere."""
    long = max(map(len, texts), default=0) > 40
    return Markup(' class="n"') if is_numeric(column) else Markup(' class="t"') if long else Markup("")


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Nested mappings as lines: {"a": {"b": 1}} is ("a.b", "1")."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        yield name, ", ".join(cell(item) for item in value)
    else:
        yield name, cell(value)

"""The tables of a page, and the data that its script reads."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import TYPE_CHECKING, Any

from shaketable.core.results import MAX_TEXT_CHARS, Result
from shaketable.report import MISSING_TEXT, clean, format_cell, format_frame, is_numeric
from shaketable.report.first_documents import FirstDocuments
from shaketable.report.tables import LATEX_ESCAPES

if TYPE_CHECKING:
    import pandas as pd

MAX_OPEN_ROWS, PREVIEW_ROWS = 50, 10
"""A table with more than `MAX_OPEN_ROWS` rows is folded, as are tables per query; without the script, a folded table
has `PREVIEW_ROWS` rows."""
MAX_CELL_CHARS = 400
QUERY_COLUMN, RANKER_COLUMN, QUERIES_KEY = "query", "ranker", "queries"
"""Columns of tables per query, and the key of the texts of queries in a provenance."""


@dataclass(frozen=True)
class PageColumn:
    """A column of a table: its heading and its CSS class."""

    name: str
    style: str


@dataclass(frozen=True)
class PageTable:
    """A table of the page: `number` is its index in the data that the script reads; `rows` are those in the HTML.

    `detail` is the table per query from which the rows are computed; both have the columns `shared_columns`.
    """

    number: int
    name: str
    columns: list[PageColumn]
    rows: list[tuple[str, ...]]
    count: int
    folded: bool
    csv: str = ""
    source: str = ""
    detail: str = ""
    shared_columns: tuple[str, ...] = ()

    @property
    def hidden(self) -> int:
        """The number of rows that the HTML leaves out."""
        return self.count - len(self.rows)


class PageData:
    """The data of the script: tables as texts, the queries, the details of each cell, and the lists of documents."""

    def __init__(self, queries: Mapping[str, str], max_rows: int, first_documents: FirstDocuments | None = None):
        self.queries = queries
        self.max_rows = max_rows
        self.first_documents = first_documents or FirstDocuments()
        self.baseline = ""
        self.tables: list[dict[str, Any]] = []
        self.columns: list[list[list[str]]] = []
        self.facet_cells: list[dict[str, Any]] = []

    def add_table(self, name: str, frame: pd.DataFrame, file: str, max_chars: int = MAX_TEXT_CHARS) -> int:
        """Add the first `max_rows` rows of a table, with texts of at most `max_chars` characters.

        Return the number of the table.
        """
        columns = format_frame(frame.iloc[: self.max_rows], max_chars)
        self.columns.append([texts for _, _, texts in columns])
        about = {"numeric": [numeric for _, numeric, _ in columns], "columns": [name for name, _, _ in columns]}
        self.tables.append({"name": format_cell(name), "file": file, **about})
        return len(self.tables) - 1

    def pack(self, rows: int) -> str:
        """Return the data as base64 of gzipped JSON, with at most `rows` rows per table and queries per cell."""
        tables = [
            table | {"cells": [column[:rows] for column in columns]}
            for table, columns in zip(self.tables, self.columns, strict=True)
        ]
        numbers = _DocumentNumbers()
        cells = [
            cell
            | {
                "values": cell["values"][:rows],
                "lists": {qid: [change, *map(numbers.assign, both)] for qid, (change, *both) in cell["lists"].items()},
            }
            for cell in self.facet_cells
        ]
        named = {*islice(self.queries, rows), *(qid for cell in cells for qid, _ in cell["values"])}
        queries = {qid: text for qid, text in self.queries.items() if qid in named}
        lists = {
            name: {qid: numbers.assign(found) for qid, found in by_query.items() if qid in queries}
            for name, by_query in self.first_documents.docnos.items()
        }
        excerpts = self.first_documents.excerpts
        return pack_data(
            {
                "tables": tables,
                "queries": queries,
                "facet_cells": cells,
                "latex": LATEX_ESCAPES,
                "missing": MISSING_TEXT,
                "baseline": self.baseline,
                "lists": lists,
                "documents": [[docno, format_cell(excerpts.get(docno, ""))] for docno in numbers.known],
            }
        )


class _DocumentNumbers:
    """Numbers of documents in the data, because most documents are in several lists."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def assign(self, docnos: Sequence[str]) -> list[int]:
        return [self.known.setdefault(docno, len(self.known)) for docno in docnos]


def pack_data(whole: Mapping[str, Any]) -> str:
    """Return data for the script: base64 of gzipped JSON, which cannot contain markup."""
    text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(clean(text).encode(), 9, mtime=0)).decode()


def build_table(name: str, frame: pd.DataFrame, number: int, csv: str = "", folded: bool = False) -> PageTable:
    """Return a table with the rows that the HTML shows: all of an open table, the first of a folded one."""
    folded = (
        folded or len(frame) > (PREVIEW_ROWS if QUERY_COLUMN in frame else MAX_OPEN_ROWS) or name.endswith("per query")
    )
    columns = format_frame(frame.iloc[: PREVIEW_ROWS if folded else MAX_OPEN_ROWS], MAX_CELL_CHARS)
    texts = [cells for _, _, cells in columns]
    heads = [PageColumn(heading, _select_style(numeric, cells)) for heading, numeric, cells in columns]
    stars = [i for i, head in enumerate(heads) if not head.name.strip()]
    for right, i in enumerate(reversed(stars)):
        heads[i] = PageColumn("*", f"star r{min(right, 2)}")
    return PageTable(number, name, heads, list(zip(*texts, strict=True)), len(frame), folded, csv)


def build_frame(things: Sequence[Any], kind: type[Any], leave_out: Sequence[str] = ()) -> pd.DataFrame:
    """Return findings, examples or failures as a table without empty columns."""
    import pandas as pd

    names = [field.name for field in fields(kind) if field.name not in leave_out]
    rows = [[getattr(thing, name) for name in names] for thing in things]
    return pd.DataFrame(rows, columns=names).dropna(axis="columns", how="all")


def find_detail_table(name: str, frame: pd.DataFrame, result: Result) -> tuple[str, tuple[str, ...]]:
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


def _select_style(numeric: bool, texts: Sequence[str]) -> str:
    """Return the CSS class of a column: numbers are right-aligned, long texts may break anywhere."""
    long = max(map(len, texts), default=0) > 40
    return "n" if numeric else "t" if long else ""

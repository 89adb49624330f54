"""Tables of records (JSONL, TSV, CSV, also .gz, and Parquet), and queries and documents read from them.

    queries   a column of texts (query, text, question); optional: ids, types, and how often each was asked
    documents a column of texts (text, body, passage); optional: ids, titles and URLs

The first line of a TSV or CSV file names the columns. Rows without an id are numbered. A query log without ids may have
a line for each time a query was asked: equal texts are one query, and its weight is how often it was asked.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

from shaketable.core.documents import Query
from shaketable.core.errors import BadInput, quote_value, truncate
from shaketable.datasets.corpus import JsonlCorpus
from shaketable.datasets.corpus_copies import Output, open_copy
from shaketable.datasets.limits import check_id
from shaketable.datasets.topics import find_first_tag
from shaketable.datasets.trec import read_topics
from shaketable.files.reading import MAX_LINE_BYTES, open_binary, parse_json, read_lines

Record = Mapping[str, str]
"""column -> cell; columns are in lower case."""

QUERY_ID_COLUMNS = ("qid", "query_id", "query-id", "queryid", "_id", "id", "topic", "num")
QUERY_TEXT_COLUMNS = ("text", "query", "question", "query_text", "search_term", "keyword", "q")
COUNT_COLUMNS = ("count", "frequency", "freq", "n", "weight")
TYPE_COLUMNS = ("type", "query_type", "kind")
DESCRIPTION_COLUMNS = ("description",)
DOC_ID_COLUMNS = ("docno", "doc_id", "doc-id", "docid", "document_id", "corpus-id", "pid", "_id", "id")
DOC_TEXT_COLUMNS = ("text", "body", "passage", "content", "contents", "document")
TITLE_COLUMNS = ("title",)
URL_COLUMNS = ("url", "link")
"""Accepted column names; the first name present is used."""

MAX_COUNT_DIGITS = 15
"""Digits of a count; sums of such counts stay exact enough."""
_PLAIN_NUMBER = re.compile(rf"[0-9]{{1,{MAX_COUNT_DIGITS}}}(?:\.[0-9]{{1,{MAX_COUNT_DIGITS}}})?")
"""A number in ASCII digits, possibly with decimals: no sign, exponent, underscore or digits of other scripts."""

PARQUET_MAGIC = b"PAR1"


def read_records(path: Path, required_columns: Iterable[Iterable[str]], expected: str) -> Iterator[tuple[int, Record]]:
    """Yield each record as column -> cell, with its line number, from JSON objects or a table with a header.

    A table must have a column from each set of names in `required_columns`; `expected` names them in messages. For a
    Parquet file, the number is the row number. Cells that are neither strings nor numbers are omitted.
    """
    if _is_parquet(path):
        yield from _check_columns(_read_parquet(path), required_columns, expected, path)
        return
    rows = read_lines(path)
    if (first := next(rows, None)) is None:
        return
    rows = chain([first], rows)
    if first[1].lstrip().startswith("{"):
        for at, line in rows:
            record = parse_json(line, path, at)
            if not isinstance(record, dict):
                raise BadInput(f"a line is a JSON object with {expected}", path, at)
            yield at, _to_record(record)
        return
    table = ((at, line.split("\t")) for at, line in rows) if "\t" in first[1] else _read_csv(rows, path)
    at, names = next(table)
    header = [name.strip().lower() for name in names]
    if not all({*header} & {*names} for names in required_columns):
        raise BadInput(
            f"the first line should name the columns, among them {expected}; it has: {truncate(', '.join(header))}",
            path,
            at,
        )
    if len(set(header)) < len(header):
        raise BadInput("two columns have the same name", path, at)
    for at, cells in table:
        if len(cells) != len(header):
            raise BadInput(f"{len(cells)} cells where the header has {len(header)}", path, at)
        yield at, dict(zip(header, cells, strict=True))


def read_queries_table(path: Path) -> dict[str, Query]:
    """Return the queries of a table, of TREC topics, or of lines of id, tab, text.

    A column of counts (count, frequency, n) becomes the weight of each query.
    """
    if _has_no_header(path, QUERY_TEXT_COLUMNS):
        return read_topics(path)
    queries: dict[str, Query] = {}
    first_lines: dict[str, int] = {}
    by_text: dict[str, str] = {}
    for at, cells in read_records(path, [QUERY_TEXT_COLUMNS], "query (or text)"):
        text = _require_cell(cells, QUERY_TEXT_COLUMNS, "query (or text)", path, at).strip()
        weight = _parse_weight(cells, path, at)
        named = next((name for name in QUERY_ID_COLUMNS if name in cells), None)
        if named is None:
            if not text:
                continue
            qid = by_text.setdefault(text, f"q{len(by_text) + 1}")
            if qid in queries:  # a repeated query
                weight += queries[qid].weight
        else:
            qid = cells[named].strip()
            check_id(qid, "query id", path, at)
            if (first := first_lines.setdefault(qid, at)) != at:
                raise BadInput(f"the id {quote_value(qid)} is taken; line {first} has it too", path, at)
        queries[qid] = Query(
            text, _get_cell(cells, TYPE_COLUMNS).lower(), _get_cell(cells, DESCRIPTION_COLUMNS), weight
        )
    if not queries:
        raise BadInput("holds no queries", path)
    return queries


def read_docs_table(path: Path) -> JsonlCorpus:
    """Return the documents of a table, or of lines of id, tab, text.

    JSONL with "_id" and "text" is used in place. Any other file is converted to JSONL once, in the home folder under a
    hash of its content, so that the documents need not fit into memory.
    """
    if _is_beir_corpus(path):
        return JsonlCorpus.read(path)
    return JsonlCorpus.read_copy(open_copy(path, _digest_table(path), lambda out: _convert(path, out)), path)


def _convert(path: Path, out: Output) -> None:
    """Write the documents of a table as JSONL."""
    taken: dict[str, int] = {}
    for at, docno, fields in _read_documents(path):
        check_id(docno, "document id", path, at)
        if (first := taken.setdefault(docno, at)) != at:
            raise BadInput(f"the id {quote_value(docno)} is taken; line {first} has it too", path, at)
        out.write(f"{json.dumps({'_id': docno, **fields}, ensure_ascii=False)}\n".encode())
    if not taken:
        raise BadInput("holds no documents", path)


def _read_documents(path: Path) -> Iterator[tuple[int, str, dict[str, str]]]:
    """Yield line number, id and fields of each document."""
    if _has_no_header(path, DOC_TEXT_COLUMNS):
        for at, line in read_lines(path):
            docno, tab, text = line.partition("\t")
            if not tab or "\t" in text:
                raise BadInput("is not a document id, a tab and a text", path, at)
            yield at, docno.strip(), {"text": text.strip()}
        return
    for number, (at, cells) in enumerate(read_records(path, [DOC_TEXT_COLUMNS], "text (or body)"), 1):
        named = next((name for name in DOC_ID_COLUMNS if name in cells), None)
        fields = {
            "text": _require_cell(cells, DOC_TEXT_COLUMNS, "text (or body)", path, at).strip(),
            "title": _get_cell(cells, TITLE_COLUMNS),
            "url": _get_cell(cells, URL_COLUMNS),
        }
        yield at, f"d{number}" if named is None else cells[named].strip(), fields


def _is_beir_corpus(path: Path) -> bool:
    """Return True if the file begins like BEIR's corpus.jsonl."""
    if _is_parquet(path):
        return False
    _, line = next(read_lines(path), (0, ""))
    if not line.lstrip().startswith("{"):
        return False
    record = parse_json(line, path, 1)
    return isinstance(record, dict) and {"_id", "text"} <= record.keys()


def _has_no_header(path: Path, texts: Iterable[str]) -> bool:
    """Return True if the file has no header: TREC topics, or two columns without a text column name."""
    if _is_parquet(path):
        return False
    _, line = next(read_lines(path), (0, ""))
    if find_first_tag(line):
        return True
    cells = [cell.strip().lower() for cell in line.split("\t")]
    return not line.lstrip().startswith("{") and len(cells) == 2 and not {*cells} & {*texts}


def _require_cell(cells: Record, names: Iterable[str], expected: str, path: Path, at: int) -> str:
    name = next((name for name in names if name in cells), None)
    if name is None:
        raise BadInput(f"there is no {expected} here, only: {truncate(', '.join(cells)) or 'nothing'}", path, at)
    return cells[name]


def _get_cell(cells: Record, names: Iterable[str]) -> str:
    return next((cells[name].strip() for name in names if name in cells), "")


def _parse_weight(cells: Record, path: Path, at: int) -> float:
    """Return how often the query was asked; 1 if there is no count."""
    name = next((name for name in COUNT_COLUMNS if name in cells), None)
    if name is None:
        return 1.0
    cell = cells[name].strip(" ")
    if not (_PLAIN_NUMBER.fullmatch(cell) and float(cell) > 0):
        plain = f"a number above 0 in plain digits, at most {MAX_COUNT_DIGITS} of them"
        raise BadInput(f"the {name} of a query is {plain}, not {quote_value(cells[name])}", path, at)
    return float(cell)


def _to_record(record: Mapping[Any, Any]) -> Record:
    kept = {str(key).lower(): cell for key, cell in record.items() if isinstance(cell, str | int | float)}
    return {key: cell if isinstance(cell, str) else repr(cell) for key, cell in kept.items()}


def _read_csv(rows: Iterable[tuple[int, str]], path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each record and its last line number; a quoted cell may span several lines."""
    at = 0

    def feed_lines() -> Iterator[str]:
        nonlocal at
        for at, line in rows:  # noqa: B007 - the line number is read outside
            yield line + "\n"

    reader = csv.reader(feed_lines(), strict=True)
    try:
        while (cells := _read_next_record(reader)) is not None:
            yield at, cells
    except csv.Error as error:
        raise BadInput(f"is not a line of a table ({error})", path, at) from error


def _read_next_record(reader: Iterator[list[str]]) -> list[str] | None:
    """Return the next record; cells may exceed the csv module's limit of 128 KiB.

    The limit is global to the process, so it is restored afterwards.
    """
    usual = csv.field_size_limit(MAX_LINE_BYTES)
    try:
        return next(reader, None)
    finally:
        csv.field_size_limit(usual)


def _is_parquet(path: Path) -> bool:
    with open_binary(path) as raw:
        return raw.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC


def _read_parquet(path: Path) -> Iterator[tuple[int, Record]]:
    """Yield the rows of a Parquet file, read in batches of some thousand."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise BadInput(
            "is a Parquet file, which needs a library: pip install pyarrow; or write it as JSONL or CSV", path
        ) from error
    number = 0
    try:
        for batch in parquet.ParquetFile(path).iter_batches():
            for row in batch.to_pylist():
                number += 1
                yield number, _to_record(row)
    except (ArrowException, OSError) as error:
        raise BadInput(f"cannot be read as Parquet ({truncate(str(error))})", path) from error


def _check_columns(
    rows: Iterator[tuple[int, Record]], required_columns: Iterable[Iterable[str]], expected: str, path: Path
) -> Iterator[tuple[int, Record]]:
    for at, cells in rows:
        if not all(cells.keys() & {*names} for names in required_columns):
            raise BadInput(
                f"the columns should be, among others, {expected}; here are: {truncate(', '.join(cells))}", path, at
            )
        yield at, cells


def _digest_table(path: Path) -> str:
    digest = blake2b(b"table 1", digest_size=16)
    with open_binary(path) as raw:
        while block := raw.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()

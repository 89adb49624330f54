"""Query types, such as location or numeric, from a file or by rules.

    rules     question words and words that name the wanted answer (`query_types.rules`)
    FILE      a table with a header (TSV or CSV, also .gz) or JSONL, with the query's id or text, and its type

Without either, queries keep the types of their collection (`Query.type`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from shaketable.core.documents import Collection, Query
from shaketable.core.errors import BadInput, quote_value, truncate
from shaketable.datasets.query_types.rules import classify_by_rules
from shaketable.datasets.tables import read_records
from shaketable.files.reading import explain_read_errors

RULES_SOURCE = "rules"
TYPE_SOURCES_HELP = "'rules', or a file with the columns qid (or text) and type"
TYPE_FILE_ID_COLUMNS = ("qid", "query_id", "query-id", "_id", "id", "topic", "query")
TYPE_FILE_TEXT_COLUMNS = ("text", "query", "question")
TYPE_FILE_LABEL_COLUMNS = (
    "type",
    "kind",
    "query_type",
    "query-type",
    "category",
    "intent",
    "answer_type",
    "answer-type",
    "label",
)
"""Accepted column names; the first name present is used."""
MAX_TYPE_CHARS = 100
UNTYPED_LABEL = "without a type"


@dataclass(frozen=True, slots=True)
class QueryTypeRow:
    """A line of a query type file: the query's id or text by column, and its type."""

    line: int
    names: Mapping[str, str]
    query_type: str


def with_query_types(collection: Collection, source: str | Path) -> Collection:
    """Return the collection with query types from rules or a file, which replace the previous types.

    A query that is not in the file has no type; `format_type_counts` counts it.
    """
    found = find_query_types(collection.queries, source)
    queries = {qid: replace(query, type=found.get(qid, "")) for qid, query in collection.queries.items()}
    return replace(collection, queries=queries)


def find_query_types(queries: Mapping[str, Query], source: str | Path) -> dict[str, str]:
    """Return the type of each query id, by rules or from a file."""
    if str(source) == RULES_SOURCE:
        return {qid: classify_by_rules(query.text) for qid, query in queries.items()}
    path = Path(source)
    with explain_read_errors(path):
        is_file = path.is_file()
    if not is_file:
        raise BadInput(f"there is no file {quote_value(str(path))}; query types come from {TYPE_SOURCES_HELP}")
    return _match_rows(queries, read_query_type_rows(path), path)


def read_query_type_rows(path: Path) -> list[QueryTypeRow]:
    """Read the lines of a query type file; types are lower-cased, because MS MARCO writes them in capitals."""
    found = []
    for at, cells in read_records(
        path, [TYPE_FILE_LABEL_COLUMNS, {*TYPE_FILE_ID_COLUMNS, *TYPE_FILE_TEXT_COLUMNS}], "qid (or text) and type"
    ):
        label = next((name for name in TYPE_FILE_LABEL_COLUMNS if name in cells), None)
        names = {
            name: cells[name]
            for name in dict.fromkeys((*TYPE_FILE_ID_COLUMNS, *TYPE_FILE_TEXT_COLUMNS))
            if name in cells
        }
        if label is None or not names:
            lacking = "type" if names else "qid and no text"
            raise BadInput(f"there is no {lacking} here, only: {truncate(', '.join(cells)) or 'nothing'}", path, at)
        query_type = cells[label].strip().lower()
        if len(query_type) > MAX_TYPE_CHARS or not query_type.isprintable():
            raise BadInput(f"the query type {quote_value(query_type)} is not a short printable text", path, at)
        found.append(QueryTypeRow(at, names, query_type))
    if not found:
        raise BadInput(
            "has no query types: it needs a header with qid (or text) and type, and a line for each query", path
        )
    return found


def _match_rows(queries: Mapping[str, Query], rows: list[QueryTypeRow], path: Path) -> dict[str, str]:
    """Return the types of the queries in the file, matched by the first column (id or text) that matches any query."""
    ids = {qid: [qid] for qid in queries}
    texts: dict[str, list[str]] = {}
    for qid, query in queries.items():
        texts.setdefault(_normalise_text(query.text), []).append(qid)
    for name, known in [
        *((name, ids) for name in TYPE_FILE_ID_COLUMNS),
        *((name, texts) for name in TYPE_FILE_TEXT_COLUMNS),
    ]:
        found: dict[str, tuple[str, int]] = {}
        for row in rows:
            written = row.names.get(name, "")
            for qid in known.get(_normalise_text(written) if known is texts else written.strip(), ()):
                query_type, line = found.setdefault(qid, (row.query_type, row.line))
                if query_type != row.query_type:
                    raise BadInput(
                        f"query {quote_value(qid)} is {quote_value(row.query_type)}, and on line {line} "
                        f"{quote_value(query_type)}; keep one of them",
                        path,
                        row.line,
                    )
        if found:
            return {qid: query_type for qid, (query_type, _) in found.items()}
    raise BadInput(
        "has no query of this collection, neither by id nor by text; it seems to belong to another collection", path
    )


def _normalise_text(text: str) -> str:
    return " ".join(text.casefold().split())


def format_type_counts(queries: Mapping[str, Query]) -> str:
    """Return the number of queries of each type, most frequent first, and the number without a type.

    >>> queries = [Query("a", "person"), Query("b", "entity"), Query("c", "person"), Query("d")]
    >>> format_type_counts(dict(zip("1234", queries)))
    'person 2, entity 1, without a type 1'
    """
    counts = Counter(query.type for query in queries.values())
    none = counts.pop("", 0)
    parts = [f"{query_type} {n}" for query_type, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    return ", ".join([*parts, f"{UNTYPED_LABEL} {none}"] if none else parts)

"""Kinds of queries, such as location or numeric, from whoever knows them: a file, rules, or a model that learned them.

    rules     question words and words that name what is wanted (`data.kind_rules`)
    FILE      a table with a header (TSV or CSV, also .gz) or JSONL, with the query's id or text, and its kind
    FOLDER    a model that `shaketable train-kinds` wrote (`data.kind_model`)

The kinds that come with a collection are those of its queries already (`Query.kind`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from shaketable.data.kind_model import KindModel, learn, read_model
from shaketable.data.kind_rules import kind_by_rules
from shaketable.data.tables import records
from shaketable.errors import BadInput, cut, quoted
from shaketable.files import reading
from shaketable.types import Collection, Query

RULES = "rules"
SOURCES = "'rules', a file with the columns qid (or text) and kind, or a folder that 'shaketable train-kinds' wrote"
IDS = ("qid", "query_id", "query-id", "_id", "id", "topic", "query")
TEXTS = ("text", "query", "question")
LABELS = ("kind", "type", "query_type", "query-type", "category", "intent", "answer_type", "answer-type", "label")
"""What the columns of a file are called; the first name that is there counts."""
LONGEST = 100  # letters of a kind
UNLABELLED = "without a kind"


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a file of kinds: what names the query, by column, and its kind."""

    line: int
    names: Mapping[str, str]
    kind: str


def with_kinds(collection: Collection, kinds: str | Path) -> Collection:
    """The collection with the kinds that rules, a file or a model give its queries, in place of those that they had.

    A query that a file does not know has no kind, and `told` counts it.
    """
    found = kinds_of(collection.queries, kinds)
    queries = {qid: replace(query, kind=found.get(qid, "")) for qid, query in collection.queries.items()}
    return replace(collection, queries=queries)


def kinds_of(queries: Mapping[str, Query], kinds: str | Path) -> dict[str, str]:
    """qid -> kind, by rules, by a file or by a model."""
    if str(kinds) == RULES:
        return {qid: kind_by_rules(query.text) for qid, query in queries.items()}
    path = Path(kinds)
    with reading(path):
        folder, file = path.is_dir(), path.is_file()
    if folder:
        model = read_model(path)
        texts = [query.text for query in queries.values()]
        return dict(zip(queries, model.predict(texts), strict=True))
    if not file:
        raise BadInput(f"there is no file or folder {quoted(str(path))}; kinds come from {SOURCES}")
    return _matched(queries, read_rows(path), path)


def read_rows(path: Path) -> list[Row]:
    """The lines of a file of kinds; kinds are in lower case, for MS MARCO shouts and others do not."""
    found = []
    for at, cells in records(path, [LABELS, {*IDS, *TEXTS}], "qid (or text) and kind"):
        label = next((name for name in LABELS if name in cells), None)
        names = {name: cells[name] for name in dict.fromkeys((*IDS, *TEXTS)) if name in cells}
        if label is None or not names:
            lacking = "kind" if names else "qid and no text"
            raise BadInput(f"there is no {lacking} here, only: {cut(', '.join(cells)) or 'nothing'}", path, at)
        kind = cells[label].strip().lower()
        if len(kind) > LONGEST or not kind.isprintable():
            raise BadInput(f"the kind {quoted(kind)} is no short text that can be printed", path, at)
        found.append(Row(at, names, kind))
    if not found:
        raise BadInput("holds no kinds: a header with qid (or text) and kind, and a line for each query", path)
    return found


def _matched(queries: Mapping[str, Query], rows: list[Row], path: Path) -> dict[str, str]:
    """The kinds of the queries that the file names, by the first column that names any: an id, or else a text."""
    ids = {qid: [qid] for qid in queries}
    texts: dict[str, list[str]] = {}
    for qid, query in queries.items():
        texts.setdefault(_plain(query.text), []).append(qid)
    for name, known in [*((name, ids) for name in IDS), *((name, texts) for name in TEXTS)]:
        found: dict[str, tuple[str, int]] = {}
        for row in rows:
            written = row.names.get(name, "")
            for qid in known.get(_plain(written) if known is texts else written.strip(), ()):
                kind, line = found.setdefault(qid, (row.kind, row.line))
                if kind != row.kind:
                    told = f"query {quoted(qid)} is {quoted(row.kind)}, and on line {line} {quoted(kind)}"
                    raise BadInput(f"{told}; keep one of them", path, row.line)
        if found:
            return {qid: kind for qid, (kind, _) in found.items()}
    raise BadInput("names no query of the collection, neither by id nor by text: it belongs to another one", path)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def told(queries: Mapping[str, Query]) -> str:
    """How many queries there are of each kind, the commonest first, and how many have none.

    >>> told({"q1": Query("a", "person"), "q2": Query("b", "entity"), "q3": Query("c", "person"), "q4": Query("d")})
    'person 2, entity 1, without a kind 1'
    """
    counts = Counter(query.kind for query in queries.values())
    none = counts.pop("", 0)
    parts = [f"{kind} {n}" for kind, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    return ", ".join([*parts, f"{UNLABELLED} {none}"] if none else parts)


def learn_kinds(queries: Mapping[str, Query]) -> KindModel:
    """A model of the kinds that these queries have; those without a kind are left out."""
    return learn([(query.text, query.kind) for query in queries.values() if query.kind])

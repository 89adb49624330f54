"""Ranking competitions: rounds of documents that authors write to rank high for a query.

A folder, whose files may be gzipped:

    documents.jsonl     {"_id", "round", "query_id", "author", "text", "title"?, "url"?}
    queries.jsonl       {"_id", "text"}, as in a BEIR folder
    qrels.tsv           query-id, corpus-id, score; optional

A line of the documents is {"_id": "d7", "round": 2, "query_id": "q1", "author": "ann", "text": "..."}. Rounds are
numbered from 0. An author writes one document for a query in a round, and keeps the same name. A round with one
document for a query, such as the example that all authors begin with, is read but not compared.

The reader accepts ASRC, 8 rounds of 31 queries, as published (Raifer, Raiber, Tennenholtz, Kurland. Information
retrieval meets game theory: the ranking competition between documents' authors. SIGIR 2017). It ignores other fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shaketable.core.documents import Competition, Doc, Qrels
from shaketable.core.errors import BadInput, quote_value
from shaketable.datasets.beir import find_plain_or_gzipped, read_queries
from shaketable.datasets.corpus import make_document, parse_record
from shaketable.datasets.limits import check_id
from shaketable.datasets.sample import SAMPLE_FOLDER
from shaketable.datasets.trec import read_qrels
from shaketable.files.reading import explain_read_errors, read_lines

SAMPLE_NAME = "sample"
"""The name of the competition bundled with the sample."""
DOCUMENTS_FILE, QUERIES_FILE, QRELS_FILE = "documents.jsonl", "queries.jsonl", "qrels.tsv"

Entry = tuple[int, str, str]
"""Round, query and author of a document."""


def read_competition(source: str | Path) -> Competition:
    """Return the competition in a folder; "sample" is the bundled competition."""
    folder = SAMPLE_FOLDER / "competition" if source == SAMPLE_NAME else Path(source)
    with explain_read_errors(folder):
        path, judged = find_plain_or_gzipped(folder, DOCUMENTS_FILE), find_plain_or_gzipped(folder, QRELS_FILE)
    if path is None:
        raise BadInput(
            f"there is no competition {quote_value(str(source))}; it is 'sample', or a folder with {DOCUMENTS_FILE}, "
            f"{QUERIES_FILE} and, where there are judgements, {QRELS_FILE}"
        )
    queries = read_queries(find_plain_or_gzipped(folder, QUERIES_FILE) or folder / QUERIES_FILE)
    rounds: dict[int, dict[str, dict[str, Doc]]] = {}
    entries: dict[str, Entry] = {}
    first_lines: dict[str | Entry, int] = {}
    for number, line in read_lines(path):
        docno, fields = parse_record(line, path, number)
        check_id(docno, "id", path, number)
        entry = _parse_entry(fields, path, number)
        turn, qid, author = entry
        if qid not in queries:
            raise BadInput(f"query {quote_value(qid)} has no text in {QUERIES_FILE}", path, number)
        if (first := first_lines.setdefault(docno, number)) != number:
            raise BadInput(f"the id {quote_value(docno)} is taken; line {first} has it too", path, number)
        if (first := first_lines.setdefault(entry, number)) != number:
            raise BadInput(
                f"author {quote_value(author)} has two documents for query {quote_value(qid)} in round {turn}; line "
                f"{first} has the other",
                path,
                number,
            )
        entries[docno] = entry
        rounds.setdefault(turn, {}).setdefault(qid, {})[author] = make_document(fields)
    if not entries:
        raise BadInput("holds no documents", path)
    grades = _group_grades(read_qrels(judged), entries, judged) if judged else {}
    try:
        return Competition(SAMPLE_NAME if source == SAMPLE_NAME else folder.resolve().name, queries, rounds, grades)
    except BadInput as error:
        raise BadInput(str(error), path) from None


def _parse_entry(fields: Mapping[str, Any], path: Path, number: int) -> Entry:
    """Return round, query and author of a line; ids may be whole numbers."""
    turn = fields.get("round")
    if not isinstance(turn, int) or isinstance(turn, bool) or turn < 0:
        raise BadInput(f'"round" should be a whole number, 0 or more, not {quote_value(turn)}', path, number)
    return turn, _parse_name(fields, "query_id", path, number), _parse_name(fields, "author", path, number)


def _parse_name(fields: Mapping[str, Any], key: str, path: Path, number: int) -> str:
    value = fields.get(key)
    if value is None:
        needed = "who wrote the document, by one name in all rounds" if key == "author" else "whom it was written for"
        raise BadInput(f'has no "{key}": {needed}', path, number)
    name = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(name, str):
        raise BadInput(f'"{key}" is {quote_value(value)}; it must be a string', path, number)
    check_id(name, "author" if key == "author" else "query id", path, number)
    return name


def _group_grades(qrels: Qrels, entries: Mapping[str, Entry], path: Path) -> dict[int, dict[str, dict[str, int]]]:
    """Return the grades of documents as round -> query -> author -> grade."""
    grades: dict[int, dict[str, dict[str, int]]] = {}
    for judged, row in qrels.items():
        for docno, grade in row.items():
            if docno not in entries:
                raise BadInput(f"judges document {quote_value(docno)}, which is not in {DOCUMENTS_FILE}", path)
            turn, qid, author = entries[docno]
            if qid != judged:
                raise BadInput(
                    f"judges document {quote_value(docno)} for query {quote_value(judged)}; it was written for "
                    f"{quote_value(qid)}",
                    path,
                )
            grades.setdefault(turn, {}).setdefault(qid, {})[author] = grade
    return grades

"""Reading and writing of runs, judgements and topics as TREC files and data frames.

A run has six columns (query, Q0, document, rank, score, tag). As in trec_eval 10, the reader ignores further columns
and lines that begin with #. It also ignores ranks: `core.documents.rank_docnos` defines the order of a list.
Judgements have four columns (query, iteration, document, grade), or a header that names three, as BEIR writes them.
Topics are lines of query id, tab, text, or the formats that TREC publishes (`datasets.topics`). Files may be gzipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from shaketable.core.documents import Qrels, Query, Run, rank_docnos
from shaketable.core.errors import BadInput, quote_value
from shaketable.datasets.limits import (
    CONTROL_BYTES,
    MAX_ID_CHARS,
    MAX_SCORE,
    check_grades,
    check_id,
    check_ids,
    check_qrels,
    check_run,
)
from shaketable.datasets.topics import find_first_tag, read_markup_topics
from shaketable.files.atomic import atomic_write
from shaketable.files.reading import parse_float, parse_int, read_line_blocks, read_lines, split_columns

if TYPE_CHECKING:
    import pandas as pd

QUERY_COLUMNS = ("qid", "query_id", "query-id")
DOCUMENT_COLUMNS = ("docno", "doc_id", "corpus-id", "corpus_id", "doc-id", "docid")
GRADE_COLUMNS = ("label", "relevance", "score", "grade", "rel")
"""Accepted names of a column, in a header or in a data frame."""
TREC_QRELS_LAYOUT = "query iteration document grade"


def read_run(path: str | Path) -> dict[str, dict[str, float]]:
    """Read a TREC run and return query id -> docno -> score."""
    return read_run_and_tag(path)[0]


def read_run_and_tag(path: str | Path) -> tuple[dict[str, dict[str, float]], str]:
    """Read a TREC run and return its lists and its tag; if lines differ in the tag, the tag of the last list."""
    path = Path(path)
    run: dict[str, dict[str, float]] = {}
    last, scores, tag = None, {}, ""
    for first, rows in read_line_blocks(path, CONTROL_BYTES):
        plain = max(map(len, rows)) <= MAX_ID_CHARS and "".join(rows).isascii()
        for at, line in enumerate(rows, first):
            cells = line.split(None, 5) if plain else split_columns(line, 5)
            try:
                qid, _, docno, _, text, rest = cells
            except ValueError as error:
                if not cells or cells[0][0] == "#":
                    continue
                raise _make_column_error(cells, 6, "query Q0 document rank score tag", path, at) from error
            if qid != last:
                if qid[0] == "#":
                    continue
                last, scores, tag = qid, run.setdefault(qid, {}), rest
            if not plain:
                check_id(qid, "query id", path, at)
                check_id(docno, "document id", path, at)
            try:
                score = (
                    float(text) if plain and "_" not in text else parse_float(text)
                )  # `parse_float` inlined for speed
            except ValueError as error:
                raise BadInput(f"score {quote_value(text)} is not a number", path, at) from error
            if not -MAX_SCORE <= score <= MAX_SCORE:
                raise BadInput(f"score {quote_value(text)} is not a finite 32-bit number", path, at)
            if docno in scores:
                before = _find_first_line(path, None, (0, 2), (qid, docno))
                message = (
                    f"document {quote_value(docno)} is in the list of query {quote_value(qid)} on line {before} already"
                )
                raise BadInput(message, path, at)
            scores[docno] = score
    if not run:
        raise BadInput("is empty; a TREC run was expected", path)
    return run, tag.split()[0]


def read_qrels(path: str | Path) -> dict[str, dict[str, int]]:
    """Read judgements from TREC's four columns or from BEIR's three columns with a header."""
    path = Path(path)
    qrels: dict[str, dict[str, int]] = {}
    known: dict[str, int] = {}
    last, grades = None, {}
    table: _QrelsLayout | None = None
    for first, rows in read_line_blocks(path, CONTROL_BYTES):
        plain = max(map(len, rows)) <= MAX_ID_CHARS and "".join(rows).isascii()
        for at, line in enumerate(rows, first):
            if table is None:
                if not line.strip() or _is_comment(line):
                    continue
                table = _QrelsLayout.from_first_line(line, path, at)
                separator, names, width, q, d, g = table
                if names:
                    continue
            cells = line.split(separator) if plain or separator else split_columns(line)
            if len(cells) != width:
                if not line.strip() or (not separator and _is_comment(line)):
                    continue
                raise _make_column_error(cells, width, " ".join(names) or TREC_QRELS_LAYOUT, path, at)
            qid, docno, text = cells[q], cells[d], cells[g]
            if qid != last:
                if not separator and qid[0] == "#":
                    continue
                last, grades = qid, qrels.setdefault(qid, {})
            if not plain or (separator and (not qid or not docno or " " in line)):
                check_id(qid, "query id", path, at)
                check_id(docno, "document id", path, at)
            if (grade := known.get(text)) is None:
                try:
                    grade = known[text] = parse_int(text)
                except ValueError as error:
                    raise BadInput(f"grade {error}", path, at) from None
                check_grades([grade], path, at)
            if (before := grades.setdefault(docno, grade)) != grade:
                place = _find_first_line(path, separator, (q, d), (qid, docno))
                given = f"document {quote_value(docno)} has grade {grade} for query {quote_value(qid)}"
                raise BadInput(f"{given}, on line {place} it has {before}", path, at)
    if not qrels:
        raise BadInput("is empty; judgements were expected" if not table else "has a header but no judgements", path)
    return qrels


class _QrelsLayout(NamedTuple):
    """The layout of a judgement file: separator, column names, number of columns, and the columns to read."""

    separator: str | None
    names: list[str]
    width: int
    query: int
    document: int
    grade: int

    @classmethod
    def from_first_line(cls, line: str, path: Path, at: int) -> _QrelsLayout:
        """Return the layout of a file that begins with this line."""
        separator = "\t" if "\t" in line else None
        names = [name.strip() for name in line.split(separator)]
        query, document, grade = (
            _find_column(names, aliases) for aliases in (QUERY_COLUMNS, DOCUMENT_COLUMNS, GRADE_COLUMNS)
        )
        if min(query, document, grade) >= 0:
            return cls(separator, names, len(names), query, document, grade)
        if len(split_columns(line)) == 3:
            raise BadInput(
                "has three columns and no header; begin the file with query-id, corpus-id, score (tabs between), "
                f"or write TREC's four columns: {TREC_QRELS_LAYOUT}",
                path,
                at,
            )
        return cls(None, [], 4, 0, 2, 3)


def read_topics(path: str | Path) -> dict[str, Query]:
    """Read queries from lines of id, tab, text (a header is skipped), or from TREC topics in SGML or XML."""
    path = Path(path)
    rows = read_lines(path)
    if (head := next(rows, None)) is None:
        raise BadInput("is empty; queries were expected", path)
    rows = chain([head], rows)
    if tag := find_first_tag(head[1]):
        return read_markup_topics(rows, tag, path)
    queries: dict[str, Query] = {}
    first_lines: dict[str, int] = {}
    for at, line in rows:
        cells = line.split("\t")
        if len(cells) < 2 or not cells[0]:
            raise BadInput("is not a query id, a tab and a text", path, at)
        if len(cells) > 2:
            raise BadInput(
                f"has {len(cells)} columns; topics have two, a query id and a text, with a tab between", path, at
            )
        qid, text = cells
        if not first_lines and qid in QUERY_COLUMNS:
            continue
        check_id(qid, "query id", path, at)
        if (first := first_lines.setdefault(qid, at)) != at:
            raise BadInput(f"the id {quote_value(qid)} is taken; line {first} has it too", path, at)
        queries[qid] = Query(text.strip())
    if not queries:
        raise BadInput("is empty; queries were expected", path)
    return queries


def write_run(run: Run, path: str | Path, tag: str = "shaketable") -> None:
    """Write a TREC run, best document first, ranks from 1."""
    path = Path(path)
    with atomic_write(path) as out:
        check_id(tag, "tag", path)
        _check_writable_ids(run, path)
        for qid, scores in run.items():
            for docno, score in scores.items():
                if not -MAX_SCORE <= score <= MAX_SCORE:
                    raise BadInput(
                        f"score {score} of document {quote_value(docno)} for query {quote_value(qid)} is not finite",
                        path,
                    )
            ranked = enumerate(rank_docnos(scores), 1)
            out.writelines(f"{qid} Q0 {docno} {rank} {float(scores[docno])!r} {tag}\n" for rank, docno in ranked)
        if not any(run.values()):
            raise BadInput("the run has no documents to write", path)


def write_qrels(qrels: Qrels, path: str | Path) -> None:
    """Write judgements in TREC's four columns."""
    path = Path(path)
    with atomic_write(path) as out:
        _check_writable_ids(qrels, path)
        for qid, grades in qrels.items():
            check_grades(grades.values(), path)
            out.writelines(f"{qid} 0 {docno} {int(grade)}\n" for docno, grade in grades.items())
        if not any(qrels.values()):
            raise BadInput("there are no judgements to write", path)


def run_from_frame(frame: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return a run from the columns qid, docno and score (or query_id, doc_id)."""
    run: dict[str, dict[str, float]] = {}
    for row, (qid, docno, value) in enumerate(_read_frame_rows(frame, ("score",))):
        try:
            score = parse_float(value) if isinstance(value, str) else float(value)
        except (TypeError, ValueError) as error:
            raise BadInput(f"row {row} of the frame: score {quote_value(value)} is not a number") from error
        if not -MAX_SCORE <= score <= MAX_SCORE:
            raise BadInput(f"row {row} of the frame: score {quote_value(value)} is not a finite 32-bit number")
        if docno in (scores := run.setdefault(qid, {})):
            raise BadInput(
                f"row {row} of the frame: document {quote_value(docno)} is in the list of query {quote_value(qid)} "
                "already"
            )
        scores[docno] = score
    check_run(run)
    return run


def run_to_frame(run: Run) -> pd.DataFrame:
    """Return a frame with the columns qid, docno, score and rank (from 1), best document first."""
    import pandas as pd

    rows = [
        (qid, docno, float(scores[docno]), rank)
        for qid, scores in run.items()
        for rank, docno in enumerate(rank_docnos(scores), 1)
    ]
    return pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"])


def qrels_from_frame(frame: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Return judgements from the columns qid, docno and label (or query_id, doc_id, relevance)."""
    qrels: dict[str, dict[str, int]] = {}
    for row, (qid, docno, value) in enumerate(_read_frame_rows(frame, GRADE_COLUMNS)):
        try:
            grade = parse_int(value) if isinstance(value, str) else int(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise BadInput(f"row {row} of the frame: grade {quote_value(value)} is not a whole number") from error
        if not isinstance(value, str) and grade != value:
            raise BadInput(f"row {row} of the frame: grade {quote_value(value)} is not a whole number")
        if (known := qrels.setdefault(qid, {}).setdefault(docno, grade)) != grade:
            raise BadInput(
                f"row {row} of the frame: {quote_value(docno)} has grade {grade} for {quote_value(qid)}, before it had "
                f"{known}"
            )
    check_qrels(qrels)
    return qrels


def _read_frame_rows(frame: pd.DataFrame, third: Sequence[str]) -> Iterable[tuple[str, str, Any]]:
    names = [str(name) for name in frame.columns]
    columns = []
    for aliases in (QUERY_COLUMNS, DOCUMENT_COLUMNS, third):
        if (at := _find_column(names, aliases)) < 0:
            raise BadInput(f"the frame has no column {quote_value(aliases[0])}; it has: {', '.join(names) or 'none'}")
        columns.append(frame.iloc[:, at])
    for what, column in zip(("query", "document"), columns, strict=False):
        if column.isna().any():
            raise BadInput(f"row {int(column.isna().to_numpy().argmax())} of the frame has no {what} id")
    qids, docnos, values = (column.tolist() for column in columns)
    return zip(map(str, qids), map(str, docnos), values, strict=True)


def _find_column(names: Sequence[str], aliases: Sequence[str]) -> int:
    """Return the index of the first column with one of these names; -1 if there is none."""
    return next((names.index(alias) for alias in aliases if alias in names), -1)


def _make_column_error(cells: Sequence[str], width: int, shape: str, path: Path, number: int) -> BadInput:
    return BadInput(f"has {len(cells)} columns where {width} were expected: {shape}", path, number)


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _find_first_line(path: Path, separator: str | None, column_numbers: tuple[int, int], pair: tuple[str, str]) -> int:
    """Return the first line with a pair of ids, for an error message."""
    left, right = column_numbers
    for at, line in read_lines(path):
        cells = line.split(separator) if separator else split_columns(line)
        if len(cells) > max(column_numbers) and (cells[left], cells[right]) == pair:
            return at
    raise AssertionError(pair)


def _check_writable_ids(lists: Run | Qrels, path: Path) -> None:
    """Refuse ids that `read_run` and `read_qrels` would not read back."""
    check_ids(lists, "query id", path)
    for qid, docnos in lists.items():
        check_ids(docnos, "document id", path)
        if qid.startswith("#"):
            raise BadInput(f"the query id {quote_value(qid)} begins with #, which would make its line a comment", path)

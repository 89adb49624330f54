"""Runs, judgements and topics: TREC files and data frames, in and out.

A run has six columns (query, Q0, document, rank, score, tag). Ranks are not read: the order of a list is that of
`types.ranking`. Judgements have four columns (query, iteration, document, grade), or a header that names three, as BEIR
writes them. Topics are lines of query id, tab, text. Any of them may be gzipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shaketable.errors import BadInput
from shaketable.files import lines, written_whole
from shaketable.types import Qrels, Query, Run, ranking

if TYPE_CHECKING:
    import pandas as pd

QUERY = ("qid", "query_id", "query-id")
DOCUMENT = ("docno", "doc_id", "corpus-id", "corpus_id", "doc-id", "docid")
SCORE = ("score",)
GRADE = ("label", "relevance", "score", "grade", "rel")
"""What a column may be called, in a header or in a data frame."""

LIMIT = float(np.finfo(np.float32).max)
"""Rankings are made in 32 bits, as trec_eval makes them; a score beyond that is infinite."""


def read_run(path: str | Path) -> dict[str, dict[str, float]]:
    """The lists of a TREC run."""
    path = Path(path)
    run: dict[str, dict[str, float]] = {}
    last, scores = None, {}
    for number, line in lines(path):
        try:
            qid, _, docno, _, text, _ = line.split()
        except ValueError as error:
            raise _columns(line.split(), 6, "query Q0 document rank score tag", path, number) from error
        try:
            score = float(text)
        except ValueError as error:
            raise BadInput(f"score {text!r} is not a number", path, number) from error
        if not -LIMIT <= score <= LIMIT:
            raise BadInput(f"score {text!r} is not a finite 32-bit number", path, number)
        if qid != last:
            last, scores = qid, run.setdefault(qid, {})
        if docno in scores:
            first = _first_line(path, None, (0, 2), (qid, docno))
            raise BadInput(f"document {docno!r} is in the list of query {qid!r} on line {first} already", path, number)
        scores[docno] = score
    if not run:
        raise BadInput("is empty; a TREC run was expected", path)
    return run


def read_qrels(path: str | Path) -> dict[str, dict[str, int]]:
    """Judgements, from TREC's four columns or from BEIR's three with a header."""
    path = Path(path)
    rows = lines(path)
    if (first := next(rows, None)) is None:
        raise BadInput("is empty; judgements were expected", path)
    head = first[1]
    separator, names = _header(head)
    if names:
        width = len(names)
        q, d, g = (_column(names, aliases) for aliases in (QUERY, DOCUMENT, GRADE))
    else:
        width, (q, d, g) = 4, (0, 2, 3)
        rows = chain([first], rows)
        if len(head.split()) == 3:
            raise BadInput(
                "has three columns and no header; begin the file with query-id, corpus-id, score (tabs between), "
                "or write TREC's four columns: query iteration document grade",
                path,
                first[0],
            )
    shape = " ".join(names) or "query iteration document grade"
    qrels: dict[str, dict[str, int]] = {}
    for number, line in rows:
        cells = line.split(separator)
        if len(cells) != width:
            raise _columns(cells, width, shape, path, number)
        qid, docno, text = cells[q], cells[d], cells[g]
        if not qid or not docno:
            raise BadInput("has an empty id", path, number)
        try:
            grade = int(text)
        except ValueError as error:
            raise BadInput(f"grade {text!r} is not a whole number", path, number) from error
        if (known := qrels.setdefault(qid, {}).setdefault(docno, grade)) != grade:
            before = _first_line(path, separator, (q, d), (qid, docno))
            raise BadInput(
                f"document {docno!r} has grade {grade} for query {qid!r}, on line {before} it has {known}", path, number
            )
    if not qrels:
        raise BadInput("holds a header but no judgements", path)
    return qrels


def read_topics(path: str | Path) -> dict[str, Query]:
    """Queries from lines of id, tab, text; a header is passed over."""
    path = Path(path)
    queries: dict[str, Query] = {}
    places: dict[str, int] = {}
    for number, line in lines(path):
        qid, tab, text = line.partition("\t")
        if not tab or not qid:
            raise BadInput("is not a query id, a tab and a text", path, number)
        if not places and qid in QUERY:
            continue
        if (first := places.setdefault(qid, number)) != number:
            raise BadInput(f"the id {qid!r} is taken; line {first} has it too", path, number)
        queries[qid] = Query(text.strip())
    if not queries:
        raise BadInput("is empty; queries were expected", path)
    return queries


def write_run(run: Run, path: str | Path, tag: str = "shaketable") -> None:
    """A TREC run, best first, ranks from 1."""
    path = Path(path)
    with written_whole(path) as out:
        _refuse_spaces([tag], "tag", path)
        _refuse_spaces(run, "query id", path)
        for qid, scores in run.items():
            _refuse_spaces(scores, "document id", path)
            for docno, score in scores.items():
                if not -LIMIT <= score <= LIMIT:
                    raise BadInput(f"score {score} of document {docno!r} for query {qid!r} is not finite", path)
            ranked = enumerate(ranking(scores), 1)
            out.writelines(f"{qid} Q0 {docno} {rank} {float(scores[docno])!r} {tag}\n" for rank, docno in ranked)
        if not any(run.values()):
            raise BadInput("the run holds no documents; there is nothing to write", path)


def write_qrels(qrels: Qrels, path: str | Path) -> None:
    """Judgements in TREC's four columns."""
    path = Path(path)
    with written_whole(path) as out:
        _refuse_spaces(qrels, "query id", path)
        for qid, grades in qrels.items():
            _refuse_spaces(grades, "document id", path)
            out.writelines(f"{qid} 0 {docno} {int(grade)}\n" for docno, grade in grades.items())
        if not any(qrels.values()):
            raise BadInput("there are no judgements to write", path)


def run_from_frame(frame: pd.DataFrame) -> dict[str, dict[str, float]]:
    """A run from the columns qid, docno and score (or query_id, doc_id)."""
    run: dict[str, dict[str, float]] = {}
    for row, (qid, docno, value) in enumerate(_rows(frame, SCORE)):
        try:
            score = float(value)
        except (TypeError, ValueError) as error:
            raise BadInput(f"row {row} of the frame: score {value!r} is not a number") from error
        if not -LIMIT <= score <= LIMIT:
            raise BadInput(f"row {row} of the frame: score {value!r} is not a finite 32-bit number")
        if docno in (scores := run.setdefault(qid, {})):
            raise BadInput(f"row {row} of the frame: document {docno!r} is in the list of query {qid!r} already")
        scores[docno] = score
    return run


def run_to_frame(run: Run) -> pd.DataFrame:
    """The columns qid, docno, score and rank (from 1), best first."""
    import pandas as pd

    rows = [
        (qid, docno, float(scores[docno]), rank)
        for qid, scores in run.items()
        for rank, docno in enumerate(ranking(scores), 1)
    ]
    return pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"])


def qrels_from_frame(frame: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Judgements from the columns qid, docno and label (or query_id, doc_id, relevance)."""
    qrels: dict[str, dict[str, int]] = {}
    for row, (qid, docno, value) in enumerate(_rows(frame, GRADE)):
        try:
            grade = int(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise BadInput(f"row {row} of the frame: grade {value!r} is not a whole number") from error
        if not isinstance(value, str) and grade != value:
            raise BadInput(f"row {row} of the frame: grade {value!r} is not a whole number")
        if (known := qrels.setdefault(qid, {}).setdefault(docno, grade)) != grade:
            raise BadInput(f"row {row} of the frame: {docno!r} has grade {grade} for {qid!r}, before it had {known}")
    return qrels


def _rows(frame: pd.DataFrame, third: Sequence[str]) -> Iterable[tuple[str, str, Any]]:
    names = [str(name) for name in frame.columns]
    columns = []
    for aliases in (QUERY, DOCUMENT, third):
        if (at := _column(names, aliases)) < 0:
            raise BadInput(f"the frame has no column {aliases[0]!r}; it has: {', '.join(names) or 'none'}")
        columns.append(frame.iloc[:, at])
    for what, column in zip(("query", "document"), columns, strict=False):
        if column.isna().any():
            raise BadInput(f"row {int(column.isna().to_numpy().argmax())} of the frame has no {what} id")
    qids, docnos, values = (column.tolist() for column in columns)
    return zip(map(str, qids), map(str, docnos), values, strict=True)


def _column(names: Sequence[str], aliases: Sequence[str]) -> int:
    """Which column goes by one of these names; -1 if none does."""
    return next((names.index(alias) for alias in aliases if alias in names), -1)


def _header(line: str) -> tuple[str | None, list[str]]:
    """What separates the columns, and their names; no names if the line is none."""
    separator = "\t" if "\t" in line else None
    names = [name.strip() for name in line.split(separator)]
    if min(_column(names, aliases) for aliases in (QUERY, DOCUMENT, GRADE)) < 0:
        return None, []
    return separator, names


def _columns(cells: Sequence[str], width: int, shape: str, path: Path, number: int) -> BadInput:
    return BadInput(f"has {len(cells)} columns where {width} were expected: {shape}", path, number)


def _first_line(path: Path, separator: str | None, columns: tuple[int, int], pair: tuple[str, str]) -> int:
    """Where a pair of ids stands first: looked for only to say it in an error."""
    left, right = columns
    for number, line in lines(path):
        cells = line.split(separator)
        if (cells[left], cells[right]) == pair:
            return number
    raise AssertionError(pair)


def _refuse_spaces(names: Iterable[str], what: str, path: Path) -> None:
    for name in names:
        if name.split() != [name]:
            raise BadInput(f"the {what} {name!r} is empty or has a space in it, which a TREC file cannot hold", path)

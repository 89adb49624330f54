"""Precomputed scores: a table of topics x systems, as evaluation campaigns publish them."""

from __future__ import annotations

import csv
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from shaketable.core.errors import BadInput, quote_value, truncate
from shaketable.core.results import ScoreTable
from shaketable.datasets.limits import MAX_SCORE, check_id
from shaketable.files.reading import parse_float, read_lines

TOPIC_COLUMNS = {"topic", "qid", "query", "query_id", "query-id"}


def read_scores(path: Path, measure: str = "score") -> ScoreTable:
    """Read a CSV (or TSV) file: a header of system names, a row for each topic, an optional column `topic`.

    Spaces around a cell are ignored.
    """
    with closing(_read_rows(path)) as rows:  # close the file at once, even if a line is invalid
        return _parse_table(rows, path, measure)


def _parse_table(rows: Iterator[tuple[int, list[str]]], path: Path, measure: str) -> ScoreTable:
    if (first := next(rows, None)) is None:
        raise BadInput("is empty; a header of system names and a row for each topic were expected", path)
    at, header = first
    names = {i: name for i, name in enumerate(header) if name.lower() not in TOPIC_COLUMNS}
    topic_at = next((i for i in range(len(header)) if i not in names), None)
    nothing = BadInput("has no scores: a header of system names and a row for each topic were expected", path)
    if not names:
        raise nothing
    if len(set(names.values())) < len(names) or not all(name and name.isprintable() for name in names.values()):
        raise BadInput("each column needs its own printable name", path, at)
    topics: dict[str, int] = {}
    values = []
    for at, row in rows:
        if len(row) != len(header):
            raise BadInput(f"{len(row)} cells where the header has {len(header)}", path, at)
        topic = str(len(topics) + 1) if topic_at is None else row[topic_at]
        check_id(topic, "topic", path, at)
        if (before := topics.setdefault(topic, at)) != at:
            raise BadInput(f"topic {quote_value(topic)} is on line {before} too", path, at)
        values.append([_parse_score(row[i], name, path, at) for i, name in names.items()])
    if not values:
        raise nothing
    return ScoreTable(measure, tuple(names.values()), tuple(topics), np.array(values).T)


def _read_rows(path: Path) -> Generator[tuple[int, list[str]]]:
    """Yield the cells of each line; refuse a cell that spans several lines."""
    delimiter = ""
    for at, line in read_lines(path):
        delimiter = delimiter or ("\t" if "\t" in line else ",")
        try:
            yield at, [cell.strip(" ") for cell in next(csv.reader([line], delimiter=delimiter, strict=True))]
        except csv.Error as error:
            raise BadInput(f"is not a line of a table ({error})", path, at) from error


def _parse_score(cell: str, system: str, path: Path, line: int) -> float:
    try:
        value = parse_float(cell)
    except ValueError:
        raise BadInput(f"the score of {truncate(system)} is {quote_value(cell)}, not a number", path, line) from None
    if not 0 <= value <= MAX_SCORE:
        raise BadInput(f"the score of {truncate(system)} is {value:g}; scores are finite and at least 0", path, line)
    return value

"""Ready scores: a table of topics x systems, as evaluation campaigns publish them."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np

from shaketable.errors import BadInput
from shaketable.files import lines
from shaketable.types import ScoreTable

TOPIC_COLUMNS = {"topic", "qid", "query", "query_id", "query-id"}


def read_scores(path: Path, measure: str = "score") -> ScoreTable:
    """Read a CSV (or TSV) file: a header of system names, a row for each topic, a column `topic` if there is one."""
    numbered = list(lines(path))
    if not numbered:
        raise BadInput("is empty; a header of system names and a row for each topic were expected", path)
    delimiter = "\t" if "\t" in numbered[0][1] else ","
    rows = [(number, next(csv.reader([line], delimiter=delimiter))) for number, line in numbered]
    header = [name.strip() for name in rows[0][1]]
    names = {i: name for i, name in enumerate(header) if name.lower() not in TOPIC_COLUMNS}
    topic_at = next((i for i in range(len(header)) if i not in names), None)
    if not names or len(rows) == 1:
        raise BadInput("has no scores: a header of system names and a row for each topic were expected", path)
    if len(set(names.values())) < len(names) or "" in names.values():
        raise BadInput("each column needs a name of its own", path, rows[0][0])
    topics: dict[str, int] = {}
    values = []
    for number, row in rows[1:]:
        if len(row) != len(header):
            raise BadInput(f"{len(row)} cells where the header has {len(header)}", path, number)
        topic = str(len(topics) + 1) if topic_at is None else row[topic_at].strip()
        if (first := topics.setdefault(topic, number)) != number:
            raise BadInput(f"topic {topic!r} stands on line {first} too", path, number)
        values.append([_score(row[i], name, path, number) for i, name in names.items()])
    return ScoreTable(measure, tuple(names.values()), tuple(topics), np.array(values).T)


def _score(cell: str, system: str, path: Path, line: int) -> float:
    try:
        value = float(cell)
    except ValueError:
        raise BadInput(f"the score of {system} is {cell.strip()!r}, not a number", path, line) from None
    if not math.isfinite(value) or value < 0:
        raise BadInput(f"the score of {system} is {value:g}; scores are finite and at least 0", path, line)
    return value

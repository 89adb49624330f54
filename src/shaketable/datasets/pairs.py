"""Pairs of texts that differ in one property, in Shaketable's own layout: user files and bundled files.

    {"id", "query", "a", "b"}                       a query and two texts; "title" is the title of both, and
                                                    "query_id" the id of the query (by default, its text)
    {"id", "query_a", "query_b", "a", "b"}          two queries and two texts: a answers query_a, b answers query_b
    {"id", "q1", "q2", "doc1", "doc2"}              the same, as NevIR is published

Each line is a JSON object; other fields are ignored. `published_pairs` reads data sets in the layouts of their authors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shaketable.core.errors import BadInput, quote_value, truncate
from shaketable.datasets.sample import SAMPLE_FOLDER
from shaketable.files.reading import parse_json, read_lines

BUNDLED_FOLDER = SAMPLE_FOLDER / "pairs"
"""The folder of the bundled pairs, with one file for each probe."""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PairRow:
    """Two texts; pairs share a `qid` if they have the same query or source, such as rewrites of one sentence.

    `query` is "" if the probe derives it from the texts, and None if it is missing.
    """

    qid: str
    first: str
    second: str
    query: str | None = ""
    grade: int | None = None
    title: str = ""
    """The title of both texts."""


@dataclass(frozen=True, slots=True)
class CrossedPair:
    """Two queries and two similar texts; each text answers one of the queries."""

    qid: str
    first_query: str
    second_query: str
    first: str
    second: str


@dataclass(frozen=True)
class PairDataset:
    """A data set as its authors publish it: how to find its files at a path and how to read them.

    `layout` describes the expected files, `publication` their source.
    """

    name: str
    layout: str
    publication: str
    find_files: Callable[[Path], Sequence[Path]]

    def unavailable_reason(self, path: str) -> str:
        """Return the reason why a path has no files to read; "" if it has some."""
        if self.find_files(Path(path)):
            return ""
        return (
            f"{self.name} is not at {quote_value(path)}: that should be {self.layout}; it is published as "
            f"{self.publication}"
        )

    def require_files(self, path: str) -> Sequence[Path]:
        """Return the files at a path; raise `BadInput` if there are none."""
        if why := self.unavailable_reason(path):
            raise BadInput(why)
        return self.find_files(Path(path))


def read_json_objects(path: Path, required: Sequence[str], non_empty: bool = True) -> Iterator[tuple[int, Row]]:
    """Yield line number and fields of each JSON object; required fields must be strings, and `non_empty` by default."""
    for number, line in read_lines(path):
        row = parse_json(line, path, number)
        if not isinstance(row, dict):
            raise BadInput(
                f"is not an object of JSON{' with ' if required else ''}{_join_quoted(required)}", path, number
            )
        check_texts(row, required, path, number, non_empty)
        yield number, row


def check_texts(row: Row, required: Sequence[str], path: Path, number: int, non_empty: bool = True) -> None:
    """Refuse a row in which a required field is missing, is not a string, or is empty."""
    for name in required:
        if name not in row:
            there = truncate(", ".join(row)) or "nothing"
            raise BadInput(
                f'has no "{name}"; a line needs {_join_quoted(required)}, this one has: {there}', path, number
            )
        if not isinstance(row[name], str):
            raise BadInput(f'"{name}" should be a text, not {quote_value(row[name])}', path, number)
        if non_empty and not row[name].strip():
            raise BadInput(f'"{name}" is empty', path, number)


def get_row_id(row: Row, number: int, path: Path) -> str:
    """Return the id of a row, a string or a whole number; the default is the line number."""
    name = row.get("id", number)
    if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
        raise BadInput(f'"id" should be a text or a whole number, not {quote_value(name)}', path, number)
    return str(name)


def _join_quoted(names: Sequence[str]) -> str:
    quotes = [f'"{name}"' for name in names]
    return " and ".join(part for part in (", ".join(quotes[:-1]), *quotes[-1:]) if part)


def find_json_files(path: Path) -> Sequence[Path]:
    """Return the path if it is a JSON lines file, or the JSON lines files in the folder."""
    if path.is_file():
        return [path] if ".jsonl" in path.suffixes else []
    return sorted(p for p in path.glob("*.jsonl*") if p.suffix in (".jsonl", ".gz")) if path.is_dir() else []


USER_PAIRS = PairDataset(
    "a file of pairs",
    'a JSONL file of lines with "query", "a" and "b"',
    "no data set: write your own",
    find_json_files,
)
CROSSED_FIELDS = (("query_a", "query_b", "a", "b"), ("q1", "q2", "doc1", "doc2"))
"""The field names of crossed pairs: Shaketable's and NevIR's."""


def read_pairs(path: Path) -> Iterator[PairRow]:
    """Yield pairs from lines with query, a and b, and optionally a title and a grade of both texts.

    Pairs of one query share its id, which is "query_id", or else the id of the first line with this query: they are
    not independent, so intervals must be over queries.
    """
    first_ids: dict[str, str] = {}
    for number, row in read_json_objects(path, ("query", "a", "b")):
        grade = row.get("grade")
        if grade is not None and (isinstance(grade, bool) or not isinstance(grade, int)):
            raise BadInput(f'"grade" should be a whole number, not {quote_value(grade)}', path, number)
        check_texts(row, [name for name in ("title", "query_id") if name in row], path, number, non_empty=False)
        qid = row.get("query_id") or first_ids.setdefault(row["query"], get_row_id(row, number, path))
        yield PairRow(qid, row["a"], row["b"], row["query"], grade, row.get("title", ""))


def read_crossed_pairs(path: Path) -> Iterator[CrossedPair]:
    """Yield crossed pairs, with Shaketable's field names or NevIR's; each pair has its own id."""
    first_lines: dict[str, int] = {}
    for number, row in read_json_objects(path, ()):
        pair = parse_crossed_pair(row, path, number)
        if (first := first_lines.setdefault(pair.qid, number)) != number:
            raise BadInput(f"the id {quote_value(pair.qid)} is taken; line {first} has it too", path, number)
        yield pair


def parse_crossed_pair(row: Row, path: Path, number: int) -> CrossedPair:
    """Return the crossed pair of a line, with Shaketable's field names or NevIR's."""
    names = next((names for names in CROSSED_FIELDS if set(names) & row.keys()), CROSSED_FIELDS[0])
    check_texts(row, names, path, number)
    return CrossedPair(get_row_id(row, number, path), *(row[name] for name in names))


def is_crossed(row: Row) -> bool:
    """Return True if a line has the two queries of a crossed pair."""
    return any(set(names[:2]) <= row.keys() for names in CROSSED_FIELDS)


def read_bundled_pairs(name: str) -> Iterator[PairRow]:
    """Yield the bundled pairs of a probe."""
    return read_pairs(BUNDLED_FOLDER / f"{name}.jsonl")


def read_bundled_crossed_pairs(name: str) -> Iterator[CrossedPair]:
    """Yield the bundled crossed pairs of a probe."""
    return read_crossed_pairs(BUNDLED_FOLDER / f"{name}.jsonl")

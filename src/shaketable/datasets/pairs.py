"""Pairs of texts that differ in one thing, in our own layout: those of a user, and those that come with the package.

    {"id", "query", "a", "b"}                       a query and two texts
    {"id", "query_a", "query_b", "a", "b"}          two queries and two texts: a answers query_a, b answers query_b
    {"id", "q1", "q2", "doc1", "doc2"}              the same, as NevIR is published

A line is an object of JSON; other fields are left alone. `published_pairs` reads data sets in the layouts of their
authors.
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
"""The pairs that come with the package, a file for each probe."""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PairRow:
    """Two texts; `qid` names what pairs have in common: one sentence has several rewrites, one question many texts.

    `query` is "" where one is to be derived from the texts, and None where it should be known and is not.
    """

    qid: str
    first: str
    second: str
    query: str | None = ""
    grade: int | None = None


@dataclass(frozen=True, slots=True)
class CrossedPair:
    """Two queries and two texts that differ in little: each text is right for one of the queries."""

    qid: str
    first_query: str
    second_query: str
    first: str
    second: str


@dataclass(frozen=True)
class PairDataset:
    """A data set as its authors publish it: which files of it a path has, and how to read them.

    `layout` says what files there should be, `publication` where they are from.
    """

    name: str
    layout: str
    publication: str
    find_files: Callable[[Path], Sequence[Path]]

    def unavailable_reason(self, path: str) -> str:
        """Say why there is nothing to read at a path; "" if there is."""
        if self.find_files(Path(path)):
            return ""
        return (
            f"{self.name} is not at {quote_value(path)}: that should be {self.layout}; it is published as "
            f"{self.publication}"
        )

    def require_files(self, path: str) -> Sequence[Path]:
        """Return the files that a path has; `BadInput` if it has none."""
        if why := self.unavailable_reason(path):
            raise BadInput(why)
        return self.find_files(Path(path))


def read_json_objects(path: Path, required: Sequence[str], non_empty: bool = True) -> Iterator[tuple[int, Row]]:
    """Yield number and fields of each line of JSON; required fields are texts, `non_empty` if that is asked for."""
    for number, line in read_lines(path):
        row = parse_json(line, path, number)
        if not isinstance(row, dict):
            raise BadInput(
                f"is not an object of JSON{' with ' if required else ''}{_join_quoted(required)}", path, number
            )
        check_texts(row, required, path, number, non_empty)
        yield number, row


def check_texts(row: Row, required: Sequence[str], path: Path, number: int, non_empty: bool = True) -> None:
    """Refuse a row in which a field is missing, is no text, or is empty."""
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
    """Return the id of a row, a text or a whole number; without one it is the number of the line."""
    name = row.get("id", number)
    if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
        raise BadInput(f'"id" should be a text or a whole number, not {quote_value(name)}', path, number)
    return str(name)


def _join_quoted(names: Sequence[str]) -> str:
    quotes = [f'"{name}"' for name in names]
    return " and ".join(part for part in (", ".join(quotes[:-1]), *quotes[-1:]) if part)


def find_json_files(path: Path) -> Sequence[Path]:
    """Return the path itself, if it is a file of JSON lines, or such files in the folder that it is."""
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
"""What the queries and texts of crossed pairs are called: by us, by NevIR."""


def read_pairs(path: Path) -> Iterator[PairRow]:
    """Read pairs from lines with query, a and b; a grade of both texts may stand with them."""
    for number, row in read_json_objects(path, ("query", "a", "b")):
        grade = row.get("grade")
        if grade is not None and (isinstance(grade, bool) or not isinstance(grade, int)):
            raise BadInput(f'"grade" should be a whole number, not {quote_value(grade)}', path, number)
        yield PairRow(get_row_id(row, number, path), row["a"], row["b"], row["query"], grade)


def read_crossed_pairs(path: Path) -> Iterator[CrossedPair]:
    """Read crossed pairs, by our names or by NevIR's. Each has an id of its own: pairs are counted by it."""
    first_lines: dict[str, int] = {}
    for number, row in read_json_objects(path, ()):
        names = next((names for names in CROSSED_FIELDS if set(names) & row.keys()), CROSSED_FIELDS[0])
        check_texts(row, names, path, number)
        qid = get_row_id(row, number, path)
        if (first := first_lines.setdefault(qid, number)) != number:
            raise BadInput(f"the id {quote_value(qid)} is taken; line {first} has it too", path, number)
        yield CrossedPair(qid, *(row[name] for name in names))


def read_bundled_pairs(name: str) -> Iterator[PairRow]:
    """Read the pairs for a probe that come with the package."""
    return read_pairs(BUNDLED_FOLDER / f"{name}.jsonl")


def read_bundled_crossed_pairs(name: str) -> Iterator[CrossedPair]:
    """Read the crossed pairs for a probe that come with the package."""
    return read_crossed_pairs(BUNDLED_FOLDER / f"{name}.jsonl")

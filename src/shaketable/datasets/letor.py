"""Feature vectors for learning to rank: reading and writing of LETOR (SVMlight) files, and their matrix.

    2 qid:10 1:0.5 3:0.25 # docid = GX001-02-03

A line has a label, a query, features numbered from 1 upwards (omitted features are 0), and a comment that may name the
document. Rows of a query are contiguous. A line "# features: tf(title) idf(title)" names the columns. Files may be
gzipped.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shaketable.core.errors import BadInput, quote_value
from shaketable.datasets.limits import (
    CONTROL_BYTES,
    MAX_CELLS_PER_VALUE,
    MAX_FEATURES,
    MAX_LABEL,
    MAX_TABLE_CELLS,
    UNCHECKED_TABLE_CELLS,
    check_id,
)
from shaketable.files.atomic import atomic_write
from shaketable.files.reading import parse_floats, parse_int, read_lines, split_columns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_LETOR_LABEL = MAX_LABEL  # gains are 2^label - 1 and must fit 32 bits
MAX_FEATURE_VALUE = float(np.finfo(np.float32).max) * (
    1 + 2**-26
)  # printing the largest value with few digits rounds it up
BLOCK_ROWS = 4096  # rows read before they are packed
CELL_PATTERN = re.compile(r"[0-9]+:[!-9;-~]+")
CELLS_PATTERN = re.compile(rf"(?:{CELL_PATTERN.pattern}(?:[ \t]+{CELL_PATTERN.pattern})*)?[ \t]*")
DOCNO_PATTERN = re.compile(r"\bdocid\s*=\s*([^ \t]+)")
FEATURE_NAMES_PATTERN = re.compile(r"#\s*features:\s*(.*)")


@dataclass(frozen=True, eq=False)
class Letor:
    """Rows of features with their labels, grouped by query: the rows of query j are `starts[j]:starts[j+1]`.

    Column i is feature i + 1 of a file; `names` holds the column names if they are known. `unscaled` holds the rows
    before `normalise`, for models trained on unscaled rows.
    """

    features: NDArray[np.float32]
    labels: Ints
    starts: Ints
    qids: tuple[str, ...]
    docnos: tuple[str, ...]
    names: tuple[str, ...] = ()
    source: str = ""
    unscaled: Letor | None = None

    @property
    def query_count(self) -> int:
        return len(self.qids)

    @property
    def row_count(self) -> int:
        return len(self.labels)

    @property
    def feature_count(self) -> int:
        return int(self.features.shape[1])

    @cached_property
    def list_sizes(self) -> Ints:
        """The number of documents of each query."""
        return np.diff(self.starts)

    @cached_property
    def query_numbers(self) -> Ints:
        """The query number of each row."""
        return np.repeat(np.arange(self.query_count), self.list_sizes)

    @cached_property
    def mixed_labels(self) -> NDArray[np.bool_]:
        """A mask of the queries whose documents differ in label; only these give training pairs."""
        if not self.query_count:
            return np.zeros(0, np.bool_)
        first = self.starts[:-1]
        different: NDArray[np.bool_] = np.maximum.reduceat(self.labels, first) != np.minimum.reduceat(
            self.labels, first
        )
        return different

    def select_queries(self, queries: Sequence[int] | Ints) -> Letor:
        """Return the queries with these numbers, in the given order."""
        chosen = np.asarray(queries, dtype=np.int64)
        sizes = self.list_sizes[chosen]
        starts = np.concatenate(([0], np.cumsum(sizes)))
        rows = np.arange(starts[-1]) + np.repeat(self.starts[chosen] - starts[:-1], sizes)
        docnos = tuple(self.docnos[row] for row in rows)
        qids = tuple(self.qids[query] for query in chosen)
        raw = self.unscaled and self.unscaled.select_queries(chosen)
        return Letor(self.features[rows], self.labels[rows], starts, qids, docnos, self.names, self.source, raw)

    def normalise(self) -> Letor:
        """Return a copy with each feature scaled to [0, 1] within its query; the operation is idempotent."""
        features = minmax_scale(self.features, self.starts).astype(np.float32)
        raw = self.unscaled or self
        return Letor(features, self.labels, self.starts, self.qids, self.docnos, self.names, self.source, raw)

    def to_qrels(self) -> dict[str, dict[str, int]]:
        """Return the labels as judgements."""
        return {qid: dict(zip(d, map(int, labels), strict=True)) for qid, d, labels in self._iter_lists(self.labels)}

    def to_run(self, scores: NDArray[np.floating[Any]]) -> dict[str, dict[str, float]]:
        """Return the scores of the rows as a run."""
        return {qid: dict(zip(d, map(float, row), strict=True)) for qid, d, row in self._iter_lists(scores)}

    def _iter_lists(self, values: NDArray[Any]) -> Iterator[tuple[str, tuple[str, ...], NDArray[Any]]]:
        for qid, start, end in zip(self.qids, self.starts[:-1], self.starts[1:], strict=True):
            yield qid, self.docnos[start:end], values[start:end]


def minmax_scale(features: NDArray[np.floating[Any]], starts: Ints) -> Floats:
    """Return each column scaled to [0, 1] within each query: (x - min) / (max - min), and 0 where it is constant.

    >>> minmax_scale(np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0]]), np.array([0, 3]))
    array([[0. , 0. ],
           [1. , 0. ],
           [0.5, 0. ]])
    """
    scaled = features.astype(np.float64)
    filled = np.flatnonzero(np.diff(starts))  # reduceat does not support empty segments
    if not len(filled):
        return scaled
    first, sizes = starts[filled], np.diff(starts)[filled]
    low = np.minimum.reduceat(scaled, first, axis=0)
    span = np.maximum.reduceat(scaled, first, axis=0) - low
    span[span == 0] = np.inf
    scaled -= np.repeat(low, sizes, axis=0)
    scaled /= np.repeat(span, sizes, axis=0)
    return scaled


def read_letor(path: str | Path, feature_count: int | None = None) -> Letor:
    """Read a file in one pass. `feature_count` defaults to the largest feature number in the file."""
    path = Path(path)
    table = _Table(path, feature_count, feature_count or 0)
    names: tuple[str, ...] = ()
    row: _Row | None = None
    for number, line in read_lines(path, CONTROL_BYTES):
        if line.lstrip().startswith("#"):
            if listed := FEATURE_NAMES_PATTERN.match(line.lstrip()):
                names = tuple(listed.group(1).split())
            continue
        row = _parse_row(line, row, path, number)
        table.append(row, number)
    if not table.docnos:
        raise BadInput("is empty; LETOR lines were expected", path)
    width = table.width if feature_count is not None else max(table.width, len(names))
    if not 1 <= width <= MAX_FEATURES:
        raise BadInput(f"has {width:,} features; there should be 1 to {MAX_FEATURES:,}", path)
    if names and len(names) != width:
        raise BadInput(f"names {len(names)} features but has {width}", path)
    starts = np.concatenate(([0], np.cumsum(np.frombuffer(table.sizes, np.int64))))
    features, labels = table.to_dense(width), np.array(table.labels)
    return Letor(features, labels, starts, tuple(table.first_lines), tuple(table.docnos), names, str(path))


@dataclass(eq=False)
class _Table:
    """The rows of a file while it is read; features are packed in sparse blocks to save memory."""

    path: Path
    feature_count: int | None
    width: int
    labels: array[int] = field(default_factory=lambda: array("q"))
    sizes: array[int] = field(default_factory=lambda: array("q"))
    first_lines: dict[str, int] = field(default_factory=dict)
    docnos: list[str] = field(default_factory=list)
    _qid: str = ""
    _query_docnos: set[str] = field(default_factory=set)
    _value_count: int = 0
    _blocks: list[NDArray[np.float32]] = field(default_factory=list)
    _columns: array[int] = field(default_factory=lambda: array("q"))
    _values: array[float] = field(default_factory=lambda: array("d"))
    _lengths: array[int] = field(default_factory=lambda: array("q"))

    def append(self, row: _Row, number: int) -> None:
        """Add a row; raise `BadInput` if it contradicts the previous rows."""
        last = row.columns[-1] if row.columns else 0
        if self.feature_count is not None and last > self.feature_count:
            raise BadInput(f"has feature {last}, but there should be {self.feature_count} features", self.path, number)
        self._append_docno(row, number)
        self.labels.append(row.label)
        self._columns.extend(row.columns)
        self._values.extend(row.values)
        self._lengths.append(len(row.columns))
        self.width = max(self.width, last)
        self._value_count += len(row.columns)
        count, given = len(self.docnos), self._value_count
        if count * self.width > min(MAX_TABLE_CELLS, max(UNCHECKED_TABLE_CELLS, MAX_CELLS_PER_VALUE * given)):
            table = f"a table of {count:,} rows and {self.width:,} features with {given:,} values in it"
            raise BadInput(f"makes {table}, which is too large", self.path, number)
        if count % BLOCK_ROWS == 0:
            self._pack_block()

    def _append_docno(self, row: _Row, number: int) -> None:
        if not self.sizes or row.qid != self._qid:
            if (first := self.first_lines.setdefault(row.qid, number)) != number:
                began = f"query {quote_value(row.qid)} began on line {first}"
                raise BadInput(
                    f"{began} and rows of other queries come in between; put its rows together", self.path, number
                )
            self.sizes.append(0)
            self._query_docnos.clear()
            self._qid = row.qid
        self.sizes[-1] += 1
        docno = row.docno or f"{row.qid}-{self.sizes[-1]}"
        if docno in self._query_docnos:
            twice = f"query {quote_value(row.qid)} has the document {quote_value(docno)} twice"
            raise BadInput(twice, self.path, number)
        self._query_docnos.add(docno)
        self.docnos.append(docno)

    def _pack_block(self) -> None:
        self._blocks.append(_to_dense(self._columns, self._values, self._lengths))
        self._columns, self._values, self._lengths = array("q"), array("d"), array("q")

    def to_dense(self, width: int) -> NDArray[np.float32]:
        """Return the features of all rows [rows, width] and empty the table."""
        self._pack_block()
        features = np.zeros((len(self.docnos), width), np.float32)
        end = len(features)
        while self._blocks:  # free each block once it is copied
            block = self._blocks.pop()
            end -= len(block)
            features[end : end + len(block), : block.shape[1]] = block
        return features


def write_letor(letor: Letor, path: str | Path) -> None:
    """Write LETOR lines without zeros, with enough digits that `read_letor` returns the same values."""
    path = Path(path)
    for name in letor.qids + letor.docnos + letor.names:
        check_id(name, "id", path)
    if hashed := next((qid for qid in letor.qids if "#" in qid), None):
        raise BadInput(f"the query id {quote_value(hashed)} contains #, which begins a comment", path)
    with atomic_write(path) as out:
        if letor.names:
            out.write(f"# features: {' '.join(letor.names)}\n")
        widest = letor.feature_count - 1  # the first row always includes the last feature, to keep the width
        for row, (owner, docno) in enumerate(zip(letor.query_numbers, letor.docnos, strict=True)):
            values = letor.features[row]
            shown = np.flatnonzero(values).tolist()
            if row == 0 and widest >= 0 and widest not in shown:
                shown.append(widest)
            cells = "".join(f" {column + 1}:{values[column]!s}" for column in shown)
            out.write(f"{letor.labels[row]} qid:{letor.qids[owner]}{cells} # docid = {docno}\n")


class _Row(NamedTuple):
    label: int
    qid: str
    indices: list[str]
    columns: list[int]
    values: list[float]
    docno: str


def _parse_row(line: str, before: _Row | None, path: Path, number: int) -> _Row:
    """Parse and check one line; reuse the columns of the previous row if the features are the same."""
    body, _, comment = line.partition("#")
    text, *rest = split_columns(body, 2)
    try:
        label = parse_int(text)
    except ValueError:
        raise BadInput(
            f"begins with {quote_value(text)}; a label, a whole number, was expected", path, number
        ) from None
    if not 0 <= label <= MAX_LETOR_LABEL:
        message = (
            f"the label is {quote_value(label)}; labels are 0 to {MAX_LETOR_LABEL}, because the gain is 2^label - 1"
        )
        raise BadInput(message, path, number)
    if not rest or not rest[0].startswith("qid:") or rest[0] == "qid:":
        raise BadInput("has no query: qid:ID should follow the label", path, number)
    qid = rest[0].removeprefix("qid:")
    check_id(qid, "query id", path, number)
    features = rest[1] if len(rest) > 1 else ""
    if not CELLS_PATTERN.fullmatch(features):
        wrong = next((cell for cell in split_columns(features) if not CELL_PATTERN.fullmatch(cell)), features)
        raise BadInput(f"{quote_value(wrong)} is not a feature; number:value was expected", path, number)
    cells = features.replace(":", " ").split()
    indices = cells[::2]
    places = before.columns if before and indices == before.indices else _parse_columns(indices, path, number)
    try:
        values = parse_floats(cells[1::2])
    except ValueError as error:
        raise BadInput(f"has a feature that is not a number: {error}", path, number) from None
    if not sum(map(abs, values)) <= MAX_FEATURE_VALUE:  # faster than a check of each value, and false for NaN
        for column, value in zip(places, values, strict=True):
            if not -MAX_FEATURE_VALUE <= value <= MAX_FEATURE_VALUE:
                raise BadInput(f"feature {column} is {value}, not a finite 32-bit number", path, number)
    named = DOCNO_PATTERN.search(comment) if comment else None
    docno = named.group(1) if named else ""
    if docno:
        check_id(docno, "document id", path, number)
    return _Row(label, qid, indices, places, values, docno)


def _parse_columns(indices: list[str], path: Path, number: int) -> list[int]:
    """Return the column numbers; refuse feature numbers that do not increase or exceed the limit."""
    if vast := next((text for text in indices if len(text) > 9 or int(text) > MAX_FEATURES), None):
        raise BadInput(f"has a feature {quote_value(vast)}; features are numbered to {MAX_FEATURES:,}", path, number)
    found = list(map(int, indices))
    if found and found[0] < 1:
        raise BadInput(f"has a feature {found[0]}; features are numbered from 1", path, number)
    for left, right in pairwise(found):
        if left >= right:
            message = f"feature {right} comes after {left}; features should be in increasing order"
            raise BadInput(message, path, number)
    return found


def _to_dense(columns: array[int], values: array[float], sizes: array[int]) -> NDArray[np.float32]:
    """Return sparse rows as a dense matrix, as wide as their largest feature."""
    at = np.array(columns, np.int64)
    rows = np.repeat(np.arange(len(sizes)), np.array(sizes, np.int64))
    dense = np.zeros((len(sizes), int(at.max(initial=0))), np.float32)
    dense[rows, at - 1] = np.array(values, np.float64)
    return dense

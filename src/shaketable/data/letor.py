"""Feature vectors for learning to rank: LETOR (SVMlight) lines in and out, and the matrix they are.

    2 qid:10 1:0.5 3:0.25 # docid = GX001-02-03

A label, a query, features numbered from 1 upwards (those left out are 0), and a comment that may name the document.
Rows of a query stand together. A line "# features: tf(title) idf(title)" says what the columns are. Any file may be
gzipped.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shaketable.data.bounds import CELLS, CONTROL, EMPTY, FEATURES, FULL, LABEL, check_id
from shaketable.errors import BadInput, quoted
from shaketable.files import columns, lines, numbers, whole_number, written_whole

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST = LABEL  # the largest label: gains are 2^label - 1 and live in 32 bits
LIMIT = float(np.finfo(np.float32).max) * (1 + 2**-26)  # in few digits the largest comes out a little larger
BLOCK = 4096  # rows read before they are laid out
CELL = re.compile(r"[0-9]+:[!-9;-~]+")
LINE = re.compile(rf"(?:{CELL.pattern}(?:[ \t]+{CELL.pattern})*)?[ \t]*")
DOCNO = re.compile(r"\bdocid\s*=\s*([^ \t]+)")
NAMES = re.compile(r"#\s*features:\s*(.*)")


@dataclass(frozen=True, eq=False)
class Letor:
    """Rows of features with their labels, query by query: rows of query j are `starts[j]:starts[j+1]`.

    Column i is feature i + 1 of a file; `names` says what the columns are, where that is known. `unscaled` has the rows
    as they were before `normalised`, for whoever learned from such rows.
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
    def queries(self) -> int:
        return len(self.qids)

    @property
    def rows(self) -> int:
        return len(self.labels)

    @property
    def dims(self) -> int:
        return int(self.features.shape[1])

    @cached_property
    def sizes(self) -> Ints:
        """How many documents each query has."""
        return np.diff(self.starts)

    @cached_property
    def owners(self) -> Ints:
        """The query of each row, by number."""
        return np.repeat(np.arange(self.queries), self.sizes)

    @cached_property
    def telling(self) -> NDArray[np.bool_]:
        """Which queries have documents of different labels: only those teach an order."""
        if not self.queries:
            return np.zeros(0, np.bool_)
        first = self.starts[:-1]
        different: NDArray[np.bool_] = np.maximum.reduceat(self.labels, first) != np.minimum.reduceat(
            self.labels, first
        )
        return different

    def select(self, queries: Sequence[int] | Ints) -> Letor:
        """Some of the queries, by number, in the order asked for."""
        chosen = np.asarray(queries, dtype=np.int64)
        sizes = self.sizes[chosen]
        starts = np.concatenate(([0], np.cumsum(sizes)))
        rows = np.arange(starts[-1]) + np.repeat(self.starts[chosen] - starts[:-1], sizes)
        docnos = tuple(self.docnos[row] for row in rows)
        qids = tuple(self.qids[query] for query in chosen)
        raw = self.unscaled and self.unscaled.select(chosen)
        return Letor(self.features[rows], self.labels[rows], starts, qids, docnos, self.names, self.source, raw)

    def normalised(self) -> Letor:
        """The same with each feature brought to [0, 1] within its query; done twice, it is as done once."""
        features = minmax(self.features, self.starts).astype(np.float32)
        raw = self.unscaled or self
        return Letor(features, self.labels, self.starts, self.qids, self.docnos, self.names, self.source, raw)

    def qrels(self) -> dict[str, dict[str, int]]:
        """The labels as judgements."""
        return {qid: dict(zip(d, map(int, labels), strict=True)) for qid, d, labels in self._lists(self.labels)}

    def run(self, scores: NDArray[np.floating[Any]]) -> dict[str, dict[str, float]]:
        """Scores of the rows as a run."""
        return {qid: dict(zip(d, map(float, row), strict=True)) for qid, d, row in self._lists(scores)}

    def _lists(self, values: NDArray[Any]) -> Iterator[tuple[str, tuple[str, ...], NDArray[Any]]]:
        for qid, start, end in zip(self.qids, self.starts[:-1], self.starts[1:], strict=True):
            yield qid, self.docnos[start:end], values[start:end]


def minmax(features: NDArray[np.floating[Any]], starts: Ints) -> Floats:
    """Each column brought to [0, 1] within each query: (x - min) / (max - min), and 0 where it is constant.

    >>> minmax(np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0]]), np.array([0, 3]))
    array([[0. , 0. ],
           [1. , 0. ],
           [0.5, 0. ]])
    """
    scaled = features.astype(np.float64)
    filled = np.flatnonzero(np.diff(starts))  # reduceat knows no empty segment
    if not len(filled):
        return scaled
    first, sizes = starts[filled], np.diff(starts)[filled]
    low = np.minimum.reduceat(scaled, first, axis=0)
    span = np.maximum.reduceat(scaled, first, axis=0) - low
    span[span == 0] = np.inf
    scaled -= np.repeat(low, sizes, axis=0)
    scaled /= np.repeat(span, sizes, axis=0)
    return scaled


def read_letor(path: str | Path, dims: int | None = None) -> Letor:
    """The rows of a file, read once. `dims` is the number of features, the largest in the file if not given."""
    path = Path(path)
    blocks: list[NDArray[np.float32]] = []
    labels, sizes = array("q"), array("q")
    qids: dict[str, int] = {}
    docnos: list[str] = []
    names: tuple[str, ...] = ()
    mine: set[str] = set()  # documents of the query that is being read
    places, values, filled = array("q"), array("d"), array("q")
    row: _Row | None = None
    last, count, given, width = "", 0, 0, dims or 0
    for number, line in lines(path, CONTROL):
        if line.lstrip().startswith("#"):
            if listed := NAMES.match(line.lstrip()):
                names = tuple(listed.group(1).split())
            continue
        row = _row(line, row, path, number)
        if dims is not None and row.columns and row.columns[-1] > dims:
            raise BadInput(f"has feature {row.columns[-1]}, but there should be {dims} features", path, number)
        if not sizes or row.qid != last:
            if (first := qids.setdefault(row.qid, number)) != number:
                began = f"query {quoted(row.qid)} began on line {first}"
                raise BadInput(f"{began} and others came between; put its rows together", path, number)
            sizes.append(0)
            mine.clear()
            last = row.qid
        sizes[-1] += 1
        docno = row.docno or f"{row.qid}-{sizes[-1]}"
        if docno in mine:
            raise BadInput(f"query {quoted(row.qid)} has the document {quoted(docno)} twice", path, number)
        mine.add(docno)
        docnos.append(docno)
        labels.append(row.label)
        places.extend(row.columns)
        values.extend(row.values)
        filled.append(len(row.columns))
        count += 1
        if row.columns and row.columns[-1] > width:
            width = row.columns[-1]
        given += len(row.columns)
        if count * width > min(CELLS, max(FULL, EMPTY * given)):
            table = f"a table of {count:,} rows and {width:,} features with {given:,} values in it"
            raise BadInput(f"makes {table}, which is too large", path, number)
        if count % BLOCK == 0:
            blocks.append(_dense(places, values, filled))
            places, values, filled = array("q"), array("d"), array("q")
    if not count:
        raise BadInput("is empty; LETOR lines were expected", path)
    blocks.append(_dense(places, values, filled))
    if dims is None:
        width = max(width, len(names))
    if not 1 <= width <= FEATURES:
        raise BadInput(f"has {width:,} features; there should be 1 to {FEATURES:,}", path)
    if names and len(names) != width:
        raise BadInput(f"names {len(names)} features and has {width}", path)
    features = np.zeros((count, width), np.float32)
    at = count
    while blocks:  # each is given back as soon as it is in place
        block = blocks.pop()
        at -= len(block)
        features[at : at + len(block), : block.shape[1]] = block
    starts = np.concatenate(([0], np.cumsum(np.frombuffer(sizes, np.int64))))
    return Letor(features, np.array(labels), starts, tuple(qids), tuple(docnos), names, str(path))


def write_letor(letor: Letor, path: str | Path) -> None:
    """LETOR lines, zeros left out, values with as many digits as tell them apart; `read_letor` gives the same back."""
    path = Path(path)
    for name in letor.qids + letor.docnos + letor.names:
        check_id(name, "id", path)
    if hashed := next((qid for qid in letor.qids if "#" in qid), None):
        raise BadInput(f"the query id {quoted(hashed)} has a # in it, where a comment would begin", path)
    with written_whole(path) as out:
        if letor.names:
            out.write(f"# features: {' '.join(letor.names)}\n")
        widest = letor.dims - 1  # the first row names the last feature, zero or not: so the width is kept
        for row, (owner, docno) in enumerate(zip(letor.owners, letor.docnos, strict=True)):
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


def _row(line: str, before: _Row | None, path: Path, number: int) -> _Row:
    """One line, read and checked; most name the same features as the one before, whose numbers are then taken over."""
    body, _, comment = line.partition("#")
    text, *rest = columns(body, 2)
    try:
        label = whole_number(text)
    except ValueError:
        raise BadInput(f"begins with {quoted(text)}; a label, a whole number, was expected", path, number) from None
    if not 0 <= label <= MOST:
        message = f"the label is {quoted(label)}; labels are 0 to {MOST}, for the gain is 2^label - 1"
        raise BadInput(message, path, number)
    if not rest or not rest[0].startswith("qid:") or rest[0] == "qid:":
        raise BadInput("has no query: qid:ID should follow the label", path, number)
    qid = rest[0].removeprefix("qid:")
    check_id(qid, "query id", path, number)
    features = rest[1] if len(rest) > 1 else ""
    if not LINE.fullmatch(features):
        wrong = next((cell for cell in columns(features) if not CELL.fullmatch(cell)), features)
        raise BadInput(f"{quoted(wrong)} is not a feature; number:value was expected", path, number)
    cells = features.replace(":", " ").split()
    indices = cells[::2]
    places = before.columns if before and indices == before.indices else _columns(indices, path, number)
    try:
        values = numbers(cells[1::2])
    except ValueError as error:
        raise BadInput(f"has a feature that is no number: {error}", path, number) from None
    if not sum(map(abs, values)) <= LIMIT:  # quicker than one by one, and false for NaN
        for column, value in zip(places, values, strict=True):
            if not -LIMIT <= value <= LIMIT:
                raise BadInput(f"feature {column} is {value}, not a finite 32-bit number", path, number)
    named = DOCNO.search(comment) if comment else None
    docno = named.group(1) if named else ""
    if docno:
        check_id(docno, "document id", path, number)
    return _Row(label, qid, indices, places, values, docno)


def _columns(indices: list[str], path: Path, number: int) -> list[int]:
    """Numbers of features in increasing order, none of them beyond what can be laid out."""
    if vast := next((text for text in indices if len(text) > 9 or int(text) > FEATURES), None):
        raise BadInput(f"has a feature {quoted(vast)}; features are numbered to {FEATURES:,}", path, number)
    found = list(map(int, indices))
    if found and found[0] < 1:
        raise BadInput(f"has a feature {found[0]}; features are numbered from 1", path, number)
    for left, right in pairwise(found):
        if left >= right:
            message = f"feature {right} comes after {left}; features should be in increasing order"
            raise BadInput(message, path, number)
    return found


def _dense(columns: array[int], values: array[float], sizes: array[int]) -> NDArray[np.float32]:
    """Sparse rows laid out, as wide as their largest feature."""
    at = np.array(columns, np.int64)
    rows = np.repeat(np.arange(len(sizes)), np.array(sizes, np.int64))
    dense = np.zeros((len(sizes), int(at.max(initial=0))), np.float32)
    dense[rows, at - 1] = np.array(values, np.float64)
    return dense

"""Measure and match: two documents of one query that differ in one characteristic and agree in others.

MacAvaney, Feldman, Goharian, Downey, Cohan. ABNIRML: Analyzing the behavior of neural IR models. TACL 2022, section 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shaketable.core.errors import BadInput, UnknownName, check_parameter
from shaketable.core.protocols import TextPair
from shaketable.core.seeding import make_numpy_rng
from shaketable.probes.batch import PairTable, ProbeBatch
from shaketable.probes.characteristics import (
    CHARACTERISTIC_TITLES,
    CHARACTERISTICS,
    PARSER_CHARACTERISTICS,
    Values,
    build_pools,
)
from shaketable.probes.context import JudgedDoc, ProbeContext

Indices = NDArray[np.int64]
MAX_PAIRS_PER_BLOCK = 1 << 21
"""Pairs compared in one block."""
MAX_PAIRS = 20_000_000
"""Maximum number of pairs to compare; a random sample of this size is drawn from more."""


@dataclass(frozen=True)
class MatchedPairs:
    """Pair judged documents that differ in the variable and agree in the controls.

    variable    the characteristic that differs; the document with more of it is first, or with less if `fewer`
    control     the characteristic that agrees, or several joined by +, such as length+sum_tf
    tolerance   the maximum difference of the controls: one number, or one for each control
    fewer       the document with less of the variable is first
    walk        the walk through sorted documents of the paper's code, which misses some pairs and repeats others
    unjudged    also use unjudged documents of the first-stage lists, unless relevance is a characteristic
    most        the maximum number of pairs to compare; a random sample is drawn from more
    terrier_stopwords  a file of Terrier's stop words; terms are then those of Terrier's index, as in the paper, and
                the words of the query are all kept
    """

    variable: str = "relevance"
    control: str = "length"
    tolerance: float | tuple[float, ...] = 0.0
    fewer: bool = False
    walk: bool = False
    unjudged: bool = False
    most: int = MAX_PAIRS
    terrier_stopwords: str = ""

    strategy: ClassVar[str] = "matching"
    symmetric: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in (self.variable, *self.controls):
            if name not in CHARACTERISTICS:
                raise UnknownName("characteristic", name, CHARACTERISTICS)
        if self.variable in self.controls:
            raise BadInput(f"{self.variable} cannot be both the variable and a control")
        spread = self.tolerances
        check_parameter(
            "matched", len(spread) == len(self.controls), "tolerance", "one number, or one for each control", spread
        )
        check_parameter("matched", all(one >= 0 for one in spread), "tolerance", "0 or more", self.tolerance)
        check_parameter("matched", self.most >= 1, "most", "1 or more", self.most)

    @property
    def controls(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.control.split("+"))

    @property
    def tolerances(self) -> tuple[float, ...]:
        given = self.tolerance
        return tuple(given) if isinstance(given, tuple) else (given,) * len(self.controls)

    @property
    def title(self) -> str:
        controls = [
            CHARACTERISTIC_TITLES[name] + (f" ± {spread:g}" if spread else "")
            for name, spread in zip(self.controls, self.tolerances, strict=True)
        ]
        ways = [*["walk"] * self.walk, *["Terrier"] * bool(self.terrier_stopwords)]
        counted = f" ({', '.join(ways)})" if ways else ""
        more = f"{'less ' if self.fewer else ''}{CHARACTERISTIC_TITLES[self.variable]}"
        return f"{more} | {', '.join(controls)}{counted}"

    def remark(self, context: ProbeContext) -> str:
        """Return a note if unjudged documents are included or pairs are sampled, or ""."""
        said = ["unjudged documents are included"] if self._includes_unjudged(context) else []
        possible = sum(len(docs) * (len(docs) - 1) for docs in context.get_documents(bool(said)).values())
        return "; ".join(said + ([f"at most {self.most:,} pairs were examined"] if possible > self.most else []))

    def _includes_unjudged(self, context: ProbeContext) -> bool:
        """Return True if unjudged documents are included: on request, or if there are no others."""
        return not self._uses_relevance and (self.unjudged or not context.judged_documents)

    @property
    def _uses_relevance(self) -> bool:
        return "relevance" in (self.variable, *self.controls)

    def unavailable_reason(self, context: ProbeContext) -> str:
        if not context.judged_documents and not (self._includes_unjudged(context) and context.first_stage_lists):
            return "the collection has no judgements of these queries"
        if self._uses_relevance and len({doc.grade for docs in context.judged_documents.values() for doc in docs}) < 2:
            return "all judged documents have the same grade"
        return ""

    def draw_pairs(self, context: ProbeContext) -> Iterator[TextPair]:
        """Yield the pairs one by one; `draw_batch` returns the same pairs as arrays, much faster."""
        docs, first, second = self._find_pairs(context)
        for a, b in zip(first.tolist(), second.tolist(), strict=True):
            grade = docs[a].grade if docs[a].grade == docs[b].grade else None
            yield TextPair(docs[a].query, docs[a].doc, docs[b].doc, docs[a].qid, grade=grade)

    def draw_batch(self, context: ProbeContext, pair_table: PairTable) -> ProbeBatch:
        """Return all pairs as arrays."""
        docs, first, second = self._find_pairs(context)
        used = set(first.tolist()) | set(second.tolist())
        numbers = np.array(
            [pair_table.get_or_add(doc.query, doc.doc) if i in used else -1 for i, doc in enumerate(docs)], int
        )
        grades = np.array([doc.grade for doc in docs], dtype=np.float64)
        same = np.where(grades[first] == grades[second], grades[first], np.nan)
        places = {qid: i for i, qid in enumerate(dict.fromkeys(docs[i].qid for i in sorted(used)))}
        query = np.array([places.get(doc.qid, -1) for doc in docs], int)
        return ProbeBatch(pair_table, numbers[first], numbers[second], query[first], same, tuple(places))

    def _find_pairs(self, context: ProbeContext) -> tuple[Sequence[JudgedDoc], Indices, Indices]:
        """Return the documents of all queries and the indices of the matched pairs."""
        if set(PARSER_CHARACTERISTICS) & {self.variable, *self.controls}:
            context.parse_many(
                doc.doc.body
                for docs in (context.judged_documents or context.get_documents(True)).values()
                for doc in docs
            )
        counting = context.count_as_terrier(self.terrier_stopwords) if self.terrier_stopwords else context
        some = build_pools(counting, include_unjudged=self._includes_unjudged(context))
        docs = [doc for pool in some.values() for doc in pool.docs]
        if not docs:
            return docs, np.zeros(0, np.int64), np.zeros(0, np.int64)
        sizes = [len(pool.docs) for pool in some.values()]
        query = np.repeat(np.arange(len(sizes), dtype=np.float64), sizes)[:, None]
        more = _stack_columns([pool.measure(self.variable) for pool in some.values()]) * (-1 if self.fewer else 1)
        controls = [_stack_columns([pool.measure(name) for pool in some.values()]) for name in self.controls]
        if self.walk:
            ends = np.cumsum([0, *sizes])
            parts = [slice(a, b) for a, b in pairwise(ends.tolist())]
            walks = [(at.start, *find_pairs_by_walk(more[at], controls[0][at], self.tolerances[0])) for at in parts]
            first, second = (np.concatenate([walk[0] + walk[side] for walk in walks]) for side in (1, 2))
            return docs, first, second
        rng = make_numpy_rng(context.seed, "pairs", self.title)
        return docs, *find_matched_pairs(more, [query, *controls], (0.0, *self.tolerances), self.most, rng)


def _stack_columns(values: Sequence[Values]) -> Values:
    """Return the values of all queries [documents, columns]; missing columns are zero."""
    columns = [_as_columns(some) for some in values]
    whole = np.zeros((sum(map(len, columns)), max(some.shape[1] for some in columns)))
    start = 0
    for some in columns:
        whole[start : start + len(some), : some.shape[1]] = some
        start += len(some)
    return whole


def _as_columns(values: Values) -> Values:
    return values if values.ndim == 2 else values[:, None]


def find_matched_pairs(
    variable: Values,
    controls: Sequence[Values],
    tolerances: Sequence[float],
    max_pairs: int = MAX_PAIRS,
    rng: np.random.Generator | None = None,
) -> tuple[Indices, Indices]:
    """Return all ordered pairs of rows that differ in the variable and agree in each control.

    Arrays are [rows, columns]. Controls agree if no column differs by more than the tolerance. The first row of a pair
    has more of the variable: no column has less, and one has more. Rows with NaN are in no pair. If there are more than
    `max_pairs` pairs to compare, a random sample of this size is drawn.

    >>> first, second = find_matched_pairs(np.array([[1.0], [3.0], [2.0]]), [np.array([[5.0], [5.0], [6.0]])], [0.0])
    >>> first.tolist(), second.tolist()
    ([1], [0])
    """
    whole = np.column_stack([variable, *controls])
    rows = np.flatnonzero(~np.isnan(whole).any(axis=1))
    if len(rows) < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    ranges = (
        _find_equal_ranges(rows, variable, controls)
        if not any(tolerances)
        else _find_near_ranges(rows, controls, tolerances)
    )
    firsts, seconds = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for a, b in ranges.iter_pairs(max_pairs, rng or np.random.default_rng(0)):
        for control, spread in zip(controls, tolerances, strict=True):
            if spread:
                alike = (np.abs(control[a] - control[b]) <= spread).all(axis=1)
                a, b = a[alike], b[alike]
        if any(tolerances) or variable.shape[1] > 1:
            d = variable[a] - variable[b]
            more = (d >= 0).all(axis=1) & (d > 0).any(axis=1)
            a, b = a[more], b[more]
        firsts.append(a)
        seconds.append(b)
    return np.concatenate(firsts), np.concatenate(seconds)


@dataclass(frozen=True, eq=False)
class RowRanges:
    """Pairs of rows: each row of `first` with the rows `others[start:stop]`."""

    first: Indices
    others: Indices
    start: Indices
    stop: Indices

    def iter_pairs(self, max_pairs: int, rng: np.random.Generator) -> Iterator[tuple[Indices, Indices]]:
        """Yield all pairs, or `max_pairs` random ones, in blocks."""
        counts = self.stop - self.start
        before = np.concatenate([[0], np.cumsum(counts)])
        if before[-1] > max_pairs:
            numbers = np.sort(rng.choice(before[-1], max_pairs, replace=False, shuffle=False))
            i = np.searchsorted(before, numbers, side="right") - 1
            yield self.first[i], self.others[self.start[i] + numbers - before[i]]
            return
        cuts = np.unique([*np.searchsorted(before, np.arange(0, before[-1], MAX_PAIRS_PER_BLOCK)), len(counts)])
        for r, s in pairwise(cuts.tolist()):
            here = counts[r:s]
            inside = np.arange(here.sum()) - np.repeat(before[r:s] - before[r], here)
            yield np.repeat(self.first[r:s], here), self.others[np.repeat(self.start[r:s], here) + inside]


def _find_equal_ranges(rows: Indices, variable: Values, controls: Sequence[Values]) -> RowRanges:
    """Return each row with the rows of equal controls and less of the variable, which are adjacent after sorting.

    A variable of several columns is sorted by its sum, because a row with more of the variable has a larger sum.
    """
    groups = np.unique(np.column_stack(controls)[rows], axis=0, return_inverse=True)[1].reshape(-1)
    total = variable[rows].sum(axis=1)
    order = np.lexsort((-total, groups))
    rows, groups, total = rows[order], groups[order], total[order]
    ends = np.flatnonzero(np.diff(groups)) + 1
    runs = np.flatnonzero((np.diff(groups) != 0) | (np.diff(total) != 0)) + 1
    at = np.arange(len(rows))
    stop = np.append(ends, len(rows))[np.searchsorted(ends, at, side="right")]
    start = np.append(runs, len(rows))[np.searchsorted(runs, at, side="right")]
    back = np.argsort(rows)
    return RowRanges(rows[back], rows, start[back], stop[back])


def _find_near_ranges(rows: Indices, controls: Sequence[Values], tolerances: Sequence[float]) -> RowRanges:
    """Return each row with the rows whose controls may agree: grouped by equal controls, sorted by the next one."""
    equal = [control[rows] for control, spread in zip(controls, tolerances, strict=True) if spread == 0]
    control, spread = next((c[rows], s) for c, s in zip(controls, tolerances, strict=True) if s)
    groups = np.zeros(len(rows))
    if equal:
        groups = np.unique(np.column_stack(equal), axis=0, return_inverse=True)[1].reshape(-1).astype(np.float64)
    inside, width = control.sum(axis=1), spread * control.shape[1] * (1 + 1e-9) + 1e-12
    key = groups * (np.ptp(inside) + 2 * width + 1) + inside
    order = np.argsort(key, kind="stable")
    rows, key = rows[order], key[order]
    back = np.argsort(rows)
    start, stop = np.searchsorted(key, key - width, side="left"), np.searchsorted(key, key + width, side="right")
    return RowRanges(rows[back], rows, start[back], stop[back])


def find_pairs_by_walk(variable: Values, control: Values, tolerance: float) -> tuple[Indices, Indices]:
    """Return the pairs that the paper's code finds.

    It walks from each document to the right, then to the left, until the first document that does not match. From the
    first document, the walk to the left starts at the end.
    """
    rows = np.flatnonzero(~np.isnan(np.column_stack([variable, control])).any(axis=1))
    rows = rows[np.argsort(control[rows].sum(axis=1), kind="stable")]
    found = [np.zeros((0, 2), np.int64)]
    for i, a in enumerate(rows):
        right = rows[i + 1 :]
        left = rows[i - 1 :: -1] if i else rows[::-1]
        for side in (right, left):
            stops = np.flatnonzero((np.abs(control[a] - control[side]) > tolerance).any(axis=1))
            near = side[: stops[0]] if len(stops) else side
            differences = variable[a] - variable[near]
            second = near[(differences >= 0).all(axis=1) & (differences > 0).any(axis=1)]
            found.append(np.column_stack([np.full_like(second, a), second]))
    first, second = np.concatenate(found).T
    return first, second

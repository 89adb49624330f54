"""The text pairs of a probe as arrays; each distinct text is stored once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Doc
from shaketable.core.protocols import Probe, Skipped, TextPair
from shaketable.probes.context import ProbeContext

Numbers = NDArray[np.int64]


@dataclass(eq=False)
class PairTable:
    """The distinct query-document pairs of all probes, which rankers score."""

    pairs: list[tuple[str, Doc]] = field(default_factory=list)
    _numbers: dict[tuple[str, Doc], int] = field(default_factory=dict, repr=False)
    _digests: dict[int, bytes] = field(default_factory=dict, repr=False)

    def get_or_add(self, query: str, doc: Doc) -> int:
        """Return the number of a query-document pair; a new pair is added."""
        number = self._numbers.setdefault((query, doc), len(self.pairs))
        if number == len(self.pairs):
            self.pairs.append((query, doc))
        return number

    def digest(self, number: int) -> bytes:
        """Return a hash of the texts of a query-document pair."""
        if number not in self._digests:
            query, doc = self.pairs[number]
            text = repr((query, doc.title, doc.body)).encode("utf-8", "surrogatepass")
            self._digests[number] = blake2b(text, digest_size=16).digest()
        return self._digests[number]


@dataclass(frozen=True, eq=False)
class ProbeBatch:
    """The text pairs of a probe: two entries of the pair table, a query and a grade (NaN if unknown) for each."""

    pair_table: PairTable
    first: Numbers
    second: Numbers
    query_indices: Numbers
    """The index of each query in `qids`."""
    grades: NDArray[np.float64]
    qids: tuple[str, ...]
    docnos: tuple[str, ...] = ()
    """The id of the original of each text pair; empty if there are none."""
    skipped_counts: Mapping[str, int] = field(default_factory=dict)
    """Number of skipped cases by reason."""

    @classmethod
    def empty(cls, pair_table: PairTable, skipped_counts: Mapping[str, int] | None = None) -> ProbeBatch:
        none = np.zeros(0, dtype=np.int64)
        return cls(pair_table, none, none, none, np.zeros(0), (), (), skipped_counts or {})

    def __len__(self) -> int:
        return len(self.first)

    def list_query_ids(self) -> list[str]:
        """Return the query id of each text pair."""
        return [self.qids[i] for i in self.query_indices.tolist()]

    def take_queries(self, qids: Collection[str], pair_table: PairTable) -> ProbeBatch:
        """Return the text pairs of some queries, as entries of another pair table."""
        kept = [qid for qid in self.qids if qid in qids]
        indices = np.array([kept.index(qid) if qid in qids else -1 for qid in self.qids], dtype=np.int64)
        mask = indices[self.query_indices] >= 0 if len(self) else np.zeros(0, dtype=bool)
        first, second = (
            np.array([pair_table.get_or_add(*self.pair_table.pairs[n]) for n in numbers[mask].tolist()], dtype=np.int64)
            for numbers in (self.first, self.second)
        )
        return ProbeBatch(
            pair_table,
            first,
            second,
            indices[self.query_indices[mask]],
            self.grades[mask],
            tuple(kept),
            tuple(np.array(self.docnos)[mask].tolist()) if self.docnos else (),
            self.skipped_counts,
        )

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the text pairs and their order; results with equal fingerprints use the same samples."""
        digest = blake2b(digest_size=16)
        used, places = np.unique(np.concatenate([self.first, self.second]), return_inverse=True)
        for number in used.tolist():
            digest.update(self.pair_table.digest(number))
        digest.update(places.astype("<i8").tobytes())
        return digest.hexdigest()


def draw_batch(probe: Probe, context: ProbeContext, pair_table: PairTable) -> ProbeBatch:
    """Return all text pairs of a probe; uses the probe's own `draw_batch` if it has one."""
    if hasattr(probe, "draw_batch"):
        drawn: ProbeBatch = probe.draw_batch(context, pair_table)
        return drawn
    omitted: Counter[str] = Counter()
    taken: list[TextPair] = []
    for one in probe.draw_pairs(context):
        if isinstance(one, Skipped):
            omitted[one.reason] += 1
        else:
            taken.append(one)
    return build_batch(taken, pair_table, omitted)


def build_batch(
    pairs: Sequence[TextPair], pair_table: PairTable, skipped_counts: Mapping[str, int] | None = None
) -> ProbeBatch:
    """Convert text pairs to arrays."""
    if not pairs:
        return ProbeBatch.empty(pair_table, skipped_counts)
    qids: dict[str, int] = {}
    return ProbeBatch(
        pair_table,
        np.array([pair_table.get_or_add(one.query, one.first) for one in pairs]),
        np.array([pair_table.get_or_add(one.query, one.second) for one in pairs]),
        np.array([qids.setdefault(one.qid or one.query, len(qids)) for one in pairs]),
        np.array([np.nan if one.grade is None else one.grade for one in pairs]),
        tuple(qids),
        tuple(one.docno for one in pairs) if any(one.docno for one in pairs) else (),
        skipped_counts or {},
    )

"""Minimal pairs: two texts with a small difference, such as a negation, that answer different queries.

For crossed pairs, each of two texts is right for one of two queries, and a ranker must get both directions right. A
ranker that ignores the query always gets exactly one right; random choice gets both right in a quarter of the pairs.

Weller, Lawrie, Van Durme. NevIR: Negation in neural information retrieval. EACL 2024.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shaketable.core.documents import Doc
from shaketable.core.protocols import TextPair
from shaketable.datasets.pairs import (
    USER_PAIRS,
    CrossedPair,
    PairDataset,
    PairRow,
    read_bundled_crossed_pairs,
    read_bundled_pairs,
    read_crossed_pairs,
    read_pairs,
)
from shaketable.datasets.published_pairs import NEVIR, SOURCE_BIAS
from shaketable.probes.context import ProbeContext
from shaketable.probes.dataset_probe import DatasetProbe


def make_both_directions(pair: CrossedPair) -> Iterator[TextPair]:
    """Yield the two text pairs of a crossed pair: each query with its right text first. They share the pair's id."""
    one, other = Doc(pair.first), Doc(pair.second)
    yield TextPair(pair.first_query, one, other, qid=pair.qid)
    yield TextPair(pair.second_query, other, one, qid=pair.qid)


@dataclass(frozen=True)
class _Minimal(DatasetProbe):
    """A probe of minimal pairs; `kind` names its bundled pairs."""

    strategy: ClassVar[str] = "minimal pair"
    kind: ClassVar[str]


@dataclass(frozen=True)
class _Crossed(_Minimal):
    """A probe of two queries and two texts in NevIR's layout; each text is right for one query."""

    crossed: ClassVar[bool] = True
    source: ClassVar[PairDataset] = NEVIR

    def draw_pairs(self, context: ProbeContext) -> Iterator[TextPair]:
        for pair in self._read_pairs():
            yield from make_both_directions(pair)

    def _read_pairs(self) -> Iterator[CrossedPair]:
        if not self.path:
            yield from read_bundled_crossed_pairs(self.kind)
            return
        files = self.source.require_files(self.path)
        for file in files:
            for pair in read_crossed_pairs(file):
                name = pair.qid if len(files) == 1 else f"{file.stem}-{pair.qid}"  # files may use the same ids
                yield CrossedPair(name, pair.first_query, pair.second_query, pair.first, pair.second)


@dataclass(frozen=True)
class _Sided(_Minimal):
    """A probe of one query and two texts."""

    source: ClassVar[PairDataset] = USER_PAIRS

    def draw_pairs(self, context: ProbeContext) -> Iterator[TextPair]:
        for pair in self._read_pairs():
            first, second = (Doc(text, pair.title) for text in (pair.first, pair.second))
            yield TextPair(pair.query or "", first, second, qid=pair.qid, grade=pair.grade)

    def _read_pairs(self) -> Iterator[PairRow]:
        if not self.path:
            yield from read_bundled_pairs(self.kind)
            return
        for file in self.source.require_files(self.path):
            yield from read_pairs(file)


@dataclass(frozen=True)
class Negation(_Crossed):
    """Test sensitivity to negation: one text denies what the other says; each is right for one query."""

    kind: ClassVar[str] = "negation"


@dataclass(frozen=True)
class Exclusion(_Crossed):
    """Test sensitivity to "without", "except" or "not" in a query: texts with and without a thing."""

    kind: ClassVar[str] = "exclusion"


@dataclass(frozen=True)
class Number(_Crossed):
    """Test sensitivity to numbers: two texts differ in a number or a unit; each is right for one query."""

    kind: ClassVar[str] = "number"


@dataclass(frozen=True)
class Date(_Crossed):
    """Test sensitivity to dates: two texts differ in a day, a year or an age; each is right for one query."""

    kind: ClassVar[str] = "date"


@dataclass(frozen=True)
class Entity(_Crossed):
    """Test sensitivity to names: two texts differ in a person, a place or a thing; each is right for one query."""

    kind: ClassVar[str] = "entity"


@dataclass(frozen=True)
class SourceBias(_Sided):
    """Compare a human-written passage (+) with its rewrite by a language model; a fair ranker prefers neither.

    Dai et al. Cocktail: A comprehensive information retrieval benchmark with LLM-generated documents integration.
    Findings of ACL 2024.
    """

    kind: ClassVar[str] = "source"
    source: ClassVar[PairDataset] = SOURCE_BIAS


@dataclass(frozen=True)
class Position(_Sided):
    """Compare an answer in the first sentence (+) with the same answer in the last sentence."""

    kind: ClassVar[str] = "position"


@dataclass(frozen=True)
class Brevity(_Sided):
    """Compare a short answer (+) with a much longer answer of the same content."""

    kind: ClassVar[str] = "brevity"


@dataclass(frozen=True)
class Repetition(_Sided):
    """Compare a plain answer (+) with the same answer that repeats the words of the query."""

    kind: ClassVar[str] = "repetition"


@dataclass(frozen=True)
class LiteralMatch(_Sided):
    """Compare a text with the answer (+) with a text that has more query words and no answer."""

    kind: ClassVar[str] = "literal_match"

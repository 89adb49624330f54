"""Minimal pairs: two texts that differ in little, such as a negation, and in what they are an answer to.

Where each of two texts is right for one of two queries, both directions must be right: a ranker that looks at texts
alone has one of them right, always, and a coin has both in a quarter of the pairs.

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
    """The two contrasts of a crossed pair: each query with its text first. They have the pair's id in common."""
    one, other = Doc(pair.first), Doc(pair.second)
    yield TextPair(pair.first_query, one, other, qid=pair.qid)
    yield TextPair(pair.second_query, other, one, qid=pair.qid)


@dataclass(frozen=True)
class _Minimal(DatasetProbe):
    """A probe of this file; `kind` names its bundled pairs."""

    strategy: ClassVar[str] = "minimal pair"
    kind: ClassVar[str]


@dataclass(frozen=True)
class _Crossed(_Minimal):
    """Two queries and two texts, in NevIR's layout: each text is right for one of the queries."""

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
    """One query and two texts."""

    source: ClassVar[PairDataset] = USER_PAIRS

    def draw_pairs(self, context: ProbeContext) -> Iterator[TextPair]:
        for pair in self._read_pairs():
            yield TextPair(pair.query or "", Doc(pair.first), Doc(pair.second), qid=pair.qid, grade=pair.grade)

    def _read_pairs(self) -> Iterator[PairRow]:
        if not self.path:
            yield from read_bundled_pairs(self.kind)
            return
        for file in self.source.require_files(self.path):
            yield from read_pairs(file)


@dataclass(frozen=True)
class Negation(_Crossed):
    """Is a negation noticed? Two texts, one of which denies what the other says; each is right for one query."""

    kind: ClassVar[str] = "negation"


@dataclass(frozen=True)
class Exclusion(_Crossed):
    """Is "without", "except" or "not" in a query noticed? Texts with and without a thing; each is right for one."""

    kind: ClassVar[str] = "exclusion"


@dataclass(frozen=True)
class Number(_Crossed):
    """Are numbers told apart? Two texts that differ in a number or a unit; each is right for one query."""

    kind: ClassVar[str] = "number"


@dataclass(frozen=True)
class Date(_Crossed):
    """Are dates told apart? Two texts that differ in a day, a year or an age; each is right for one query."""

    kind: ClassVar[str] = "date"


@dataclass(frozen=True)
class Entity(_Crossed):
    """Are names told apart? Two texts in which a person, a place or a thing is another; each is right for one query."""

    kind: ClassVar[str] = "entity"


@dataclass(frozen=True)
class SourceBias(_Sided):
    """Is a person's passage (+) preferred to a language model's rewrite of it? A fair ranker prefers neither.

    Dai et al. Cocktail: A comprehensive information retrieval benchmark with LLM-generated documents integration.
    Findings of ACL 2024.
    """

    kind: ClassVar[str] = "source"
    source: ClassVar[PairDataset] = SOURCE_BIAS


@dataclass(frozen=True)
class Position(_Sided):
    """Is an answer preferred where it comes first (+) to the same answer in the last sentence?"""

    kind: ClassVar[str] = "position"


@dataclass(frozen=True)
class Brevity(_Sided):
    """Is a short answer (+) preferred to one that says the same in many more words?"""

    kind: ClassVar[str] = "brevity"


@dataclass(frozen=True)
class Repetition(_Sided):
    """Is a plain answer (+) preferred to the same answer with the words of the query repeated in it?"""

    kind: ClassVar[str] = "repetition"


@dataclass(frozen=True)
class LiteralMatch(_Sided):
    """Is a text with the answer (+) preferred to one that has more of the query's words and does not answer it?"""

    kind: ClassVar[str] = "literal_match"

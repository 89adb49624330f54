"""The contrasts of a probe as arrays: a text is held once, however many contrasts it is part of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from shaketable.probes.ground import Ground
from shaketable.types import Contrast, Doc, Omitted, Probe

Numbers = NDArray[np.int64]


@dataclass(eq=False)
class Units:
    """The distinct pairs of a query and a document of all probes: what rankers are asked for."""

    pairs: list[tuple[str, Doc]] = field(default_factory=list)
    _numbers: dict[tuple[str, Doc], int] = field(default_factory=dict, repr=False)
    _digests: dict[int, bytes] = field(default_factory=dict, repr=False)

    def number(self, query: str, doc: Doc) -> int:
        """Which one this is; a new one is added."""
        number = self._numbers.setdefault((query, doc), len(self.pairs))
        if number == len(self.pairs):
            self.pairs.append((query, doc))
        return number

    def digest(self, number: int) -> bytes:
        """Names the texts of a unit."""
        if number not in self._digests:
            query, doc = self.pairs[number]
            text = repr((query, doc.title, doc.body)).encode("utf-8", "surrogatepass")
            self._digests[number] = blake2b(text, digest_size=16).digest()
        return self._digests[number]


@dataclass(frozen=True, eq=False)
class Drawn:
    """What a probe drew: for each contrast its two units, its query, and its grade, NaN where there is none."""

    units: Units
    first: Numbers
    second: Numbers
    query: Numbers
    """The place of its query in `qids`."""
    grades: NDArray[np.float64]
    qids: tuple[str, ...]
    docnos: tuple[str, ...] = ()
    """The originals, one for each contrast; empty where there are none."""
    omitted: Mapping[str, int] = field(default_factory=dict)
    """Cases that were not taken, by reason."""

    @classmethod
    def nothing(cls, units: Units, omitted: Mapping[str, int] | None = None) -> Drawn:
        none = np.zeros(0, dtype=np.int64)
        return cls(units, none, none, none, np.zeros(0), (), (), omitted or {})

    def __len__(self) -> int:
        return len(self.first)

    def names(self) -> list[str]:
        """The query of each contrast."""
        return [self.qids[i] for i in self.query.tolist()]

    @cached_property
    def fingerprint(self) -> str:
        """Names the contrasts, texts and order: two results with equal names are about the same samples."""
        digest = blake2b(digest_size=16)
        used, places = np.unique(np.concatenate([self.first, self.second]), return_inverse=True)
        for number in used.tolist():
            digest.update(self.units.digest(number))
        digest.update(places.astype("<i8").tobytes())
        return digest.hexdigest()


def draw(probe: Probe, ground: Ground, units: Units) -> Drawn:
    """All contrasts of a probe; one that has many at hand as arrays has a method `drawn`, which is asked instead."""
    if hasattr(probe, "drawn"):
        drawn: Drawn = probe.drawn(ground, units)
        return drawn
    omitted: Counter[str] = Counter()
    taken: list[Contrast] = []
    for one in probe.contrasts(ground):
        if isinstance(one, Omitted):
            omitted[one.reason] += 1
        else:
            taken.append(one)
    return collected(taken, units, omitted)


def collected(contrasts: Sequence[Contrast], units: Units, omitted: Mapping[str, int] | None = None) -> Drawn:
    """Contrasts as arrays."""
    if not contrasts:
        return Drawn.nothing(units, omitted)
    qids: dict[str, int] = {}
    return Drawn(
        units,
        np.array([units.number(one.query, one.first) for one in contrasts]),
        np.array([units.number(one.query, one.second) for one in contrasts]),
        np.array([qids.setdefault(one.qid or one.query, len(qids)) for one in contrasts]),
        np.array([np.nan if one.grade is None else one.grade for one in contrasts]),
        tuple(qids),
        tuple(one.docno for one in contrasts) if any(one.docno for one in contrasts) else (),
        omitted or {},
    )

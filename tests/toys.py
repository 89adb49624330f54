"""Small rankers and texts that tests share: each ranker of another nature, all of them real."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from shaketable.core.documents import Doc, Scores, Slate

WORDS = ["ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "willow", "yew"]


def text(seed: int, length: int = 8) -> str:
    """Return a few words that depend on the seed only."""
    return " ".join(np.random.default_rng(seed).choice(WORDS, length))


def slates(queries: int = 6, docs: int = 10) -> list[Slate]:
    return [Slate(text(q, 2), tuple(Doc(text(100 + (q * 3 + d) % 20)) for d in range(docs))) for q in range(queries)]


@dataclass
class Overlap:
    """Counts shared words: pointwise, and counts how many texts it was asked for."""

    name: str = "overlap"
    fingerprint: str = "overlap 1"
    pointwise: bool = True
    asked: int = 0

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        self.asked += sum(len(slate.docs) for slate in slates)
        return [
            np.array(
                [len(set(slate.query.split()) & set(doc.text.split())) / (1 + len(doc.text)) for doc in slate.docs]
            )
            for slate in slates
        ]


@dataclass
class Normalised:
    """Shared words divided by the list's best: not pointwise."""

    name: str = "normalised"
    fingerprint: str = "normalised 1"
    asked: int = 0

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        self.asked += sum(len(slate.docs) for slate in slates)
        raw = Overlap().score(slates)
        return [scores / max(1e-9, scores.max(initial=0.0)) for scores in raw]


@dataclass
class Vectors:
    """Letter counts, each distinct text encoded once across all slates: pointwise, with a memory of its own."""

    name: str = "vectors"
    pointwise: bool = True
    encoded: int = 0
    _vectors: dict[str, Scores] = field(default_factory=dict)

    def encode(self, text: str) -> Scores:
        if text not in self._vectors:
            self.encoded += 1
            counts = np.bincount([ord(c) % 64 for c in text], minlength=64) if text else np.zeros(64)
            self._vectors[text] = counts / max(1.0, float(np.linalg.norm(counts)))
        return self._vectors[text]

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        return [np.array([self.encode(s.query) @ self.encode(d.text) for d in s.docs]) for s in slates]

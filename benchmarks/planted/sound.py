"""Sound rankers: the bases with other seeds, noise and score scales, and list-wise versions of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from benchmarks.planted.bases import BaseRanker, Calibration, Floats, KnownTexts, Level
from benchmarks.planted.flaw import Adjust, Flaw, PlantedRanker
from benchmarks.planted.ranked_list import RankedList

FLOAT16_NOISE = 1e-4
"""The largest relative difference between scores of one text in lists of different lengths."""


@dataclass(frozen=True)
class SoundRanker:
    """A base of some level, seed and noise, and a harmless change of its scores."""

    name: str
    level: Level
    seed: int = 0
    noise_factor: float = 1.0
    adjust: Adjust = field(default=lambda items: items.scores, repr=False)
    pointwise: bool = True
    score_noise: float = 0.0

    def build(self, known: KnownTexts, calibration: Calibration) -> PlantedRanker:
        """Return the ranker on a collection."""
        base = BaseRanker(known, calibration.noise[self.level] * self.noise_factor, self.seed, self.level)
        flaw = Flaw(self.name, {}, self.adjust, pointwise=self.pointwise, score_noise=self.score_noise)
        return PlantedRanker(base, flaw, "full")


def _apply_softmax(items: RankedList) -> Floats:
    powers = np.exp(items.scores - items.scores.max(initial=0.0))
    return np.asarray(powers / powers.sum()) if len(powers) else powers


def _score_by_rank(items: RankedList) -> Floats:
    return -_compute_ranks(items.scores)


def _compute_ranks(scores: Floats) -> Floats:
    """Return ranks from 1; equal scores have equal ranks."""
    return np.searchsorted(np.sort(-scores), -scores).astype(np.float64) + 1


def _get_bm25(items: RankedList) -> Floats:
    return items.base.get_lexical_row(items.qid)[items.numbers]


def _fuse_with_bm25(items: RankedList) -> Floats:
    """Fuse the base and BM25 for the recognised texts in any input order (reciprocal rank fusion)."""
    return 1 / (10 + _compute_ranks(items.scores)) + 0.5 / (10 + _compute_ranks(_get_bm25(items)))


def _add_batch_noise(items: RankedList) -> Floats:
    """Add noise that depends on the number of texts in the list, like arithmetic in half precision."""
    return items.scores * (1 + 0.4 * FLOAT16_NOISE * np.sin(len(items.texts) + 1e4 * items.scores))


SOUND = (
    *(SoundRanker(f"good, seed {seed}", "good", seed) for seed in range(1, 4)),
    *(SoundRanker(f"mediocre, seed {seed}", "mediocre", seed) for seed in range(1, 4)),
    SoundRanker("good, less noise", "good", 4, noise_factor=0.7),
    SoundRanker("good, more noise", "good", 5, noise_factor=1.2),
    SoundRanker("good, exponential scores", "good", 6, adjust=lambda items: np.exp(items.scores)),
    SoundRanker("good, softmax over the list", "good", 7, adjust=_apply_softmax, pointwise=False),
    SoundRanker("good, plus some BM25", "good", 8, adjust=lambda items: items.scores + 0.2 * _get_bm25(items)),
    SoundRanker("good, rank as score", "good", 9, adjust=_score_by_rank, pointwise=False),
    SoundRanker("good, fused with BM25", "good", 10, adjust=_fuse_with_bm25, pointwise=False),
    SoundRanker("mediocre, large scores", "mediocre", 11, adjust=lambda items: 5e3 + 1e3 * items.scores),
    SoundRanker("good, half precision", "good", 12, adjust=_add_batch_noise, score_noise=FLOAT16_NOISE),
)

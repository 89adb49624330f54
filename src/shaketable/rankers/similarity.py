"""The evidence for judging variations: the bundled encoder if it is installed, and the texts of a collection."""

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
"""The number of characters, from the first documents of a collection, in which bigrams are counted; takes seconds."""


def build_validity_judge(collection: Collection | None = None) -> Validity:
    """Build the judge of variations with all evidence: the bundled encoder, and the phrases of the collection.

    All commands use this judge, so a variation has the same verdict everywhere. The judge loads nothing before its
    first use.
    """
    return Validity(
        similarity=make_encoder_similarity(), bigrams=None if collection is None else count_bigrams(collection)
    )


def make_encoder_similarity() -> Similarity | None:
    """Return a function for the MiniLM cosine of text pairs; None without the extra `neural` or its weights."""
    if not has_extra("neural"):
        return None
    return _score_cosines


def make_encoder() -> Encode | None:
    """Return a function that computes MiniLM vectors [n, d]; None without the extra `neural` or its weights."""
    if not has_extra("neural"):
        return None
    return lambda texts: np.concatenate(_open_encoder().encode_texts(list(texts)))


def count_bigrams(collection: Collection) -> Bigrams:
    """Count the word pairs in the first documents of a collection."""
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
    """Open the bundled encoder without documents; it only encodes texts."""
    return Dense().open(Collection("no documents", MemoryCorpus({}), {}))

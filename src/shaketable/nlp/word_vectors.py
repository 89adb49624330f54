"""A reader of word vectors in the text formats of GloVe, word2vec and counter-fitting."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shaketable.core.errors import BadInput, quote_value
from shaketable.files.reading import parse_floats, read_lines

Floats = NDArray[np.float32]

MAX_FREQUENT_WORDS = 100_000
"""The number of first words of a file that are kept: files begin with the most frequent words."""


def read_vectors(
    path: Path, extra_words: Collection[str] = (), max_words: int | None = MAX_FREQUENT_WORDS
) -> tuple[tuple[str, ...], Floats]:
    """Return words and their vectors [words, d] from a text file of GloVe or word2vec, plain or gzipped.

    A line is a word and its numbers; the header line of word2vec is skipped. The first `max_words` words (None: all)
    and `extra_words` are kept.
    """
    rows: dict[str, Floats] = {}
    dim = 0
    with np.errstate(over="ignore"):  # overflow gives infinity, which is checked below
        for at, line in read_lines(path):
            word, _, rest = line.rstrip().partition(" ")
            if at == 1 and word.isdigit() and rest.isdigit() and line.isascii():
                continue
            try:
                row = _parse_row(rest)
            except ValueError as error:
                what = f"{quote_value(word)} has others: {error}"
                raise BadInput(f"a line must be a word and its numbers, but {what}", path, at) from None
            dim = dim or len(row)
            if len(row) != dim or not dim:
                message = f"{quote_value(word)} has {len(row)} numbers where the words before it have {dim}"
                raise BadInput(message, path, at)
            if not np.isfinite(row).all():
                raise BadInput(f"the vector of {quote_value(word)} has numbers that are not finite", path, at)
            if max_words is None or len(rows) < max_words or word in extra_words:
                rows.setdefault(word, row)
    if not rows:
        raise BadInput("holds no vectors", path)
    return tuple(rows), np.stack(list(rows.values()))


def _parse_row(text: str) -> Floats:
    values = text.split(" ") if text else []
    if not text.isascii() or "_" in text or "\t" in text or "\v" in text or "\f" in text:  # where numpy is not strict
        return np.array(parse_floats(values), dtype=np.float32)
    try:
        return np.array(values, dtype=np.float32)
    except ValueError:
        return np.array(parse_floats(values), dtype=np.float32)  # raises the detailed error

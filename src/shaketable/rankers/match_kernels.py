"""The loop that finds query terms in texts, compiled by numba. Import this module only where features are computed."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from shaketable.retrieval.kernels import compile_kernel

Array = NDArray[Any]


@compile_kernel
def count_matches(
    tokens: Array, starts: Array, first: Array, terms: Array, owners: Array, texts: Array, pairs: Array,
    term_indexes: Array, counts: Array,
) -> int:  # fmt: skip
    """Which terms of a query are in a text and how often, for pairs (query, text); returns how many were found.

    Pair p is of query owners[p] and text texts[p]. A term is named by its place in `terms`, where those of query q
    stand at first[q]:first[q+1].
    """
    found = 0
    for pair in range(len(owners)):
        text = tokens[starts[texts[pair]] : starts[texts[pair] + 1]]
        for place in range(first[owners[pair]], first[owners[pair] + 1]):
            tf = 0
            for token in text:
                tf += token == terms[place]
            if tf:
                pairs[found], term_indexes[found], counts[found] = pair, place, tf
                found += 1
    return found

"""The numba kernel that finds query terms in texts. Import this module only where features are computed."""

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
    """Count the query terms in the text of each pair; return the number of matches.

    Pair p is of query owners[p] and text texts[p]. `term_indexes` are positions in `terms`, where query q has
    first[q]:first[q+1].
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

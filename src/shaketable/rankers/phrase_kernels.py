"""The numba kernel that finds query phrases in texts. Import this module only where it is called."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shaketable.retrieval.kernels import compile_kernel

Array = NDArray[Any]
OUTPUT_ROWS = ("covered", "phrases", "logs", "mass", "longest", "neighbours", "missing")
"""The rows of the array that `fill_phrases` fills."""


@compile_kernel
def fill_phrases(
    tokens: Array, starts: Array, first: Array, terms: Array, plain: Array, content: Array, known: Array, spans: Array,
    owners: Array, texts: Array, outs: Array,
) -> None:  # fmt: skip
    """Fill `outs` with the phrases of query owners[p] in text texts[p]; query q has the words first[q]:first[q+1].

    `plain` marks stop words, `content` the first occurrences of other words, `known` the words in the language model;
    spans[w, n] is log10 p of the n + 1 words from w on.
    """
    most = spans.shape[1]
    for pair in range(len(owners)):
        start, size = first[owners[pair]], first[owners[pair] + 1] - first[owners[pair]]
        text = tokens[starts[texts[pair]] : starts[texts[pair] + 1]]
        query = terms[start : start + size]
        taken = np.zeros((size, most + 1), np.bool_)
        near = np.zeros(size, np.bool_)
        free = 0
        for at in range(len(text)):
            best, best_from = 0, 0
            for word in range(size):
                run = 0
                while run < most and at + run < len(text) and word + run < size and text[at + run] == query[word + run]:
                    run += 1
                if run > 1:
                    near[word] = True
                if run > best:
                    best, best_from = run, word
            if best and at >= free:
                free = at + best
                if best > 1 or not plain[start + best_from]:
                    taken[best_from, best] = True
        covered = np.zeros(size, np.bool_)
        for length in range(most, 0, -1):
            for word in range(size):
                if taken[word, length] and not _is_inside_longer(query, taken, word, length, most):
                    log = spans[start + word, length - 1]
                    outs[1, pair] += 1
                    outs[2, pair] += log
                    outs[3, pair] += log * length
                    outs[4, pair] = max(outs[4, pair], length)
                    covered[word : word + length] = True
        outs[5, pair] = near.sum()
        for word in range(size):
            if content[start + word]:
                there = False
                for other in range(size):
                    there |= covered[other] and query[other] == query[word]
                if there:
                    outs[0, pair] += 1
                elif known[start + word]:
                    outs[6, pair] += spans[start + word, 0]


@compile_kernel
def _is_inside_longer(query: Array, taken: Array, word: int, length: int, max_words: int) -> bool:
    """Return True if a phrase is part of a longer phrase that was taken."""
    for longer in range(length + 1, max_words + 1):
        for other in range(len(query)):
            if taken[other, longer]:
                for shift in range(longer - length + 1):
                    same = True
                    for place in range(length):
                        if query[other + shift + place] != query[word + place]:
                            same = False
                            break
                    if same:
                        return True
    return False

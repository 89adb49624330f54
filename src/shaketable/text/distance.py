"""How far two strings are apart."""

from __future__ import annotations


def damerau_levenshtein(left: str, right: str, limit: int | None = None) -> int:
    """Fewest insertions, deletions, substitutions and swaps of neighbours that turn one string into the other.

    No part of the string is changed twice ("optimal string alignment"). With a limit, any distance above it is given
    as limit + 1, at once where the lengths say so.

    >>> damerau_levenshtein("medical", "mdeical"), damerau_levenshtein("ca", "abc"), damerau_levenshtein("a", "xyz", 1)
    (1, 3, 2)
    """
    if left == right:
        return 0
    if limit is not None and abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    last = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        row = [i]
        for j, b in enumerate(right, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and b == left[i - 2]:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if limit is not None and min(row) > limit:
            return limit + 1
        before, last = last, row
    return last[-1]

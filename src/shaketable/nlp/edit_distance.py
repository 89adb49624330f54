"""The edit distance of two strings."""

from __future__ import annotations


def damerau_levenshtein(left: str, right: str, limit: int | None = None) -> int:
    """Return the least number of insertions, deletions, substitutions and swaps that turn one string into the other.

    Swaps exchange neighbours. No substring is changed twice ("optimal string alignment"). With a limit, any distance
    above it is returned as limit + 1, and only cells within the limit of the diagonal are computed.

    >>> damerau_levenshtein("medical", "mdeical"), damerau_levenshtein("ca", "abc"), damerau_levenshtein("a", "xyz", 1)
    (1, 3, 2)
    """
    left, right = _strip_prefix_and_reverse(*_strip_prefix_and_reverse(left, right))
    if not left or not right:
        distance = len(left) + len(right)
        return distance if limit is None else min(distance, limit + 1)
    band = max(len(left), len(right)) if limit is None else limit
    if abs(len(left) - len(right)) > band:
        return band + 1
    far = len(left) + len(right)
    before: list[int] = []
    last = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        row = [far] * (len(right) + 1)
        row[0] = i
        for j in range(max(1, i - band), min(len(right), i + band) + 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != right[j - 1]))
            if i > 1 and j > 1 and a == right[j - 2] and right[j - 1] == left[i - 2]:
                cost = min(cost, before[j - 2] + 1)
            row[j] = cost
        before, last = last, row
    return last[-1] if limit is None else min(last[-1], limit + 1)


def _strip_prefix_and_reverse(left: str, right: str) -> tuple[str, str]:
    """Return both strings reversed, without their common prefix."""
    same = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    return left[same:][::-1], right[same:][::-1]

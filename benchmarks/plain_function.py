"""Pairs that an audit sends to a plain function f(query, texts), against the same function marked as pointwise.

    python benchmarks/plain_function.py [--quick]

Pairs: the number of texts that the function gets in a default audit of the sample, relative to a function with the
attribute `pointwise = True`. Limit: 1.1. Detection: some functions are list-wise in ways that are hard to detect. The
audit must treat each of them as list-wise and report the same lists as for a function with `pointwise = False`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence

from quick import judge_limits, parse_quick

import shaketable as st

MAX_RATIO = 1.1
QUICK_TASKS, QUICK_QUERIES = ("effectiveness", "query_typos(draws=1)", "consistency"), 25
Score = Callable[[str, Sequence[str]], list[float]]


def score_overlap(query: str, texts: Sequence[str]) -> list[float]:
    words = set(query.lower().split())
    return [len(words & set(text.lower().split())) / (1 + len(text)) for text in texts]


def divide_by_best(query: str, texts: Sequence[str]) -> list[float]:
    scores = score_overlap(query, texts)
    return [score / (max(scores) or 1.0) for score in scores]


def depend_on_order(query: str, texts: Sequence[str]) -> list[float]:
    """Prefer earlier texts in lists of more than five."""
    return [score - 1e-4 * i * (len(texts) > 5) for i, score in enumerate(score_overlap(query, texts))]


def divide_for_some(query: str, texts: Sequence[str]) -> list[float]:
    """Divide by the best score for one query in five."""
    return (divide_by_best if len(query) % 5 == 0 else score_overlap)(query, texts)


class CountingFunction:
    """A function that counts its texts; `pointwise` None is the value of a plain function."""

    def __init__(self, function: Score, pointwise: bool | None = None):
        self.function, self.pointwise, self.pairs = function, pointwise, 0

    def __call__(self, query: str, texts: Sequence[str]) -> list[float]:
        self.pairs += len(texts)
        return self.function(query, texts)


def main() -> int:
    quick = parse_quick(__doc__)
    tasks, max_queries = (QUICK_TASKS, QUICK_QUERIES) if quick else ((), None)
    with tempfile.TemporaryDirectory() as home:
        os.environ["SHAKETABLE_HOME"] = home
        plain, pointwise = CountingFunction(score_overlap), CountingFunction(score_overlap, pointwise=True)
        for ranker in (plain, pointwise):
            st.audit("sample", {"mine": ranker}, tasks, max_queries=max_queries)
        ratio = plain.pairs / pointwise.pairs
        print(f"pairs sent to a plain function {plain.pairs:,}, to a pointwise one {pointwise.pairs:,}", end="")
        print(f": ratio {ratio:.3f} (limit {MAX_RATIO})")
        detected = []
        for function in (divide_by_best, depend_on_order, divide_for_some):
            plain, marked = CountingFunction(function), CountingFunction(function, pointwise=False)
            found, expected = (
                st.audit("sample", {"mine": one}, ["effectiveness", "consistency"], max_queries=max_queries)
                for one in (plain, marked)
            )
            detected.append("lists are scored whole" in found.remarks["mine"] and found.runs == expected.runs)
            print(f"list-wise function {function.__name__}: {'detected' if detected[-1] else 'NOT detected'}")
    return judge_limits(ratio <= MAX_RATIO, quick) or int(not all(detected))


if __name__ == "__main__":
    sys.exit(main())

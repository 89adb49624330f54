"""The cost of a plain function f(query, texts) that does not say that a score depends on query and text alone.

    python benchmarks/plain_function.py [--quick]

Pairs: the texts that the function gets in a default audit of the sample, against its twin with the attribute
`pointwise = True`. Limit: 1.1. Disguise: functions that are list-wise in ways that are hard to see; the audit must
treat each as list-wise, and report the same lists as for its twin that says so.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence

from quick import judge_limits, parse_quick

import shaketable as st

LIMIT = 1.1
Score = Callable[[str, Sequence[str]], list[float]]


def overlap(query: str, texts: Sequence[str]) -> list[float]:
    words = set(query.lower().split())
    return [len(words & set(text.lower().split())) / (1 + len(text)) for text in texts]


def divide_by_best(query: str, texts: Sequence[str]) -> list[float]:
    scores = overlap(query, texts)
    return [score / (max(scores) or 1.0) for score in scores]


def depend_on_order(query: str, texts: Sequence[str]) -> list[float]:
    """Prefer earlier texts, in lists of more than five."""
    return [score - 1e-4 * i * (len(texts) > 5) for i, score in enumerate(overlap(query, texts))]


def divide_for_some(query: str, texts: Sequence[str]) -> list[float]:
    """Divide by the best score for one query in five."""
    return (divide_by_best if len(query) % 5 == 0 else overlap)(query, texts)


class Counting:
    """A function that counts the texts that it gets; `pointwise` None says nothing."""

    def __init__(self, function: Score, pointwise: bool | None = None):
        self.function, self.pointwise, self.pairs = function, pointwise, 0

    def __call__(self, query: str, texts: Sequence[str]) -> list[float]:
        self.pairs += len(texts)
        return self.function(query, texts)


def main() -> int:
    quick = parse_quick(__doc__)
    tasks = ["effectiveness", "query_typos", "consistency"] if quick else []
    with tempfile.TemporaryDirectory() as home:
        os.environ["SHAKETABLE_HOME"] = home
        plain, twin = Counting(overlap), Counting(overlap, pointwise=True)
        for ranker in (plain, twin):
            st.audit("sample", {"mine": ranker}, tasks)
        ratio = plain.pairs / twin.pairs
        print(
            f"pairs of a plain function {plain.pairs:,}, of its pointwise twin {twin.pairs:,}: ratio {ratio:.3f}",
            end="",
        )
        print(f" (limit {LIMIT})")
        caught = []
        for function in (divide_by_best, depend_on_order, divide_for_some):
            hidden, known = Counting(function), Counting(function, pointwise=False)
            found, expected = (
                st.audit("sample", {"mine": one}, ["effectiveness", "consistency"]) for one in (hidden, known)
            )
            caught.append("lists are scored whole" in found.remarks["mine"] and found.runs == expected.runs)
            print(f"list-wise function {function.__name__}: {'caught' if caught[-1] else 'NOT caught'}")
    return judge_limits(ratio <= LIMIT, quick) or int(not all(caught))


if __name__ == "__main__":
    sys.exit(main())

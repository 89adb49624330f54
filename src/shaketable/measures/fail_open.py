"""Detection of rankers that fail open: an answer without a ranking, in place of an error.

A server that fails open returns the input order, or one score for all texts, when its model does not answer in time.
The input order of a list must be random for this test. A ranker in order then returns it with probability 1/n!.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import factorial, prod
from typing import Literal

import numpy as np

from shaketable.core.documents import Scores
from shaketable.measures.rates import exact_interval

AnswerPattern = Literal["", "input order", "one score", "fewer results"]
INPUT_ORDER_PATTERN: AnswerPattern = "input order"
ONE_SCORE_PATTERN: AnswerPattern = "one score"
FEWER_RESULTS_PATTERN: AnswerPattern = "fewer results"
MAX_CHANCE = 1e-4
"""A list counts as returned in input order only if this has at most this probability; eight texts without ties do."""
MAX_LENGTHS_SHOWN = 4
"""More lengths of lists than this are shown in groups."""
MIN_ONE_SCORE_TEXTS = 3
"""Two texts may well have the same score; of at least three texts, all having the same is suspicious."""


@dataclass(frozen=True)
class ListOutcome:
    """The outcome of one list: its length, its pattern if it failed open, the time it took, and its first score."""

    length: int
    pattern: AnswerPattern
    seconds: float
    first_score: float = 0.0


def chance_of_input_order(scores: Scores) -> float:
    """Return the probability that scores in random order never rise: the product of m! over ties of m, by n!.

    >>> chance_of_input_order(np.array([3.0, 2.0, 1.0])), chance_of_input_order(np.array([1.0, 1.0, 1.0]))
    (0.16666666666666666, 1.0)
    """
    return prod(map(factorial, Counter(scores.tolist()).values())) / factorial(len(scores))


def detect_pattern(scores: Scores) -> AnswerPattern:
    """Return the pattern of scores in input order, if a ranking has it only by a rare chance.

    >>> detect_pattern(np.full(5, 0.5)), detect_pattern(np.arange(9.0)[::-1]), detect_pattern(np.arange(9.0))
    ('one score', 'input order', '')
    """
    if len(scores) >= MIN_ONE_SCORE_TEXTS and not np.ptp(scores):
        return ONE_SCORE_PATTERN
    if (np.diff(scores) <= 0).all() and chance_of_input_order(scores) <= MAX_CHANCE:
        return INPUT_ORDER_PATTERN
    return ""


def contradicts(before: Scores, after: Scores, shuffled: Scores) -> bool:
    """Return True if a suspicious answer is refuted by the answer to the same texts in another order.

    `before` and `after` are the scores of the same texts in the same order; `shuffled` are those of `after` in the
    order in which the texts were sent. An answer that both times ranks the texts in the same way is a ranking. One
    that both times follows the input is none. If the ranker gives all texts the same score twice, nothing is proved.

    >>> scores = np.array([4.0, 3.0, 2.0, 1.0])
    >>> contradicts(scores, scores, scores[[2, 0, 3, 1]]), contradicts(scores, scores[::-1], scores[[1, 0, 3, 2]])
    (False, True)
    """
    if not np.ptp(after):
        return bool(np.ptp(before))
    if detect_pattern(shuffled) == INPUT_ORDER_PATTERN:
        return True
    return not np.array_equal(np.argsort(-before, kind="stable"), np.argsort(-after, kind="stable"))


@dataclass(frozen=True)
class FailOpenReport:
    """The lists that a ranker returned without ranking them, among all lists that it was asked for."""

    outcomes: tuple[ListOutcome, ...]

    @property
    def failed(self) -> list[ListOutcome]:
        return [one for one in self.outcomes if one.pattern]

    @property
    def percent(self) -> float:
        return 100 * len(self.failed) / len(self.outcomes) if self.outcomes else float("nan")

    @property
    def percent_in_input_order(self) -> float:
        found = sum(one.pattern == INPUT_ORDER_PATTERN for one in self.outcomes)
        return 100 * found / len(self.outcomes) if self.outcomes else float("nan")

    def describe(self) -> str:
        """Return the numbers in one sentence: how many lists, in which way, of which length and after which time.

        >>> slow = ListOutcome(30, "one score", 2.0, 0.5)
        >>> FailOpenReport((slow, *[ListOutcome(8, "", 0.1)] * 49)).describe()
        '1 of 50 lists (2.0 %, 95 % interval 0.1 to 10.6 %) came back without a ranking: 1 with the score 0.5 for all \
texts; by length: 0 of 49 with 8 texts, 1 of 1 with 30 texts; median time 2,000 ms, other lists 100 ms'
        """
        failed, total = self.failed, len(self.outcomes)
        low, high = (100 * end for end in exact_interval(len(failed), total))
        ways = Counter(map(_describe_way, failed)).most_common(3)
        first = (
            f"{len(failed)} of {total} lists ({self.percent:.1f} %, 95 % interval {low:.1f} to {high:.1f} %) came back "
            f"without a ranking: {', '.join(f'{count} {way}' for way, count in ways)}"
        )
        parts = [first]
        if by_length := self._describe_lengths():
            parts.append(f"by length: {by_length}")
        if times := self._describe_times():
            parts.append(times)
        return "; ".join(parts)

    def _describe_lengths(self) -> str:
        groups = sorted({one.length for one in self.outcomes})
        if len(groups) < 2:
            return ""
        if len(groups) > MAX_LENGTHS_SHOWN:
            groups = sorted({int(np.percentile(groups, share)) for share in (0, 25, 50, 75)})
        parts = []
        for low, following in zip(groups, [*groups[1:], None], strict=True):
            some = [one for one in self.outcomes if low <= one.length and (not following or one.length < following)]
            high = max((one.length for one in some), default=low)
            texts = f"{low}" if high == low else f"{low} to {high}"
            parts.append(f"{sum(bool(one.pattern) for one in some)} of {len(some)} with {texts} texts")
        return ", ".join(parts)

    def _describe_times(self) -> str:
        slow = [one.seconds for one in self.failed if one.seconds > 0]
        others = [one.seconds for one in self.outcomes if not one.pattern and one.seconds > 0]
        if not slow or not others:
            return ""
        return f"median time {1000 * np.median(slow):,.0f} ms, other lists {1000 * np.median(others):,.0f} ms"


def _describe_way(one: ListOutcome) -> str:
    if one.pattern == ONE_SCORE_PATTERN:
        return f"with the score {one.first_score:g} for all texts"
    return {"input order": "in input order", "fewer results": "with fewer results than texts"}[one.pattern]

"""What attacks on documents came to: how many succeeded, how far documents moved, and what it cost.

Rates and means are over targets, a document in a list each; intervals are over queries, because the targets of one
query stand in the same list.

Wu, Zhang, Guo, de Rijke, Fan, Cheng. PRADA: Practical black-box adversarial attacks against neural ranking models. TOIS
2023. The share that reaches the top and the mean rise are of the papers after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from math import nan
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shaketable.errors import BadInput
from shaketable.measure.preference import ratio_interval
from shaketable.measure.wording import words_changed
from shaketable.types import Case, Goal, Outcome

Column: TypeAlias = NDArray[Any]
"""Whole numbers or floats, one for each target."""

TOPS = (10, 5)
"""Tops that papers count arrivals in."""
RANGES = tuple((first, first + 9) for first in range(11, 100, 10))
"""Ranges of places that PIAT draws one target from each."""


@dataclass(frozen=True, eq=False)
class Attempts:
    """Attacks that were made: a number of each kind for each target, and the query whose list it stands in.

    `before` and `after` are places, 1 is best. `gain` is what the move is worth to the goal, positive where it serves:
    before - after for promotion, after - before for demotion (`gains` asks any goal). `changed` counts words that
    differ, `words` those of the original text, `trials` the texts that the ranker was asked about, `pairs` what that
    cost, and `first` the trial of the first success, 0 if there was none.
    """

    queries: Sequence[str]
    before: Column
    after: Column
    gain: Column
    changed: Column
    words: Column
    trials: Column
    pairs: Column
    first: Column

    def __post_init__(self) -> None:
        count = len(self.queries)
        for field in fields(self)[1:]:
            column = getattr(self, field.name)
            if column.shape != (count,):
                raise BadInput(f"attempts: {count} targets have queries, but {field.name} has shape {column.shape}")
            if not np.isfinite(column).all():
                raise BadInput(f"attempts: {field.name} holds what is no finite number")
        for name in (field.name for field in fields(self)[1:] if field.name != "gain"):
            least = int(name in ("before", "after"))
            if (getattr(self, name) < least).any():
                raise BadInput(f"attempts: {name} is {getattr(self, name).min():g} for a target; {least} is the least")

    @classmethod
    def of(cls, attacked: Iterable[tuple[Case, Outcome]]) -> Attempts:
        """Cases and what became of them. A case of several lists is a target in each, and all are of its first query.

        So a text that moves in the lists of many queries counts in each, and is drawn again as one.
        """
        rows = [
            (
                case.lists[0].qid,
                start,
                end,
                gains(case.goal, [start], [end])[0],
                changed,
                words,
                one.trials,
                one.pairs,
                one.first,
            )
            for case, one in attacked
            for changed, words in [(words_changed(case.doc, one.doc), len(case.doc.text.split()))]
            for start, end in zip(one.before, one.after, strict=True)
        ]
        queries, *columns = zip(*rows, strict=True) if rows else ((),) * len(fields(cls))
        return cls(queries, *(np.array(column, dtype=np.float64) for column in columns))

    def __len__(self) -> int:
        return len(self.queries)

    def where(self, chosen: NDArray[np.bool_]) -> Attempts:
        """Those of the targets that are chosen."""
        columns = (getattr(self, field.name)[chosen] for field in fields(self)[1:])
        return Attempts([qid for qid, kept in zip(self.queries, chosen, strict=True) if kept], *columns)


def gains(goal: Goal, before: Sequence[int], after: Sequence[int]) -> NDArray[np.float64]:
    """What moves from one place to another are worth to a goal; more than 0 is success, whatever the goal is.

    >>> from shaketable.attacks.goals import Demote, Promote
    >>> gains(Promote(), [12, 12], [3, 40]), gains(Demote(), [12, 12], [3, 40])
    (array([  9., -28.]), array([-9., 28.]))
    """
    moves = zip(before, after, strict=True)
    return np.array([goal.worth((end,)) - goal.worth((start,)) for start, end in moves], dtype=np.float64)


@dataclass(frozen=True)
class Estimate:
    """A mean over targets and its 95 % interval over queries: NaN with fewer than two queries."""

    value: float
    low: float
    high: float
    targets: int
    queries: int


def estimate(values: Column, queries: Sequence[str], seed: int = 0) -> Estimate:
    """The mean of a number of each target; the interval draws queries again, each with all its targets.

    >>> estimate(np.array([1.0, 0.0, 0.0, 1.0]), ["a", "a", "a", "b"]).value
    0.5
    """
    if not len(values):
        return Estimate(nan, nan, nan, 0, 0)
    names, groups = np.unique(np.asarray(queries, dtype=object).astype(str), return_inverse=True)
    low, high = ratio_interval(np.bincount(groups, values), np.bincount(groups), seed)
    return Estimate(float(values.mean()), low, high, len(values), len(names))


def success_rate(attempts: Attempts, seed: int = 0) -> Estimate:
    """The share of targets whose move serves the goal, in per cent; where nothing moved the attack has failed.

    100 · mean 1[gain > 0]; for promotion that is 1[after < before].
    """
    return estimate(100.0 * (attempts.gain > 0), attempts.queries, seed)


def boost(attempts: Attempts, seed: int = 0) -> Estimate:
    """By how many places targets rise: the mean of before - after, below 0 where they sink, whatever the goal is."""
    return estimate(attempts.before - attempts.after, attempts.queries, seed)


def top_rate(attempts: Attempts, k: int = 10, seed: int = 0) -> Estimate:
    """The share of targets that end among the first k, in per cent: 100 · mean 1[after ≤ k]."""
    return estimate(100.0 * (attempts.after <= k), attempts.queries, seed)


def intrusion(attempts: Attempts, k: int = 10, seed: int = 0) -> Estimate:
    """Of the targets that stood outside the first k, the share that end among them, in per cent.

    Other than `top_rate` it does not count those that were there before; queries without a target outside do not count.
    """
    outside = attempts.where(attempts.before > k)
    return top_rate(outside, k, seed)


def perturbed(attempts: Attempts, seed: int = 0) -> Estimate:
    """The mean share of a text's words that were changed, in per cent; a failed attack has changed none.

    Words that are added count as changed, so it may exceed 100. A text without words has no share, and is left out.
    """
    worded = attempts.where(attempts.words > 0)
    return estimate(100.0 * worded.changed / worded.words, worded.queries, seed)


def mean_trials(attempts: Attempts, seed: int = 0) -> Estimate:
    """The mean number of texts that the ranker was asked about for a target."""
    return estimate(attempts.trials, attempts.queries, seed)


def mean_pairs(attempts: Attempts, seed: int = 0) -> Estimate:
    """The mean number of pairs of query and text that the ranker scored for a target."""
    return estimate(attempts.pairs, attempts.queries, seed)


def promotion_row(attempts: Attempts, tops: Sequence[int] = TOPS, seed: int = 0) -> dict[str, float]:
    """A row of a table: each number by its heading, and the ends of its interval as "HEADING low", "HEADING high"."""
    numbers = {"success %": success_rate(attempts, seed), "boost": boost(attempts, seed)}
    numbers |= {f"top {k} %": top_rate(attempts, k, seed) for k in tops}
    numbers |= {f"into top {k} %": intrusion(attempts, k, seed) for k in tops}
    numbers |= {"words changed %": perturbed(attempts, seed)}
    numbers |= {"trials": mean_trials(attempts, seed), "pairs": mean_pairs(attempts, seed)}
    row: dict[str, float] = {"targets": len(attempts), "queries": len(set(attempts.queries))}
    for heading, number in numbers.items():
        row |= {heading: number.value, f"{heading} low": number.low, f"{heading} high": number.high}
    return row


def by_range(
    attempts: Attempts, ranges: Sequence[tuple[int, int]] = RANGES, seed: int = 0
) -> list[dict[str, str | float]]:
    """The success rate by where targets stood before: a row for each range of places, first and last included.

    A range without targets has no row.
    """
    parts = [(first, last, (attempts.before >= first) & (attempts.before <= last)) for first, last in ranges]
    return [
        {"places": f"{first}-{last}", **_columns(success_rate(attempts.where(inside), seed))}
        for first, last, inside in parts
        if inside.any()
    ]


def by_trials(attempts: Attempts, at: Sequence[int], seed: int = 0) -> list[dict[str, str | float]]:
    """What success costs: the share of all targets whose first success came within so many trials, a row for each."""
    won = attempts.first > 0
    return [
        {"trials": number, **_columns(estimate(100.0 * (won & (attempts.first <= number)), attempts.queries, seed))}
        for number in at
    ]


def _columns(number: Estimate) -> dict[str, float]:
    """A success rate as columns, under the names by which figures find the ends of an interval."""
    return {
        "success %": number.value,
        "low": number.low,
        "high": number.high,
        "targets": number.targets,
        "queries": number.queries,
    }

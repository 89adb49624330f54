"""Outcomes of attacks on documents: success rates, rank changes and costs.

Rates and means are over targets, where a target is a document in a list. Intervals are over queries, because the
targets of one query share a list.

Wu, Zhang, Guo, de Rijke, Fan, Cheng. PRADA: Practical black-box adversarial attacks against neural ranking models. TOIS
2023. The share that reaches the top and the mean rank gain are from later papers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import nan
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shaketable.core.attack_types import AttackCase, AttackOutcome, Goal
from shaketable.core.errors import BadInput
from shaketable.measures.preference import bootstrap_ratio_interval
from shaketable.measures.text_change import count_changed_words

Column: TypeAlias = NDArray[Any]
"""Whole numbers or floats, one for each target."""

TOP_CUTOFFS = (10, 5)
"""The top-k cutoffs that papers report."""
RANK_RANGES = tuple((first, first + 9) for first in range(11, 100, 10))
"""Ranges of ranks; PIAT draws one target from each."""


@dataclass(frozen=True, eq=False)
class AttackOutcomes:
    """The outcomes of attacks: columns of numbers with one row for each target, and the query of its list.

    `before` and `after` are ranks, 1 is best. `gain` is the utility of the move for the goal, positive if it helps:
    before - after for promotion, after - before for demotion (see `compute_gains`). `changed_words` counts words that
    differ, `words` those of the original text, `trials` the texts that the ranker scored, `pairs` the scored pairs,
    and `first_success_trial` is the trial of the first success, 0 if there was none.
    """

    queries: Sequence[str]
    before: Column
    after: Column
    gain: Column
    changed_words: Column
    words: Column
    trials: Column
    pairs: Column
    first_success_trial: Column

    def __post_init__(self) -> None:
        count = len(self.queries)
        for field in fields(self)[1:]:
            column = getattr(self, field.name)
            if column.shape != (count,):
                raise BadInput(f"attempts: {count} targets have queries, but {field.name} has shape {column.shape}")
            if not np.isfinite(column).all():
                raise BadInput(f"attempts: {field.name} has a value that is not finite")
        for name in (field.name for field in fields(self)[1:] if field.name != "gain"):
            least = int(name in ("before", "after"))
            if (getattr(self, name) < least).any():
                raise BadInput(
                    f"attempts: {name} is {getattr(self, name).min():g} for a target; it must be at least {least}"
                )

    @classmethod
    def from_outcomes(cls, attacked: Iterable[tuple[AttackCase, AttackOutcome]]) -> AttackOutcomes:
        """Return the outcomes of cases.

        A case with several lists is one target per list. All are grouped under its first query, so that the bootstrap
        resamples them together.
        """
        rows = [
            (
                case.lists[0].qid,
                start,
                end,
                compute_gains(case.goal, [start], [end])[0],
                changed,
                words,
                one.trials,
                one.scored_pairs,
                one.first_success_trial,
            )
            for case, one in attacked
            for changed, words in [(count_changed_words(case.doc, one.doc), len(case.doc.text.split()))]
            for start, end in zip(one.ranks_before, one.ranks_after, strict=True)
        ]
        queries, *columns = zip(*rows, strict=True) if rows else ((),) * len(fields(cls))
        return cls(queries, *(np.array(column, dtype=np.float64) for column in columns))

    def __len__(self) -> int:
        return len(self.queries)

    def select(self, mask: NDArray[np.bool_]) -> AttackOutcomes:
        """Return the outcomes of the targets that the mask selects."""
        columns = (getattr(self, field.name)[mask] for field in fields(self)[1:])
        return AttackOutcomes([qid for qid, kept in zip(self.queries, mask, strict=True) if kept], *columns)


def compute_gains(goal: Goal, before: Sequence[int], after: Sequence[int]) -> NDArray[np.float64]:
    """Return the gain of moves from one rank to another for a goal; a gain above 0 is a success.

    >>> from shaketable.attacks.goals import Demote, Promote
    >>> compute_gains(Promote(), [12, 12], [3, 40]), compute_gains(Demote(), [12, 12], [3, 40])
    (array([  9., -28.]), array([-9., 28.]))
    """
    moves = zip(before, after, strict=True)
    return np.array([goal.utility((end,)) - goal.utility((start,)) for start, end in moves], dtype=np.float64)


@dataclass(frozen=True)
class TargetEstimate:
    """A mean over targets and its 95 % interval over queries: NaN with fewer than two queries."""

    value: float
    low: float
    high: float
    targets: int
    queries: int


def estimate(values: Column, queries: Sequence[str], seed: int = 0) -> TargetEstimate:
    """Return the mean of a number over targets; the interval resamples queries, each with all its targets.

    >>> estimate(np.array([1.0, 0.0, 0.0, 1.0]), ["a", "a", "a", "b"]).value
    0.5
    """
    if not len(values):
        return TargetEstimate(nan, nan, nan, 0, 0)
    names, groups = np.unique(np.asarray(queries, dtype=object).astype(str), return_inverse=True)
    low, high = bootstrap_ratio_interval(np.bincount(groups, values), np.bincount(groups), seed)
    return TargetEstimate(float(values.mean()), low, high, len(values), len(names))


def success_rate(attempts: AttackOutcomes, seed: int = 0) -> TargetEstimate:
    """Return the percentage of targets whose move serves the goal; an unchanged rank is a failure.

    100 · mean 1[gain > 0]; for promotion that is 1[after < before].
    """
    return estimate(100.0 * (attempts.gain > 0), attempts.queries, seed)


def boost(attempts: AttackOutcomes, seed: int = 0) -> TargetEstimate:
    """Return the mean of before - after over targets: above 0 if they rise, for any goal."""
    return estimate(attempts.before - attempts.after, attempts.queries, seed)


def top_rate(attempts: AttackOutcomes, k: int = 10, seed: int = 0) -> TargetEstimate:
    """Return the percentage of targets that end among the first k: 100 · mean 1[after ≤ k]."""
    return estimate(100.0 * (attempts.after <= k), attempts.queries, seed)


def intrusion_rate(attempts: AttackOutcomes, k: int = 10, seed: int = 0) -> TargetEstimate:
    """Return the percentage of targets from outside the first k that end among them.

    Unlike `top_rate`, it excludes targets that start among the first k, and queries without other targets.
    """
    outside = attempts.select(attempts.before > k)
    return top_rate(outside, k, seed)


def perturbation_percentage(attempts: AttackOutcomes, seed: int = 0) -> TargetEstimate:
    """Return the mean percentage of changed words in a text; a failed attack counts as 0.

    Added words count as changed, so the value may exceed 100. Texts without words are excluded.
    """
    worded = attempts.select(attempts.words > 0)
    return estimate(100.0 * worded.changed_words / worded.words, worded.queries, seed)


def mean_trials(attempts: AttackOutcomes, seed: int = 0) -> TargetEstimate:
    """Return the mean number of texts that the ranker scored for a target."""
    return estimate(attempts.trials, attempts.queries, seed)


def mean_pairs(attempts: AttackOutcomes, seed: int = 0) -> TargetEstimate:
    """Return the mean number of (query, text) pairs that the ranker scored for a target."""
    return estimate(attempts.pairs, attempts.queries, seed)


def count_arrivals(moves: Iterable[tuple[str, int, int]], k: int = 10) -> tuple[dict[str, float], dict[str, int]]:
    """Return, by query, the percentage of its targets from outside the first k that end among them, and their number.

    A move is the query of a target and its ranks before and after.

    >>> count_arrivals([("a", 12, 3), ("a", 50, 11), ("b", 20, 10), ("c", 7, 1)])
    ({'a': 50.0, 'b': 100.0}, {'a': 2, 'b': 1})
    """
    arrived: dict[str, list[bool]] = {}
    for qid, before, after in moves:
        if before > k:
            arrived.setdefault(qid, []).append(after <= k)
    return {qid: 100 * sum(some) / len(some) for qid, some in arrived.items()}, {q: len(s) for q, s in arrived.items()}


def compute_losses(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return the loss of each query in per cent of the mean before; their mean is the loss in per cent.

    The result is empty if the mean before is 0, as there is nothing to lose.

    >>> compute_losses({"a": 0.5, "b": 0.3}, {"a": 0.3, "b": 0.3})
    {'a': 50.0, 'b': 0.0}
    """
    common = [qid for qid in before if qid in after]
    mean = float(np.mean([before[qid] for qid in common])) if common else 0.0
    return {qid: 100 * (before[qid] - after[qid]) / mean for qid in common} if mean else {}


def build_promotion_row(attempts: AttackOutcomes, tops: Sequence[int] = TOP_CUTOFFS, seed: int = 0) -> dict[str, float]:
    """Return a table row: each number by its heading, and its interval as "HEADING low" and "HEADING high"."""
    numbers = {"success %": success_rate(attempts, seed), "boost": boost(attempts, seed)}
    numbers |= {f"top {k} %": top_rate(attempts, k, seed) for k in tops}
    numbers |= {f"into top {k} %": intrusion_rate(attempts, k, seed) for k in tops}
    numbers |= {"words changed %": perturbation_percentage(attempts, seed)}
    numbers |= {"trials": mean_trials(attempts, seed), "pairs": mean_pairs(attempts, seed)}
    row: dict[str, float] = {"targets": len(attempts), "queries": len(set(attempts.queries))}
    for heading, number in numbers.items():
        row |= {heading: number.value, f"{heading} low": number.low, f"{heading} high": number.high}
    return row


def success_by_rank_range(
    attempts: AttackOutcomes, ranges: Sequence[tuple[int, int]] = RANK_RANGES, seed: int = 0
) -> list[dict[str, str | float]]:
    """Return the success rate by the rank before the attack: a row for each range, first and last included.

    A range without targets has no row.
    """
    parts = [(first, last, (attempts.before >= first) & (attempts.before <= last)) for first, last in ranges]
    return [
        {"ranks": f"{first}-{last}", **_format_rate_columns(success_rate(attempts.select(inside), seed))}
        for first, last, inside in parts
        if inside.any()
    ]


def success_by_trials(
    attempts: AttackOutcomes, trial_counts: Sequence[int], seed: int = 0
) -> list[dict[str, str | float]]:
    """Return a row for each trial count: the percentage of targets with a success within that many trials."""
    won = attempts.first_success_trial > 0
    return [
        {
            "trials": number,
            **_format_rate_columns(
                estimate(100.0 * (won & (attempts.first_success_trial <= number)), attempts.queries, seed)
            ),
        }
        for number in trial_counts
    ]


def _format_rate_columns(number: TargetEstimate) -> dict[str, float]:
    """Return a success rate as columns, under the names that figures expect for an interval."""
    return {
        "success %": number.value,
        "low": number.low,
        "high": number.high,
        "targets": number.targets,
        "queries": number.queries,
    }

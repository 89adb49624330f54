"""Severe losses of a ranker against its first stage, and whether there are more of them than chance explains.

Two equal rankers with independent errors also lose much on some queries, and win as much on others. So the number of
severe losses is compared with the number expected if each query's deviation from the mean gain had a random sign.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shaketable.measures.significance import enumerates_all_signs, iter_sign_assignments

SEVERE_SHARE = 0.5
"""The share of the first stage's value that a query has to lose."""


def find_severe_losses(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return, by query, 100 if it loses more than half of its value before, otherwise 0.

    >>> find_severe_losses({"a": 0.8, "b": 0.8, "c": 0.0}, {"a": 0.3, "b": 0.4, "c": 0.0})
    {'a': 100.0, 'b': 0.0, 'c': 0.0}
    """
    return {qid: 100.0 * (after[qid] < SEVERE_SHARE * before[qid]) for qid in before if qid in after}


def severe_losses_p(
    before: Mapping[str, float], after: Mapping[str, float], seed: int = 0, draws: int = 10_000
) -> float:
    """Return the one-sided p of so many severe losses, if deviations from the mean gain had random signs.

    >>> before = {str(i): 0.5 for i in range(40)}
    >>> after = {q: 0.05 if int(q) % 4 == 0 else 0.9 for q in before}  # a quarter of the queries collapses
    >>> severe_losses_p(before, after) < 0.01
    True
    """
    qids = [qid for qid in before if qid in after]
    start, end = (np.array([values[qid] for qid in qids]) for values in (before, after))
    change = end - start
    deviation = change - change.mean()
    observed = int((end < SEVERE_SHARE * start).sum())
    if not observed:
        return 1.0
    as_many = total = 0
    for coins in iter_sign_assignments(len(qids), seed, draws, len(qids)):
        moved = start + change.mean() + (2.0 * coins - 1) * deviation
        as_many += int(((moved < SEVERE_SHARE * start).sum(axis=1) >= observed).sum())
        total += len(coins)
    return as_many / total if enumerates_all_signs(len(qids), draws) else (as_many + 1) / (total + 1)

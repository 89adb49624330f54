"""Sensitivity of rankers to the order of their input, and the consensus of several rankings.

A query's documents are ranked several times, each time from another input order. `inputs` and `outputs` hold these
orders of the same documents, each from the first rank to the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from shaketable.core.errors import BadInput
from shaketable.measures.attack_success import TargetEstimate
from shaketable.measures.preference import bootstrap_ratio_interval
from shaketable.measures.rank_distance import Kendall

Orders = Sequence[Sequence[str]]
Numbers = NDArray[np.float64]


def compute_ranks(orders: Orders) -> Numbers:
    """Return ranks [orders, documents], from 1; documents are in the order of the first list.

    >>> compute_ranks([["a", "b", "c"], ["c", "a", "b"]]).tolist()
    [[1.0, 2.0, 3.0], [2.0, 3.0, 1.0]]
    """
    first = list(orders[0])
    tables = [{docno: rank for rank, docno in enumerate(order, 1)} for order in orders]
    if len(set(first)) < len(first) or any(
        len(order) != len(first) or table.keys() != set(first) for order, table in zip(orders, tables, strict=True)
    ):
        raise BadInput("orders of a list can be compared only if each has the same documents, each once")
    return np.array([[table[docno] for docno in first] for table in tables], dtype=np.float64)


def mean_kendall_distance(outputs: Orders) -> float:
    """Return the mean Kendall distance of two of the rankings: 0 if the input order has no effect.

    >>> mean_kendall_distance([["a", "b"], ["b", "a"], ["a", "b"]])
    0.6666666666666666
    """
    pairs = [(one, other) for i, one in enumerate(outputs) for other in outputs[i + 1 :]]
    return float(np.mean([Kendall().between(one, other) for one, other in pairs])) if pairs else float("nan")


def position_sums(inputs: Orders, outputs: Orders) -> tuple[float, float]:
    """Return the sums whose ratio is the position weight: Σ (p - p̄)(r - r̄) and Σ (p - p̄)².

    p is the input position of a document and r its output rank; p̄ and r̄ are its means over the orders, which removes
    the document's own quality.
    """
    shown, given = compute_ranks(inputs), compute_ranks([inputs[0], *outputs])[1:]
    p, r = shown - shown.mean(axis=0), given - given.mean(axis=0)
    return float((p * r).sum()), float((p * p).sum())


def position_weight(sums: Iterable[tuple[float, float]], seed: int = 0) -> TargetEstimate:
    """Return how many ranks a document gains for each earlier input position; the interval is over queries.

    The value is the slope of the output rank on the input position, within documents. 0 means that the input order has
    no effect, 1 that the ranker returns its input; below 0, later documents rank higher.

    >>> position_weight([position_sums([["a", "b"], ["b", "a"]], [["a", "b"], ["b", "a"]])]).value
    1.0
    """
    found = list(sums)
    known = np.array([one for one in found if one[1] > 0]).reshape(-1, 2)
    if not len(known):
        return TargetEstimate(float("nan"), float("nan"), float("nan"), 0, 0)
    low, high = bootstrap_ratio_interval(known[:, 0], known[:, 1], seed)
    return TargetEstimate(float(known[:, 0].sum() / known[:, 1].sum()), low, high, len(known), len(known))


def position_curve(inputs: Orders, outputs: Orders) -> list[tuple[int, float, float]]:
    """Return a triple for each document and order: its input position, its output rank, and its shift.

    The shift is the output rank minus the mean output rank of the document.
    """
    shown, given = compute_ranks(inputs), compute_ranks([inputs[0], *outputs])[1:]
    shift = given - given.mean(axis=0)
    return list(zip(shown.ravel().astype(int).tolist(), given.ravel().tolist(), shift.ravel().tolist(), strict=True))


def central_ranking(outputs: Orders) -> list[str]:
    """Return the consensus of several rankings of the same documents (permutation self-consistency).

    The start is the order by mean rank (Borda). Then neighbours are swapped while most rankings have the opposite
    order, so that the sum of Kendall distances never grows and no swap of neighbours reduces it (local Kemenisation).
    If the rankings are evenly divided, the first ranking decides.

    >>> central_ranking([["a", "b", "c"], ["b", "a", "c"], ["a", "c", "b"]])
    ['a', 'b', 'c']

    Tang, Zhang, Ma, Lin, Ture. Found in the middle: Permutation self-consistency improves listwise ranking in large
    language models. NAACL 2024. Dwork, Kumar, Naor, Sivakumar. Rank aggregation methods for the web. WWW 2001.
    """
    table = compute_ranks(outputs)
    names = list(outputs[0])
    order: list[int] = np.lexsort((table[0], table.sum(axis=0))).tolist()
    before = (table[:, :, None] < table[:, None, :]).sum(axis=0)  # [i, j]: rankings with i before j
    for end in range(1, len(order)):  # insertion sort by majority
        at = end
        while at and before[order[at], order[at - 1]] > before[order[at - 1], order[at]]:
            order[at - 1], order[at] = order[at], order[at - 1]
            at -= 1
    return [names[i] for i in order]

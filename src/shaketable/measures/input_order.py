"""Rankers that see the order of their input: how much of it comes through, and what several orders agree on.

A query's documents are ranked several times, each time shown in another order. `inputs` and `outputs` hold such orders
of the same documents, each from the first rank to the last.
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
    """[orders, documents], from 1; documents as the first order has them.

    >>> compute_ranks([["a", "b", "c"], ["c", "a", "b"]]).tolist()
    [[1.0, 2.0, 3.0], [2.0, 3.0, 1.0]]
    """
    first = list(orders[0])
    tables = [{docno: rank for rank, docno in enumerate(order, 1)} for order in orders]
    if len(set(first)) < len(first) or any(
        len(order) != len(first) or table.keys() != set(first) for order, table in zip(orders, tables, strict=True)
    ):
        raise BadInput("orders of a list can be compared only where each has the same documents, each of them once")
    return np.array([[table[docno] for docno in first] for table in tables], dtype=np.float64)


def mean_kendall_distance(outputs: Orders) -> float:
    """The mean Kendall distance of two of the rankings: 0 if the order of the input does not matter.

    >>> mean_kendall_distance([["a", "b"], ["b", "a"], ["a", "b"]])
    0.6666666666666666
    """
    pairs = [(one, other) for i, one in enumerate(outputs) for other in outputs[i + 1 :]]
    return float(np.mean([Kendall().between(one, other) for one, other in pairs])) if pairs else float("nan")


def position_sums(inputs: Orders, outputs: Orders) -> tuple[float, float]:
    """The sums whose ratio is the weight of the position: Σ (p - p̄)(r - r̄) and Σ (p - p̄)².

    p is the position at which a document is shown and r the rank that it gets; p̄ and r̄ are its means over the orders,
    so that what the document is worth by itself drops out.
    """
    shown, given = compute_ranks(inputs), compute_ranks([inputs[0], *outputs])[1:]
    p, r = shown - shown.mean(axis=0), given - given.mean(axis=0)
    return float((p * r).sum()), float((p * p).sum())


def position_weight(sums: Iterable[tuple[float, float]], seed: int = 0) -> TargetEstimate:
    """Return how many ranks a document gains for each position that it is shown earlier; the interval is over queries.

    0: the ranker is blind to the order; 1: it returns its input; below 0: what is shown late comes out early. The slope
    of the rank that a document gets on the position at which it is shown, within documents.

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
    """For each document and order: where it was shown, the rank that it got, and by how much that is lower in the list
    than the mean rank that the same document got."""
    shown, given = compute_ranks(inputs), compute_ranks([inputs[0], *outputs])[1:]
    shift = given - given.mean(axis=0)
    return list(zip(shown.ravel().astype(int).tolist(), given.ravel().tolist(), shift.ravel().tolist(), strict=True))


def central_ranking(outputs: Orders) -> list[str]:
    """The ranking that several rankings of the same documents agree on best: permutation self-consistency.

    By mean rank (Borda); then neighbours are swapped for as long as most rankings want them the other way round, so
    the sum of Kendall distances to the rankings never grows and no swap of neighbours makes it smaller (local
    Kemenisation). Where rankings are evenly divided, the first of them decides.

    >>> central_ranking([["a", "b", "c"], ["b", "a", "c"], ["a", "c", "b"]])
    ['a', 'b', 'c']

    Tang, Zhang, Ma, Lin, Ture. Found in the middle: Permutation self-consistency improves listwise ranking in large
    language models. NAACL 2024. Dwork, Kumar, Naor, Sivakumar. Rank aggregation methods for the web. WWW 2001.
    """
    table = compute_ranks(outputs)
    names = list(outputs[0])
    order: list[int] = np.lexsort((table[0], table.sum(axis=0))).tolist()
    before = (table[:, :, None] < table[:, None, :]).sum(axis=0)  # [i, j]: rankings that have i before j
    for end in range(1, len(order)):  # insertion: each document passes those that most rankings have below it
        at = end
        while at and before[order[at], order[at - 1]] > before[order[at - 1], order[at]]:
            order[at - 1], order[at] = order[at], order[at - 1]
            at -= 1
    return [names[i] for i in order]

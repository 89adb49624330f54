"""Loops over lists and pairs of documents, compiled by numba. Import this module only for training.

A kernel processes the lists `first` to `last`, releases the interpreter lock and starts no threads. Lists are
independent, so the result does not depend on how threads share them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numpy.typing import NDArray

from shaketable.measures import ROUNDING_TOLERANCE
from shaketable.retrieval.kernels import compile_kernel

Array = NDArray[Any]

MIN_HESSIAN = 1e-16
"""The smallest second derivative: Newton's step divides by it."""
MAX_SCORE_DISTANCE = 350.0
"""The largest distance of a score from the middle of its list; exp of both signs is still finite."""


class GradedLists(NamedTuple):
    """Documents with gains, list by list.

    M is NDCG at len(measure_discounts); a swap moves gains within len(discounts) ranks.
    """

    starts: Array
    gains: Array
    measure_discounts: Array
    """The discounts of M."""
    inverse_ideal_dcg: Array
    """1 / the best DCG of a list under `measure_discounts`; 0 if no document is relevant."""
    discounts: Array
    """The discounts of a change of M; lower ranks have none."""
    change_scale: Array
    """As `inverse_ideal_dcg`, for `discounts`."""


SCRATCH_ROWS = 7
"""Rows of working memory that a kernel needs."""
UTILITY, EQ9, ONE_Z = range(3)
"""The forms of ΔM': see `apply_utility`, `apply_eq9` and `apply_one_z`."""


class ObjectiveTerms(NamedTuple):
    """The terms that turn a change ΔM of a list into ΔM'.

    Arrays have a number for each list; the last five fields are GeoRisk's.
    """

    form: int
    factor: Array
    alpha: Array
    value: Array
    """M of the model."""
    baseline_value: Array
    """M of the baseline; with GeoRisk, the sum over the baselines."""
    other_z_risk: Array
    """ZRisk without the list's own term."""
    system_sum: float = 0.0
    """S: the sum of M over the lists."""
    grand_total: float = 0.0
    """N: the sum of M over the lists, of the model and of all baselines."""
    risk: float = 0.0
    """The current GeoRisk."""
    topics: int = 0
    """c: the number of lists in GeoRisk, without those that have no relevant document."""


@compile_kernel
def rank_lists(lists: GradedLists, scores: Array, first: int, last: int, order: Array, value: Array) -> None:
    """Sort each list by score, as far down as discounts reach, and compute M.

    Ties are broken against the model: lower gain first, then the earlier row. `order` holds rows; below the ranks that
    count, their order is arbitrary. A list without relevant documents has M = 1.
    """
    depth = max(len(lists.measure_discounts), len(lists.discounts))
    for q in range(first, last):
        start, end = lists.starts[q], lists.starts[q + 1]
        for row in range(start, end):
            score, gain = scores[row], lists.gains[row]
            at = min(row, start + depth)  # the first position after the sorted ones
            if at < row:
                order[row] = row
                lowest = order[at - 1]
                if not (score > scores[lowest] or (score == scores[lowest] and gain < lists.gains[lowest])):
                    continue
                order[row] = lowest
                at -= 1
            while at > start:
                above = order[at - 1]
                if not (score > scores[above] or (score == scores[above] and gain < lists.gains[above])):
                    break
                order[at] = above
                at -= 1
            order[at] = row
        total = 0.0
        for r in range(min(len(lists.measure_discounts), end - start)):
            total += lists.gains[order[start + r]] * lists.measure_discounts[r]
        value[q] = total * lists.inverse_ideal_dcg[q] if lists.inverse_ideal_dcg[q] > 0 else 1.0


@compile_kernel
def apply_utility(change: Array, terms: ObjectiveTerms, q: int) -> None:
    """Set ΔM' = factor [u(δ + ΔM) - u(δ)], u(x) = x or, for a loss, (1 + α) x: crossings of the baseline are split."""
    factor, alpha, lead = terms.factor[q], terms.alpha[q], terms.value[q] - terms.baseline_value[q]
    loss = lead if lead < 0 else 0.0
    for b in range(len(change)):
        after = lead + change[b]
        change[b] = factor * (change[b] + alpha * ((after if after < 0 else 0.0) - loss))


@compile_kernel
def apply_eq9(change: Array, terms: ObjectiveTerms, q: int) -> None:
    """Set ΔM' = factor ΔM, times 1 + α if the list is below its baseline after the swap: crossings are not split.

    A swap that makes the list equal to its baseline up to rounding is not below it.
    """
    factor, alpha, lead = terms.factor[q], terms.alpha[q], terms.value[q] - terms.baseline_value[q]
    for b in range(len(change)):
        change[b] *= factor * (1 + alpha if lead + change[b] < -ROUNDING_TOLERANCE else 1.0)


@compile_kernel
def apply_one_z(change: Array, terms: ObjectiveTerms, q: int) -> None:
    """Set ΔM' = the change of GeoRisk times the number of lists; only the z of the list itself is recomputed."""
    topics, alpha, value, topic = terms.topics, terms.alpha[q], terms.value[q], terms.value[q] + terms.baseline_value[q]
    for b in range(len(change)):
        if change[b] == 0:  # stays 0 in spite of rounding
            continue
        system = max(terms.system_sum + change[b], 0.0)
        expected = system * max(topic + change[b], 0.0) / (terms.grand_total + change[b])
        z = (value + change[b] - expected) / math.sqrt(expected) if expected > 0 else 0.0
        mean = (terms.other_z_risk[q] + (z if z > 0 else (1 + alpha) * z)) / topics
        chance = 0.5 * math.erfc(-mean * math.sqrt(0.5))
        change[b] = topics * (math.sqrt(system / topics * chance) - terms.risk)


@compile_kernel
def compute_lambdas(
    lists: GradedLists,
    terms: ObjectiveTerms,
    scores: Array,
    order: Array,
    first: int,
    last: int,
    scratch: Array,
    gradient: Array,
    hessian: Array,
) -> None:
    """Compute first and second derivatives of each document's loss: over pairs, |ΔM'| times those of the logistic loss.

    A pair of a better document i and a worse one j has the gradient ρ |ΔM'| = |ΔM'| / (1 + exp(s_i - s_j)), i up and j
    down. `scratch` is working memory: `SCRATCH_ROWS` rows as long as the longest list.
    """
    for q in range(first, last):
        start, size = lists.starts[q], lists.starts[q + 1] - lists.starts[q]
        gain, discount, odds, pull, curve = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
        low, high = math.inf, -math.inf
        for row in range(start, start + size):
            low, high = min(low, scores[row]), max(high, scores[row])
        middle = (low + high) / 2
        for r in range(size):
            row = order[start + r]
            gain[r] = lists.gains[row] * lists.change_scale[q]
            discount[r] = lists.discounts[r] if r < len(lists.discounts) else 0.0
            odds[r] = math.exp(min(max(scores[row] - middle, -MAX_SCORE_DISTANCE), MAX_SCORE_DISTANCE))
            pull[r] = curve[r] = 0.0
        for a in range(min(len(lists.discounts), size) if lists.change_scale[q] > 0 else 0):
            change, bend = scratch[5, a + 1 : size], scratch[6, a + 1 : size]
            compute_swap_changes(gain[a], discount[a], gain[a + 1 : size], discount[a + 1 : size], change)
            if terms.form == UTILITY:
                apply_utility(change, terms, q)
            elif terms.form == EQ9:
                apply_eq9(change, terms, q)
            else:
                apply_one_z(change, terms, q)
            weigh_pairs(odds[a], odds[a + 1 : size], change, bend)
            for b in range(len(change)):
                pull[a + 1 + b] += change[b]
                curve[a + 1 + b] += bend[b]
                pull[a] -= change[b]
                curve[a] += bend[b]
        for r in range(size):
            gradient[order[start + r]] = -pull[r]
            hessian[order[start + r]] = max(curve[r], MIN_HESSIAN)


@compile_kernel
def compute_swap_changes(gain: float, discount: float, gains: Array, discounts: Array, change: Array) -> None:
    """Compute the signed ΔM of swapping a document with each document below it."""
    for b in range(len(change)):
        change[b] = (gains[b] - gain) * (discount - discounts[b])


@compile_kernel
def weigh_pairs(own: float, odds: Array, change: Array, bend: Array) -> None:
    """Multiply by ρ, the probability of the wrong order of each pair, and by ρ (1 - ρ); `odds` are exp(score)."""
    for b in range(len(change)):
        share = 1 / (own + odds[b])
        bend[b] = abs(change[b]) * own * odds[b] * share * share
        change[b] *= (own if change[b] > 0 else odds[b]) * share

"""Regression tests between two audits: their findings, paired query by query.

A finding of both audits is a pair of numbers with paired values per query. Fisher's randomisation test computes how
often a random exchange of old and new gives as large a mean difference. Holm's correction is over all compared findings
except those in which too few queries differ (fewer than six) for the test to be significant, since they cannot raise a
false alarm (Tarone, A modified Bonferroni method for discrete data, Biometrics 1990). docs/choices.md reports the error
rate and the power.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shaketable.core.results import Finding
from shaketable.measures.significance import (
    MIN_QUERIES,
    adjust_p_values,
    bootstrap_interval,
    effect_size,
    randomisation_test,
)

SIGNIFICANCE_LEVEL = 0.05
MIN_RANDOMISATION_DRAWS = 10_000

Values: TypeAlias = NDArray[np.float64]
Status: TypeAlias = Literal["worse", "better", "no difference", "not tested"]


@dataclass(frozen=True)
class FindingDelta:
    """One finding in the old and the new audit.

    `loss` is how much worse the number became, whichever direction is better; it is negative for an improvement.
    `losses` holds the loss of each query with a value in both audits. `low` and `high` are the 95 % interval of the
    loss, NaN if the number is not a mean over queries; `effect` is Cohen's d_z of the losses. `p` is that of a
    single test, `corrected_p` is corrected for all tests.
    """

    old: Finding
    new: Finding
    losses: dict[str, float] = field(repr=False)
    low: float = math.nan
    high: float = math.nan
    effect: float = math.nan
    p: float = math.nan
    corrected_p: float = math.nan

    @property
    def ranker(self) -> str:
        """The name of the ranker in the new audit."""
        return self.new.ranker

    @property
    def name(self) -> str:
        return self.new.name

    @property
    def facet(self) -> str:
        return self.new.facet

    @property
    def task(self) -> str:
        return self.new.task

    @property
    def where(self) -> str:
        return self.new.where

    @property
    def better(self) -> Literal["higher", "lower"]:
        return self.new.better

    @property
    def before(self) -> float:
        return self.old.value

    @property
    def after(self) -> float:
        return self.new.value

    @property
    def loss(self) -> float:
        return _loss_sign(self.new) * (self.after - self.before)

    @property
    def n(self) -> int:
        """The number of paired queries."""
        return len(self.losses)

    @property
    def has_enough_queries(self) -> bool:
        """True if there are enough queries to call a difference significant."""
        return self.n >= MIN_QUERIES

    @property
    def status(self) -> Status:
        """The status of the finding; only a significant change is worse or better."""
        if math.isnan(self.corrected_p) or not self.has_enough_queries:
            return "not tested"
        if self.corrected_p >= SIGNIFICANCE_LEVEL:
            return "no difference"
        return "worse" if sum(self.losses.values()) > 0 else "better"

    def find_worst_queries(self, limit: int) -> list[str]:
        """Return the queries with the largest losses, worst first."""
        order = sorted(self.losses, key=lambda qid: -self.losses[qid])
        return [qid for qid in order[:limit] if self.losses[qid] > 0]


def compare_finding(old: Finding, new: Finding, seed: int = 0) -> FindingDelta:
    """Return the change of one finding, tested alone.

    >>> old = Finding("mine", "AP", 0.5, values={str(i): 0.5 for i in range(30)})
    >>> new = Finding("mine", "AP", 0.4, values={str(i): 0.3 + i / 150 for i in range(30)})
    >>> delta = compare_finding(old, new)
    >>> round(delta.loss, 2), delta.status, delta.find_worst_queries(2)
    (0.1, 'worse', ['0', '1'])
    """
    return compare_findings([(old, new)], seed)[0]


def compare_findings(pairs: Iterable[tuple[Finding, Finding]], seed: int = 0) -> list[FindingDelta]:
    """Return the changes of findings, tested together, in the given order."""
    found = [FindingDelta(old, new, _compute_query_losses(old, new)) for old, new in pairs]
    groups: dict[tuple[str, ...], list[int]] = {}
    for index, delta in enumerate(found):
        if delta.losses:
            groups.setdefault(tuple(delta.losses), []).append(index)
    matrices = {
        qids: np.array([list(found[index].losses.values()) for index in indices]) for qids, indices in groups.items()
    }
    countable = sum(int(can_be_significant(losses).sum()) for losses in matrices.values())
    p_values = np.full(len(found), np.nan)
    counts = np.zeros(len(found), dtype=np.bool_)
    for qids, indices in groups.items():
        losses = matrices[qids]
        counts[indices] = can_be_significant(losses)
        p_values[indices] = randomisation_p_values(losses, seed, count_required_draws(countable))
        low, high = bootstrap_interval(losses, seed)
        effect = effect_size(np.zeros_like(losses), losses)
        for i, index in enumerate(indices):
            ends = (float(low[i]), float(high[i])) if _is_mean(found[index]) else (math.nan, math.nan)
            found[index] = replace(found[index], low=ends[0], high=ends[1], effect=float(effect[i]))
    corrected = correct_p_values(p_values, counts)
    return [
        replace(delta, p=float(p), corrected_p=float(c)) for delta, p, c in zip(found, p_values, corrected, strict=True)
    ]


def randomisation_p_values(losses: Values, seed: int = 0, draws: int = MIN_RANDOMISATION_DRAWS) -> Values:
    """Return the two-sided p of each row of losses; 1 if no query differs."""
    p = np.ones(len(losses))
    differ = np.flatnonzero((losses != 0).any(axis=1))
    if differ.size:
        p[differ] = randomisation_test(np.zeros_like(losses[differ]), losses[differ], seed, draws)
    return p


def can_be_significant(losses: Values) -> NDArray[np.bool_]:
    """Return True for rows in which enough queries differ that some signs are significant: p is at least 2^(1-k).

    >>> can_be_significant(np.array([[1.0] * 5 + [0.0] * 40, [1.0] * 6 + [0.0] * 39])).tolist()
    [False, True]
    """
    return np.asarray(2.0 ** (1 - (losses != 0).sum(axis=1)) < SIGNIFICANCE_LEVEL)


def correct_p_values(p_values: Values, counts: NDArray[np.bool_]) -> Values:
    """Return p-values with Holm's correction over the tests that count; the others are 1, and NaN stays NaN."""
    corrected = np.where(np.isnan(p_values), np.nan, 1.0)
    corrected[counts] = adjust_p_values(p_values[counts], "holm")
    return corrected


def restrict_to_common(old: Finding, new: Finding) -> tuple[Finding, Finding]:
    """Return two findings over the queries that both have; only means over queries can be restricted.

    >>> few, many = Finding("a", "AP", 0.5, values={"1": 0.5}), Finding("a", "AP", 0.4, values={"1": 0.6, "2": 0.2})
    >>> [one.value for one in restrict_to_common(few, many)]
    [0.5, 0.6]
    """
    common = sorted(old.values.keys() & new.values.keys())
    if not common or old.values.keys() == new.values.keys() or not (_is_plain_mean(old) and _is_plain_mean(new)):
        return old, new

    def restrict(finding: Finding) -> Finding:
        values = {qid: finding.values[qid] for qid in common}
        known = [value for value in values.values() if math.isfinite(value)]
        return replace(finding, value=float(np.mean(known)) if known else math.nan, n=len(known), values=values)

    return restrict(old), restrict(new)


def count_required_draws(tests: int) -> int:
    """Return the number of draws with which the smallest p survives the correction."""
    return max(MIN_RANDOMISATION_DRAWS, math.ceil(2 * tests / SIGNIFICANCE_LEVEL))


def _loss_sign(finding: Finding) -> int:
    return -1 if finding.better == "higher" else 1


def _compute_query_losses(old: Finding, new: Finding) -> dict[str, float]:
    """Return the loss of each query with both values."""
    common = sorted(old.values.keys() & new.values.keys())
    losses = {qid: _loss_sign(new) * (new.values[qid] - old.values[qid]) for qid in common}
    return {qid: loss for qid, loss in losses.items() if math.isfinite(loss)}


def _is_mean(delta: FindingDelta) -> bool:
    """Return True if both numbers are the means of their values per query."""
    return _is_plain_mean(delta.old) and _is_plain_mean(delta.new)


def _is_plain_mean(finding: Finding) -> bool:
    known: Sequence[float] = [value for value in finding.values.values() if math.isfinite(value)]
    return bool(known) and math.isclose(float(np.mean(known)), finding.value, rel_tol=1e-6, abs_tol=1e-9)

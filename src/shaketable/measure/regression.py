"""Is the new version worse? The findings of two audits, paired query by query.

A finding that both audits have is a pair of numbers, and of what each query adds to them. Fisher's randomisation test
asks how often as large a mean difference comes of exchanging old and new at random, and Holm's correction is over all
findings that are compared. Findings in which so few queries differ that the test could never call it significant, six
of them being the least, do not count in the correction, since they cannot raise a false alarm (Tarone, A modified
Bonferroni method for discrete data, Biometrics 1990). docs/choices.md has how often it is wrong, and what it finds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shaketable.measure.significance import FEWEST_QUERIES, adjust, bootstrap_interval, effect_size, randomisation
from shaketable.types import Finding

LEVEL = 0.05
DRAWS = 10_000

Values: TypeAlias = NDArray[np.float64]
Status: TypeAlias = Literal["worse", "better", "no difference", "not tested"]


@dataclass(frozen=True)
class Drift:
    """One finding, earlier and later.

    `loss` is how much worse the number became, whichever way is better, and below 0 where it became better; `losses`
    has the same for each query that both audits have a value for. `low` and `high` are the 95 % interval of the loss,
    NaN where the number is no mean over queries; `effect` is Cohen's d_z of the losses. `p` is of one test, and
    `corrected` of all that were made together.
    """

    old: Finding
    new: Finding
    losses: dict[str, float] = field(repr=False)
    low: float = math.nan
    high: float = math.nan
    effect: float = math.nan
    p: float = math.nan
    corrected: float = math.nan

    @property
    def before(self) -> float:
        return self.old.value

    @property
    def after(self) -> float:
        return self.new.value

    @property
    def loss(self) -> float:
        return _sign(self.new) * (self.after - self.before)

    @property
    def n(self) -> int:
        """The queries that are paired."""
        return len(self.losses)

    @property
    def enough(self) -> bool:
        """Are there queries enough to call a difference significant?"""
        return self.n >= FEWEST_QUERIES

    @property
    def status(self) -> Status:
        """What became of the finding; only what chance could hardly have made is worse or better."""
        if math.isnan(self.corrected) or not self.enough:
            return "not tested"
        if self.corrected >= LEVEL:
            return "no difference"
        return "worse" if sum(self.losses.values()) > 0 else "better"

    def worst(self, most: int) -> list[str]:
        """The queries that lost most, the worst first."""
        order = sorted(self.losses, key=lambda qid: -self.losses[qid])
        return [qid for qid in order[:most] if self.losses[qid] > 0]


def drift_of(old: Finding, new: Finding, seed: int = 0) -> Drift:
    """One finding earlier and later, tested alone.

    >>> old = Finding("mine", "AP", 0.5, values={str(i): 0.5 for i in range(30)})
    >>> new = Finding("mine", "AP", 0.4, values={str(i): 0.3 + i / 150 for i in range(30)})
    >>> drift = drift_of(old, new)
    >>> round(drift.loss, 2), drift.status, drift.worst(2)
    (0.1, 'worse', ['0', '1'])
    """
    return drifts([(old, new)], seed)[0]


def drifts(pairs: Iterable[tuple[Finding, Finding]], seed: int = 0) -> list[Drift]:
    """Findings earlier and later, tested together, in the order given."""
    found = [Drift(old, new, _losses(old, new)) for old, new in pairs]
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, drift in enumerate(found):
        if drift.losses:
            groups.setdefault(tuple(drift.losses), []).append(place)
    matrices = {
        qids: np.array([list(found[place].losses.values()) for place in places]) for qids, places in groups.items()
    }
    countable = sum(int(can_differ(losses).sum()) for losses in matrices.values())
    p_values = np.full(len(found), np.nan)
    counts = np.zeros(len(found), dtype=np.bool_)
    for qids, places in groups.items():
        losses = matrices[qids]
        counts[places] = can_differ(losses)
        p_values[places] = p_of(losses, seed, draws_for_tests(countable))
        low, high = bootstrap_interval(losses, seed)
        effect = effect_size(np.zeros_like(losses), losses)
        for i, place in enumerate(places):
            ends = (float(low[i]), float(high[i])) if _is_mean(found[place]) else (math.nan, math.nan)
            found[place] = replace(found[place], low=ends[0], high=ends[1], effect=float(effect[i]))
    corrected = correct(p_values, counts)
    return [
        replace(drift, p=float(p), corrected=float(c)) for drift, p, c in zip(found, p_values, corrected, strict=True)
    ]


def p_of(losses: Values, seed: int = 0, draws: int = DRAWS) -> Values:
    """Two-sided p of each row of losses; 1 where no query differs."""
    p = np.ones(len(losses))
    differ = np.flatnonzero((losses != 0).any(axis=1))
    if differ.size:
        p[differ] = randomisation(np.zeros_like(losses[differ]), losses[differ], seed, draws)
    return p


def can_differ(losses: Values) -> NDArray[np.bool_]:
    """Whether so many queries of a row differ that some assignment of signs is significant: p is 2^(1-k) at least.

    >>> can_differ(np.array([[1.0] * 5 + [0.0] * 40, [1.0] * 6 + [0.0] * 39])).tolist()
    [False, True]
    """
    return np.asarray(2.0 ** (1 - (losses != 0).sum(axis=1)) < LEVEL)


def correct(p_values: Values, counts: NDArray[np.bool_]) -> Values:
    """Holm's correction over the tests that count; of the others p is 1, and NaN stays."""
    corrected = np.where(np.isnan(p_values), np.nan, 1.0)
    corrected[counts] = adjust(p_values[counts], "holm")
    return corrected


def draws_for_tests(tests: int) -> int:
    """So many draws that the smallest p survives the correction."""
    return max(DRAWS, math.ceil(2 * tests / LEVEL))


def _sign(finding: Finding) -> int:
    return -1 if finding.better == "higher" else 1


def _losses(old: Finding, new: Finding) -> dict[str, float]:
    """What each query lost, of those that have both values."""
    common = sorted(old.values.keys() & new.values.keys())
    losses = {qid: _sign(new) * (new.values[qid] - old.values[qid]) for qid in common}
    return {qid: loss for qid, loss in losses.items() if math.isfinite(loss)}


def _is_mean(drift: Drift) -> bool:
    """Are both numbers the means of what their queries add?"""

    def plain(finding: Finding) -> bool:
        known: Sequence[float] = [value for value in finding.values.values() if math.isfinite(value)]
        return math.isclose(float(np.mean(known)), finding.value, rel_tol=1e-6, abs_tol=1e-9)

    return plain(drift.old) and plain(drift.new)

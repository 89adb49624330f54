"""NDCG of feature data, list by list, fast enough to be computed after every tree.

    NDCG@k = Σ_{r ≤ k} (2^label_r - 1) / log2(1 + r), divided by the most that the labels allow

Its gain is exponential, as in the papers on learning to rank: nDCG(dcg='exp-log2')@k of ir_measures, not nDCG@k, whose
gain is linear. Every printed value has this name (`NDCG.name`).

Ties are broken against the ranking: lower label first. A list without relevant documents has NDCG 1 for any ranking, so
that no model gains or loses on it, and GeoRisk excludes it. trec_eval and `measures.effectiveness` count 0, and so does
`NDCG.compute_mean`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shaketable.core.errors import BadInput
from shaketable.datasets.letor import MAX_LETOR_LABEL, Letor

if TYPE_CHECKING:
    from shaketable.training.lambdamart_kernels import GradedLists

Values = NDArray[np.float64]

HISTORICAL_MAX_LABEL, HISTORICAL_DEPTH = 4, 50
"""The limits at which jforests clips labels, and at which it computes the best DCG that divides changes."""


@dataclass(frozen=True, eq=False)
class NDCG:
    """NDCG@truncation of the lists of a data set; without a truncation, of whole lists.

    The truncation applies to the measure and its changes. `historical` is as in jforests: a change of NDCG counts all
    ranks and is divided by the best DCG@50, and labels above 4 count as 4.

    >>> labels, starts = np.array([0, 1, 0]), np.array([0, 2, 3])
    >>> data = Letor(np.zeros((3, 1), np.float32), labels, starts, ("q1", "q2"), ("a", "b", "c"))
    >>> NDCG(data).compute(np.array([0.5, 0.0, 0.0])).round(3)
    array([0.631, 1.   ])
    """

    data: Letor
    truncation: int | None = 10
    historical: bool = False

    def compute(self, scores: NDArray[np.floating[Any]]) -> Values:
        """Return the NDCG of each list under these scores, one score per row."""
        return self.rank(scores)[1]

    @property
    def name(self) -> str:
        """The name of the measure in ir_measures, which says that the gain is exponential."""
        return "nDCG(dcg='exp-log2')" + (f"@{self.truncation}" if self.truncation else "")

    def compute_mean(self, scores: NDArray[np.floating[Any]]) -> float:
        """Return the mean of all lists; a list without relevant documents counts 0, as in trec_eval."""
        return float(np.where(self.without_relevant, 0.0, self.compute(scores)).mean())

    def rank(self, scores: NDArray[np.floating[Any]]) -> tuple[NDArray[np.int64], Values]:
        """Return the rows of each list, best first down to the last rank that counts, and the NDCG of each list."""
        return _rank_lists(self.graded_lists, scores)

    @cached_property
    def without_relevant(self) -> NDArray[np.bool_]:
        """A mask of the lists without relevant documents."""
        return np.asarray(self.graded_lists.inverse_ideal_dcg == 0)

    @cached_property
    def graded_lists(self) -> GradedLists:
        """The input of the kernels."""
        from shaketable.training.lambdamart_kernels import GradedLists

        if self.truncation is not None and self.truncation < 1:
            raise BadInput(f"the truncation of NDCG must be at least 1, or None for whole lists, not {self.truncation}")
        labels, starts = self.data.labels, self.data.starts
        if len(labels) and not 0 <= labels.min() <= labels.max() <= MAX_LETOR_LABEL:
            raise BadInput(f"labels run from {labels.min()} to {labels.max()}; they should be 0 to {MAX_LETOR_LABEL}")
        longest = int(np.diff(starts).max(initial=0))
        worth = np.minimum(labels, HISTORICAL_MAX_LABEL) if self.historical else labels
        gains = np.exp2(worth.astype(np.float64)) - 1
        every: Values = 1 / np.log2(2.0 + np.arange(longest, dtype=np.float64))
        shown = every[: self.truncation]
        ideal = _compute_inverse_ideal_dcg(starts, gains, shown)
        if not self.historical:
            return GradedLists(starts, gains, shown, ideal, shown, ideal)
        return GradedLists(
            starts, gains, shown, ideal, every, _compute_inverse_ideal_dcg(starts, gains, every[:HISTORICAL_DEPTH])
        )


def list_ndcg(labels: Sequence[float], scores: NDArray[np.floating[Any]]) -> float:
    """Return the NDCG of one whole list under these scores.

    >>> round(list_ndcg((0, 1, 0), np.array([0.5, 0.3, 0.1])), 3)
    0.631
    """
    whole = np.asarray(labels).astype(np.int64)
    if (whole != labels).any():
        raise BadInput(
            "NDCG needs grades, and these labels are not whole numbers; a teacher's scores are not judgements"
        )
    rows = len(whole)
    data = Letor(np.zeros((rows, 0), np.float32), whole, np.array([0, rows]), ("",), ("",) * rows)
    return float(NDCG(data, None).compute(scores)[0])


def _compute_inverse_ideal_dcg(starts: NDArray[np.int64], gains: Values, discounts: Values) -> Values:
    """Return 1 / the best DCG of each list; 0 if no document is relevant."""
    from shaketable.training.lambdamart_kernels import GradedLists

    ones = np.ones(len(starts) - 1)
    best = _rank_lists(GradedLists(starts, gains, discounts, ones, discounts, ones), gains)[1]
    return np.divide(1, best, out=np.zeros_like(best), where=best > 0)


def _rank_lists(lists: GradedLists, scores: NDArray[np.floating[Any]]) -> tuple[NDArray[np.int64], Values]:
    from shaketable.training.lambdamart_kernels import rank_lists

    order, value = np.empty(len(lists.gains), np.int64), np.empty(len(lists.starts) - 1)
    rank_lists(lists, np.asarray(scores, np.float64), 0, len(value), order, value)
    return order, value

"""The loss of a ranker under domain shift between training and test: DR_OOD, as a matrix.

P[i, j] is the effectiveness of a ranker trained on domain i, on the test queries of domain j. The reference of a cell
is the same ranker trained on the test domain, on the same queries:

    DR[i, j] = (P[i, j] - P[j, j]) / P[j, j]

Wu, Zhang, Guo, Fan, Cheng. Are neural ranking models robust? TOIS 2022 (paper 000), equations 11 to 13. Read literally,
the equations compare one model on two sets of queries. The numbers of the paper compare two models on one set, as here:
its -30.2 % for ColBERT from Location to Numeric is (.227 - .325) / .325.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shaketable.core.errors import BadInput
from shaketable.core.seeding import make_numpy_rng
from shaketable.measures import validate_topic_scores
from shaketable.measures.paired_comparison import Comparison, compare_paired
from shaketable.measures.rank_distance import drop_rate
from shaketable.measures.significance import interval_tail_share

Values = NDArray[np.float64]
PerQuery = Mapping[str, float]
"""The value of a measure for each query."""
Cells = Mapping[tuple[str, str], PerQuery]
"""(trained on, tested on) -> query -> value. The reference of a test domain is the cell (domain, domain)."""

BOOTSTRAP_DRAWS = 2000


def drop_matrix(means: ArrayLike, reference_rows: Sequence[int] | None = None) -> Values:
    """Return DR_OOD of every cell of a matrix [..., training domains, test domains], as a share; NaN for references.

    `reference_rows` holds the row of each column's reference; the default is the row of the same number.

    >>> drop_matrix([[0.432, 0.227], [0.330, 0.325]]).round(3).tolist()
    [[nan, -0.302], [-0.236, nan]]
    """
    p = np.asarray(means, dtype=np.float64)
    if p.ndim < 2 or not np.isfinite(p).all():
        raise BadInput("a matrix of drops needs finite means of training domains x test domains")
    rows = np.arange(p.shape[-1]) if reference_rows is None else np.asarray(reference_rows)
    if len(rows) != p.shape[-1] or (rows >= p.shape[-2]).any():
        raise BadInput(
            f"{p.shape[-1]} test domains need a reference each among {p.shape[-2]} rows, not {rows.tolist()}"
        )
    columns = np.arange(p.shape[-1])
    reference = p[..., rows, columns][..., None, :]
    found = np.divide(p - reference, reference, out=np.full_like(p, np.nan), where=reference != 0)
    found[..., rows, columns] = np.nan
    return found


def mean_drop(drops: ArrayLike) -> float:
    """Return the mean of all drops that are not NaN; NaN if there is none.

    >>> mean_drop(drop_matrix([[0.5, 0.2], [0.4, 0.4]]))
    -0.35
    """
    known = np.asarray(drops, dtype=np.float64)
    known = known[~np.isnan(known)]
    return float(known.mean()) if known.size else float("nan")


@dataclass(frozen=True)
class ShiftDrop:
    """A cell and its reference: `drop` is DR_OOD in per cent, `low` and `high` are its 95 % interval.

    The interval is a paired bootstrap over queries. `compared` holds the means, the number of queries and the
    uncorrected p-value of the paired t-test.
    """

    train: str
    test: str
    comparison: Comparison
    low: float
    high: float

    @property
    def drop(self) -> float:
        return self.comparison.drop


def compute_drops(cells: Cells, seed: int = 0) -> list[ShiftDrop]:
    """Return the drop of every non-reference cell; refuse a cell whose test domain has no reference."""
    found = []
    for (train, test), values in cells.items():
        if train == test:
            continue
        own = _require_reference(cells, test)
        low, high = mean_drop_interval({(test, test): own, (train, test): values}, seed)
        found.append(ShiftDrop(train, test, compare_paired(own, values, seed), 100 * low, 100 * high))
    return found


def mean_drop_of_cells(cells: Cells) -> float:
    """Return the mean DR_OOD of all non-reference cells, as a share.

    >>> mean_drop_of_cells({("a", "a"): {"q": 0.5}, ("b", "a"): {"q": 0.4}, ("c", "a"): {"q": 0.3}})
    -0.3
    """
    rates = [
        drop_rate(_mean(_require_reference(cells, test)), _mean(values))
        for (train, test), values in cells.items()
        if train != test
    ]
    return mean_drop(rates)


def mean_drop_interval(
    cells: Cells, seed: int = 0, level: float = 0.95, draws: int = BOOTSTRAP_DRAWS
) -> tuple[float, float]:
    """Return a bootstrap interval of the mean DR_OOD of all non-reference cells, as shares.

    The tails are those of `significance.bootstrap_interval` for the test domain with the fewest queries. The interval
    is NaN if it is undefined.
    """
    drawn = draw_mean_drops(cells, seed, draws)
    known = drawn[~np.isnan(drawn)]
    if not known.size:
        return float("nan"), float("nan")
    tail = interval_tail_share(min(len(values) for values in cells.values()), level)
    low, high = np.quantile(known, [tail, 1 - tail])
    return float(low), float(high)


def draw_mean_drops(cells: Cells, seed: int = 0, draws: int = BOOTSTRAP_DRAWS) -> Values:
    """Return the mean DR_OOD of all non-reference cells in each bootstrap draw, as shares; NaN where it is undefined.

    The queries of each test domain are resampled together for all its cells and its reference, to keep them paired.
    Rankers with the same queries get the same draws, so the draws of two rankers are paired too. A draw has no drop
    where a reference is zero.
    """
    total, counted = np.zeros(draws), np.zeros(draws)
    for test in dict.fromkeys(test for train, test in cells if train != test):
        own = _require_reference(cells, test)
        others = [values for (train, at), values in cells.items() if at == test and train != test]
        qids = [qid for qid in own if all(qid in values for values in others)]
        rows = validate_topic_scores([[values[qid] for qid in qids] for values in (own, *others)])
        rng = make_numpy_rng(seed, "shift", test)
        times = rng.multinomial(len(qids), np.full(len(qids), 1 / len(qids)), size=draws)
        means = times @ rows.T / len(qids)
        known = means[:, 0] > 0
        total[known] += ((means[known, 1:] - means[known, :1]) / means[known, :1]).sum(axis=1)
        counted[known] += len(others)
    drops = np.full(draws, np.nan)
    np.divide(total, counted, out=drops, where=counted > 0)
    return drops


def _require_reference(cells: Cells, test: str) -> PerQuery:
    if (test, test) not in cells:
        raise BadInput(f"no ranker was trained on {test} itself, so there is no reference for its drop")
    return cells[test, test]


def _mean(values: PerQuery) -> float:
    return float(np.mean(list(values.values())))

"""Measures of how much effectiveness varies over a ranker's queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shaketable.core.documents import Qrels, Run
from shaketable.core.errors import BadInput, check_parameter
from shaketable.measures import subtract_scores, validate_topic_scores
from shaketable.measures.effectiveness import evaluate_run
from shaketable.measures.measure_names import parse_measure

Values = NDArray[np.float64]


@dataclass(frozen=True)
class VNAP:
    """Variance of AP normalised by its mean: how uneven a ranker is over queries (lower is better).

    Var(AP / MAP) = Var(AP) / MAP², with the population variance; NaN if MAP is 0.

    >>> VNAP().over([0.2, 0.4]).item()
    0.1111111111111111
    """

    def over(self, ap: ArrayLike) -> Values:
        ap = validate_topic_scores(ap, minimum=0)
        mean = ap.mean(axis=-1)
        normal = np.divide(ap, mean[..., None], out=np.full_like(ap, np.nan), where=mean[..., None] > 0)
        return np.asarray(normal.var(axis=-1))


@dataclass(frozen=True)
class VAP:
    """Variance of AP over queries, not normalised (lower is better).

    The population variance. It falls with the mean, since a ranker that finds nothing has variance 0; use VNAP to
    compare rankers with different means.

    >>> round(VAP().over([0.2, 0.4]).item(), 12)
    0.01

    Zhang, Song, Wang, Hou. Bias-variance decomposition of IR evaluation. SIGIR 2013.
    """

    def over(self, ap: ArrayLike) -> Values:
        return np.asarray(validate_topic_scores(ap, minimum=0).var(axis=-1))


@dataclass(frozen=True)
class GMAP:
    """Geometric mean of AP, which gives failing queries more weight than the mean does (higher is better).

    exp(mean ln(AP + ε)) - ε; with `floor`, trec_eval's gm_map: exp(mean ln max(AP, ε)).

    >>> round(GMAP().over([0.1, 0.4]).item(), 4)
    0.2

    Voorhees. Overview of the TREC 2004 robust retrieval track.
    """

    floor: bool = False
    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        check_parameter("gmap", 0 < self.epsilon <= 1, "epsilon", "above 0 and not above 1", self.epsilon)

    def over(self, ap: ArrayLike) -> Values:
        ap = validate_topic_scores(ap, minimum=0)
        if self.floor:
            return np.asarray(np.exp(np.log(np.maximum(ap, self.epsilon)).mean(axis=-1)))
        # rounding may give a tiny negative value if every query failed
        return np.asarray(np.maximum(np.exp(np.log(ap + self.epsilon).mean(axis=-1)) - self.epsilon, 0))


@dataclass(frozen=True)
class GMMap:
    """Geometric mean of AP as in trec_eval, with AP of at least 0.00001; equal to `gmap(floor=True)`.

    >>> round(GMMap().over([0.0, 0.4]).item(), 6)
    0.002
    """

    def over(self, ap: ArrayLike) -> Values:
        return GMAP(floor=True).over(ap)


@dataclass(frozen=True)
class WorstArea:
    """Area under MAP(X), the mean AP of the X worst queries, up to a quarter (higher is better).

    Σ MAP(X) for X = 1..⌊share · |Q|⌋, divided by the number of X if `normalise`; NaN if there is no such X.

    >>> WorstArea(share=0.5).over([0.75, 0.25, 0.5, 1.0]).item()
    0.3125

    Voorhees. Overview of the TREC 2003 robust retrieval track.
    """

    share: float = 0.25
    normalised: bool = True

    def __post_init__(self) -> None:
        check_parameter("worst_area", 0 < self.share <= 1, "share", "above 0 and not above 1", self.share)

    def over(self, ap: ArrayLike) -> Values:
        ap = validate_topic_scores(ap, minimum=0)
        count = int(ap.shape[-1] * self.share + 1e-9)  # 0.29 of 100 must be 29 despite binary fractions
        if count == 0:
            return np.full(ap.shape[:-1], np.nan)
        worst = np.sort(ap, axis=-1)[..., :count].cumsum(axis=-1) / np.arange(1, count + 1)
        return np.asarray(worst.mean(axis=-1) if self.normalised else worst.sum(axis=-1))


def flag_no_relevant(qrels: Qrels, run: Run, k: int = 10) -> dict[str, float]:
    """Return 1 for each query without a relevant document in its first k, else 0; 100 times the mean is "%no".

    Missing documents of a list shorter than k count as not relevant.
    """
    success = parse_measure(f"Success@{k}")
    return {qid: 1.0 - value for qid, value in evaluate_run([success], qrels, run)[success].items()}


def r_loss(qrels: Qrels, base: Run, new: Run, k: int = 10) -> dict[str, float]:
    """Return how many relevant documents each query lost from its first k: max(0, before - after).

    After Collins-Thompson, Reducing the risk of query expansion via robust constrained optimization (CIKM 2009), which
    averages over the hurt queries only; here every query has its value.
    """
    precision = parse_measure(f"P@{k}")
    before, after = (list(evaluate_run([precision], qrels, run)[precision].values()) for run in (base, new))
    return dict(zip(qrels, count_relevant_lost(before, after, k).tolist(), strict=True)) if qrels else {}


def count_relevant_lost(before: ArrayLike, after: ArrayLike, k: int = 10) -> Values:
    """Return R-Loss from P@k of each query before and after: the number of relevant documents that left the first k.

    >>> count_relevant_lost([0.3, 0.1], [0.1, 0.2], k=10)
    array([2., 0.])
    """
    before, after = validate_topic_scores(before, minimum=0), validate_topic_scores(after, minimum=0)
    return np.maximum(np.round(k * (before - after)), 0)


def robustness_index(base: ArrayLike, new: ArrayLike) -> float:
    """Return (improved - hurt) / all queries: from -1, all hurt, to 1, all improved.

    >>> robustness_index([0.1, 0.2, 0.3, 0.4], [0.2, 0.3, 0.2, 0.4])
    0.25
    """
    return float(np.sign(_paired_difference(base, new)).mean())


def below_initial_percentage(initial: ArrayLike, new: ArrayLike) -> float:
    """Return "<Init", the percentage of queries with a value below the initial one.

    >>> below_initial_percentage([0.1, 0.2, 0.3, 0.4], [0.2, 0.3, 0.2, 0.4])
    25.0
    """
    worse = _paired_difference(initial, new) < 0
    return float(100 * worse.sum() / worse.size)


def mean_variance_correlation(means: ArrayLike, variances: ArrayLike) -> float:
    """Return Pearson's correlation of rankers' means and variances; NaN for under three rankers or a constant input.

    A ranker whose variance is NaN, such as VNAP if MAP is 0, is excluded: any substitute would be arbitrary, and one
    such ranker can change the sign.

    >>> mean_variance_correlation([0.1, 0.2, 0.3, 0.0], [3.0, 2.0, 1.0, float("nan")])
    -1.0
    """
    x, y = np.asarray(means, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    if x.shape != y.shape:
        raise BadInput(f"{x.size} means and {y.size} variances cannot be paired")
    known = ~np.isnan(y)
    if known.sum() < 3:
        return float("nan")
    x, y = validate_topic_scores(x[known]), validate_topic_scores(y[known])
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])


def _paired_difference(before: ArrayLike, after: ArrayLike) -> Values:
    before, after = validate_topic_scores(before), validate_topic_scores(after)
    if before.shape != after.shape:
        raise BadInput(f"{before.size} values before and {after.size} after cannot be paired")
    return subtract_scores(before, after)

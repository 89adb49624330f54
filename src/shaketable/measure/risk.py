"""What a system risks on the topics where it falls below its baselines: U, T, Z and GeoRisk.

A matrix x[systems, topics] holds effectiveness scores, none below 0; α ≥ 0 is how much more a loss counts than a gain.

Dinçer, Macdonald, Ounis. Risk-sensitive evaluation and learning to rank using multiple baselines. SIGIR 2016.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shaketable.errors import BadInput, UnknownName
from shaketable.measure import per_topic

Values = NDArray[np.float64]

NOISE = 1e-12
"""Relative to the scores: differences this small come from rounding, not from systems."""


# The mathematics: elementwise, unchecked, for objectives that call it millions of times.


def penalised(delta: Values, alpha: float | Values) -> Values:
    """Gains as they are, losses 1 + α fold.

    >>> penalised(np.array([0.2, -0.1]), 1.0)
    array([ 0.2, -0.2])
    """
    return np.where(delta < 0, (1 + alpha) * delta, delta)


def expected(system_total: Values, topic_total: Values, total: float | Values) -> Values:
    """e = S T / N: what a system of this total would score on this topic if it had the shape of all systems."""
    share = np.divide(topic_total, total, out=np.zeros_like(topic_total), where=np.asarray(total) > 0)
    return np.asarray(system_total * share)


def standardised(x: Values, e: Values) -> Values:
    """z = (x - e) / √e, and 0 where nothing was expected: there x is 0 as well.

    >>> standardised(np.array([0.5, 0.0]), np.array([0.25, 0.0]))
    array([0.5, 0. ])
    """
    return np.divide(x - e, np.sqrt(e), out=np.zeros_like(e), where=e > 0)


def geometric(mean: Values, z_mean: Values) -> Values:
    """GeoRisk = √(mean effectiveness · Φ(ZRisk / c)).

    >>> geometric(np.array(0.5), np.array(0.0)).item()
    0.5
    """
    from scipy.special import ndtr

    return np.asarray(np.sqrt(mean * ndtr(z_mean)))


# The measures, of checked matrices.


def u_risk(scores: ArrayLike, baseline: ArrayLike, alpha: float = 0.0) -> Values:
    """URisk: the mean difference from a baseline, losses counted 1 + α fold. scores [..., topics] -> [...].

    >>> u_risk([0.5, 0.25], [0.25, 0.5], alpha=1.0).item()
    -0.125
    """
    scores, baseline = _compared(scores, baseline)
    return np.asarray(penalised(scores - baseline, _checked_alpha(alpha)).mean(axis=-1))


def t_risk(scores: ArrayLike, baseline: ArrayLike, alpha: float = 0.0) -> Values:
    """TRisk: URisk / its standard error, Student's t with c - 1 degrees of freedom; 0 where nothing varies."""
    scores, baseline = _compared(scores, baseline)
    alpha = _checked_alpha(alpha)
    noise = NOISE * (1 + alpha) * max(scores.max(), baseline.max())
    return _student(penalised(scores - baseline, alpha), noise)


def t_star_risk(matrix: ArrayLike, alpha: float = 0.0) -> Values:
    """T*Risk: TRisk against each topic's mean over all systems of the matrix."""
    matrix = _matrix(matrix)
    return t_risk(matrix, matrix.mean(axis=0), alpha)


def z_scores(matrix: ArrayLike) -> Values:
    """z[systems, topics]: how far each score lies from what the marginals lead one to expect.

    A system takes part in its own marginals. Topics on which all fail, and systems that fail everywhere, have z = 0.
    """
    x = _matrix(matrix)
    if len(x) == 1:  # a system alone is all that is expected; rounding must not say otherwise
        return np.zeros_like(x)
    return standardised(x, expected(x.sum(axis=1, keepdims=True), x.sum(axis=0), x.sum()))


def z_risk(matrix: ArrayLike, alpha: float = 0.0) -> Values:
    """ZRisk of each system: the sum of its z scores, losses counted 1 + α fold."""
    return np.asarray(penalised(z_scores(matrix), _checked_alpha(alpha)).sum(axis=1))


def geo_risk(matrix: ArrayLike, alpha: float = 0.0) -> Values:
    """GeoRisk of each system: √(mean effectiveness · Φ(ZRisk / topics))."""
    x = _matrix(matrix)
    return geometric(x.mean(axis=1), z_risk(x, alpha) / x.shape[1])


def p_value(t: ArrayLike, topics: int) -> Values:
    """Two-sided p of Student's t with topics - 1 degrees of freedom; 1 for a single topic.

    >>> round(p_value(2.0095752, 50).item(), 4)
    0.05
    """
    from scipy.special import stdtr

    t = np.asarray(t, dtype=np.float64)
    return np.asarray(2 * stdtr(topics - 1, -np.abs(t))) if topics > 1 else np.ones_like(t)


@dataclass(frozen=True)
class RiskTable:
    """Every risk measure [systems, alphas]; `p` and `p_star` belong to `t` and `t_star`."""

    alphas: tuple[float, ...]
    mean: Values
    u: Values
    t: Values
    p: Values
    t_star: Values
    p_star: Values
    z: Values
    geo: Values


def risk_table(matrix: ArrayLike, baseline: ArrayLike, alphas: Sequence[float] = (0, 1, 5, 10)) -> RiskTable:
    """All measures for all systems and alphas: U and T against the baseline, Z and Geo against all systems."""
    x = _matrix(matrix)
    x, baseline = _compared(x, baseline)
    levels = np.array([_checked_alpha(alpha) for alpha in alphas])
    topics = x.shape[1]
    mean = x.mean(axis=1)
    u = _weighed(x - baseline, levels) / topics
    t = np.stack([t_risk(x, baseline, alpha) for alpha in alphas], axis=1)
    t_star = np.stack([t_star_risk(x, alpha) for alpha in alphas], axis=1)
    z = _weighed(z_scores(x), levels)
    geo = geometric(mean[:, None], z / topics)
    return RiskTable(tuple(alphas), mean, u, t, p_value(t, topics), t_star, p_value(t_star, topics), z, geo)


@dataclass(frozen=True)
class RewardRisk:
    """Gains and losses against a baseline, one value for each system; with several baselines, means over them."""

    reward: Values
    """Mean over topics of the gains."""
    risk: Values
    """Mean over topics of the losses, as a positive number."""
    ratio: Values
    """reward / risk: infinite without a loss, NaN without either."""
    wins: Values
    losses: Values
    ties: Values
    win_loss: Values
    """wins / losses, as `ratio`."""
    heavy_losses: Values
    """Topics that lose more than 20 % of the baseline's score."""


def reward_risk(scores: ArrayLike, baselines: ArrayLike) -> RewardRisk:
    """Reward, risk, wins and losses of systems [systems, topics] against one baseline [topics] or several.

    With several baselines each number is computed against each of them and then averaged (macro average).

    >>> found = reward_risk([[0.5, 0.2, 0.4]], [0.4, 0.4, 0.4])
    >>> found.wins.item(), found.losses.item(), found.ties.item(), found.heavy_losses.item()
    (1.0, 1.0, 1.0, 1.0)
    """
    each = [_against(*_compared(_matrix(scores), b)) for b in np.atleast_2d(np.asarray(baselines, dtype=np.float64))]
    return RewardRisk(**{f.name: np.mean([getattr(e, f.name) for e in each], axis=0) for f in fields(RewardRisk)})


def baseline_scores(matrix: ArrayLike, systems: Sequence[str], name: str) -> Values:
    """The per-topic scores a baseline's name stands for: a system, or the mean, median or max of all systems.

    >>> baseline_scores([[0.2, 0.4], [0.6, 0.0]], ["bm25", "ql"], "max")
    array([0.6, 0.4])
    """
    x = _matrix(matrix)
    if name in systems:
        return np.asarray(x[list(systems).index(name)])
    if name not in _SUMMARIES:
        raise UnknownName("baseline", name, [*systems, *_SUMMARIES])
    return np.asarray(_SUMMARIES[name](x, axis=0))


_SUMMARIES: dict[str, Callable[..., Values]] = {"mean": np.mean, "median": np.median, "max": np.max}


def ranks(values: ArrayLike) -> NDArray[np.int64]:
    """The place of each system (first axis), 1 for the highest value; systems that tie share the better place.

    >>> ranks([0.3, 0.5, 0.5, 0.1])
    array([3, 1, 1, 4])
    """
    values = np.asarray(values, dtype=np.float64)
    if np.isnan(values).any():
        raise BadInput("a value that is NaN has no rank; leave it out first")
    columns = values.reshape(len(values), -1).T
    places = [1 + len(c) - np.searchsorted(np.sort(c), c, side="right") for c in columns]
    return np.array(places, dtype=np.int64).T.reshape(values.shape)


def _weighed(delta: Values, alphas: Values) -> Values:
    """Σ penalised(delta, α) over topics, for all alphas at once."""
    gains, losses = np.maximum(delta, 0).sum(axis=1), np.minimum(delta, 0).sum(axis=1)
    return np.asarray(gains[:, None] + (1 + alphas) * losses[:, None])


def _student(y: Values, noise: float) -> Values:
    mean, topics = y.mean(axis=-1), y.shape[-1]
    if topics == 1:
        return np.zeros_like(mean)
    error = y.std(axis=-1, ddof=1)
    return np.asarray(np.divide(mean * np.sqrt(topics), error, out=np.zeros_like(mean), where=error > noise))


def _against(scores: Values, baseline: Values) -> RewardRisk:
    delta = scores - baseline
    reward, risk = np.maximum(delta, 0).mean(axis=1), np.maximum(-delta, 0).mean(axis=1)
    wins, losses, ties = ((np.sign(delta) == sign).sum(axis=1).astype(np.float64) for sign in (1, -1, 0))
    heavy = (-delta > (0.2 + NOISE) * baseline).sum(axis=1).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return RewardRisk(reward, risk, reward / risk, wins, losses, ties, wins / losses, heavy)


def _matrix(values: ArrayLike) -> Values:
    x = per_topic(values, least=0)
    if x.ndim != 2 or len(x) == 0:
        raise BadInput(f"risk needs a matrix of systems x topics, not an array of shape {x.shape}")
    return x


def _compared(scores: ArrayLike, baseline: ArrayLike) -> tuple[Values, Values]:
    scores, baseline = per_topic(scores, least=0), per_topic(baseline, least=0)
    if baseline.shape != scores.shape[-1:]:
        raise BadInput(f"a baseline of shape {baseline.shape} does not fit {scores.shape[-1]} topics")
    return scores, baseline


def _checked_alpha(alpha: float) -> float:
    if not 0 <= alpha < np.inf:
        raise BadInput(f"alpha must be a number of at least 0, not {alpha}")
    return float(alpha)

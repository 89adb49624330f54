"""Risk of a system on the topics where it falls below its baselines: U, T, Z and GeoRisk.

A matrix x[systems, topics] holds effectiveness scores, none below 0; α ≥ 0 is how much more a loss counts than a gain.

At α = 0 TRisk is Student's t, and |TRisk| above 2 is significant. At a larger α the tested quantity has a mean below 0
even if the two systems are equal: with normal differences on 50 topics equal systems pass 2 in 5 % of all cases at
α = 0, in 44 % at α = 1, in 99 % at α = 5. `t_risk_p` and `t_star_risk_p` compare TRisk with its null distribution at
the same α.

Dinçer, Macdonald, Ounis. Risk-sensitive evaluation and learning to rank using multiple baselines. SIGIR 2016.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.seeding import make_numpy_rng
from shaketable.measures import ROUNDING_TOLERANCE, subtract_scores, validate_topic_scores
from shaketable.measures.significance import enumerates_all_signs, iter_sign_assignments

Values = NDArray[np.float64]

RANDOMISATION_DRAWS = 10_000
"""The number of random assignments; p is then accurate to about 0.004 near 0.05."""


# Elementwise formulas without checks, for objectives that call them millions of times.


def penalise_losses(delta: Values, alpha: float | Values) -> Values:
    """Return gains unchanged and losses multiplied by 1 + α.

    >>> penalise_losses(np.array([0.2, -0.1]), 1.0)
    array([ 0.2, -0.2])
    """
    return np.where(delta < 0, (1 + alpha) * delta, delta)


def expected_scores(system_total: Values, topic_total: Values, total: float | Values) -> Values:
    """Return e = S T / N: the score expected from the totals of the system and the topic."""
    share = np.divide(topic_total, total, out=np.zeros_like(topic_total), where=np.asarray(total) > 0)
    return np.asarray(system_total * share)


def standardise_scores(x: Values, e: Values) -> Values:
    """Return z = (x - e) / √e, and 0 where e is 0, because x is then 0 as well.

    >>> standardise_scores(np.array([0.5, 0.0]), np.array([0.25, 0.0]))
    array([0.5, 0. ])
    """
    return np.divide(x - e, np.sqrt(e), out=np.zeros_like(e), where=e > 0)


def geo_risk_from_means(mean: Values, z_mean: Values) -> Values:
    """Return GeoRisk = √(mean effectiveness · Φ(ZRisk / c)).

    >>> geo_risk_from_means(np.array(0.5), np.array(0.0)).item()
    0.5
    """
    from scipy.special import ndtr

    return np.asarray(np.sqrt(mean * ndtr(z_mean)))


# Measures with checks of their matrices.


def u_risk(scores: ArrayLike, baseline: ArrayLike, alpha: float = 0.0) -> Values:
    """Return URisk: the mean difference from a baseline, with losses times 1 + α. scores [..., topics] -> [...].

    >>> u_risk([0.5, 0.25], [0.25, 0.5], alpha=1.0).item()
    -0.125
    """
    scores, baseline = _validate_with_baseline(scores, baseline)
    return np.asarray(penalise_losses(scores - baseline, _validate_alpha(alpha)).mean(axis=-1))


def t_risk(scores: ArrayLike, baseline: ArrayLike, alpha: float = 0.0) -> Values:
    """Return TRisk: URisk / its standard error, Student's t with c - 1 degrees of freedom; 0 if nothing varies."""
    scores, baseline = _validate_with_baseline(scores, baseline)
    alpha = _validate_alpha(alpha)
    noise = ROUNDING_TOLERANCE * (1 + alpha) * max(scores.max(), baseline.max())
    return _student_t(penalise_losses(scores - baseline, alpha), noise)


def t_star_risk(matrix: ArrayLike, alpha: float = 0.0) -> Values:
    """Return T*Risk: TRisk against each topic's mean over all systems of the matrix."""
    matrix = _validate_matrix(matrix)
    return t_risk(matrix, matrix.mean(axis=0), alpha)


def z_scores(matrix: ArrayLike) -> Values:
    """Return z[systems, topics]: the standardised difference of each score from its expectation by the marginals.

    The marginals include the system itself. Topics and systems with a total of 0 have z = 0.
    """
    x = _validate_matrix(matrix)
    if len(x) == 1:  # a single system equals its expectation; avoid rounding errors
        return np.zeros_like(x)
    return standardise_scores(x, expected_scores(x.sum(axis=1, keepdims=True), x.sum(axis=0), x.sum()))


def z_risk(matrix: ArrayLike, alpha: float = 0.0) -> Values:
    """Return ZRisk of each system: the sum of its z scores, with losses times 1 + α."""
    return np.asarray(penalise_losses(z_scores(matrix), _validate_alpha(alpha)).sum(axis=1))


def geo_risk(matrix: ArrayLike, alpha: float = 0.0) -> Values:
    """Return GeoRisk of each system: √(mean effectiveness · Φ(ZRisk / topics))."""
    x = _validate_matrix(matrix)
    return geo_risk_from_means(x.mean(axis=1), z_risk(x, alpha) / x.shape[1])


def u_risk_slope(scores: ArrayLike, baseline: ArrayLike, alpha: float = 0.0) -> Values:
    """Return ∂URisk / ∂score of each topic: 1 / topics, times 1 + α where the score is below the baseline.

    >>> u_risk_slope([0.5, 0.25], [0.25, 0.5], alpha=1.0)
    array([0.5, 1. ])
    """
    scores, baseline = _validate_with_baseline(scores, baseline)
    return np.asarray(_loss_weights(scores - baseline, _validate_alpha(alpha)) / scores.shape[-1])


def geo_risk_slope(matrix: ArrayLike, alpha: float = 0.0) -> Values:
    """Return ∂GeoRisk / ∂score on each topic, of the last system of a matrix; the others are constants.

        GeoRisk / 2 · [1/S + φ(ZRisk/c) / (c Φ(ZRisk/c)) · ∂ZRisk/∂x_k]
        ∂ZRisk/∂x_k = w_k/√e_k - w_k h_k/(2 T_k) - (1/S - 1/N) Σ_j w_j h_j/2

    with w = 1, or 1 + α where z < 0, and h = x/√e + √e. The slope is 0 where e or GeoRisk is 0.
    """
    from scipy.special import log_ndtr

    x, alpha = _validate_matrix(matrix), _validate_alpha(alpha)
    own, topic, c = x[-1], x.sum(axis=0), x.shape[1]
    system, total, risk = float(own.sum()), float(x.sum()), float(geo_risk(x, alpha)[-1])
    if risk == 0:
        return np.zeros(c)
    e = expected_scores(np.asarray(system), topic, total)
    z = standardise_scores(own, e)
    root, there = np.sqrt(e), e > 0
    weights = np.where(there, _loss_weights(z, alpha), 0.0)
    half = np.divide(weights * (own + e), 2 * root, out=np.zeros_like(e), where=there)
    direct = np.divide(weights, root, out=np.zeros_like(e), where=there)
    z_slope = direct - np.divide(half, topic, out=np.zeros_like(e), where=there) - (1 / system - 1 / total) * half.sum()
    mean = float(penalise_losses(z, alpha).mean())
    ratio = np.exp(-(mean**2) / 2 - log_ndtr(mean)) / np.sqrt(2 * np.pi)
    return np.asarray(risk / 2 * (1 / system + ratio / c * z_slope))


def _loss_weights(delta: Values, alpha: float) -> Values:
    """Return the slope of `penalise_losses`: 1, and 1 + α below 0."""
    return np.where(delta < 0, 1 + alpha, 1.0)


def g_squared(matrix: ArrayLike) -> float:
    """Return G²: the distance of all systems from the scores expected by their totals; Σ z², equation 4.

    G² grows with the unit of the scores, which are not counts, so the χ² distribution gives no p for it.

    >>> round(g_squared([[0.5, 0.0], [0.0, 0.5]]), 9)
    1.0
    """
    return float(np.square(z_scores(matrix)).sum())


def g_squared_of_two(scores: ArrayLike, baseline: ArrayLike) -> Values:
    """Return G² of a system and its baseline, assuming equal means: Σ (s - b)² / (s + b), equation 8.

    It is symmetric in the two. Where their totals differ, G² of the two rows (`g_squared`) is another number; the
    paper's derivation needs S_s = S_b. scores [..., topics] -> [...]. A topic where both have 0 adds nothing.

    >>> g_squared_of_two([0.5, 0.0], [0.0, 0.5]).item()
    1.0
    """
    scores, baseline = _validate_with_baseline(scores, baseline)
    both = scores + baseline
    apart = np.divide((scores - baseline) ** 2, both, out=np.zeros_like(both), where=both > 0)
    return np.asarray(apart.sum(axis=-1))


def student_p_value(t: ArrayLike, topics: int) -> Values:
    """Return the two-sided p of Student's t with topics - 1 degrees of freedom; 1 for one topic.

    It is valid for TRisk at α = 0 only.

    >>> round(student_p_value(2.0095752, 50).item(), 4)
    0.05
    """
    from scipy.special import stdtr

    t = np.asarray(t, dtype=np.float64)
    return np.asarray(2 * stdtr(topics - 1, -np.abs(t))) if topics > 1 else np.ones_like(t)


def t_risk_p(
    scores: ArrayLike,
    baseline: ArrayLike,
    alphas: Sequence[float] = (0.0,),
    seed: int = 0,
    draws: int = RANDOMISATION_DRAWS,
) -> Values:
    """Return the two-sided p of TRisk at each α, by randomisation: scores [..., topics] -> [..., alphas].

    If system and baseline are exchangeable on each topic, each difference has a random sign. The test computes TRisk at
    the same α for all assignments of signs, or for `draws` of them; p is twice the share on the side of the observed
    TRisk, including itself. So p is valid at every α; at α = 0 it is that of Fisher's randomisation test of the mean.
    A small p with a large TRisk means "safer than chance", with a small TRisk "riskier".

    >>> t_risk_p([0.2, 0.3, 0.5], [0.1, 0.2, 0.3], alphas=(0.0, 5.0)).tolist()
    [0.25, 0.25]
    """
    scores, baseline = _validate_with_baseline(scores, baseline)
    delta = subtract_scores(np.broadcast_to(baseline, scores.shape), scores)
    found = _sign_flip_p_values(delta.reshape(-1, delta.shape[-1]), _validate_alphas(alphas), seed, draws)
    return found.reshape(*scores.shape[:-1], len(alphas))


def t_star_risk_p(
    matrix: ArrayLike, alphas: Sequence[float] = (0.0,), seed: int = 0, draws: int = RANDOMISATION_DRAWS
) -> Values:
    """Return the two-sided p of T*Risk at each α, by randomisation: [systems, topics] -> [systems, alphas].

    Differences from the mean of all systems are skewed if the scores are, so the test cannot flip signs. If a system is
    exchangeable with the others on each topic, it could have the score of any of them. The test compares its T*Risk
    with that of `draws` such random systems.
    """
    return _exchange_p_values(_validate_matrix(matrix), _validate_alphas(alphas), seed, draws)


@dataclass(frozen=True)
class RiskTable:
    """All risk measures [systems, alphas]; `p` and `p_star` belong to `t` and `t_star` and are valid at every α.

    `rank_systems` of a measure gives ranks [systems, alphas]. The ranks by `t_star` differ from those by the mean, in
    contrast to section 2 of the paper: on public matrices of TREC runs τ is .90 to .96 at α = 0 and falls with α.
    """

    alphas: tuple[float, ...]
    mean: Values
    u: Values
    t: Values
    p: Values
    t_star: Values
    p_star: Values
    z: Values
    geo: Values


def risk_table(
    matrix: ArrayLike,
    baseline: ArrayLike,
    alphas: Sequence[float] = (0, 1, 5, 10),
    seed: int = 0,
    draws: int = RANDOMISATION_DRAWS,
) -> RiskTable:
    """Return all measures for all systems and alphas: U and T against the baseline, Z and Geo against all systems."""
    x = _validate_matrix(matrix)
    x, baseline = _validate_with_baseline(x, baseline)
    levels = _validate_alphas(alphas)
    topics = x.shape[1]
    mean = x.mean(axis=1)
    u = _sum_penalised(x - baseline, levels) / topics
    t = np.stack([t_risk(x, baseline, alpha) for alpha in alphas], axis=1)
    t_star = np.stack([t_star_risk(x, alpha) for alpha in alphas], axis=1)
    p = t_risk_p(x, baseline, alphas, seed, draws)
    p_star = t_star_risk_p(x, alphas, seed, draws)
    z = _sum_penalised(z_scores(x), levels)
    geo = geo_risk_from_means(mean[:, None], z / topics)
    return RiskTable(tuple(alphas), mean, u, t, p, t_star, p_star, z, geo)


@dataclass(frozen=True)
class RewardRisk:
    """Gains and losses against a baseline, one value for each system; with several baselines, means over them."""

    reward: Values
    """The mean gain over topics."""
    risk: Values
    """The mean loss over topics, as a positive number."""
    ratio: Values
    """reward / risk: infinite without a loss, NaN without either."""
    wins: Values
    losses: Values
    ties: Values
    win_loss: Values
    """wins / losses, with the same special cases as `ratio`."""
    heavy_losses: Values
    """The number of topics that lose more than 20 % of the baseline's score."""


def reward_risk(scores: ArrayLike, baselines: ArrayLike) -> RewardRisk:
    """Return reward, risk, wins and losses of systems [systems, topics] against one baseline [topics] or several.

    With several baselines each number is computed against each of them and then averaged (macro average).

    >>> found = reward_risk([[0.5, 0.2, 0.4]], [0.4, 0.4, 0.4])
    >>> found.wins.item(), found.losses.item(), found.ties.item(), found.heavy_losses.item()
    (1.0, 1.0, 1.0, 1.0)
    """
    each = [
        _compare_with_baseline(*_validate_with_baseline(_validate_matrix(scores), b))
        for b in np.atleast_2d(np.asarray(baselines, dtype=np.float64))
    ]
    return RewardRisk(**{f.name: np.mean([getattr(e, f.name) for e in each], axis=0) for f in fields(RewardRisk)})


def baseline_scores(matrix: ArrayLike, systems: Sequence[str], name: str) -> Values:
    """Return the per-topic scores of a baseline: a system, or the mean, median or max of all systems.

    >>> baseline_scores([[0.2, 0.4], [0.6, 0.0]], ["bm25", "ql"], "max")
    array([0.6, 0.4])
    """
    x = _validate_matrix(matrix)
    if name in systems:
        return np.asarray(x[list(systems).index(name)])
    if name not in _SUMMARIES:
        raise UnknownName("baseline", name, [*systems, *_SUMMARIES])
    return np.asarray(_SUMMARIES[name](x, axis=0))


_SUMMARIES: dict[str, Callable[..., Values]] = {"mean": np.mean, "median": np.median, "max": np.max}


def rank_systems(values: ArrayLike) -> NDArray[np.int64]:
    """Return the rank of each system (first axis), 1 for the highest value; tied systems share the better rank.

    Values that differ only by rounding are tied.

    >>> rank_systems([0.3, 0.5, 0.5, 0.1])
    array([3, 1, 1, 4])
    """
    values = np.asarray(values, dtype=np.float64)
    if np.isnan(values).any():
        raise BadInput("NaN has no rank; remove it first")
    columns = values.reshape(len(values), -1).T
    return np.array([_rank_values(column) for column in columns], dtype=np.int64).T.reshape(values.shape)


def _rank_values(values: Values) -> NDArray[np.int64]:
    order = np.argsort(-values, kind="stable")
    falling = values[order]
    largest = np.abs(values[np.isfinite(values)]).max(initial=0)
    above, below = falling[:-1], falling[1:]
    first = np.concatenate(([True], (above != below) & (below < above - ROUNDING_TOLERANCE * largest)))
    ranks = np.empty(len(values), np.int64)
    ranks[order] = 1 + np.maximum.accumulate(np.where(first, np.arange(len(values)), 0))
    return ranks


def _sum_penalised(delta: Values, alphas: Values) -> Values:
    """Return Σ penalise_losses(delta, α) over topics, for all alphas at once."""
    gains, losses = np.maximum(delta, 0).sum(axis=1), np.minimum(delta, 0).sum(axis=1)
    return np.asarray(gains[:, None] + (1 + alphas) * losses[:, None])


def _sign_flip_p_values(delta: Values, alphas: Values, seed: int, draws: int) -> Values:
    """Return p [rows, alphas] of TRisk under random signs of the differences [rows, topics]."""
    rows, topics = delta.shape
    size, square = np.abs(delta), delta**2
    sizes, squares = size.sum(axis=1), square.sum(axis=1)
    low, high = _rounding_bounds(_t_risk_from_sums(*_gain_and_loss_sums(delta), topics, alphas))
    below, above, total = np.zeros_like(low), np.zeros_like(low), 0
    for won in iter_sign_assignments(topics, seed, draws, rows * len(alphas)):
        coins = won.astype(np.float64)
        gain, gain_2 = coins @ size.T, coins @ square.T
        drawn = _t_risk_from_sums(gain, gain - sizes, gain_2, squares - gain_2, topics, alphas)
        below += (drawn <= high).sum(axis=0)
        above += (drawn >= low).sum(axis=0)
        total += len(won)
    return _two_sided_p_value(below, above, total, enumerates_all_signs(topics, draws))


def _exchange_p_values(x: Values, alphas: Values, seed: int, draws: int) -> Values:
    """Return p [systems, alphas] of T*Risk among rows with the score of a random system on each topic."""
    systems, topics = x.shape
    delta = subtract_scores(np.broadcast_to(x.mean(axis=0), x.shape), x)
    low, high = _rounding_bounds(_t_risk_from_sums(*_gain_and_loss_sums(delta), topics, alphas))
    below, above = np.zeros_like(low), np.zeros_like(low)
    rng, block = make_numpy_rng(seed, "t star"), max(1, 1_000_000 // topics)
    for start in range(0, draws, block):
        who = rng.integers(systems, size=(min(block, draws - start), topics))
        drawn = np.sort(_t_risk_from_sums(*_gain_and_loss_sums(delta[who, np.arange(topics)]), topics, alphas), axis=0)
        for a, column in enumerate(drawn.T):
            below[:, a] += np.searchsorted(column, high[:, a], side="right")
            above[:, a] += len(column) - np.searchsorted(column, low[:, a], side="left")
    return _two_sided_p_value(below, above, draws, exact=False)


def _gain_and_loss_sums(delta: Values) -> tuple[Values, Values, Values, Values]:
    """Return the sums over topics of gains, of losses, and of the squares of each."""
    gain, loss = np.maximum(delta, 0), np.minimum(delta, 0)
    return gain.sum(axis=-1), loss.sum(axis=-1), (gain**2).sum(axis=-1), (loss**2).sum(axis=-1)


def _t_risk_from_sums(
    gain: Values, loss: Values, gain_2: Values, loss_2: Values, topics: int, alphas: Values
) -> Values:
    """Return TRisk [..., alphas] from the sums of gains and of losses (negative), and of their squares [...].

    TRisk is infinite if all differences are equal and not 0, so that comparisons treat it as the extreme.
    """
    total = gain[..., None] + (1 + alphas) * loss[..., None]
    square = gain_2[..., None] + (1 + alphas) ** 2 * loss_2[..., None]
    spread = square - total**2 / topics
    utmost = np.where(square > 0, np.copysign(np.inf, total), 0.0) if topics > 1 else np.zeros_like(total)
    varies = spread > 1e-9 * square
    mean = total * float((topics - 1) / topics) ** 0.5
    return np.asarray(np.divide(mean, np.sqrt(np.maximum(spread, 0)), out=utmost, where=varies))


def _rounding_bounds(t: Values) -> tuple[Values, Values]:
    """Return values just below and above t, because the same TRisk summed in two orders differs by rounding."""
    finite = np.where(np.isfinite(t), t, 0)
    return t - 1e-9 * (1 + np.abs(finite)), t + 1e-9 * (1 + np.abs(finite))


def _two_sided_p_value(below: Values, above: Values, total: int, exact: bool) -> Values:
    less = np.minimum(below, above)
    return np.asarray(np.minimum(2 * (less / total if exact else (less + 1) / (total + 1)), 1))


def _student_t(y: Values, noise: float) -> Values:
    mean, topics = y.mean(axis=-1), y.shape[-1]
    if topics == 1:
        return np.zeros_like(mean)
    error = y.std(axis=-1, ddof=1)
    return np.asarray(np.divide(mean * np.sqrt(topics), error, out=np.zeros_like(mean), where=error > noise))


def _compare_with_baseline(scores: Values, baseline: Values) -> RewardRisk:
    delta = subtract_scores(np.broadcast_to(baseline, scores.shape), scores)
    reward, risk = np.maximum(delta, 0).mean(axis=1), np.maximum(-delta, 0).mean(axis=1)
    wins, losses, ties = ((np.sign(delta) == sign).sum(axis=1).astype(np.float64) for sign in (1, -1, 0))
    heavy = (-delta > (0.2 + ROUNDING_TOLERANCE) * baseline).sum(axis=1).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return RewardRisk(reward, risk, reward / risk, wins, losses, ties, wins / losses, heavy)


def _validate_matrix(values: ArrayLike) -> Values:
    x = validate_topic_scores(values, minimum=0)
    if x.ndim != 2 or len(x) == 0:
        raise BadInput(f"risk needs a matrix of systems x topics, not an array of shape {x.shape}")
    return x


def _validate_with_baseline(scores: ArrayLike, baseline: ArrayLike) -> tuple[Values, Values]:
    scores, baseline = validate_topic_scores(scores, minimum=0), validate_topic_scores(baseline, minimum=0)
    if baseline.shape != scores.shape[-1:]:
        raise BadInput(f"a baseline of shape {baseline.shape} does not fit {scores.shape[-1]} topics")
    return scores, baseline


def _validate_alphas(alphas: Sequence[float]) -> Values:
    return np.array([_validate_alpha(alpha) for alpha in alphas], dtype=np.float64)


def _validate_alpha(alpha: float) -> float:
    if not 0 <= alpha < np.inf:
        raise BadInput(f"alpha must be a number of at least 0, not {alpha}")
    return float(alpha)

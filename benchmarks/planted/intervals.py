"""Coverage of intervals and power of statuses, by simulation with known truth.

Rates are drawn with one or several cases per query, which may be correlated within a query. Drops are resampled from
real per-query values of a base ranker, before and after a loss, so that the true drop of the population is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from benchmarks.planted.bases import BaseRanker, Floats, Level, rank_with_base

from shaketable.core.documents import Qrels, Run
from shaketable.core.results import Finding
from shaketable.core.seeding import make_numpy_rng
from shaketable.measures.effectiveness import score_tables
from shaketable.measures.facets import (
    ATTACK,
    DROP,
    EFFECTIVENESS,
    GAIN_OVER_FIRST_STAGE,
    INTO_TOP_TEN,
    TYPOS,
    get_facet,
    name_test,
)
from shaketable.measures.paired_comparison import compare_paired
from shaketable.measures.rates import measure_rate
from shaketable.measures.status import FAIL, WARN, classify_findings

TRUE_RATES_PERCENT = (1, 2, 5, 10, 20, 30, 40, 50)
SAMPLE_SIZES = (20, 50, 100)
CASE_SETTINGS = ((1, 0.0), (4, 0.0), (4, 0.3), (4, 0.8))
"""Cases per query, and the correlation of cases of one query."""
POWER_QUERIES = 50
POWER = 0.8
PANEL_SIZES = (1, 10)
LOSS_STEP_PERCENT, MAX_LOSS_PERCENT = 1, 60
POPULATION_SEEDS = 10
LossShape: TypeAlias = Literal["spread", "concentrated"]


@dataclass(frozen=True)
class Coverage:
    """The share of intervals that contain the true value."""

    number: str
    truth: float
    n: int
    setting: str
    covered: float


def cover_rates(trials: int) -> list[Coverage]:
    """Return the coverage of `measure_rate` at each true rate, number of queries, and setting of cases."""
    return [
        _cover_rate(rate, n, cases, correlation, trials)
        for rate in TRUE_RATES_PERCENT
        for n in SAMPLE_SIZES
        for cases, correlation in CASE_SETTINGS
    ]


def _cover_rate(percent: float, n: int, cases: int, correlation: float, trials: int) -> Coverage:
    rng = make_numpy_rng(0, "rate", str(percent), n, cases, str(correlation))
    covered = 0
    for events in _draw_events(rng, percent / 100, (trials, n), cases, correlation):
        shares = {str(q): 100 * value / cases for q, value in enumerate(events.tolist())}
        found = measure_rate(shares, dict.fromkeys(shares, cases))
        covered += found.low <= percent <= found.high
    setting = f"{cases} per query" + (f", correlation {correlation}" if cases > 1 else "")
    return Coverage("rate %", percent, n, setting, covered / trials)


def _draw_events(
    rng: np.random.Generator, rate: float, shape: tuple[int, int], cases: int, correlation: float
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Draw the number of events of each query, by a beta-binomial distribution with the given correlation."""
    if correlation == 0:
        return rng.binomial(cases, rate, shape)
    total = 1 / correlation - 1
    return rng.binomial(cases, rng.beta(rate * total, (1 - rate) * total, shape))


@dataclass(frozen=True)
class Population:
    """Per-query nDCG@10 of a base ranker, for many queries and seeds."""

    level: Level
    values: Floats

    def lose(self, loss: float, shape: LossShape, rng: np.random.Generator) -> Floats:
        """Return the values after a relative loss, as a share.

        A spread loss takes from 0 to twice the share from each query. A concentrated loss takes all of a query, for
        that share of the queries.
        """
        if shape == "spread":
            return self.values * (1 - loss * rng.uniform(0, 2, len(self.values)))
        return self.values * (rng.random(len(self.values)) >= loss)


def build_population(base: BaseRanker, level: Level, lists: Run, qrels: Qrels) -> Population:
    """Return the per-query values of a base with several seeds."""
    runs = {
        str(seed): rank_with_base(BaseRanker(base.known, base.noise_level, seed), lists)
        for seed in range(POPULATION_SEEDS)
    }
    (table,) = score_tables(("nDCG@10",), qrels, runs)
    return Population(level, table.values.ravel())


def _measure_drop(before: Floats, after: Floats, name: str, facet: str, seed: int) -> Finding:
    """Return the finding of a drop, in the form of the tasks."""
    qids = [str(q) for q in range(len(before))]
    one = compare_paired(dict(zip(qids, before, strict=True)), dict(zip(qids, after, strict=True)), seed)
    low, high = 100 * one.low / one.before, 100 * one.high / one.before
    return Finding("planted", name, one.drop, low, high, one.n, p=one.p, better="higher", facet=facet)


def cover_drops(populations: Sequence[Population], trials: int) -> list[Coverage]:
    """Return the coverage of intervals of a drop of nDCG@10."""
    shapes: tuple[LossShape, ...] = ("spread", "concentrated")
    found = []
    for population in populations:
        for shape in shapes:
            for loss in (0.05, 0.2):
                rng = make_numpy_rng(0, "drop", population.level, shape, str(loss))
                after = population.lose(loss, shape, rng)
                truth = 100 * (after.mean() / population.values.mean() - 1)
                for n in SAMPLE_SIZES:
                    covered = 0
                    for trial in range(trials):
                        drawn = rng.integers(len(after), size=n)
                        one = _measure_drop(population.values[drawn], after[drawn], DROP, TYPOS, trial)
                        covered += one.low <= truth <= one.high
                    found.append(Coverage("drop %", truth, n, f"{population.level}, {shape}", covered / trials))
    return found


@dataclass(frozen=True)
class Power:
    """The smallest loss that a facet finds in 80 % of the cases; None if it finds no tested loss so often."""

    facet: str
    setting: str
    least_loss_percent: float | None


def measure_power(populations: Sequence[Population], trials: int) -> list[Power]:
    """Return the loss that is found in 80 % of the cases with 50 queries, by facet, shape and size of the panel."""
    shapes: tuple[LossShape, ...] = ("spread", "concentrated")
    found = [
        Power(
            TYPOS,
            f"{population.level}, {shape} loss, {panel} tests",
            _find_least_drop(population, shape, panel, trials),
        )
        for population in populations
        for shape in shapes
        for panel in PANEL_SIZES
    ]
    found += [
        Power(EFFECTIVENESS, f"{one.level}, independent errors", _find_least_gap(one, trials)) for one in populations
    ]
    return found + [Power(ATTACK, f"{panel} tests", _find_least_rate(panel, trials)) for panel in PANEL_SIZES]


def _search_least(found_share: Sequence[tuple[int, float]]) -> float | None:
    return next((float(loss) for loss, share in found_share if share >= POWER), None)


def _is_found(findings: list[Finding], facet: str) -> bool:
    return classify_findings(findings, get_facet(facet))[0].status in (WARN, FAIL)


def _find_least_drop(population: Population, shape: LossShape, panel: int, trials: int) -> float | None:
    shares = []
    for loss in range(LOSS_STEP_PERCENT, MAX_LOSS_PERCENT, LOSS_STEP_PERCENT):
        rng = make_numpy_rng(0, "power", population.level, shape, loss)
        after = population.lose(loss / 100, shape, rng)
        hits = 0
        for trial in range(trials):
            drawn = rng.integers(len(after), size=POWER_QUERIES)
            one = _measure_drop(population.values[drawn], after[drawn], name_test(DROP, "loss"), TYPOS, trial)
            none = [Finding("planted", name_test(DROP, str(i)), 0.0, -1.0, 1.0, POWER_QUERIES) for i in range(1, panel)]
            hits += _is_found([one, *none], TYPOS)
        shares.append((loss, hits / trials))
        if shares[-1][1] >= POWER:
            break
    return _search_least(shares)


def _find_least_gap(population: Population, trials: int) -> float | None:
    """Return the loss relative to a first stage with errors of its own that is found."""
    shares = []
    for loss in range(5, 95, 5):
        rng = make_numpy_rng(0, "gap", population.level, loss)
        by_query = population.values.reshape(POPULATION_SEEDS, -1)
        hits = 0
        for trial in range(trials):
            queries = rng.integers(by_query.shape[1], size=POWER_QUERIES)
            first, second = (by_query[rng.integers(POPULATION_SEEDS, size=POWER_QUERIES), queries] for _ in range(2))
            kept = second * (rng.random(POWER_QUERIES) >= loss / 100)
            hits += _is_found([_measure_drop(first, kept, GAIN_OVER_FIRST_STAGE, EFFECTIVENESS, trial)], EFFECTIVENESS)
        shares.append((loss, hits / trials))
        if shares[-1][1] >= POWER:
            break
    return _search_least(shares)


def _find_least_rate(panel: int, trials: int) -> float | None:
    shares = []
    for percent in range(LOSS_STEP_PERCENT, MAX_LOSS_PERCENT, LOSS_STEP_PERCENT):
        rng = make_numpy_rng(0, "rate power", percent)
        hits = 0
        for events in rng.binomial(1, percent / 100, (trials, POWER_QUERIES)):
            findings = [_measure_attack(events, "worst")]
            findings += [_measure_attack(np.zeros(POWER_QUERIES, dtype=np.int64), str(i)) for i in range(1, panel)]
            hits += _is_found(findings, ATTACK)
        shares.append((percent, hits / trials))
        if shares[-1][1] >= POWER:
            break
    return _search_least(shares)


def _measure_attack(events: np.ndarray[tuple[int], np.dtype[np.int64]], test: str) -> Finding:
    rate = measure_rate({str(q): 100.0 * value for q, value in enumerate(events.tolist())})
    return Finding(
        "planted",
        name_test(INTO_TOP_TEN, test),
        rate.value,
        rate.low,
        rate.high,
        len(events),
        better="lower",
        facet=ATTACK,
    )

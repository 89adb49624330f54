"""The risk task: losses of a ranker on queries where other rankers do better.

Dinçer, Macdonald, Ounis. Risk-sensitive evaluation and learning to rank using multiple baselines. SIGIR 2016.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shaketable.core.errors import BadInput
from shaketable.core.results import Figure, Finding, Result, ScoreTable
from shaketable.measures.paired_comparison import CORRECTED_INTERVAL_NOTE
from shaketable.measures.risk import (
    baseline_scores,
    g_squared,
    g_squared_of_two,
    geo_risk,
    rank_systems,
    reward_risk,
    risk_table,
    z_scores,
)
from shaketable.measures.significance import (
    MIN_QUERIES,
    adjust_p_values,
    bootstrap_interval,
    compare_all_pairs,
    correct_intervals,
    effect_size,
    format_star,
    t_test,
)
from shaketable.tasks._score_frames import build_per_query_frame

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.experiment import Experiment

DEFAULT_ALPHAS = (0.0, 1.0, 5.0, 10.0)
DINCER_2016 = "Dinçer et al. 2016"
SAME_MEAN_COLUMN = "same mean"
"""The column of group letters: only rankers that share a letter are compared by risk (section 5 of the paper)."""
QUESTION = "What does each ranker risk on the queries where others do better?"


@dataclass(frozen=True)
class Risk:
    """Risk of a ranker on queries where others do better: URisk, TRisk, ZRisk, GeoRisk, wins and losses.

    A baseline is a ranker's name, or mean, median or max (of all rankers, per query); the default is the first ranker.
    URisk and TRisk use the first baseline. Wins and losses use each baseline, and are averaged over them.

    measure   the effectiveness measure
    baseline  one baseline or several
    alphas    the additional weights of losses
    """

    measure: str = "nDCG@10"
    baseline: str | tuple[str, ...] = ""
    alphas: tuple[float, ...] = DEFAULT_ALPHAS

    needs_judgements: ClassVar[bool] = True
    needs_scoring: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if any(not 0 <= alpha < np.inf for alpha in self.alphas) or not self.alphas:
            raise BadInput(f"risk: alphas should be numbers of at least 0, not {self.alphas}")

    def run(self, experiment: Experiment) -> Result:
        table = experiment.get_score_table(self.measure)
        given = (self.baseline,) if isinstance(self.baseline, str) else self.baseline
        return build_risk_from_scores(
            table, [name for name in given if name] or table.systems[:1], self.alphas, experiment.seed
        )


def build_risk_from_scores(table: ScoreTable, baselines: Sequence[str], alphas: Sequence[float], seed: int) -> Result:
    """Return the risk of every system of a score table: against baselines (U, T, wins and losses) and all (Z, Geo)."""
    import pandas as pd

    bases = {name: baseline_scores(table.values, table.systems, name) for name in baselines}
    baseline, base = next(iter(bases.items()))
    z = z_scores(table.values)
    frames = {"risk": _build_alpha_table(table, base, baseline, alphas, seed)}
    frames |= {f"against {name}": _build_win_loss_table(table, bases[name], name, seed) for name in bases}
    if len(bases) > 1:
        frames[f"against {len(bases)} baselines, averaged"] = _average_baselines(table, bases)
    frames |= {
        "GeoRisk by alpha": pd.DataFrame(
            [
                {"ranker": name, "alpha": alpha, "GeoRisk": value}
                for alpha in range(21)
                for name, value in zip(table.systems, geo_risk(table.values, alpha), strict=True)
            ]
        ),
        "per query": build_per_query_frame(
            table, {table.measure: table.values, "difference": table.values - base, "z": z}
        ),
    }
    sources = {"risk": f"{DINCER_2016}, Table 6"} | {
        name: f"{DINCER_2016}, Table 7" for name in frames if name.startswith("against ")
    }
    return Result(
        "risk",
        QUESTION,
        frames,
        tuple(_build_figures(table.systems, baseline)),
        tuple(_build_notes(table, baseline)),
        tuple(_build_findings(frames["risk"], baseline, len(table.topics))),
        sources=sources,
    )


def _is_mean(table: ScoreTable, baseline: str) -> bool:
    """Return True if the baseline is the mean of all systems, and not a system of that name."""
    return baseline == "mean" and baseline not in table.systems


def _build_notes(table: ScoreTable, baseline: str) -> Iterator[str]:
    against_mean = _is_mean(table, baseline)
    tested = "TRisk" if against_mean else "TRisk (for 'p*', T*Risk)"
    yield (
        "All of these compare rankers query by query, and count a loss 1 + alpha times as much as a gain; higher is "
        f"better. 'URisk' is the mean gain over {baseline}"
        + (" of all rankers" if baseline not in table.systems else "")
        + ", and 'TRisk' is URisk divided by its standard error"
        + (" (T*Risk)." if against_mean else ". 'T*Risk' is the same against the mean of all rankers.")
    )
    yield (
        "'ZRisk' sums the differences of each query's value from the value expected by the mean of the ranker and by "
        f"the difficulty of the query for all {len(table.systems)} rankers. 'GeoRisk' is the geometric mean of the "
        "ranker's effectiveness and of ZRisk as a probability, from 0 to 1. In the table by query, 'z' is the "
        "standardised difference of one query."
    )
    yield (
        "A column 'R' has the rank of the ranker by the measure after which it is named. 'p' is the probability that "
        f"{tested} is as extreme if rankers are exchanged at random, query "
        "by query; it holds at every alpha."
    )
    yield (
        "In the tables against a baseline, 'reward' and 'risk' are the mean gain and the mean loss over all queries; "
        "'reward/risk' is the one divided by the other; 'wins', 'losses' and 'ties' count queries, 'W/L' is wins "
        "divided by losses, and 'losses > 20 %' counts the queries that lose more than a fifth of the baseline's "
        "value. 'p (Holm)' is by a paired t-test, and a star marks p below 0.05; 'low' and 'high' are the ends of "
        f"the 95 % interval of the difference, {CORRECTED_INTERVAL_NOTE}. 'effect size' is Cohen's d. 'G² of the two' "
        "grows with the difference between the two rankers by query."
    )
    yield (
        "Do not read a difference in risk between rankers whose means differ significantly (section 5 of the paper): "
        f"'{SAME_MEAN_COLUMN}' has letters, and only rankers that share one may be compared (paired t-test, Holm). G² "
        f"of all rankers is {g_squared(table.values):.3f}."
    )
    if len(table.topics) < MIN_QUERIES:
        yield f"There are fewer than {MIN_QUERIES} queries: no difference is marked as significant."


def _build_figures(systems: Sequence[str], baseline: str) -> Iterator[Figure]:
    yield Figure(
        "lines",
        "GeoRisk by alpha",
        "GeoRisk, by the weight of losses (alpha)",
        x="alpha",
        y="GeoRisk",
        color="ranker",
        folded=True,
        source=f"{DINCER_2016}, Figs. 2 and 3",
    )
    against = f"against {baseline}"
    if set(systems) - {baseline}:
        title = f"Reward and risk {against}"
        yield Figure("scatter", against, title, x="risk", y="reward", color="ranker", folded=True)
        title = f"Gain or loss of each query {against}"
        yield Figure("waterfall", "per query", title, x="query", y="difference", color="ranker")
    if len(systems) > 1:
        yield Figure(
            "profile",
            "per query",
            "Difference from the expected value of each query (z)",
            x="query",
            y="z",
            color="ranker",
            caption="Above 0, a ranker is better than its mean and the difficulty of the query predict.",
            folded=True,
        )


def _build_findings(risk: pd.DataFrame, baseline: str, queries: int) -> Iterator[Finding]:
    for row in risk.to_dict("records"):
        for column, against in (("URisk", baseline), ("GeoRisk", "all rankers")):
            if not np.isnan(row[column]):
                name = f"{column}@{row['alpha']}"
                yield Finding(row["ranker"], name, float(row[column]), n=queries, against=against)


def _build_alpha_table(
    table: ScoreTable, base: np.ndarray, baseline: str, alphas: Sequence[float], seed: int
) -> pd.DataFrame:
    """Return the layout of the paper's Table 6: each measure and, beside it, the ranker's rank by it."""
    import pandas as pd

    found = risk_table(table.values, base, alphas, seed)
    is_baseline = np.array([name == baseline for name in table.systems])
    same = compare_all_pairs(table.values, "t_test", "holm", seed=seed).letters
    parts = []
    for i, alpha in enumerate(found.alphas):
        part = pd.DataFrame(
            {"ranker": table.systems, "alpha": f"{alpha:g}", table.measure: found.mean, SAME_MEAN_COLUMN: same}
        )
        for column, values in (("URisk", found.u), ("TRisk", found.t)):
            # the baseline has no risk against itself; 0 would rank it in the middle
            part[column] = np.where(is_baseline, np.nan, values[:, i])
            ranks = np.full(len(is_baseline), np.nan)
            ranks[~is_baseline] = rank_systems(values[~is_baseline, i]) if (~is_baseline).any() else []
            part[f"R {column}"] = pd.array([None if np.isnan(rank) else int(rank) for rank in ranks], dtype="Int64")
        # against the mean, TRisk is T*Risk, whose test does not flip signs
        against_mean = _is_mean(table, baseline)
        part["p"] = found.p_star[:, i] if against_mean else np.where(is_baseline, np.nan, found.p[:, i])
        star = () if against_mean else (("T*Risk", found.t_star),)
        for column, values in (*star, ("ZRisk", found.z), ("GeoRisk", found.geo)):
            part[column] = values[:, i]
            part[f"R {column}"] = rank_systems(values[:, i])
            if column == "T*Risk":
                part["p*"] = found.p_star[:, i]
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _average_baselines(table: ScoreTable, bases: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Return reward, risk, wins and losses against each baseline, averaged over the baselines (section 6.2)."""
    import pandas as pd

    found = reward_risk(table.values, np.stack(list(bases.values())))
    columns = {"reward": found.reward, "risk": found.risk, "reward/risk": found.ratio, "wins": found.wins}
    columns |= {"losses": found.losses, "W/L": found.win_loss, "losses > 20 %": found.heavy_losses}
    return pd.DataFrame({"ranker": table.systems, table.measure: table.values.mean(axis=1)} | columns)


def _build_win_loss_table(table: ScoreTable, base: np.ndarray, baseline: str, seed: int) -> pd.DataFrame:
    """Return reward, risk, wins and losses against one baseline, with tests (paired t-test, Holm)."""
    import pandas as pd

    others = [i for i, name in enumerate(table.systems) if name != baseline]
    values = table.values[others]
    if not others:
        return pd.DataFrame({"ranker": []})
    found = reward_risk(values, base)
    difference, raw = (values - base).mean(axis=1), t_test(np.broadcast_to(base, values.shape), values)
    p = adjust_p_values(raw, "holm")
    ends = bootstrap_interval(values - base, seed)
    low, high = correct_intervals(difference, *ends, raw, p, len(table.topics))
    return pd.DataFrame(
        {
            "ranker": [table.systems[i] for i in others],
            table.measure: values.mean(axis=1),
            "difference": difference,
            "low": low,
            "high": high,
            "p (Holm)": p,
            "": [format_star(float(each), len(table.topics)) for each in p],
            "effect size": effect_size(np.broadcast_to(base, values.shape), values),
            "reward": found.reward,
            "risk": found.risk,
            "reward/risk": found.ratio,
            "wins": found.wins.astype(int),
            "losses": found.losses.astype(int),
            "ties": found.ties.astype(int),
            "W/L": found.win_loss,
            "losses > 20 %": found.heavy_losses.astype(int),
            "G² of the two": g_squared_of_two(values, base),
        }
    )

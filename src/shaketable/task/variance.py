"""How evenly does a ranker serve its queries?

Wu, Zhang, Guo, Fan, Cheng. Are neural ranking models robust? TOIS 2022, section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shaketable.measure.effectiveness import judged_share, score_table, tie_rate
from shaketable.measure.significance import FEWEST_QUERIES, bootstrap_interval
from shaketable.measure.variance import (
    GMAP,
    VNAP,
    WorstArea,
    below_initial,
    mean_variance_correlation,
    no_relevant,
    r_loss,
    robustness_index,
)
from shaketable.types import Figure, Qrels, Result, Run, ScoreTable

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.bench import Bench

QUESTION = "How evenly does each ranker serve its queries?"


@dataclass(frozen=True)
class Variance:
    """How evenly a ranker serves its queries: VNAP, gMAP, %no, the worst quarter."""

    measure: str = "nDCG@10"

    needs_judgements: ClassVar[bool] = True

    def run(self, bench: Bench) -> Result:
        runs = bench.runs()
        return of_runs([self.measure], bench.qrels, runs, next(iter(runs)), bench.seed, pool=bench.pool)


def of_runs(
    measures: list[str], qrels: Qrels, runs: Mapping[str, Run], initial: str, seed: int, pool: str = ""
) -> Result:
    """Variance of runs, on average precision, beside the mean of each measure; others are compared with `initial`."""
    import pandas as pd

    tables = [score_table(measure, qrels, runs) for measure in measures]
    ap = next((table for table in tables if table.measure == "AP"), None) or score_table("AP", qrels, runs)
    summary = _spread(tables, ap, seed)
    summary["%no@10"] = [100 * float(np.mean(list(no_relevant(qrels, run).values()))) for run in runs.values()]
    summary["judged@10"] = [float(np.mean(list(judged_share(qrels, run).values()))) for run in runs.values()]
    summary["ties"] = [tie_rate(run).neighbours for run in runs.values()]
    against = pd.DataFrame(
        {
            "ranker": [name for name in runs if name != initial],
            "robustness index": [robustness_index(ap.row(initial), ap.row(n)) for n in runs if n != initial],
            "<Init %": [below_initial(ap.row(initial), ap.row(n)) for n in runs if n != initial],
            "R-Loss@10": [
                float(np.mean(list(r_loss(qrels, runs[initial], run).values())))
                for name, run in runs.items()
                if name != initial
            ],
        }
    )
    frames = {"variance": summary}
    if len(against):
        frames[f"AP against {initial}"] = against
    notes = [f"Ranked: {pool}."] if pool else []
    without = [qid for qid, grades in qrels.items() if not any(grade > 0 for grade in grades.values())]
    if without:
        notes.append(
            f"{len(without)} of {len(qrels)} queries have no relevant document and count 0, e.g. {without[0]}."
        )
    for name, run in runs.items():
        if missing := len(qrels.keys() - run.keys()):
            notes.append(f"{name} has no list for {missing} of {len(qrels)} queries; they count 0.")
        if constant := tie_rate(run).constant_lists:
            notes.append(f"{name}: {constant:.0%} of its lists have one score for all documents: no ranking at all.")
    return _result(tables, ap, frames, notes)


def of_scores(table: ScoreTable, seed: int) -> Result:
    """Variance of ready scores, whatever measure they are of."""
    return _result([table], table, {"variance": _spread([table], table, seed)}, [])


def _spread(tables: list[ScoreTable], ap: ScoreTable, seed: int) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame({"ranker": ap.systems})
    for table in tables:
        frame[table.measure] = table.values.mean(axis=1)
    # named after the measure: a plain "low" and "high" would be drawn as the whiskers of any bar
    measure = tables[0].measure
    frame[f"{measure} low"], frame[f"{measure} high"] = bootstrap_interval(tables[0].values, seed)
    if ap.measure not in frame:
        frame[ap.measure] = ap.values.mean(axis=1)
    frame["VNAP"] = VNAP().of(ap.values)
    frame["gMAP"] = GMAP().of(ap.values)
    frame["gMAP floor"] = GMAP(floor=True).of(ap.values)
    frame["worst 25 %"] = WorstArea().of(ap.values)
    return frame


def _result(tables: list[ScoreTable], ap: ScoreTable, frames: dict[str, pd.DataFrame], notes: list[str]) -> Result:
    import pandas as pd

    summary = frames["variance"]
    first = tables[0]
    every = [*tables, *([ap] if all(t.measure != ap.measure for t in tables) else [])]
    frames["per query"] = pd.DataFrame(
        {
            "ranker": np.repeat(first.systems, len(first.topics)),
            "query": list(first.topics) * len(first.systems),
            **{table.measure: table.values.ravel() for table in every},
        }
    )
    notes.append(f"low, high: 95 % bootstrap interval of the mean over {len(first.topics)} queries.")
    if len(first.topics) < FEWEST_QUERIES:
        notes.append(f"Only {len(first.topics)} queries: read the intervals, not the means.")
    correlation = mean_variance_correlation(summary[ap.measure], summary["VNAP"])
    if not np.isnan(correlation):
        rankers = summary["VNAP"].count()
        notes.append(f"Pearson correlation of mean {ap.measure} and VNAP over {rankers} rankers: {correlation:.3f}.")
    figures = (
        Figure("bars", "variance", "Unevenness over queries (VNAP, lower is better)", x="ranker", y="VNAP"),
        Figure(
            "scatter",
            "variance",
            "Mean effectiveness and the queries served worst",
            x=ap.measure,
            y="gMAP",
            color="ranker",
            caption="Up and right is better: gMAP weighs a failed query as much as many that shine.",
        ),
        Figure("profile", "per query", f"{first.measure} of each query", x="query", y=first.measure, color="ranker"),
    )
    headline = {
        f"{row['ranker']}.{key}": float(row[column])
        for _, row in summary.iterrows()
        for key, column in (
            (first.measure, first.measure),
            (ap.measure, ap.measure),
            ("VNAP", "VNAP"),
            ("gMAP", "gMAP"),
        )
        if not np.isnan(row[column])
    }
    return Result("variance", QUESTION, frames, figures, tuple(notes), headline)

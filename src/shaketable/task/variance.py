"""How evenly does a ranker serve its queries?

Wu, Zhang, Guo, Fan, Cheng. Are neural ranking models robust? TOIS 2022, section 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.measure.comparison import weighted_mean
from shaketable.measure.effectiveness import name, parse, score_tables, tie_rate
from shaketable.measure.facets import VARIANCE
from shaketable.measure.significance import FEWEST_QUERIES, bootstrap_interval
from shaketable.measure.variance import (
    GMAP,
    VAP,
    VNAP,
    WorstArea,
    below_initial,
    mean_variance_correlation,
    relevant_lost,
    robustness_index,
)
from shaketable.task.sliced import SLICES, sliced
from shaketable.types import Figure, Finding, Qrels, Result, Run, ScoreTable

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.bench import Bench

QUESTION = "How evenly does each ranker serve its queries?"


@dataclass(frozen=True)
class Variance:
    """How evenly a ranker serves its queries: VNAP, gMAP, %no, the worst quarter."""

    measure: str = "nDCG@10"

    needs_judgements: ClassVar[bool] = True
    needs_scoring: ClassVar[bool] = False

    def run(self, bench: Bench) -> Result:
        runs = bench.runs()
        result = of_runs([self.measure], bench.qrels, runs, next(iter(runs)), bench.seed, pool=bench.pool)
        slices, worst_slices = sliced(bench, result.tables["per query"], _name(self.measure), _name(self.measure))
        return replace(
            result,
            tables={**result.tables, **slices},
            notes=(*result.notes, *([SLICES] if slices else [])),
            findings=(*result.findings, *worst_slices),
            brief=tuple(result.tables)[:2],
        )


def _name(measure: str) -> str:
    return name(parse(measure))


NEEDED = ("AP", "Success@10", "P@10", "Judged@10")
"""What variance is computed from, beside the measures asked for."""


def of_runs(
    measures: Sequence[str], qrels: Qrels, runs: Mapping[str, Run], initial: str, seed: int, pool: str = ""
) -> Result:
    """Variance of runs, on average precision, beside the mean of each measure; others are compared with `initial`."""
    return of_tables(score_tables((*measures, *NEEDED), qrels, runs), qrels, runs, initial, seed, pool)


def of_tables(
    tables: Sequence[ScoreTable], qrels: Qrels, runs: Mapping[str, Run], initial: str, seed: int, pool: str = ""
) -> Result:
    """The same of tables that are there already: the measures', and last those of `NEEDED`."""
    import pandas as pd

    *wanted, ap, success, precision, judged = tables
    summary = _spread(wanted, ap, seed)
    summary["%no@10"] = 100 * (success.values == 0).sum(axis=1) / len(success.topics)
    summary["judged@10"] = judged.values.mean(axis=1)
    ties = {system: tie_rate(run) for system, run in runs.items()}
    summary["ties"] = [one.neighbours for one in ties.values()]
    others = [system for system in runs if system != initial]
    against = pd.DataFrame(
        {
            "ranker": others,
            "robustness index": [robustness_index(ap.row(initial), ap.row(n)) for n in others],
            "<Init %": [below_initial(ap.row(initial), ap.row(n)) for n in others],
            "R-Loss@10": [float(relevant_lost(precision.row(initial), precision.row(n)).mean()) for n in others],
        }
    )
    frames = {"variance": summary}
    if len(against):
        frames[f"AP against {initial}"] = against
    notes = [f"Each ranker ranks {pool}."] if pool else []
    notes.append(
        "'%no@10' is the percentage of queries without a relevant document among the first ten; 'judged@10' is the "
        "share of the first ten documents that somebody judged; 'ties' is the share of neighbours in the lists that "
        "have the same score, so that their order means nothing."
    )
    if len(against):
        notes.append(
            f"Against {initial}: the 'robustness index' is the share of queries that {initial} serves worse minus the "
            f"share that it serves better, from -1 to 1; '<Init %' is the percentage of queries that are served worse "
            f"than by {initial}; 'R-Loss@10' is the number of relevant documents that a query loses from its first "
            "ten, on average."
        )
    without = [qid for qid, grades in qrels.items() if not any(grade > 0 for grade in grades.values())]
    if without:
        notes.append(
            f"{len(without)} of {len(qrels)} queries have no relevant document and count as 0, for example "
            f"{without[0]}."
        )
    for system, run in runs.items():
        if missing := len(qrels.keys() - run.keys()):
            notes.append(f"{system} has no list for {missing} of {len(qrels)} queries; these count as 0.")
        if constant := ties[system].constant_lists:
            notes.append(
                f"{system} gives all documents of a list the same score in {constant:.0%} of its lists, which ranks "
                "nothing."
            )
    result = _result(wanted, ap, frames, notes)
    return replace(result, findings=(*result.findings, *_unserved(success, seed)))


def _unserved(success: ScoreTable, seed: int) -> list[Finding]:
    """How many queries have no relevant document in the first ten, in per cent: what speaks for variance."""
    findings = []
    for system in success.systems:
        values = {qid: 100.0 * (value == 0) for qid, value in success.by_topic(system).items()}
        mean = weighted_mean(values, seed)
        ends = mean.low, mean.high, mean.n
        findings.append(Finding(system, "%no@10", mean.value, *ends, better="lower", facet=VARIANCE, values=values))
    return findings


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
    frame[f"variance of {ap.measure}"] = VAP().over(ap.values)
    frame["VNAP"] = VNAP().over(ap.values)
    frame["gMAP"] = GMAP().over(ap.values)
    frame["gMAP floor"] = GMAP(floor=True).over(ap.values)
    frame["worst 25 %"] = WorstArea().over(ap.values)
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
    notes.append(
        f"'{first.measure}' is the mean over {len(first.topics)} queries, and 'low' and 'high' are the ends of its 95 "
        "% interval (by the bootstrap)."
    )
    if len(first.topics) < FEWEST_QUERIES:
        notes.append(f"There are fewer than {FEWEST_QUERIES} queries, so read the intervals and not the means.")
    notes.append(
        f"'variance of {ap.measure}' is the mean squared distance of the queries' {ap.measure} from their mean. 'VNAP' "
        "(variance of normalised average precision) divides it by the square of the mean, so that rankers of different "
        "means can be compared; lower is more even."
    )
    notes.append(
        f"'gMAP' is the geometric mean of {ap.measure}, in which a query that fails weighs as much as many that do "
        "well; 'gMAP floor' computes it as trec_eval does, with 0.00001 as the least value. 'worst 25 %' is the area "
        f"under the mean {ap.measure} of the worst queries, up to the worst quarter of them."
    )
    correlation = mean_variance_correlation(summary[ap.measure], summary["VNAP"])
    if not np.isnan(correlation):
        rankers = summary["VNAP"].count()
        notes.append(
            f"Over the {rankers} rankers, mean {ap.measure} and VNAP correlate by {correlation:.3f} (Pearson)."
        )
    figures = (
        Figure(
            "bars",
            "variance",
            "How unevenly each ranker serves its queries (VNAP, lower is better)",
            x="ranker",
            y="VNAP",
            folded=True,
            source="Wu et al. 2022, Fig. 2",
        ),
        Figure(
            "scatter",
            "variance",
            "Mean effectiveness, and the queries that are served worst (gMAP)",
            x=ap.measure,
            y="gMAP",
            color="ranker",
            caption="Up and right is better: in gMAP a query that fails weighs as much as many that do well.",
            folded=True,
            source="Wu et al. 2022, Fig. 3",
        ),
        Figure(
            "scatter",
            "variance",
            "Mean effectiveness, and queries without a relevant document among the first ten (%no@10)",
            x=ap.measure,
            y="%no@10",
            color="ranker",
            caption="Down and right is better.",
            folded=True,
            source="Wu et al. 2022, Fig. 3",
        ),
        Figure(
            "profile",
            "per query",
            f"{first.measure} of each query",
            x="query",
            y=first.measure,
            color="ranker",
            source="Dinçer et al. 2016, Fig. 1",
        ),
    )
    findings = [
        Finding(
            row["ranker"],
            key,
            float(row[key]),
            *_ends(row, key),
            n=len(first.topics),
            better="lower" if key == "VNAP" else "higher",
        )
        for _, row in summary.iterrows()
        for key in dict.fromkeys((first.measure, ap.measure, "VNAP", "gMAP"))
        if not np.isnan(row[key])
    ]
    drawn = tuple(figure for figure in figures if figure.y in frames[figure.table])
    return Result("variance", QUESTION, frames, drawn, tuple(notes), tuple(findings))


def _ends(row: pd.Series[Any], key: str) -> tuple[float, float]:
    """The interval of a mean, where there is one."""
    return float(row.get(f"{key} low", np.nan)), float(row.get(f"{key} high", np.nan))

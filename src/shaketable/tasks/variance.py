"""The variance task: the spread of a ranker's effectiveness across queries.

Wu, Zhang, Guo, Fan, Cheng. Are neural ranking models robust? TOIS 2022, section 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from shaketable.core.documents import Qrels, Run
from shaketable.core.results import Figure, Finding, Result, ScoreTable
from shaketable.measures.effectiveness import TieRate, score_tables, tie_rate
from shaketable.measures.facets import UNSERVED_SHARE
from shaketable.measures.measure_names import format_measure, parse_measure
from shaketable.measures.significance import MIN_QUERIES, bootstrap_interval
from shaketable.measures.variance import (
    GMAP,
    VAP,
    VNAP,
    WorstArea,
    below_initial_percentage,
    count_relevant_lost,
    mean_variance_correlation,
    robustness_index,
)
from shaketable.tasks._score_frames import build_per_query_frame
from shaketable.tasks._slices import SLICES_NOTE, measure_slices

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.experiment import Experiment

QUESTION = "How evenly does each ranker perform across queries?"


@dataclass(frozen=True)
class Variance:
    """Spread of a ranker's effectiveness across queries: VNAP, gMAP, %no, the worst quarter.

    measure  the effectiveness measure of the tables by query
    """

    measure: str = "nDCG@10"

    needs_judgements: ClassVar[bool] = True
    needs_scoring: ClassVar[bool] = False

    def run(self, experiment: Experiment) -> Result:
        runs = experiment.get_runs()
        result = build_variance_from_runs(
            [self.measure],
            experiment.qrels,
            runs,
            next(iter(runs)),
            experiment.seed,
            candidate_description=experiment.candidate_description,
        )
        slices, worst_slices = measure_slices(
            experiment,
            result.tables["per query"],
            _format_measure_name(self.measure),
            _format_measure_name(self.measure),
        )
        return replace(
            result,
            tables={**result.tables, **slices},
            notes=(*result.notes, *([SLICES_NOTE] if slices else [])),
            findings=(*result.findings, *worst_slices),
            brief=tuple(result.tables)[:2],
        )


def _format_measure_name(measure: str) -> str:
    return format_measure(parse_measure(measure))


REQUIRED_MEASURES = ("AP", "Success@10", "P@10", "Judged@10")
"""The measures that variance is computed from, beside the requested ones."""


@dataclass(frozen=True)
class ListSummary:
    """The ties in the lists of a run, and the number of judged queries without a list."""

    ties: TieRate
    missing: int


def summarise_lists(run: Run, qrels: Qrels) -> ListSummary:
    """Return the summary of a run that `build_variance_from_tables` reports."""
    return ListSummary(tie_rate(run), len(qrels.keys() - run.keys()))


def build_variance_from_runs(
    measures: Sequence[str],
    qrels: Qrels,
    runs: Mapping[str, Run],
    initial: str,
    seed: int,
    candidate_description: str = "",
) -> Result:
    """Return the variance of runs in average precision and the mean of each measure, compared with `initial`."""
    tables = score_tables((*measures, *REQUIRED_MEASURES), qrels, runs)
    lists = {system: summarise_lists(run, qrels) for system, run in runs.items()}
    return build_variance_from_tables(tables, qrels, lists, initial, seed, candidate_description)


def build_variance_from_tables(
    tables: Sequence[ScoreTable],
    qrels: Qrels,
    lists: Mapping[str, ListSummary],
    initial: str,
    seed: int,
    candidate_description: str = "",
) -> Result:
    """Return the variance from score tables: those of the measures, then those of `REQUIRED_MEASURES`."""
    import pandas as pd

    *wanted, ap, success, precision, judged = tables
    summary = _build_spread_table(wanted, ap, seed)
    summary["%no@10"] = 100 * (success.values == 0).sum(axis=1) / len(success.topics)
    summary["judged@10"] = judged.values.mean(axis=1)
    summary["ties"] = [one.ties.neighbours for one in lists.values()]
    others = [system for system in lists if system != initial]
    against = pd.DataFrame(
        {
            "ranker": others,
            "robustness index": [robustness_index(ap.row(initial), ap.row(n)) for n in others],
            "<Init %": [below_initial_percentage(ap.row(initial), ap.row(n)) for n in others],
            "R-Loss@10": [float(count_relevant_lost(precision.row(initial), precision.row(n)).mean()) for n in others],
        }
    )
    frames = {"variance": summary}
    if len(against):
        frames[f"AP against {initial}"] = against
    notes = [f"Each ranker ranks {candidate_description}."] if candidate_description else []
    notes.append(
        "'%no@10' is the percentage of queries without a relevant document among the first ten; 'judged@10' is the "
        "share of the first ten documents that are judged; 'ties' is the share of neighbours in the lists with equal "
        "scores, whose order is arbitrary."
    )
    if len(against):
        notes.append(
            f"Against {initial}: the 'robustness index' is the share of queries on which the ranker is better than "
            f"{initial} minus the share on which it is worse, from -1 to 1; '<Init %' is the percentage of queries "
            f"on which the ranker is worse than {initial}; 'R-Loss@10' is the mean number of relevant documents that "
            "a query loses from its top ten."
        )
    without = [qid for qid, grades in qrels.items() if not any(grade > 0 for grade in grades.values())]
    if without:
        notes.append(
            f"{len(without)} of {len(qrels)} queries have no relevant document and count as 0, for example "
            f"{without[0]}."
        )
    for system, one in lists.items():
        if one.missing:
            notes.append(f"{system} has no list for {one.missing} of {len(qrels)} queries; these count as 0.")
        if constant := one.ties.constant_lists:
            notes.append(
                f"{system} gives all documents the same score in {constant:.0%} of its lists, which is not a ranking."
            )
    result = _build_result(wanted, ap, frames, notes)
    return replace(result, findings=(*result.findings, *_build_unserved_findings(success, seed)))


def _build_unserved_findings(success: ScoreTable, seed: int) -> list[Finding]:
    """Return the percentage of queries without a relevant document in the first ten.

    It has no facet: the facet variance compares it with that of the first stage.
    """
    unserved = replace(success, measure=UNSERVED_SHARE, values=100.0 * (success.values == 0))
    means, (low, high) = unserved.values.mean(axis=1), bootstrap_interval(unserved.values, seed)
    return [
        Finding(
            system,
            unserved.measure,
            float(means[at]),
            float(low[at]),
            float(high[at]),
            len(unserved.topics),
            better="lower",
            values=unserved.by_topic(system),
        )
        for at, system in enumerate(unserved.systems)
    ]


def build_variance_from_scores(table: ScoreTable, seed: int) -> Result:
    """Return the variance of the scores of any measure."""
    return _build_result([table], table, {"variance": _build_spread_table([table], table, seed)}, [])


def _build_spread_table(tables: list[ScoreTable], ap: ScoreTable, seed: int) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame({"ranker": ap.systems})
    for table in tables:
        frame[table.measure] = table.values.mean(axis=1)
    # the names contain the measure because charts draw plain "low" and "high" columns as error bars
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


def _build_result(
    tables: list[ScoreTable], ap: ScoreTable, frames: dict[str, pd.DataFrame], notes: list[str]
) -> Result:
    first = tables[0]
    every = [*tables, *([ap] if all(t.measure != ap.measure for t in tables) else [])]
    frames["per query"] = build_per_query_frame(first, {table.measure: table.values for table in every})
    all_notes = (*notes, *_build_notes(first, ap.measure, frames["variance"]))
    drawn = tuple(figure for figure in _build_figures(first.measure, ap.measure) if figure.y in frames[figure.table])
    findings = tuple(_build_findings(frames["variance"], (first.measure, ap.measure), len(first.topics)))
    return Result("variance", QUESTION, frames, drawn, all_notes, findings)


def _build_notes(first: ScoreTable, ap: str, summary: pd.DataFrame) -> Iterator[str]:
    yield (
        f"'{first.measure}' is the mean over {len(first.topics)} queries, and 'low' and 'high' are the ends of its 95 "
        "% interval (bootstrap)."
    )
    if len(first.topics) < MIN_QUERIES:
        yield f"There are fewer than {MIN_QUERIES} queries, so read the intervals and not the means."
    yield (
        f"'variance of {ap}' is the mean squared distance of the queries' {ap} from their mean. 'VNAP' (variance of "
        "normalised average precision) divides it by the square of the mean, so that rankers of different means can "
        "be compared; lower is more even."
    )
    yield (
        f"'gMAP' is the geometric mean of {ap}, in which a failed query weighs as much as many good ones; 'gMAP "
        "floor' computes it as trec_eval does, with 0.00001 as the least value. 'worst 25 %' is the area under the "
        f"mean {ap} of the worst queries, up to the worst quarter of them."
    )
    correlation = mean_variance_correlation(summary[ap], summary["VNAP"])
    if not np.isnan(correlation):
        rankers = summary["VNAP"].count()
        yield f"Over the {rankers} rankers, mean {ap} and VNAP correlate by {correlation:.3f} (Pearson)."


def _build_figures(measure: str, ap: str) -> tuple[Figure, ...]:
    return (
        Figure(
            "bars",
            "variance",
            "Variance across queries (VNAP, lower is better)",
            x="ranker",
            y="VNAP",
            folded=True,
            source="Wu et al. 2022, Fig. 2",
        ),
        Figure(
            "scatter",
            "variance",
            "Mean effectiveness, and the worst queries (gMAP)",
            x=ap,
            y="gMAP",
            color="ranker",
            caption="Up and right is better: in gMAP a failed query weighs as much as many good ones.",
            folded=True,
            source="Wu et al. 2022, Fig. 3",
        ),
        Figure(
            "scatter",
            "variance",
            "Mean effectiveness, and queries without a relevant document among the first ten (%no@10)",
            x=ap,
            y="%no@10",
            color="ranker",
            caption="Down and right is better.",
            folded=True,
            source="Wu et al. 2022, Fig. 3",
        ),
        Figure(
            "profile",
            "per query",
            f"{measure} of each query",
            x="query",
            y=measure,
            color="ranker",
            source="Dinçer et al. 2016, Fig. 1",
        ),
    )


def _build_findings(summary: pd.DataFrame, means: Sequence[str], queries: int) -> Iterator[Finding]:
    for row in summary.to_dict("records"):
        for key in dict.fromkeys((*means, "VNAP", "gMAP")):
            low, high = (float(row.get(f"{key} {end}", np.nan)) for end in ("low", "high"))
            better: Literal["lower", "higher"] = "lower" if key == "VNAP" else "higher"
            if not np.isnan(row[key]):
                yield Finding(row["ranker"], key, float(row[key]), low, high, queries, better=better)

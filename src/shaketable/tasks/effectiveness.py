"""The effectiveness task: means of each ranker, and significance tests of their differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.core.errors import UnknownName, check_parameter
from shaketable.core.results import Figure, Finding, Result, ScoreTable, SystemTable
from shaketable.measures.effectiveness import score_tables
from shaketable.measures.facets import EFFECTIVENESS
from shaketable.measures.measure_names import name_measures
from shaketable.measures.significance import (
    MIN_QUERIES,
    PairwiseComparisons,
    adjust_p_values,
    bootstrap_interval,
    choose_correction,
    compare_all_pairs,
    describe_comparison,
    effect_size,
    format_star,
    get_test,
    t_test,
    weighted_t_test,
)
from shaketable.tasks._score_frames import build_per_query_frame

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.experiment import Experiment

QUESTION = "How effective is each ranker, and which differences are significant?"


@dataclass(frozen=True)
class Effectiveness:
    """Effectiveness of each ranker by several measures, with intervals and significance tests.

    Each ranker is compared with the baseline (by default the first ranker) and with every other ranker. `test` is
    t_test, wilcoxon, randomisation or tukey_hsd. `correction` is holm (the default), bonferroni or bh, over the rankers
    of each measure; tukey_hsd corrects by itself.

    measures    the measures, such as nDCG@10; `shaketable list measures` shows them all
    baseline    the ranker to compare with; the first one by default
    test        t_test, wilcoxon, randomisation or tukey_hsd
    correction  holm (the default), bonferroni or bh
    """

    measures: tuple[str, ...] = ("nDCG@10", "AP", "RR@10")
    baseline: str = ""
    test: str = "t_test"
    correction: str = ""

    needs_judgements: ClassVar[bool] = True
    needs_scoring: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_parameter("effectiveness", bool(self.measures), "measures", "one or more", self.measures)
        choose_correction(self.test, self.correction)

    def run(self, experiment: Experiment) -> Result:
        baseline = self.baseline or next(iter(experiment.models))
        if baseline not in experiment.models:
            raise UnknownName("baseline", baseline, experiment.models)
        tables = score_tables(name_measures(self.measures), experiment.qrels, experiment.get_runs())
        notes = [f"Each ranker ranks {experiment.candidate_description}."]
        if experiment.weights:
            notes.append(f"{experiment.weighting_description[0].upper()}{experiment.weighting_description[1:]}.")
        return build_effectiveness_from_tables(
            tables, baseline, self.test, self.correction, experiment.seed, notes, experiment.weights
        )


def build_effectiveness_from_tables(
    tables: Sequence[ScoreTable],
    baseline: str,
    test: str,
    correction: str,
    seed: int,
    notes: Sequence[str] = (),
    weights: Mapping[str, float] | None = None,
) -> Result:
    """Return means, comparisons with the baseline, and comparisons of all pairs, for each measure.

    Query weights apply to means and to comparisons with the baseline, not to comparisons of all pairs.
    """
    import pandas as pd

    correction = choose_correction(test, correction)
    compared = [compare_all_pairs(table.values, test, correction, seed=seed) for table in tables]
    rows = [
        _compare_with_baseline(table, pairs, baseline, test, correction, seed, weights)
        for table, pairs in zip(tables, compared, strict=True)
    ]
    summary = pd.concat(rows, ignore_index=True)
    every = pd.concat(map(_list_pairs, tables, compared), ignore_index=True)
    first = tables[0]
    per_query = build_per_query_frame(first, {table.measure: table.values for table in tables})
    shown = summary[summary["measure"] == first.measure]
    return Result(
        "effectiveness",
        QUESTION,
        {"effectiveness": summary, "all pairs": every, first.measure: shown, "per query": per_query},
        (
            Figure(
                "bars",
                first.measure,
                f"Mean {first.measure}, with its 95 % interval",
                x="ranker",
                y="mean",
                caption="Rankers whose intervals overlap may still differ: they are compared query by query.",
            ),
        ),
        (*notes, *_build_notes(len(first.topics), baseline, test, correction, bool(weights))),
        tuple(_build_findings(summary, tables, baseline)),
        brief=("effectiveness",),
        system_table=_build_system_table(
            tables, compared, describe_comparison(test, correction, len(compared[0].p)), weights
        ),
    )


def _build_system_table(
    tables: Sequence[ScoreTable],
    compared: Sequence[PairwiseComparisons],
    comparison: str,
    weights: Mapping[str, float] | None,
) -> SystemTable:
    """Return the means of all systems by all measures; with too few queries, nothing is tested."""
    first = tables[0]
    heavy = [weights[topic] for topic in first.topics] if weights else None
    means = np.stack([np.average(table.values, axis=1, weights=heavy) for table in tables], axis=1)
    beaten = (tuple(tuple(pairs.find_beaten(i)) for pairs in compared) for i in range(len(first.systems)))
    is_tested = len(first.topics) >= MIN_QUERIES and len(first.systems) > 1
    return SystemTable(
        first.systems,
        tuple(table.measure for table in tables),
        tuple(map(tuple, means.tolist())),
        tuple(beaten),
        len(first.topics),
        f"{comparison}{', without the weights of queries' if weights else ''}" if is_tested else "",
    )


def _build_notes(queries: int, baseline: str, test: str, correction: str, weighted: bool) -> Iterator[str]:
    yield (
        f"'mean' is the mean over {queries} queries, and 'low' and 'high' are the ends of its 95 % interval "
        "(bootstrap)."
    )
    yield (
        "'letters' form groups: two rankers that share one do not differ significantly in that measure. They are not "
        "the superscripts of the table of systems."
    )
    yield (
        f"'difference' is the mean of the ranker minus that of {baseline}, and 'p' the probability that chance alone "
        f"makes a difference as large ({test}, corrected by {correction or 'the test itself'} for many comparisons); "
        "a star marks p below 0.05. 'effect size' is Cohen's d: the mean difference, divided by the standard deviation "
        "of the differences."
    )
    if weighted:
        yield "The letters and the table of all pairs ignore the weights of queries."
        if not correction or get_test(test) is not t_test:
            yield f"The test {test} ignores the weights of queries."
    if queries < MIN_QUERIES:
        yield f"There are fewer than {MIN_QUERIES} queries: nothing is marked as significant."


def _compare_with_baseline(
    table: ScoreTable,
    pairs: PairwiseComparisons,
    baseline: str,
    test: str,
    correction: str,
    seed: int,
    weights: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Return, for one measure, a row for each ranker, best first."""
    import pandas as pd

    x = table.values
    heavy = [weights[topic] for topic in table.topics] if weights else None
    low, high = bootstrap_interval(x, seed, weights=heavy)
    others = np.array([name != baseline for name in table.systems])
    columns: dict[str, Any] = {name: np.full(len(x), np.nan) for name in ("difference", "p", "effect size")}
    if baseline in table.systems and others.any():
        base = np.broadcast_to(table.row(baseline), x[others].shape)
        columns["difference"][others] = np.average(x[others] - base, axis=1, weights=heavy)
        weighted_p, effect = weighted_t_test(base, x[others], heavy) if heavy else (None, effect_size(base, x[others]))
        columns["effect size"][others] = effect
        if not correction:  # Tukey's HSD compares all rankers at once
            columns["p"][others] = pairs.select_p(table.systems.index(baseline))
        elif weighted_p is not None and get_test(test) is t_test:
            columns["p"][others] = adjust_p_values(weighted_p, correction)
        else:
            columns["p"][others] = adjust_p_values(get_test(test, seed)(base, x[others]), correction)
    return pd.DataFrame(
        {
            "measure": table.measure,
            "ranker": table.systems,
            "mean": np.average(x, axis=1, weights=heavy),
            "low": low,
            "high": high,
            "letters": pairs.letters,
            "difference": columns["difference"],
            "p": columns["p"],
            "": [format_star(p, len(table.topics)) for p in columns["p"]],
            "effect size": columns["effect size"],
        }
    ).sort_values("mean", ascending=False, kind="stable")


def _list_pairs(table: ScoreTable, pairs: PairwiseComparisons) -> pd.DataFrame:
    """Return, for one measure, a row for each pair of rankers."""
    import pandas as pd

    systems = np.array(table.systems, dtype=object)
    return pd.DataFrame(
        {
            "measure": table.measure,
            "ranker": systems[pairs.first],
            "other": systems[pairs.second],
            "difference": pairs.difference,
            "p": pairs.p,
            "": [format_star(p, len(table.topics)) for p in pairs.p],
            "effect size": pairs.effect,
        }
    )


def _build_findings(summary: pd.DataFrame, tables: Sequence[ScoreTable], baseline: str) -> list[Finding]:
    """Return the means as findings; the mean of the first measure decides the facet effectiveness."""
    known = {table.measure: table for table in tables}
    return [
        Finding(
            row["ranker"],
            row["measure"],
            row["mean"],
            row["low"],
            row["high"],
            len(known[row["measure"]].topics),
            row["p"],
            against=baseline,
            facet=EFFECTIVENESS if row["measure"] == tables[0].measure else "",
            values=known[row["measure"]].by_topic(row["ranker"]),
        )
        for _, row in summary.iterrows()
    ]

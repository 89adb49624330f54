"""The agreement task: compares the rankings of every two rankers, without judgements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar, Literal

from shaketable.core.documents import rank_docnos
from shaketable.core.errors import check_parameter
from shaketable.core.results import Figure, Finding, Result
from shaketable.measures.paired_comparison import weighted_mean
from shaketable.measures.parsing import parse_change_measure

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.experiment import Experiment


MEASURES_NOTE = (
    "Each number is a mean over queries; 'low' and 'high' are the ends of its 95 % interval. 'top_change' is the share "
    "of queries with another document at rank 1, and 'kendall' the share of document pairs in a different order; "
    "both are 0 for equal lists. 'overlap(k=10)' is the share of the first ten documents that two lists have in "
    "common, and 'rbo' "
    "is rank-biased overlap, in which the top ranks weigh most; both are 1 for equal lists."
)


@dataclass(frozen=True)
class Agreement:
    """Agreement between rankers: top change, Kendall distance, overlap, rank-biased overlap.

    measures  the measures of the distance between two lists
    """

    measures: tuple[str, ...] = ("top_change", "kendall", "overlap(k=10)", "rbo(p=0.9)")

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_parameter("agreement", bool(self.measures), "measures", "one or more", self.measures)
        for text in self.measures:
            parse_change_measure(text)

    def run(self, experiment: Experiment) -> Result:
        import pandas as pd

        compare = {text: parse_change_measure(text) for text in self.measures}
        rankings = {
            name: {qid: rank_docnos(scores) for qid, scores in run.items()}
            for name, run in experiment.get_runs().items()
        }
        rows = [
            {"ranker": left, "other": right, "query": qid}
            | {text: measure.between(rankings[left][qid], rankings[right][qid]) for text, measure in compare.items()}
            for left, right in combinations(rankings, 2)
            for qid in experiment.queries
            if rankings[left].get(qid) and rankings[right].get(qid)
        ]
        per_query = pd.DataFrame(rows, columns=["ranker", "other", "query", *compare])
        means = pd.DataFrame(
            [
                {"ranker": left, "other": right} | _build_mean_row(part, list(compare), experiment)
                for (left, right), part in per_query.groupby(["ranker", "other"], sort=False)
            ],
            columns=["ranker", "other", *(f"{text}{end}" for text in compare for end in ("", " low", " high"))],
        )
        several = len(rankings) > 1
        title = f"Agreement of each pair of rankers, by {self.measures[-1]}"
        figure = Figure("heatmap", "agreement", title, x="ranker", y="other", color=self.measures[-1])
        return Result(
            "agreement",
            "How much do the rankers agree?",
            {"agreement": means, "per query": per_query},
            (figure,) if several else (),
            (MEASURES_NOTE if several else "There is only one ranker, so there is nothing to compare it with.",),
            tuple(_build_findings(means, list(compare), len(experiment.queries))),
        )


def _build_findings(means: pd.DataFrame, measures: Sequence[str], queries: int) -> Iterator[Finding]:
    for row in means.to_dict("records"):
        for text in measures:
            value, low, high = (float(row[f"{text}{end}"]) for end in ("", " low", " high"))
            yield Finding(
                row["ranker"], text, value, low, high, queries, better=_get_direction(text), against=row["other"]
            )


def _build_mean_row(per_query: pd.DataFrame, measures: list[str], experiment: Experiment) -> dict[str, float]:
    """Return the mean of each measure over the queries of two rankers, with its interval."""
    row: dict[str, float] = {}
    for text in measures:
        mean = weighted_mean(
            dict(zip(per_query["query"], per_query[text], strict=True)), experiment.seed, experiment.weights
        )
        row |= {text: mean.value, f"{text} low": mean.low, f"{text} high": mean.high}
    return row


def _get_direction(measure: str) -> Literal["higher", "lower"]:
    """Return "higher" if equal rankings have the value 1, and "lower" if they have 0."""
    return "higher" if parse_change_measure(measure).between(["a", "b"], ["a", "b"]) > 0 else "lower"

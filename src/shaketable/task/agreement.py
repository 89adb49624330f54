"""How far do two rankers agree? Needs no judgements: rankings are compared with rankings."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar, Literal

from shaketable.errors import check
from shaketable.measure.comparison import weighted_mean
from shaketable.measure.kinds import change_measure
from shaketable.types import Figure, Finding, Result, ranking

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.bench import Bench


@dataclass(frozen=True)
class Agreement:
    """How far rankers agree with each other: top change, Kendall distance, overlap, rank-biased overlap."""

    measures: tuple[str, ...] = ("top_change", "kendall", "overlap(k=10)", "rbo(p=0.9)")

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check("agreement", bool(self.measures), "measures", "one or more", self.measures)
        for text in self.measures:
            change_measure(text)

    def run(self, bench: Bench) -> Result:
        import pandas as pd

        compare = {text: change_measure(text) for text in self.measures}
        rankings = {name: {qid: ranking(scores) for qid, scores in run.items()} for name, run in bench.runs().items()}
        rows = [
            {"ranker": left, "other": right, "query": qid}
            | {text: measure.between(rankings[left][qid], rankings[right][qid]) for text, measure in compare.items()}
            for left, right in combinations(rankings, 2)
            for qid in bench.queries
            if rankings[left].get(qid) and rankings[right].get(qid)
        ]
        per_query = pd.DataFrame(rows, columns=["ranker", "other", "query", *compare])
        means = pd.DataFrame(
            [
                {"ranker": left, "other": right} | _row(part, list(compare), bench)
                for (left, right), part in per_query.groupby(["ranker", "other"], sort=False)
            ],
            columns=["ranker", "other", *(f"{text}{end}" for text in compare for end in ("", " low", " high"))],
        )
        shown = self.measures[-1]
        notes = [
            (
                "Each number is a mean over queries; 'low' and 'high' are the ends of its 95 % interval. 'top_change' "
                "is the share of queries with another document in first place, and 'kendall' the share of pairs of "
                "documents that stand in another order: 0 is no difference. 'overlap(k=10)' is the share of the first "
                "ten documents that two lists have in common, and 'rbo' is rank-biased overlap, in which the first "
                "places weigh most: 1 is no difference."
            )
        ]
        if len(rankings) < 2:
            notes = ["There is only one ranker, so there is nothing to compare it with."]
        return Result(
            "agreement",
            "How far do the rankers agree?",
            {"agreement": means, "per query": per_query},
            (
                Figure(
                    "heatmap",
                    "agreement",
                    f"How far each two rankers agree, by {shown}",
                    x="ranker",
                    y="other",
                    color=shown,
                ),
            )
            if len(rankings) > 1
            else (),
            tuple(notes),
            tuple(
                Finding(
                    row["ranker"],
                    text,
                    float(row[text]),
                    float(row[f"{text} low"]),
                    float(row[f"{text} high"]),
                    n=len(bench.queries),
                    better=_better(text),
                    against=row["other"],
                )
                for _, row in means.iterrows()
                for text in compare
            ),
        )


def _row(per_query: pd.DataFrame, measures: list[str], bench: Bench) -> dict[str, float]:
    """The mean of each measure over the queries of two rankers, and the ends of its interval."""
    row: dict[str, float] = {}
    for text in measures:
        mean = weighted_mean(dict(zip(per_query["query"], per_query[text], strict=True)), bench.seed, bench.weights)
        row |= {text: mean.value, f"{text} low": mean.low, f"{text} high": mean.high}
    return row


def _better(measure: str) -> Literal["higher", "lower"]:
    """Agreement is better the higher where no change gives 1, the lower where it gives 0."""
    return "higher" if change_measure(measure).between(["a", "b"], ["a", "b"]) > 0 else "lower"

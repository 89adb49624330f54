"""The first-stage task: compares a ranker with its first stage, because a ranker that does nothing looks robust."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.core.documents import Run, rank_docnos
from shaketable.core.errors import NotApplicable
from shaketable.core.results import Example, Figure, Finding, Result
from shaketable.measures.effectiveness import score_tables
from shaketable.measures.facets import (
    EFFECTIVENESS,
    GAIN_AT_DOUBLE_LOSSES,
    GAIN_OVER_FIRST_STAGE,
    OWN_ORDER_SHARE,
    RISK,
    UNSERVED_INCREASE,
    VARIANCE,
)
from shaketable.measures.paired_comparison import (
    Comparison,
    Weights,
    add_significance_stars,
    compare_paired,
    weighted_mean,
)
from shaketable.measures.rank_distance import Overlap
from shaketable.tasks._query_changes import compute_query_drops

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.experiment import Experiment

MAX_EXAMPLES = 3


@dataclass(frozen=True)
class FirstStage:
    """Gain and risk of a ranker compared with its first stage, and the share of lists that it reorders.

    The first stage is the ranker that retrieves the candidates, or the order of the collection's candidates.
    """

    measure: str = "nDCG@10"

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = False

    def run(self, experiment: Experiment) -> Result:
        import pandas as pd

        if not experiment.baseline and not experiment.scoring_rankers and not experiment.collection.candidates:
            raise NotApplicable("run files come without their first stage; name it as a ranker, or as --candidates")
        first = experiment.get_run(experiment.baseline) if experiment.baseline else experiment.candidates
        if not any(_has_order(scores) for scores in first.values()):
            raise NotApplicable("the candidates came in no order, so there is no first stage to compare with")
        given = bool(experiment.collection.candidates)
        against = experiment.baseline or ("the candidates as they came" if given else experiment.first_stage)
        rows: list[dict[str, Any]] = []
        examples: list[Example] = []
        differences: dict[str, dict[str, Mapping[str, float]]] = {}
        for name in (name for name in experiment.models if name != experiment.baseline):
            own = _measure_own_order(experiment.get_run(name), experiment.candidates)
            mean = weighted_mean(own, experiment.seed, experiment.weights)
            row = {
                "ranker": name,
                OWN_ORDER_SHARE: mean.value,
                f"{OWN_ORDER_SHARE} low": mean.low,
                f"{OWN_ORDER_SHARE} high": mean.high,
            }
            row["overlap@10"] = _compute_overlap(experiment.get_run(name), first)
            differences[name] = {OWN_ORDER_SHARE: own}
            if experiment.qrels:
                values = self._measure_queries(experiment, first, experiment.get_run(name))
                differences[name] |= _compute_differences(*values, experiment.weights)
                row |= _build_row(*values, experiment)
                examples += self._select_losses(experiment, name, first, *values[:2])
            rows.append(row | {"queries": len(experiment.queries)})
        table = add_significance_stars(pd.DataFrame(rows)) if rows else pd.DataFrame({"ranker": []})
        return Result(
            "first-stage",
            "What does a ranker add to its first stage, and what does it risk?",
            {"first stage": table},
            (
                Figure(
                    "bars",
                    "first stage",
                    f"{GAIN_OVER_FIRST_STAGE}, by {self.measure}",
                    x="ranker",
                    y=GAIN_OVER_FIRST_STAGE,
                ),
            )
            if GAIN_OVER_FIRST_STAGE in table
            else (),
            tuple(self._build_notes(against, bool(experiment.qrels), bool(rows))),
            tuple(_build_findings(table, differences, against)),
            tuple(examples),
        )

    def _measure_queries(
        self, experiment: Experiment, first: Run, run: Run
    ) -> tuple[dict[str, float], dict[str, float], Any, Any]:
        """Return, by query, the measure before and after, and 100 if no document of the top ten is relevant."""
        tables = score_tables((self.measure, "Success@10"), experiment.qrels, {"first": first, "ranker": run})
        worth, success = ([dict(zip(t.topics, t.row(s).tolist(), strict=True)) for s in t.systems] for t in tables)
        unserved = [{qid: 100.0 * (value == 0) for qid, value in of.items()} for of in success]
        return worth[0], worth[1], unserved[0], unserved[1]

    def _select_losses(
        self, experiment: Experiment, name: str, first: Run, before: Mapping[str, float], after: Mapping[str, float]
    ) -> list[Example]:
        """Return the queries that lose most, with the relevant document that the first stage ranks highest."""
        losing = sorted((qid for qid in before if after[qid] < before[qid]), key=lambda qid: after[qid] - before[qid])
        cases = []
        for qid in losing[:MAX_EXAMPLES]:
            old, new = rank_docnos(first.get(qid, {})), rank_docnos(experiment.get_run(name).get(qid, {}))
            found = next((docno for docno in old if experiment.qrels[qid].get(docno, 0) > 0), "")
            ranks = [order.index(found) + 1 if found in order else 0 for order in (old, new)]
            text = experiment.texts[qid]
            values = before[qid], after[qid]
            cases.append(Example(name, qid, "without the first stage's order", text, text, *values, found, *ranks))
        return cases

    def _build_notes(self, against: str, judged: bool, several: bool) -> list[str]:
        if not several:
            return [f"There is no ranker beside the first stage, {against}."]
        notes = [
            (
                f"The rankers are compared with {against}. '{OWN_ORDER_SHARE}' is the percentage of lists whose order "
                "is the ranker's own: neither that of the candidates, nor one score for all documents. A ranker that "
                "has no order of its own does nothing, so it looks robust. 'overlap@10' is the share of the first "
                "ten documents that the two have in common."
            )
        ]
        if judged:
            notes += [
                (
                    f"'before' and 'after' are {self.measure} of the first stage and of the ranker, and "
                    f"'{GAIN_OVER_FIRST_STAGE}' is the difference in per cent of 'before', with its 95 % interval; 'p "
                    "(Holm)' is by a paired t-test, and a star marks p below 0.05."
                ),
                (
                    f"'{UNSERVED_INCREASE}' is the percentage of queries without a relevant document among the first "
                    f"ten, minus that of the first stage. '{GAIN_AT_DOUBLE_LOSSES}' is the gain if each loss counts "
                    "twice (URisk at alpha 1)."
                ),
            ]
        return notes


def _has_order(scores: Mapping[str, float]) -> bool:
    return len(set(scores.values())) > 1


def _measure_own_order(run: Run, candidates: Run) -> dict[str, float]:
    """Return, for each query with two or more documents, 100 if the ranker changes the order, otherwise 0."""
    listed = {qid: scores for qid, scores in run.items() if len(scores) > 1}
    return {
        qid: 100.0 * (_has_order(scores) and rank_docnos(scores) != rank_docnos(candidates.get(qid, {})))
        for qid, scores in listed.items()
    }


def _compute_overlap(run: Run, first: Run) -> float:
    shares = [Overlap(10).between(rank_docnos(first[qid]), rank_docnos(run[qid])) for qid in first if qid in run]
    return float(np.mean(shares)) if shares else float("nan")


def _compute_differences(
    before: Mapping[str, float],
    after: Mapping[str, float],
    unserved_before: Mapping[str, float],
    unserved_after: Mapping[str, float],
    weights: Weights,
) -> dict[str, dict[str, float]]:
    """Return each query's contribution to each number; gains are empty if the first stage finds nothing relevant."""
    change = compute_query_drops(before, after, weights)
    return {
        GAIN_OVER_FIRST_STAGE: change,
        UNSERVED_INCREASE: {qid: unserved_after[qid] - unserved_before[qid] for qid in unserved_before},
        GAIN_AT_DOUBLE_LOSSES: {qid: value * (2 if value < 0 else 1) for qid, value in change.items()},
    }


def _build_row(
    before: Mapping[str, float],
    after: Mapping[str, float],
    unserved_before: Mapping[str, float],
    unserved_after: Mapping[str, float],
    experiment: Experiment,
) -> dict[str, float]:
    """Return the values before and after, and the three numbers with their intervals and the p of the first."""
    worth: Comparison = compare_paired(before, after, experiment.seed, experiment.weights)
    row: dict[str, float] = {"before": worth.before, "after": worth.after}
    start = worth.before or float("nan")
    row |= {
        GAIN_OVER_FIRST_STAGE: worth.drop,
        f"{GAIN_OVER_FIRST_STAGE} low": 100 * worth.low / start,
        f"{GAIN_OVER_FIRST_STAGE} high": 100 * worth.high / start,
    }
    row["p"] = worth.p
    for heading, values in _compute_differences(
        before, after, unserved_before, unserved_after, experiment.weights
    ).items():
        if heading != GAIN_OVER_FIRST_STAGE:
            mean = weighted_mean(values, experiment.seed, experiment.weights)
            row |= {heading: mean.value, f"{heading} low": mean.low, f"{heading} high": mean.high}
    return row


def _build_findings(
    table: pd.DataFrame, differences: Mapping[str, Mapping[str, Mapping[str, float]]], against: str
) -> list[Finding]:
    facets = {
        OWN_ORDER_SHARE: "",
        GAIN_OVER_FIRST_STAGE: EFFECTIVENESS,
        UNSERVED_INCREASE: VARIANCE,
        GAIN_AT_DOUBLE_LOSSES: RISK,
    }
    return [
        Finding(
            row["ranker"],
            name,
            float(row[name]),
            float(row.get(f"{name} low", np.nan)),
            float(row.get(f"{name} high", np.nan)),
            int(row["queries"]),
            float(row["p (Holm)"]) if name == GAIN_OVER_FIRST_STAGE else np.nan,
            better="lower" if name == UNSERVED_INCREASE else "higher",
            against=against,
            facet=facet,
            values=differences[row["ranker"]].get(name, {}),
        )
        for row in table.to_dict("records")
        for name, facet in facets.items()
        if name in row and not np.isnan(row[name])
    ]

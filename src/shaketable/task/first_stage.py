"""What does a ranker add to its first stage, and what does it risk? A ranker that does nothing would look robust."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.errors import NotApplicable
from shaketable.measure.change import Overlap
from shaketable.measure.comparison import Comparison, Weights, compare, starred, weighted_mean
from shaketable.measure.effectiveness import score_tables
from shaketable.measure.facets import EFFECTIVENESS, GAIN, GAIN_AT_DOUBLE, MORE_UNSERVED, OWN_ORDER, RISK, VARIANCE
from shaketable.task.changed import drops
from shaketable.types import Example, Figure, Finding, Result, Run, ranking

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.bench import Bench

EXAMPLES = 3


@dataclass(frozen=True)
class FirstStage:
    """What a ranker adds to its first stage, and what it risks: does it rank by itself, for better or for worse?

    The first stage is the ranker that finds the candidates, or the order in which they came with the collection.
    """

    measure: str = "nDCG@10"

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = False

    def run(self, bench: Bench) -> Result:
        import pandas as pd

        if not bench.baseline and not bench.scoring and not bench.collection.candidates:
            raise NotApplicable("run files come without their first stage; name it as a ranker, or as --candidates")
        first = bench.run(bench.baseline) if bench.baseline else bench.candidates
        if not any(_has_order(scores) for scores in first.values()):
            raise NotApplicable("the candidates came in no order, so there is no first stage to compare with")
        given = bool(bench.collection.candidates)
        against = bench.baseline or ("the candidates as they came" if given else bench.first_stage)
        rows: list[dict[str, Any]] = []
        examples: list[Example] = []
        differences: dict[str, dict[str, Mapping[str, float]]] = {}
        for name in (name for name in bench.models if name != bench.baseline):
            own = _own_order(bench.run(name), bench.candidates)
            mean = weighted_mean(own, bench.seed, bench.weights)
            row = {"ranker": name, OWN_ORDER: mean.value, f"{OWN_ORDER} low": mean.low, f"{OWN_ORDER} high": mean.high}
            row["overlap@10"] = _overlap(bench.run(name), first)
            differences[name] = {OWN_ORDER: own}
            if bench.qrels:
                values = self._values(bench, first, bench.run(name))
                differences[name] |= _differences(*values, bench.weights)
                row |= _row(*values, bench)
                examples += self._lost(bench, name, first, *values[:2])
            rows.append(row | {"queries": len(bench.queries)})
        table = starred(pd.DataFrame(rows)) if rows else pd.DataFrame({"ranker": []})
        return Result(
            "first-stage",
            "What does a ranker add to its first stage, and what does it risk?",
            {"first stage": table},
            (Figure("bars", "first stage", f"{GAIN}, by {self.measure}", x="ranker", y=GAIN),) if GAIN in table else (),
            tuple(self._notes(against, bool(bench.qrels), bool(rows))),
            tuple(_findings(table, differences, against)),
            tuple(examples),
        )

    def _values(self, bench: Bench, first: Run, run: Run) -> tuple[dict[str, float], dict[str, float], Any, Any]:
        """Of each query: the measure before and after, and 100 where there is nothing relevant in the first ten."""
        tables = score_tables((self.measure, "Success@10"), bench.qrels, {"first": first, "ranker": run})
        worth, success = ([dict(zip(t.topics, t.row(s).tolist(), strict=True)) for s in t.systems] for t in tables)
        unserved = [{qid: 100.0 * (value == 0) for qid, value in of.items()} for of in success]
        return worth[0], worth[1], unserved[0], unserved[1]

    def _lost(
        self, bench: Bench, name: str, first: Run, before: Mapping[str, float], after: Mapping[str, float]
    ) -> list[Example]:
        """The queries that lose most, with the relevant document that the first stage has highest."""
        losing = sorted((qid for qid in before if after[qid] < before[qid]), key=lambda qid: after[qid] - before[qid])
        cases = []
        for qid in losing[:EXAMPLES]:
            old, new = ranking(first.get(qid, {})), ranking(bench.run(name).get(qid, {}))
            found = next((docno for docno in old if bench.qrels[qid].get(docno, 0) > 0), "")
            places = [order.index(found) + 1 if found in order else 0 for order in (old, new)]
            text = bench.texts[qid]
            worth = before[qid], after[qid]
            cases.append(Example(name, qid, "without the first stage's order", text, text, *worth, found, *places))
        return cases

    def _notes(self, against: str, judged: bool, several: bool) -> list[str]:
        if not several:
            return [f"There is no ranker beside the first stage, {against}."]
        notes = [
            (
                f"The rankers are compared with {against}. '{OWN_ORDER}' is the percentage of lists whose order is the "
                "ranker's own: neither that of the candidates, nor one score for all documents. A ranker that has no "
                "order of its own does nothing, so nothing can shake it. 'overlap@10' is the share of the first ten "
                "documents that the two have in common."
            )
        ]
        if judged:
            notes += [
                (
                    f"'before' and 'after' are {self.measure} of the first stage and of the ranker, and '{GAIN}' is "
                    "the difference in per cent of 'before', with its 95 % interval; 'p (Holm)' is by a paired "
                    "t-test, and a star marks p below 0.05."
                ),
                (
                    f"'{MORE_UNSERVED}' is the percentage of queries without a relevant document among the first ten, "
                    f"minus that of the first stage. '{GAIN_AT_DOUBLE}' is the gain if each loss counts twice (URisk "
                    "at alpha 1)."
                ),
            ]
        return notes


def _has_order(scores: Mapping[str, float]) -> bool:
    return len(set(scores.values())) > 1


def _own_order(run: Run, candidates: Run) -> dict[str, float]:
    """Of each query with a list of two or more: 100 where the order is the ranker's own, otherwise 0."""
    listed = {qid: scores for qid, scores in run.items() if len(scores) > 1}
    return {
        qid: 100.0 * (_has_order(scores) and ranking(scores) != ranking(candidates.get(qid, {})))
        for qid, scores in listed.items()
    }


def _overlap(run: Run, first: Run) -> float:
    shares = [Overlap(10).between(ranking(first[qid]), ranking(run[qid])) for qid in first if qid in run]
    return float(np.mean(shares)) if shares else float("nan")


def _differences(
    before: Mapping[str, float],
    after: Mapping[str, float],
    failed: Mapping[str, float],
    fails: Mapping[str, float],
    weights: Weights,
) -> dict[str, dict[str, float]]:
    """What each query adds to each number; nothing to gains where the first stage finds nothing at all."""
    change = drops(before, after, weights)
    return {
        GAIN: change,
        MORE_UNSERVED: {qid: fails[qid] - failed[qid] for qid in failed},
        GAIN_AT_DOUBLE: {qid: value * (2 if value < 0 else 1) for qid, value in change.items()},
    }


def _row(
    before: Mapping[str, float],
    after: Mapping[str, float],
    failed: Mapping[str, float],
    fails: Mapping[str, float],
    bench: Bench,
) -> dict[str, float]:
    """Before, after, and the three numbers with their intervals and the p of the first."""
    worth: Comparison = compare(before, after, bench.seed, bench.weights)
    row: dict[str, float] = {"before": worth.before, "after": worth.after}
    start = worth.before or float("nan")
    row |= {GAIN: worth.drop, f"{GAIN} low": 100 * worth.low / start, f"{GAIN} high": 100 * worth.high / start}
    row["p"] = worth.p
    for heading, values in _differences(before, after, failed, fails, bench.weights).items():
        if heading != GAIN:
            mean = weighted_mean(values, bench.seed, bench.weights)
            row |= {heading: mean.value, f"{heading} low": mean.low, f"{heading} high": mean.high}
    return row


def _findings(
    table: pd.DataFrame, differences: Mapping[str, Mapping[str, Mapping[str, float]]], against: str
) -> list[Finding]:
    facets = {OWN_ORDER: "", GAIN: EFFECTIVENESS, MORE_UNSERVED: VARIANCE, GAIN_AT_DOUBLE: RISK}
    return [
        Finding(
            row["ranker"],
            name,
            float(row[name]),
            float(row.get(f"{name} low", np.nan)),
            float(row.get(f"{name} high", np.nan)),
            int(row["queries"]),
            float(row["p (Holm)"]) if name == GAIN else np.nan,
            better="lower" if name == MORE_UNSERVED else "higher",
            against=against,
            facet=facet,
            values=differences[row["ranker"]].get(name, {}),
        )
        for row in table.to_dict("records")
        for name, facet in facets.items()
        if name in row and not np.isnan(row[name])
    ]

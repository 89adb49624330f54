"""The first-stage task: compares a ranker with its first stage, because a ranker that does nothing looks robust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.core.documents import Run, rank_docnos
from shaketable.core.errors import NotApplicable
from shaketable.core.results import LIST_LENGTH, Example, Figure, Finding, Result
from shaketable.measures.effectiveness import score_tables
from shaketable.measures.facets import (
    EFFECTIVENESS,
    GAIN_AT_DOUBLE_LOSSES,
    GAIN_OVER_FIRST_STAGE,
    OWN_ORDER_SHARE,
    RISK,
    SEVERE_LOSSES,
    SLICE_GAIN,
    SLICES,
    UNSERVED_INCREASE,
    VARIANCE,
    WORSE_THAN_RANDOM,
    name_test,
)
from shaketable.measures.paired_comparison import (
    CORRECTED_INTERVAL_NOTE,
    Comparison,
    MeanInterval,
    Weights,
    add_significance_stars,
    compare_paired,
    weighted_mean,
)
from shaketable.measures.rank_distance import Kendall, Overlap
from shaketable.measures.rates import Rate, measure_rate, measure_rate_difference
from shaketable.measures.severe_losses import find_severe_losses, severe_losses_p
from shaketable.measures.slices import PartGain, compare_with_first_stage, group_by_half
from shaketable.measures.uneven_quality import (
    ListQuality,
    find_worse_than_random,
    measure_list_quality,
    worse_than_random_p,
)
from shaketable.tasks._query_changes import compute_query_drops

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.experiment import Experiment

MAX_EXAMPLES = 3
TOP_K = 10
MAX_COPY_OVERLAP, MAX_COPY_DISTANCE = 0.7, 0.2
"""A list is a ranker's own if it shares at most this part of its first ten documents with the first stage, or changes
the order of more than this part of the pairs of the first stage's first ten.
"""


@dataclass(frozen=True)
class FirstStage:
    """Gain and risk of a ranker compared with its first stage, and the share of lists that it reorders.

    The first stage is the ranker that retrieves the candidates, or the order of the collection's candidates.

    measure  the effectiveness measure
    """

    measure: str = "nDCG@10"

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = False

    def run(self, experiment: Experiment) -> Result:
        import pandas as pd

        if experiment.live_rankers and not experiment.scoring_rankers and not experiment.collection.docs:
            raise NotApplicable("a search engine has no first stage; --docs adds the documents that bm25 searches")
        if not experiment.baseline and not experiment.live_rankers and not experiment.collection.candidates:
            raise NotApplicable("run files come without their first stage; name it as a ranker, or as --candidates")
        first = experiment.get_run(experiment.baseline) if experiment.baseline else experiment.candidates
        if not any(_has_order(scores) for scores in first.values()):
            raise NotApplicable("the candidates came in no order, so there is no first stage to compare with")
        given = bool(experiment.collection.candidates)
        against = experiment.baseline or ("the candidates as they came" if given else experiment.first_stage)
        rows: list[dict[str, Any]] = []
        examples: list[Example] = []
        differences: dict[str, dict[str, Mapping[str, float]]] = {}
        parts: dict[str, list[PartGain]] = {}
        for name in (name for name in experiment.models if name != experiment.baseline):
            own = _measure_own_order(experiment.get_run(name), experiment.candidates)
            share = measure_rate(own)
            row = {
                "ranker": name,
                OWN_ORDER_SHARE: share.value,
                f"{OWN_ORDER_SHARE} low": share.low,
                f"{OWN_ORDER_SHARE} high": share.high,
            }
            row |= _compare_orders(experiment.get_run(name), first)
            differences[name] = {OWN_ORDER_SHARE: own}
            if experiment.qrels:
                values = self._measure_queries(experiment, first, experiment.get_run(name))
                quality = measure_list_quality(experiment.qrels, experiment.get_run(name))
                differences[name] |= _compute_differences(*values, experiment.weights)
                differences[name][WORSE_THAN_RANDOM] = find_worse_than_random(quality)
                row |= _build_row(*values, experiment) | _build_quality_row(quality, experiment.seed)
                parts[name] = compare_with_first_stage(*values[:2], _slice_queries(experiment), experiment.seed)
                examples += self._select_losses(experiment, name, first, *values[:2])
            rows.append(row | {"queries": len(experiment.queries)})
        plain = pd.DataFrame(rows) if rows else pd.DataFrame({"ranker": []})
        table = add_significance_stars(plain, interval=(GAIN_OVER_FIRST_STAGE, *GAIN_ENDS))
        # the verdict corrects the intervals of findings for the tests of a facet
        plain = table.assign(**{end: plain[end] for end in GAIN_ENDS if end in plain})
        return Result(
            "first-stage",
            "What does a ranker add to its first stage, and what does it risk?",
            {"first stage": table} | _build_slice_table(parts),
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
            (*_build_findings(plain, differences, against), *_build_slice_findings(parts, against)),
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
            lists = tuple(old[:LIST_LENGTH]), tuple(new[:LIST_LENGTH])
            change = "without the first stage's order"
            cases.append(Example(name, qid, change, text, text, *values, found, ranks[0], ranks[1], *lists))
        return cases

    def _build_notes(self, against: str, judged: bool, several: bool) -> list[str]:
        if not several:
            return [f"There is no ranker beside the first stage, {against}."]
        notes = [
            (
                f"The rankers are compared with {against}. '{OWN_ORDER_SHARE}' is the percentage of lists whose order "
                "is the ranker's own: neither nearly that of the candidates, nor one score for all documents. A "
                "ranker that copies the first stage looks robust. 'overlap@10' is the share of the first ten "
                "documents that the two have in common, and 'changed pairs@10' is the share of pairs of the first "
                "stage's first ten that the ranker puts in another order."
            )
        ]
        if judged:
            notes += [
                (
                    f"'before' and 'after' are {self.measure} of the first stage and of the ranker, and "
                    f"'{GAIN_OVER_FIRST_STAGE}' is the difference in per cent of 'before', with its 95 % interval, "
                    f"{CORRECTED_INTERVAL_NOTE}; 'p (Holm)' is by a paired t-test, and a star marks p below 0.05."
                ),
                (
                    f"'{UNSERVED_INCREASE}' is the percentage of queries without a relevant document among the first "
                    f"ten, minus that of the first stage. '{GAIN_AT_DOUBLE_LOSSES}' is the gain if each loss counts "
                    "twice (URisk at alpha 1)."
                ),
                (
                    f"'{SEVERE_LOSSES}' is the percentage of queries that lose more than half of 'before'. Equal "
                    "rankers with independent errors show such losses too, so its p compares them with the losses "
                    "expected if each query's deviation from the mean gain had a random sign."
                ),
                (
                    f"'{WORSE_THAN_RANDOM}' is the percentage of queries on which relevant documents are below others "
                    "more often than above them (AUC below 0.5); its p compares them with those of a ranker that is "
                    "equally good on all queries."
                ),
            ]
        return notes


def _has_order(scores: Mapping[str, float]) -> bool:
    return len(set(scores.values())) > 1


def _measure_own_order(run: Run, candidates: Run) -> dict[str, float]:
    """Return, for each query with two or more documents, 100 if the order is the ranker's own, otherwise 0.

    A list with one score for all documents, and a list that nearly repeats the candidates' order, are not its own.
    """
    own = {}
    for qid, scores in run.items():
        if len(scores) < 2:
            continue
        overlap, distance = _compare_tops(rank_docnos(scores), rank_docnos(candidates.get(qid, {})))
        differs = overlap <= MAX_COPY_OVERLAP or distance > MAX_COPY_DISTANCE
        own[qid] = 100.0 * (_has_order(scores) and differs)
    return own


def _compare_tops(order: Sequence[str], first: Sequence[str]) -> tuple[float, float]:
    """Return the overlap of the first ten, and the share of pairs of the first stage's first ten that change order."""
    top = set(first[:TOP_K])
    kept = [docno for docno in order if docno in top]
    return Overlap(TOP_K).between(first, order), Kendall().between([d for d in first[:TOP_K] if d in kept], kept)


def _compare_orders(run: Run, first: Run) -> dict[str, float]:
    """Return the mean overlap of the first ten with the first stage, and the mean share of changed pairs."""
    pairs = [_compare_tops(rank_docnos(run[qid]), rank_docnos(first[qid])) for qid in first if qid in run]
    means = np.mean(pairs, axis=0).tolist() if pairs else (float("nan"),) * 2
    return {"overlap@10": means[0], "changed pairs@10": means[1]}


def _slice_queries(experiment: Experiment) -> dict[str, Mapping[str, tuple[str, ...]]]:
    """Return the slices of the queries, and the halves by length, which have enough queries in small collections."""
    lengths = {qid: float(len(text.split())) for qid, text in experiment.texts.items()}
    halves = group_by_half(lengths, ("shorter half", "longer half"))
    return {**experiment.slices, "length, halves": halves} if len(halves) > 1 else dict(experiment.slices)


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
        SEVERE_LOSSES: find_severe_losses(before, after),
    }


GAIN_ENDS = (f"{GAIN_OVER_FIRST_STAGE} low", f"{GAIN_OVER_FIRST_STAGE} high")


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
        GAIN_ENDS[0]: 100 * worth.low / start,
        GAIN_ENDS[1]: 100 * worth.high / start,
    }
    row["p"] = worth.p
    for heading, values in _compute_differences(
        before, after, unserved_before, unserved_after, experiment.weights
    ).items():
        if heading == GAIN_OVER_FIRST_STAGE:
            continue
        mean: MeanInterval | Rate = weighted_mean(values, experiment.seed, experiment.weights)
        if not experiment.weights and heading in (UNSERVED_INCREASE, SEVERE_LOSSES):
            mean = measure_rate_difference(values) if heading == UNSERVED_INCREASE else measure_rate(values)
        row |= {heading: mean.value, f"{heading} low": mean.low, f"{heading} high": mean.high}
    row[f"{SEVERE_LOSSES} p"] = severe_losses_p(before, after, experiment.seed)
    return row


def _build_quality_row(quality: Mapping[str, ListQuality], seed: int) -> dict[str, float]:
    """Return the percentage of queries that are ranked worse than at random, with its interval and p."""
    rate = measure_rate(find_worse_than_random(quality))
    ends = {f"{WORSE_THAN_RANDOM} low": rate.low, f"{WORSE_THAN_RANDOM} high": rate.high}
    return {WORSE_THAN_RANDOM: rate.value, **ends, f"{WORSE_THAN_RANDOM} p": worse_than_random_p(quality, seed)}


def _build_findings(
    table: pd.DataFrame, differences: Mapping[str, Mapping[str, Mapping[str, float]]], against: str
) -> list[Finding]:
    facets = {
        OWN_ORDER_SHARE: "",
        GAIN_OVER_FIRST_STAGE: EFFECTIVENESS,
        UNSERVED_INCREASE: VARIANCE,
        GAIN_AT_DOUBLE_LOSSES: "",
        SEVERE_LOSSES: RISK,
        WORSE_THAN_RANDOM: RISK,
    }
    p_columns = {GAIN_OVER_FIRST_STAGE: "p (Holm)"} | {name: f"{name} p" for name in (SEVERE_LOSSES, WORSE_THAN_RANDOM)}
    lower_is_better = (UNSERVED_INCREASE, SEVERE_LOSSES, WORSE_THAN_RANDOM)
    return [
        Finding(
            row["ranker"],
            name,
            float(row[name]),
            float(row.get(f"{name} low", np.nan)),
            float(row.get(f"{name} high", np.nan)),
            int(row["queries"]),
            float(row[p_columns[name]]) if name in p_columns else np.nan,
            better="lower" if name in lower_is_better else "higher",
            against=against,
            facet=facet,
            values=differences[row["ranker"]].get(name, {}),
        )
        for row in table.to_dict("records")
        for name, facet in facets.items()
        if name in row and not np.isnan(row[name])
    ]


def _build_slice_table(parts: Mapping[str, Sequence[PartGain]]) -> dict[str, pd.DataFrame]:
    """Return the gain by slice, if there are slices."""
    import pandas as pd

    rows = [
        {"slice": one.slice, "part": one.part, "ranker": ranker, GAIN_OVER_FIRST_STAGE: one.gain}
        | dict(zip(("low", "high"), one.corrected_ends, strict=True))
        | {"p (Holm)": one.p, "queries": len(one.values)}
        for ranker, gains in parts.items()
        for one in gains
    ]
    return {"gain by slice": pd.DataFrame(rows)} if rows else {}


def _build_slice_findings(parts: Mapping[str, Sequence[PartGain]], against: str) -> list[Finding]:
    return [
        Finding(
            ranker,
            name_test(SLICE_GAIN, f"{one.slice}: {one.part}"),
            one.gain,
            one.low,
            one.high,
            len(one.values),
            one.p,
            against=against,
            facet=SLICES,
            values=one.values,
        )
        for ranker, gains in parts.items()
        for one in gains
    ]

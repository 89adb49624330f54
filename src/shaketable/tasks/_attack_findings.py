"""The findings and examples of attacks on documents, one for each recipe and ranker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any

from shaketable.attacks.setup import AttackResult
from shaketable.core.attack_types import Goal
from shaketable.core.results import Example, Finding
from shaketable.measures.attack_success import count_arrivals
from shaketable.measures.facets import ATTACK, INTO_TOP_TEN, LOSS_UNDER_ATTACK, name_test
from shaketable.measures.paired_comparison import weighted_mean
from shaketable.measures.rates import measure_rate
from shaketable.tasks._attack_tables import TOP_K, group_results, shorten_recipes

if TYPE_CHECKING:
    import pandas as pd

MAX_EXAMPLES_PER_RECIPE = 3


@dataclass(frozen=True)
class AttackLoss:
    """The loss of lists with attacked documents, by query and in per cent, and the judged share of the top ten.

    The loss is that of the task's measure, or of the overlap of the first ten documents without judgements.
    """

    recipe: str
    ranker: str
    values: Mapping[str, float]
    judged_before: float = nan
    judged_after: float = nan


@dataclass(frozen=True)
class DetectorAlarms:
    """The alarms of a detector on the changed texts of a recipe: query id -> the percentage of its texts."""

    recipe: str
    ranker: str
    detector: str
    values: Mapping[str, float]
    text_counts: Mapping[str, int]


def build_attack_findings(
    attempts: Sequence[AttackResult],
    losses: Sequence[AttackLoss],
    alarms: Sequence[DetectorAlarms],
    tables: Mapping[str, pd.DataFrame],
    goal: Goal,
    seed: int,
) -> Iterator[Finding]:
    """Yield the findings of each recipe: the panel, detectors, success rate, boost and effectiveness."""
    names = shorten_recipes(attempt.recipe for attempt in attempts)
    climbing = goal.utility((1,)) > goal.utility((2,))
    if climbing:
        yield from _build_arrival_findings(attempts, names)
        yield from _build_loss_findings(losses, names, seed)
    for one in alarms:
        rate = measure_rate(one.values, one.text_counts)
        yield Finding(
            one.ranker,
            f"caught({names[one.recipe]}/{one.detector}) %",
            rate.value,
            rate.low,
            rate.high,
            len(one.values),
            against=one.recipe,
            values=one.values,
        )
    yield from _build_table_findings(tables, climbing, several=len(names) > 1)


def _build_arrival_findings(attempts: Sequence[AttackResult], names: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the rate of targets that reach the top ten; with a control text, only those that it does not bring there.

    A ranker without a target below the top ten has no finding.
    """
    for (recipe, ranker), some in group_results(attempts).items():
        values, cases = count_arrivals(
            [
                (listing.qid, before, after if control > TOP_K else before)
                for attempt in some
                for listing, before, after, control in zip(
                    attempt.case.lists,
                    attempt.outcome.ranks_before,
                    attempt.outcome.ranks_after,
                    attempt.control_ranks or (TOP_K + 1,) * len(attempt.case.lists),
                    strict=True,
                )
            ],
            TOP_K,
        )
        if values:
            rate = measure_rate(values, cases)
            yield Finding(
                ranker,
                name_test(INTO_TOP_TEN, names[recipe]),
                rate.value,
                rate.low,
                rate.high,
                len(values),
                better="lower",
                against=recipe,
                facet=ATTACK,
                values=values,
            )


def _build_loss_findings(losses: Sequence[AttackLoss], names: Mapping[str, str], seed: int) -> Iterator[Finding]:
    for one in losses:
        mean = weighted_mean(one.values, seed)
        if mean.n:
            yield Finding(
                one.ranker,
                name_test(LOSS_UNDER_ATTACK, names[one.recipe]),
                mean.value,
                mean.low,
                mean.high,
                mean.n,
                better="lower",
                against=one.recipe,
                values=one.values,
                judged_before=one.judged_before,
                judged_after=one.judged_after,
            )


def _build_table_findings(tables: Mapping[str, pd.DataFrame], climbing: bool, several: bool) -> Iterator[Finding]:
    """Yield the numbers of the tables; `where` is the recipe if there are several."""
    for row in tables["attack in full"].to_dict("records"):
        about: Any = {"ranker": row["ranker"], "n": int(row["queries"]), "where": row["recipe"] if several else ""}
        targets = tables["targets"]
        mine = targets[(targets["recipe"] == row["recipe"]) & (targets["ranker"] == row["ranker"])]
        by_query = {
            "success %": 100.0 * mine.groupby("query", sort=False)["success"].mean(),
            "boost": mine.groupby("query", sort=False)["gain"].mean(),
        }
        for name, heading, lower in (("attack success %", "success %", True), ("attack boost", "boost", climbing)):
            ends = {"low": row[f"{heading} low"], "high": row[f"{heading} high"]}
            better: Any = "lower" if lower else "higher"
            values = {str(qid): float(value) for qid, value in by_query[heading].items()}
            yield Finding(name=name, value=row[heading], better=better, **ends, **about, values=values)
    for row in tables["damage in full"].to_dict("records"):
        about = {"ranker": row["ranker"], "n": int(row["queries"]), "where": row["recipe"] if several else ""}
        for heading in [str(column) for column in row if f"{str(column).removeprefix('robust ')} p" in row]:
            yield Finding(name=heading, value=row[heading], p=row[f"{heading.removeprefix('robust ')} p"], **about)


def discard_controlled_losses(values: Mapping[str, float], attempts: Sequence[AttackResult]) -> dict[str, float]:
    """Return the losses, 0 for queries in whose lists a harmless text brings the same document into the top ten."""
    controlled = {
        listing.qid
        for attempt in attempts
        if attempt.control_ranks
        for listing, rank in zip(attempt.case.lists, attempt.control_ranks, strict=True)
        if rank <= TOP_K
    }
    return {qid: 0.0 if qid in controlled else value for qid, value in values.items()}


def select_attack_examples(attempts: Sequence[AttackResult], goal: Goal) -> Iterator[Example]:
    """Yield the most successful attacks of each recipe and ranker, the largest gain first."""
    names = shorten_recipes(attempt.recipe for attempt in attempts)
    chosen: list[tuple[float, AttackResult]] = []
    for some in group_results(attempts).values():
        gains = [(goal.utility(a.outcome.ranks_after) - goal.utility(a.outcome.ranks_before), a) for a in some]
        fair = [(gain, a) for gain, a in gains if gain > 0 and min(a.control_ranks, default=TOP_K + 1) > TOP_K]
        chosen += sorted(fair, key=lambda one: -one[0])[:MAX_EXAMPLES_PER_RECIPE]
    for _, attempt in sorted(chosen, key=lambda one: -one[0]):
        yield Example(
            attempt.ranker,
            attempt.case.query,
            names[attempt.recipe],
            attempt.case.doc.text,
            attempt.outcome.doc.text,
            document=attempt.case.docno,
            rank_before=attempt.outcome.ranks_before[0],
            rank_after=attempt.outcome.ranks_after[0],
        )

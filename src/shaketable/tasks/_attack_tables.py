"""The tables and charts of attacks on documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shaketable.attacks.setup import FIRST_ATTACKED_RANK, AttackResult
from shaketable.core.attack_types import AdversarialDocument, Goal
from shaketable.core.results import Figure
from shaketable.measures.attack_success import (
    AttackOutcomes,
    build_promotion_row,
    success_by_rank_range,
    success_by_trials,
)
from shaketable.measures.text_change import Encode, compute_similarities, count_changed_words

if TYPE_CHECKING:
    import pandas as pd


TOP_K = FIRST_ATTACKED_RANK - 1
CONTROL_RANK_COLUMN = "by control"
CONTROL_COLUMN = f"top {TOP_K} by control %"
SIMILARITY_COLUMNS = ("similarity", "sentence similarity")
KEY_COLUMNS = ("recipe", "ranker")
SERIES_COLUMN = "series"
"""The column that charts color by: the ranker, with the recipe if there are several."""
EFFECTIVENESS_AFFIXES = (("clean ", ""), ("robust ", ""), ("", " p"))
BRIEF_COLUMNS = (
    *KEY_COLUMNS, "queries", "targets", "success %", "success % low", "success % high", "boost", "into top 10 %",
    CONTROL_COLUMN, "words changed %", "similarity", "trials",
)  # fmt: skip
"""The columns of the brief table; the full table has more measures and their intervals."""


def build_attack_tables(
    attempts: Sequence[AttackResult],
    damage: pd.DataFrame,
    detection: pd.DataFrame,
    goal: Goal,
    seed: int,
    measure: str,
    encode: Encode | None,
) -> dict[str, pd.DataFrame]:
    """Return all non-empty tables of attack results."""
    import pandas as pd

    names = _name_series(attempts)
    details = _build_details(attempts, goal, encode)
    series = [names[recipe, ranker] for recipe, ranker in zip(details["recipe"], details["ranker"], strict=True)]
    details.insert(0, SERIES_COLUMN, series)
    grid = _choose_trial_grid([attempt.outcome.first_success_trial for attempt in attempts])
    summary, by_rank, cost = [], [], []
    for (recipe, ranker), some in group_results(attempts).items():
        about: dict[str, Any] = {"recipe": recipe, "ranker": ranker}
        counted = AttackOutcomes.from_outcomes((attempt.case, attempt.outcome) for attempt in some)
        mine = details[(details["recipe"] == recipe) & (details["ranker"] == ranker)]
        similar = {name: float(mine[name].mean()) for name in SIMILARITY_COLUMNS if name in mine}
        summary.append(about | build_promotion_row(counted, seed=seed) | _count_control_arrivals(mine) | similar)
        drawn = sorted({attempt.rank_range for attempt in some if attempt.rank_range})
        drawing = {SERIES_COLUMN: names[recipe, ranker]} | about
        by_rank += [drawing | row for row in success_by_rank_range(counted, drawn, seed)]
        cost += [drawing | row for row in success_by_trials(counted, grid, seed)]
    whole = pd.DataFrame(summary)
    tables = {
        "attack": _select_columns(whole, BRIEF_COLUMNS),
        "damage": _select_columns(damage, _list_damage_columns(measure)),
        "detection": _pivot_detection(detection),
        "success by rank": pd.DataFrame(by_rank),
        "success by cost": pd.DataFrame(cost),
        "attack in full": whole,
        "damage in full": damage,
        "detection in full": detection,
        "targets": details,
    }
    return {name: table for name, table in tables.items() if len(table)}


def _count_control_arrivals(targets: pd.DataFrame) -> dict[str, float]:
    """Return the percentage of the targets that reach the top by a harmless text too, if any was tried."""
    if CONTROL_RANK_COLUMN not in targets or targets[CONTROL_RANK_COLUMN].isna().all():
        return {}
    return {CONTROL_COLUMN: 100 * float((targets[CONTROL_RANK_COLUMN] <= TOP_K).mean())}


def _list_damage_columns(measure: str) -> tuple[str, ...]:
    """Return the columns of the brief table of damage."""
    values = (
        f"{prefix}{name}{suffix}"
        for name in dict.fromkeys(("RR@10", measure))
        for prefix, suffix in EFFECTIVENESS_AFFIXES
    )
    return (*KEY_COLUMNS, *values, "robust ranking error", "top change", "Kendall", "LSD")


def _select_columns(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    return table[[column for column in columns if column in table]]


def _pivot_detection(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each recipe and ranker, with the percentage of texts that each detector finds."""
    if not len(table):
        return table
    wide = table.pivot_table(index=[*KEY_COLUMNS, "texts"], columns="detector", values="caught %", sort=False)
    wide.columns.name = None
    return wide.reset_index()


def _build_details(attempts: Sequence[AttackResult], goal: Goal, encode: Encode | None) -> pd.DataFrame:
    """Return a row for each target and list."""
    import pandas as pd

    rows = []
    for attempt in attempts:
        case, outcome = attempt.case, attempt.outcome
        common = {
            "recipe": attempt.recipe,
            "ranker": attempt.ranker,
            "document": case.docno,
            "range": "{}-{}".format(*attempt.rank_range) if attempt.rank_range else "",
            "words": len(case.doc.text.split()),
            "changed": count_changed_words(case.doc, outcome.doc),
            "trials": outcome.trials,
            "pairs": outcome.scored_pairs,
            "first": outcome.first_success_trial,
        }
        for i, (listing, before, after) in enumerate(
            zip(case.lists, outcome.ranks_before, outcome.ranks_after, strict=True)
        ):
            gain = goal.utility((after,)) - goal.utility((before,))
            ranks = {"query": listing.qid, "before": before, "after": after, "gain": gain, "success": gain > 0}
            control = {CONTROL_RANK_COLUMN: attempt.control_ranks[i]} if attempt.control_ranks else {}
            rows.append(common | ranks | control)
    details = pd.DataFrame(rows)
    if encode is None:
        return details
    texts = [(attempt.case.doc, attempt.outcome.doc) for attempt in attempts for _ in attempt.case.lists]
    similar = compute_similarities(encode, [before for before, _ in texts], [after for _, after in texts])
    known = np.array([bool(before.text.strip()) for before, _ in texts])
    values = {"similarity": similar.doc, "sentence similarity": similar.sentence}
    return details.assign(**{name: np.where(known, value, np.nan) for name, value in values.items()})


def group_results(attempts: Sequence[AttackResult]) -> dict[tuple[str, str], list[AttackResult]]:
    """Group results by recipe and ranker."""
    groups: dict[tuple[str, str], list[AttackResult]] = {}
    for attempt in attempts:
        groups.setdefault((attempt.recipe, attempt.ranker), []).append(attempt)
    return groups


def _name_series(attempts: Sequence[AttackResult]) -> dict[tuple[str, str], str]:
    """Return a short name for each recipe and ranker, for charts."""
    groups = group_results(attempts)
    recipes = {recipe for recipe, _ in groups}
    if len(recipes) == 1:
        return {(recipe, ranker): ranker for recipe, ranker in groups}
    names = shorten_recipes(recipes)
    return {(recipe, ranker): f"{ranker}, {names[recipe]}" for recipe, ranker in groups}


def shorten_recipes(recipes: Iterable[str]) -> dict[str, str]:
    """Return each recipe with its name, without settings if no other recipe has the same name.

    >>> shorten_recipes(["greedy(words=3)", "homoglyphs(words=0)", "homoglyphs"])
    {'greedy(words=3)': 'greedy', 'homoglyphs(words=0)': 'homoglyphs(words=0)', 'homoglyphs': 'homoglyphs'}
    """
    distinct = list(dict.fromkeys(recipes))
    counts = Counter(recipe.partition("(")[0] for recipe in distinct)
    return {recipe: name if counts[name := recipe.partition("(")[0]] == 1 else recipe for recipe in distinct}


def _choose_trial_grid(first: Sequence[int]) -> list[int]:
    """Return the trial numbers at which the cost is shown: 0, and up to twenty numbers with a first success."""
    won = sorted({trial for trial in first if trial})
    return [0, *sorted({won[round(i * (len(won) - 1) / 19)] for i in range(20)})] if len(won) > 20 else [0, *won]


def build_attack_figures(tables: Mapping[str, pd.DataFrame]) -> tuple[Figure, ...]:
    figures = (
        Figure(
            "slope",
            "targets",
            "The rank of each target before the attack and after it",
            x="before",
            y="after",
            color=SERIES_COLUMN,
            caption=("Each line is an attacked document, with rank 1 at the top: a line that rises has gained ranks."),
        ),
        Figure(
            "bars",
            "success by rank",
            "How often attacks succeed, by the rank before the attack, in per cent",
            x="ranks",
            y="success %",
            color=SERIES_COLUMN,
            caption="The whiskers are 95 % intervals over queries.",
        ),
        Figure(
            "lines",
            "success by cost",
            "The percentage of attacks that succeed within a number of trials",
            x="trials",
            y="success %",
            color=SERIES_COLUMN,
            caption="A trial is a text that the ranker scores.",
        ),
    )
    return tuple(figure for figure in figures if figure.table in tables)


def list_adversarial_documents(attempts: Sequence[AttackResult]) -> Iterator[AdversarialDocument]:
    """Yield every document that an attack changed."""
    for attempt in attempts:
        case, outcome = attempt.case, attempt.outcome
        if outcome.doc != case.doc:
            yield AdversarialDocument(
                {listing.qid: listing.query for listing in case.lists},
                case.docno,
                outcome.doc,
                case.doc,
                attempt.recipe,
                attempt.ranker,
                outcome.ranks_before,
                outcome.ranks_after,
                outcome.trials,
            )

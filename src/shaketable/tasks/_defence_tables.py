"""The tables, charts, notes and findings of defences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from shaketable.core.registries import DEFENCES
from shaketable.core.results import Figure, Finding, Result
from shaketable.measures.attack_success import estimate
from shaketable.measures.paired_comparison import add_significance_stars, compare_paired, query_means
from shaketable.tasks._representations import ListRepresentations

if TYPE_CHECKING:
    import pandas as pd


BASELINE_DEFENCES = ("standard", "da", "at", "certdr")
"""The baseline defences; the best of them is compared with all other defences."""
SUCCESS_COLUMN, BOOST_COLUMN = "ASR %", "boost"
LOWER_IS_BETTER = (SUCCESS_COLUMN, BOOST_COLUMN, "LSD")
"""The measures for which lower values are better."""
MEASURES = ("clean RR@10", "clean RR@100", "robust RR@10", "robust RR@100", *LOWER_IS_BETTER)
ALL_QUERIES_COLUMN = "clean RR@10, all queries"
KEPT_STEP_COLUMN = "kept step"
"""The training step whose weights are kept; 0 means that nothing was learned."""
RANKER_COLUMNS = (ALL_QUERIES_COLUMN, "displacement", "training s", "steps", KEPT_STEP_COLUMN)
"""Columns of a ranker that do not depend on queries."""
BETTER_COLUMN = "better than the best baseline"


@dataclass(frozen=True, eq=False)
class DefendedRanker:
    """A defended ranker under attack, for one training seed."""

    defence: str
    seed: int
    values: Mapping[str, Mapping[str, float]]
    """measure -> query id -> value"""
    targets: pd.DataFrame
    summary: Mapping[str, Any]
    """The results of the attack, its damage, and the cost of the training."""
    result: Result
    first_list: ListRepresentations | None = None
    """The representations of the first list, if the model provides them."""
    conditional_rows: tuple[Mapping[str, Any], ...] = ()
    """Rows of the conditional success rate of a smoothed ranker."""


def merge_notes(notes: Iterable[str], texts: Sequence[str]) -> Iterator[str]:
    """Yield each note once; a note on several defences starts with all their names.

    >>> list(merge_notes(["standard: it is slow.", "a word", "at: it is slow."], ["standard", "at", "da"]))
    ['standard, at: it is slow.', 'a word']
    """
    names: dict[str, list[str]] = {}
    for note in notes:
        name = next((text for text in texts if note.startswith(f"{text}: ")), "")
        names.setdefault(note.removeprefix(f"{name}: "), []).extend(filter(None, [name]))
    for note, some in names.items():
        named = "each of the models" if 1 < len(some) == len(texts) else ", ".join(some)
        yield f"{named}: {note}" if some else note


def build_defence_row(text: str, some: Sequence[DefendedRanker], seed: int) -> dict[str, Any]:
    """Return the numbers of a defence, over all seeds."""
    queries = [str(qid) for one in some for qid in one.targets["query"]]
    won = np.concatenate([one.targets["success"].to_numpy(dtype=np.float64) for one in some])
    success = estimate(100.0 * won, queries, seed)
    means = {measure: float(np.mean(list(values.values()))) for measure, values in _average_seeds(some).items()}
    ends = {SUCCESS_COLUMN: success.value, f"{SUCCESS_COLUMN} low": success.low, f"{SUCCESS_COLUMN} high": success.high}
    row: dict[str, Any] = {"defence": text, "queries": success.queries, "targets": success.targets}
    for measure in MEASURES:
        row |= ends if measure == SUCCESS_COLUMN else {measure: means[measure]}
    return row | {name: float(np.mean([one.summary[name] for one in some])) for name in RANKER_COLUMNS}


def _average_seeds(some: Sequence[DefendedRanker]) -> dict[str, dict[str, float]]:
    """Return measure -> query id -> the mean over seeds."""
    return {
        measure: query_means(
            [qid for one in some for qid in one.values[measure]],
            [value for one in some for value in one.values[measure].values()],
        )
        for measure in MEASURES
    }


def compare_with_baselines(groups: Mapping[str, Sequence[DefendedRanker]], seed: int) -> pd.DataFrame:
    """Compare each defence with the best baseline, by each measure: a paired test over queries."""
    import pandas as pd

    values = {
        text: _average_seeds(some)
        for text, some in groups.items()
        if all(one.summary[KEPT_STEP_COLUMN] != 0 for one in some)
    }
    baselines = [text for text in values if _is_baseline(text)]
    rows = []
    for measure in MEASURES if baselines else ():
        sign = -1 if measure in LOWER_IS_BETTER else 1
        best = max(baselines, key=lambda text: sign * float(np.mean(list(values[text][measure].values()))))
        for text in values:
            if text not in baselines:
                change = compare_paired(values[best][measure], values[text][measure], seed)
                about = {"defence": text, "measure": measure, "best baseline": best, "its value": change.before}
                found = {"value": change.after, "change": change.change, "low": change.low, "high": change.high}
                rows.append(about | found | {"queries": change.n, "p": change.p, "better": sign * change.change > 0})
    return add_significance_stars(pd.DataFrame(rows), interval=("change", "low", "high"))


def _is_baseline(text: str) -> bool:
    return DEFENCES.spec(DEFENCES.build(text)).partition("(")[0] in BASELINE_DEFENCES


def mark_better(table: pd.DataFrame, compared: pd.DataFrame) -> pd.DataFrame:
    """Return the table with a column of the measures by which a defence is better than the best baseline."""
    if not len(compared):
        return table
    won = compared[(compared[""] == "*") & compared["better"]]
    names = {text: ", ".join(rows["measure"]) for text, rows in won.groupby("defence")}
    return table.assign(**{BETTER_COLUMN: [names.get(text, "") for text in table["defence"]]})


def build_trade_off(full: pd.DataFrame, swept: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return a row for each share of the natural loss of each piat, and for each baseline (Figure 1 of the paper)."""
    import pandas as pd

    shown = ["queries", "clean RR@10", "robust RR@10", *LOWER_IS_BETTER]
    found = {row["defence"]: row for row in full.to_dict("records")}
    rows = [
        {"series": series, "lambda": DEFENCES.build(text).lambda_} | {name: found[text][name] for name in shown}
        for series, texts in swept.items()
        for text in sorted(texts, key=lambda text: float(DEFENCES.build(text).lambda_))
        if text in found
    ]
    points = [{"series": text, "lambda": nan} for text in found if swept and _is_baseline(text)]
    return pd.DataFrame([*rows, *(one | {name: found[one["series"]][name] for name in shown} for one in points)])


def build_defence_figures(tables: Mapping[str, pd.DataFrame]) -> Iterator[Figure]:
    name, color = ("trade-off", "series") if "trade-off" in tables else ("defence", "defence")
    swept = " Each point is a weight (λ) of the natural loss." if name == "trade-off" else ""
    for title, y, caption in (
        ("Effectiveness of clean lists and of attacked lists", "robust RR@10", "Top right is best."),
        ("Effectiveness of clean lists, and success rate of attacks", SUCCESS_COLUMN, "Bottom right is best."),
        ("Effectiveness of clean lists, and ranks gained by attacks", BOOST_COLUMN, "Bottom right is best."),
    ):
        join = color if swept else ""
        source = "Liu et al. 2024, Fig. 1" if swept and y != BOOST_COLUMN else ""
        yield Figure("scatter", name, title, "clean RR@10", y, color, caption + swept, join=join, source=source)
    for name in tables:
        if name.startswith("map of "):
            yield Figure(
                "scatter",
                name,
                f"One list as {name.removeprefix('map of ')} sees it",
                x="x",
                y="y",
                color="text",
                caption="The documents of one query, by the inputs of the last layer (t-SNE). A line joins a "
                "document and its attacked version; a star is a relevant document. The darker a clean document, the "
                "higher its score.",
                join="pair",
                mark="relevant",
                shade="score",
                source="Liu et al. 2024, Fig. 2",
            )


def build_defence_findings(table: pd.DataFrame) -> Iterator[Finding]:
    for row in table.to_dict("records"):
        about: Any = {"ranker": row["defence"], "n": int(row["queries"])}
        for name in ("clean RR@10", "robust RR@10"):
            yield Finding(name=name, value=row[name], **about)
        ends = {"low": row[f"{SUCCESS_COLUMN} low"], "high": row[f"{SUCCESS_COLUMN} high"]}
        yield Finding(name="attack success %", value=row[SUCCESS_COLUMN], better="lower", **ends, **about)

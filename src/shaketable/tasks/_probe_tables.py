"""The tables, charts, findings and examples of probes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from shaketable.core.protocols import Probe
from shaketable.core.results import MARK_SUFFIX, Example, Figure, Finding
from shaketable.measures.facets import FOOLED, PROBES_FACET, WRONG_PAIRS, name_test
from shaketable.measures.preference import (
    MIN_SAMPLES,
    both_right_share,
)
from shaketable.measures.rates import measure_rate
from shaketable.probes.batch import ProbeBatch
from shaketable.probes.suite import format_probe_name, format_probe_title
from shaketable.tasks._probe_scoring import Differences

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.experiment import Experiment

ALL_DOCUMENTS = "all"
STRATEGY_TABLES = {
    "matching": "measure and match",
    "manipulation": "text manipulation",
    "transfer": "data set transfer",
    "minimal pair": "minimal pairs",
    "own": "your own pairs",
}
"""strategy -> its table."""
PAPER_TABLES = ("measure and match", "text manipulation", "data set transfer")
"""Tables 1 to 3 of the paper."""
USER_PAIRS_TABLE, STRONGEST_TABLE = "your pairs, one by one", "the strongest preferences"
SYMMETRIC_TABLE, SLICE_TABLE = "tests without a direction", "by slice"
BOTH_DIRECTIONS_TABLE = "both directions right"
BRIEF_TABLES = (
    STRONGEST_TABLE,
    *STRATEGY_TABLES.values(),
    SYMMETRIC_TABLE,
    BOTH_DIRECTIONS_TABLE,
    USER_PAIRS_TABLE,
)
PREFERENCE_COLUMNS = ("positive", "neutral", "negative")
FIGURE_COLUMNS = ("test", "ranker", "s", "low", "high", "queries")
HEATMAP_PREFIX, SHARES_PREFIX, EQUAL_TF_TABLE = "s: ", "shares: ", "relevance at equal TF"
COMPARISON_TABLES = {
    EQUAL_TF_TABLE: ("relevance-given-tf",),
    "length and added text": ("length-given-relevance", "length-given-tf", "add-nonrelevant-sentence"),
}
"""Tables that compare probes: relevance and matching words (section 4); length and irrelevant text (section 5)."""
MAX_STRONGEST_PER_RANKER = 5
CHANCE_BOTH_RIGHT = 0.25
"""The share of crossed pairs for which random preferences are right in both directions."""
MAX_EXAMPLES_PER_PROBE = 2
CHANCE_MARK, FEW_SAMPLES_MARK = "°", " (few)"


@dataclass
class ProbeRows:
    """The rows of the tables of probes."""

    cells: list[dict[str, Any]] = field(default_factory=list)
    directions: list[dict[str, Any]] = field(default_factory=list)
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    slices: list[dict[str, Any]] = field(default_factory=list)
    examples: list[Example] = field(default_factory=list)
    panel: list[Finding] = field(default_factory=list)
    """The findings that decide the facet: degraded texts preferred, and crossed pairs that are wrong."""

    def add_cell(self, probe: Probe, part: str, ranker: str, cell: Mapping[str, Any]) -> None:
        """Add the numbers of one ranker in one part of a probe's pairs."""
        about = {"test": format_probe_title(probe), "name": format_probe_name(probe), "strategy": probe.strategy}
        better = find_better_direction(probe)
        self.cells.append(about | {"documents": part, "ranker": ranker, "better": better} | dict(cell))

    def add_probe(
        self, experiment: Experiment, ranker: str, probe: Probe, batch: ProbeBatch, d: Differences, delta: float
    ) -> None:
        """Add slices, examples, user pairs and crossed pairs of one ranker and probe."""
        title = format_probe_title(probe)
        self.slices += _build_slice_rows(experiment, ranker, title, batch, d, delta)
        self.examples += _select_largest_effects(ranker, format_probe_name(probe), batch, d)
        self.verdicts += _check_expectations(ranker, probe, d, delta)
        if (right := _measure_both_directions(batch, d, probe)) is not None:
            self.directions.append({"test": title, "ranker": ranker} | right)


def find_better_direction(probe: Probe) -> str:
    """Return "lower" if the changed text is degraded, "higher" if the first text is right, "" if neither is better."""
    if getattr(probe, "degrades_text", False):
        return "lower"
    return "higher" if getattr(probe, "crossed", False) or probe.strategy == "own" else ""


def build_probe_tables(details: pd.DataFrame, rows: ProbeRows) -> dict[str, pd.DataFrame]:
    """Return the tables of all probes, the strongest preferences first, and the tables of charts."""
    import pandas as pd

    tables = _build_strategy_tables(details)
    if rows.directions:
        tables[BOTH_DIRECTIONS_TABLE] = pd.DataFrame(rows.directions).drop(columns="values")
    if rows.verdicts:
        tables[USER_PAIRS_TABLE] = pd.DataFrame(rows.verdicts)
    if len(strong := _select_strongest(details)):
        tables = {STRONGEST_TABLE: strong, **tables}
    if rows.slices:
        tables[SLICE_TABLE] = pd.DataFrame(rows.slices)
    return tables | _build_figure_tables(details)


def _build_strategy_tables(details: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return a table for each strategy, with rankers as columns, like those of the paper."""
    import pandas as pd

    tables: dict[str, pd.DataFrame] = {}
    if not len(details):
        return tables
    directed = {
        called: details["strategy"].eq(strategy) & ~details["symmetric"] for strategy, called in STRATEGY_TABLES.items()
    }
    for called, chosen_rows in {**directed, SYMMETRIC_TABLE: details["symmetric"]}.items():
        rows = details[chosen_rows]
        wide = []
        for (test, part), cells in rows.groupby(["test", "documents"], sort=False):
            row = {"test": test, "documents": part}
            for _, one in cells.iterrows():
                row[str(one["ranker"])] = one["s"] if one["samples"] else None
                row[f"{one['ranker']}{MARK_SUFFIX}"] = choose_mark(one.to_dict())
            wide.append(row | {"samples": int(cells["samples"].max())})
        table = pd.DataFrame(wide)
        if len(table):
            whole = table["documents"] == ALL_DOCUMENTS
            tables[called] = table[whole].drop(columns="documents").reset_index(drop=True)
            if not whole.all():
                tables[f"{called}, by grade"] = table
    for called, names in COMPARISON_TABLES.items():
        rows = details[details["name"].isin(names) & (details["documents"] == ALL_DOCUMENTS)]
        if rows["name"].nunique() == len(names):
            tables[called] = rows[["test", "ranker", "s", "low", "high", "samples"]].reset_index(drop=True)
    return tables


def choose_mark(cell: Mapping[Any, Any]) -> str:
    """Return the mark of a number: few samples, or perhaps due to chance, as in the paper's tables."""
    if not cell["samples"]:
        return ""
    if cell["samples"] < MIN_SAMPLES:
        return FEW_SAMPLES_MARK
    return "" if cell["symmetric"] or cell["significant"] else CHANCE_MARK


def conclude_probes(tables: Mapping[str, pd.DataFrame], *, has_panel: bool) -> Iterator[str]:
    """Yield a sentence on the user's own pairs and, if no test decides a facet, on the strongest preferences."""
    if USER_PAIRS_TABLE in tables:
        for ranker, rows in tables[USER_PAIRS_TABLE].groupby("ranker", sort=False):
            yield f"{ranker} meets the expectation in {int(rows['passed'].sum())} of {len(rows)} of your pairs."
    elif not has_panel:
        strongest = tables.get(STRONGEST_TABLE)
        if strongest is None or not len(strongest):
            yield "No preference is significant."
            return
        for ranker, rows in strongest.groupby("ranker", sort=False):
            said = ", ".join(f"{row['test']} ({row['s']:+.2f})" for _, row in rows.iterrows())
            yield f"The strongest preferences of {ranker}: {said}."


def _build_slice_rows(
    experiment: Experiment, ranker: str, test: str, drawn: ProbeBatch, d: Differences, delta: float
) -> Iterator[dict[str, Any]]:
    """Yield s for each query slice with enough samples."""
    query_indices = {qid: i for i, qid in enumerate(drawn.qids)}
    signs = np.where(d > delta, 1, 0) - np.where(d < -delta, 1, 0)
    known = ~np.isnan(d)
    total = np.bincount(drawn.query_indices[known], signs[known], len(query_indices))
    count = np.bincount(drawn.query_indices[known], minlength=len(query_indices))
    for sliced_by, parts in experiment.slices.items():
        for part, qids in parts.items():
            at = [query_indices[qid] for qid in qids if qid in query_indices]
            if (n := int(count[at].sum())) >= MIN_SAMPLES:
                about = {"test": test, "ranker": ranker, "slice": sliced_by, "part": part}
                yield about | {"s": float(total[at].sum() / n), "samples": n, "queries": len(at)}


def _measure_both_directions(drawn: ProbeBatch, d: Differences, probe: Probe) -> dict[str, Any] | None:
    """Return how often both directions of crossed pairs are right; None for other probes."""
    if not getattr(probe, "crossed", False) or not len(d):
        return None
    right: dict[str, float] = {}
    for pair, difference in zip(drawn.list_query_ids(), d.tolist(), strict=True):
        right[pair] = min(right.get(pair, 1.0), float(difference > 0))
    rate = measure_rate({pair: 100 * value for pair, value in right.items()})
    return {
        "both right": both_right_share(zip(drawn.list_query_ids(), d.tolist(), strict=True)),
        "both right low": rate.low / 100,
        "both right high": rate.high / 100,
        "one right": float((d > 0).mean()),
        "chance": CHANCE_BOTH_RIGHT,
        "pairs": len(drawn.qids),
        "values": right,
    }


def _check_expectations(ranker: str, probe: Probe, d: Differences, delta: float) -> list[dict[str, Any]]:
    """Return the texts and the expectation of each user pair, and whether the ranker meets it."""
    rows = []
    for one, difference in zip(getattr(probe, "expectations", tuple)(), d.tolist(), strict=False):
        passed = abs(difference) <= delta if one.expect == "same" else difference > delta
        texts = [one.contrast.first.text, one.contrast.second.text]
        a, b = texts[::-1] if one.expect == "b" else texts
        about = {"id": one.id, "query": one.contrast.query, "a": a, "b": b, "expect": one.expect, "ranker": ranker}
        rows.append(about | {"difference": difference, "delta": delta, "passed": bool(passed)})
    return rows


def _select_largest_effects(ranker: str, test: str, drawn: ProbeBatch, d: Differences) -> list[Example]:
    """Return the pairs with the largest effects, each query once."""
    examples: dict[str, Example] = {}
    for i in np.argsort(-np.abs(np.nan_to_num(d)), kind="stable")[: 20 * MAX_EXAMPLES_PER_PROBE].tolist():
        query, first = drawn.pair_table.pairs[drawn.first[i]]
        second = drawn.pair_table.pairs[drawn.second[i]][1]
        if query not in examples and d[i] and len(examples) < MAX_EXAMPLES_PER_PROBE:
            docno = drawn.docnos[i] if drawn.docnos else ""
            examples[query] = Example(
                ranker, query, test, second.text, first.text, value_after=float(d[i]), document=docno
            )
    return list(examples.values())


def _select_strongest(details: pd.DataFrame) -> pd.DataFrame:
    """Return the significant preferences with the largest s of each ranker."""
    if not len(details):
        return details
    sure = details[details["significant"] & (details["documents"] == ALL_DOCUMENTS)]
    order = sure["s"].abs().sort_values(ascending=False, kind="stable").index
    sure = sure.loc[order].groupby("ranker", sort=False).head(MAX_STRONGEST_PER_RANKER)
    names = {ranker: i for i, ranker in enumerate(dict.fromkeys(details["ranker"]))}
    sure = sure.sort_values("ranker", key=lambda column: column.map(names), kind="stable")
    return sure[["ranker", "test", "s", "low", "high", "samples", "queries"]].reset_index(drop=True)


def list_left_out(
    drawn: Mapping[str, ProbeBatch], skipped: Mapping[str, str], probes: Mapping[str, Probe]
) -> pd.DataFrame:
    import pandas as pd

    rows: list[dict[str, Any]] = [{"test": key, "reason": why, "cases": None} for key, why in skipped.items()]
    for key, one in drawn.items():
        rows += [
            {"test": format_probe_title(probes[key]), "reason": why, "cases": n}
            for why, n in one.skipped_counts.items()
        ]
    return pd.DataFrame(rows, columns=["test", "reason", "cases"])


def build_probe_findings(details: pd.DataFrame, directions: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    corrected = next((column for column in details.columns if column.startswith("p (")), "p")
    for _, row in details.iterrows():
        if row["samples"] >= MIN_SAMPLES:
            where = "" if row["documents"] == ALL_DOCUMENTS else str(row["documents"])
            key, n, p = f"{row['name']}.s", int(row["queries"]), float(row[corrected])
            about: Any = {"better": row["better"] or "higher", "where": where}
            values = (
                row["values"] if row["better"] else {}
            )  # where neither text is better, a preference cannot become worse
            yield Finding(row["ranker"], key, row["s"], row["low"], row["high"], n, p, **about, values=values)
    for one in directions:
        values = one["values"]
        ends = one["both right low"], one["both right high"]
        yield Finding(
            one["ranker"], f"{one['test']}.both right".lower(), one["both right"], *ends, one["pairs"], values=values
        )


def measure_fooled(
    ranker: str,
    degrading: Sequence[str],
    drawn: Mapping[str, ProbeBatch],
    differences: Mapping[str, Differences],
    deltas: Mapping[str, float],
) -> Iterator[Finding]:
    """Yield, for each probe, the percentage of pairs in which the ranker prefers the degraded text.

    Each query has the same weight; random preferences give up to 50 %.
    """
    for key in degrading:
        d, batch = differences[key], drawn[key]
        known = ~np.isnan(d)
        counts = np.bincount(batch.query_indices[known], minlength=len(batch.qids)).tolist()
        preferred = np.bincount(batch.query_indices[known], d[known] > deltas[key], len(batch.qids)).tolist()
        cases = {qid: n for qid, n in zip(batch.qids, counts, strict=True) if n}
        values = {qid: 100 * won / n for qid, n, won in zip(batch.qids, counts, preferred, strict=True) if n}
        if values:
            yield _build_rate_finding(ranker, name_test(FOOLED, key), values, cases)


def measure_wrong_pairs(
    ranker: str, crossed: Sequence[str], drawn: Mapping[str, ProbeBatch], differences: Mapping[str, Differences]
) -> Iterator[Finding]:
    """Yield, for each probe of crossed pairs, the percentage of pairs that are not right in both directions."""
    for key in crossed:
        right: dict[str, bool] = {}
        for qid, difference in zip(drawn[key].list_query_ids(), differences[key].tolist(), strict=True):
            if not np.isnan(difference):
                right[qid] = right.get(qid, True) and difference > 0
        values = {qid: 100.0 * (not good) for qid, good in right.items()}
        if values:
            yield _build_rate_finding(ranker, name_test(WRONG_PAIRS, key), values)


def _build_rate_finding(
    ranker: str, name: str, values: Mapping[str, float], cases: Mapping[str, int] | None = None
) -> Finding:
    rate = measure_rate(values, cases)
    return Finding(
        ranker, name, rate.value, rate.low, rate.high, len(values), better="lower", facet=PROBES_FACET, values=values
    )


def _build_figure_tables(details: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the tables of charts: s by test and ranker for each strategy, and the three shares of each test.

    Cells with few samples are left out, because a color does not show the uncertainty.
    """
    if not len(details):
        return {}
    whole = details[(details["documents"] == ALL_DOCUMENTS) & (details["samples"] >= MIN_SAMPLES)]
    tables = {
        f"{HEATMAP_PREFIX}{STRATEGY_TABLES.get(str(strategy), strategy)}": rows[[*FIGURE_COLUMNS]].reset_index(
            drop=True
        )
        for strategy, rows in whole.groupby("strategy", sort=False)
    }
    for test, rows in whole.groupby("test", sort=False):
        shares = rows[["ranker", "samples", *PREFERENCE_COLUMNS]].melt(
            ["ranker", "samples"], list(PREFERENCE_COLUMNS), "preference", "count"
        )
        shares["share"] = shares["count"] / shares["samples"]
        tables[f"{SHARES_PREFIX}{test}"] = shares
    return tables


def build_probe_figures(tables: Mapping[str, pd.DataFrame]) -> Iterator[Figure]:
    """Yield charts of relevance at equal word counts, then of the preferences, as heat maps and by test."""
    caption = "-1: always the text with less, or the original. +1: always the text with more, or the changed one."
    for key in tables:
        if key == EQUAL_TF_TABLE:
            yield Figure(
                "bars",
                key,
                "Preference for a relevant text over another with as many matching words (Relevance | TF)",
                x="ranker",
                y="s",
            )
        elif key.startswith(HEATMAP_PREFIX):
            title = f"Preferences of each ranker: {key.removeprefix(HEATMAP_PREFIX)}"
            yield Figure("heatmap", key, title, x="ranker", y="test", color="s", caption=caption)
        elif key.startswith(SHARES_PREFIX):
            title = key.removeprefix(SHARES_PREFIX)
            yield Figure("diverging", key, title, x="ranker", y="share", color="preference", folded=True)

"""The tables, charts and examples of query variations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shaketable.core.results import MARK_SUFFIX, Example, Figure, Finding
from shaketable.measures.effectiveness import judged_share
from shaketable.measures.facets import TYPOS, WORDING
from shaketable.measures.paired_comparison import (
    Comparison,
    add_significance_stars,
)
from shaketable.measures.projection import tsne
from shaketable.tasks._method_findings import build_method_finding, find_largest_loss
from shaketable.tasks._paper_tables import (
    PENHA_2022,
)
from shaketable.tasks._query_changes import (
    ChangedQueryRun,
    build_stability_rows,
)
from shaketable.transforms.categories import MEANING_PRESERVING, MISSPELLING
from shaketable.transforms.vary import Variation

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.experiment import Experiment

MAX_EXAMPLES_PER_DIRECTION = 2
FACETS_BY_CATEGORY = {category: TYPOS if category == MISSPELLING else WORDING for category in MEANING_PRESERVING}
"""The facet of each category that keeps the meaning."""


@dataclass
class VariationRows:
    """The rows of the tables of query variations, and the contribution of each query by category and ranker.

    `shown_settings` has the setting of each ranker in tables that show one setting: the first in which it runs.
    """

    summary: list[dict[str, Any]] = field(default_factory=list)
    stability: list[dict[str, Any]] = field(default_factory=list)
    details: list[dict[str, Any]] = field(default_factory=list)
    examples: list[Example] = field(default_factory=list)
    changes: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    drops: dict[tuple[str, str], Mapping[str, float]] = field(default_factory=dict)
    overlaps: dict[tuple[str, str], Mapping[str, float]] = field(default_factory=dict)
    method_findings: list[Finding] = field(default_factory=list)
    method_examples: list[Example] = field(default_factory=list)
    shown_settings: dict[str, str] = field(default_factory=dict)

    def select_shown(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of each ranker in its shown setting."""
        return table[table["setting"] == table["ranker"].map(self.shown_settings)]

    def add_run(
        self, experiment: Experiment, name: str, variations: Sequence[Variation], changed_run: ChangedQueryRun
    ) -> None:
        """Add the rows of one ranker in its shown setting."""
        self.stability += build_category_stability(experiment, name, variations, changed_run)
        self.changes[name] = compute_change(changed_run)
        for category, indices in group_by_category(variations).items():
            self.drops[category, name] = changed_run.compute_drops(indices, experiment.weights)
            self.overlaps[category, name] = changed_run.compute_overlaps(indices)
        self.details += build_variation_details(name, variations, changed_run)
        self.examples += select_variation_examples(name, variations, changed_run, self.changes[name])

    def add_methods(
        self,
        experiment: Experiment,
        name: str,
        variations: Sequence[Variation],
        changed_run: ChangedQueryRun,
        measure: str,
    ) -> None:
        """Add the findings and examples of one ranker by method, over valid variations that keep the meaning."""
        for (category, method), members in group_variations(variations).items():
            if method == "all" or category not in FACETS_BY_CATEGORY:
                continue
            valid = [i for i in members if variations[i].valid]
            facet = FACETS_BY_CATEGORY[category]
            finding = build_method_finding(experiment, name, method, changed_run, valid, measure, facet)
            example = find_largest_loss(name, method, changed_run, valid)
            self.method_findings += [finding] if finding else []
            self.method_examples += [example] if example else []


def sample_method_queries(experiment: Experiment, category: str, method: str) -> dict[str, str]:
    """Return the queries that a method may vary, by query id."""
    return experiment.sample_queries(FACETS_BY_CATEGORY.get(category, ""), method)


def sample_variations(experiment: Experiment, variations: Sequence[Variation]) -> list[Variation]:
    """Return the variations of the queries that their methods may vary."""
    methods = {(v.category, v.method) for v in variations}
    samples = {key: sample_method_queries(experiment, *key) for key in methods}
    return [v for v in variations if v.qid in samples[v.category, v.method]]


def group_variations(variations: Sequence[Variation]) -> dict[tuple[str, str], list[int]]:
    groups: dict[tuple[str, str], list[int]] = {}
    for i, v in enumerate(variations):
        groups.setdefault((v.category, v.method), []).append(i)
        groups.setdefault((v.category, "all"), []).append(i)
    return groups


def measure_judged_share(
    experiment: Experiment, members: list[int], changed_run: ChangedQueryRun, qids: list[str]
) -> dict[str, float]:
    """Return the judged share of the first ten documents, before and after."""
    qrels = {str(i): experiment.qrels[qid] for i, qid in zip(members, qids, strict=True)}
    shares = {}
    for heading, run in (("judged@10 before", changed_run.run_before), ("judged@10", changed_run.run_after)):
        shares[heading] = float(np.mean(list(judged_share(qrels, run).values())))
    return shares


def compute_change(changed_run: ChangedQueryRun) -> NDArray[np.float64]:
    """Return the change in value of each variation or, without judgements, the lost overlap."""
    if changed_run.values_before is not None and changed_run.values_after is not None:
        return np.asarray(changed_run.values_after - changed_run.values_before)
    return np.array([moved.overlap - 1 for moved in changed_run.movements])


def build_variation_details(
    ranker: str, variations: Sequence[Variation], changed_run: ChangedQueryRun
) -> Iterator[dict[str, Any]]:
    for i, (v, moved) in enumerate(zip(variations, changed_run.movements, strict=True)):
        row: dict[str, Any] = {"category": v.category, "method": v.method, "ranker": ranker, "query": v.qid}
        row |= {"text": v.text, "valid": v.valid, "why not": v.why}
        if changed_run.values_before is not None and changed_run.values_after is not None:
            start, end = float(changed_run.values_before[i]), float(changed_run.values_after[i])
            row |= {"before": start, "after": end, "change": end - start}
        yield row | {"overlap@10": moved.overlap, "fall of first": moved.fall}


def select_variation_examples(
    ranker: str, variations: Sequence[Variation], changed_run: ChangedQueryRun, change: NDArray[np.float64]
) -> list[Example]:
    """Return the largest losses and gains of valid variations that keep the meaning."""
    usable = [i for i, v in enumerate(variations) if v.valid and v.category in MEANING_PRESERVING]
    falling = sorted(usable, key=lambda i: change[i])
    indices = [i for i in falling[:MAX_EXAMPLES_PER_DIRECTION] if change[i] < 0] + [
        i for i in falling[: -MAX_EXAMPLES_PER_DIRECTION - 1 : -1] if change[i] > 0
    ]
    return [changed_run.make_example(ranker, i, f"{variations[i].category}: {variations[i].method}") for i in indices]


CHANGE_INTERVAL = ("change", "low", "high")
"""The columns of a change and of its interval in `build_comparison_row`."""


def build_comparison_row(compared: Comparison) -> dict[str, Any]:
    return {
        "before": compared.before,
        "after": compared.after,
        "change": compared.change,
        "low": compared.low,
        "high": compared.high,
        "p": compared.p,
        "queries": compared.n,
    }


def mark_significance(frame: pd.DataFrame) -> pd.DataFrame:
    """Correct p and add stars, separately for each convention."""
    frame = add_significance_stars(frame, "p", interval=CHANGE_INTERVAL)
    for column in ("p (valid)", "p (replaced)"):
        frame = add_significance_stars(frame, column)
    return frame


def build_overview(by_category: pd.DataFrame, change: str) -> pd.DataFrame:
    """Return a row for each category; for each ranker, the change, and a star if it is significant."""
    import pandas as pd

    rows: dict[str, dict[str, Any]] = {}
    for _, row in by_category.iterrows():
        cells = rows.setdefault(row["category"], {"category": row["category"], "valid %": row["valid %"]})
        cells[row["ranker"]] = row[change]
        if change == "change":
            cells[f"{row['ranker']}{MARK_SUFFIX}"] = row[""]
    return pd.DataFrame(list(rows.values()))


def average_by_class(experiment: Experiment, by_category: pd.DataFrame, change: str) -> pd.DataFrame:
    """Return means over the rankers of a class: traditional, neural, transformer (paper 004, section 5.1)."""
    families = {name: _get_family(experiment, name) for name in experiment.live_rankers}
    if len(set(families.values())) < 2:
        return by_category.iloc[:0]
    classes = by_category.assign(**{"class": by_category["ranker"].map(families)})
    means = classes.groupby(["setting", "category", "class"], sort=False)
    return means.agg(**{change: (change, "mean"), "rankers": ("ranker", "nunique")}).reset_index()


def group_by_category(variations: Sequence[Variation]) -> dict[str, list[int]]:
    indices: dict[str, list[int]] = {}
    for i, v in enumerate(variations):
        indices.setdefault(v.category, []).append(i)
    return indices


def build_category_stability(
    experiment: Experiment, name: str, variations: Sequence[Variation], changed_run: ChangedQueryRun
) -> Iterator[dict[str, Any]]:
    """Yield the movement of a ranker's lists for each category."""
    for category, members in group_by_category(variations).items():
        moved = [changed_run.movements[i] for i in members]
        about = {"category": category, "ranker": name}
        yield from build_stability_rows(experiment, about, [variations[i].qid for i in members], moved)


def correlate_changes(variations: Sequence[Variation], deltas: Mapping[str, NDArray[np.float64]]) -> pd.DataFrame:
    """Return the Pearson correlation of two rankers' changes, over all variations and by category."""
    import pandas as pd

    categories = np.array([v.category for v in variations])
    groups = {"all": np.ones(len(categories), dtype=bool)}
    groups |= {category: categories == category for category in dict.fromkeys(categories.tolist())}
    return pd.DataFrame(
        [
            {"ranker": left, "other": right}
            | {what: _pearson(deltas[left][of], deltas[right][of]) for what, of in groups.items()}
            for left, right in combinations(deltas, 2)
        ]
    )


def _pearson(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    varies = len(x) > 2 and np.ptp(x) > 0 and np.ptp(y) > 0
    return float(np.corrcoef(x, y)[0, 1]) if varies else float("nan")


def build_ranker_map(experiment: Experiment, deltas: Mapping[str, NDArray[np.float64]]) -> pd.DataFrame:
    """Return t-SNE coordinates of rankers: rankers with similar changes are near each other."""
    import pandas as pd

    if len(deltas) < 3:
        return pd.DataFrame()
    coordinates = tsne(np.array(list(deltas.values())))
    classes = [_get_family(experiment, name) for name in deltas]
    return pd.DataFrame({"ranker": list(deltas), "class": classes, "x": coordinates[:, 0], "y": coordinates[:, 1]})


def _get_family(experiment: Experiment, name: str) -> str:
    return str(getattr(experiment.get_ranker(name), "family", "other"))


def build_variation_figures(shown_settings: Mapping[str, str], change: str) -> tuple[Figure, ...]:
    different = len(set(shown_settings.values())) > 1
    pairs = (f"{setting} for {ranker}" for ranker, setting in shown_settings.items())
    setting = ", ".join(pairs) if different else next(iter(shown_settings.values()), "")
    return (
        Figure(
            "distribution",
            "variations per query",
            "Change by category of variations",
            x="category",
            y=change,
            color="ranker",
            caption=(f"Each box is the middle half of the changes, and its line is their median (setting: {setting})."),
            source=f"{PENHA_2022}, Fig. 2",
        ),
        Figure(
            "heatmap", "change by method", f"Mean {change} by method and ranker", x="ranker", y="method", color=change
        ),
        Figure(
            "heatmap",
            "correlation of changes",
            "Do the same variations hurt both rankers? (correlation of their changes, Pearson's r)",
            x="ranker",
            y="other",
            color="all",
            folded=True,
        ),
        Figure(
            "scatter",
            "map of rankers",
            "Map of rankers: the same variations hurt neighbours",
            x="x",
            y="y",
            color="class",
            caption="Only the distances have a meaning, not the axes (t-SNE of the changes).",
            label="ranker",
            folded=True,
            source=f"{PENHA_2022}, Fig. 3",
        ),
    )

"""The query variation task: the effect of query variations on effectiveness, by category, method and query.

Penha, Câmara, Hauff. Evaluating the robustness of retrieval pipelines with query variation generators. ECIR 2022.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shaketable.core.errors import check_parameter, check_ranges
from shaketable.core.protocols import can_score_texts
from shaketable.core.registries import TRANSFORMS
from shaketable.core.results import Finding, Result
from shaketable.measures.effectiveness import Evaluator
from shaketable.measures.measure_names import parse_measure
from shaketable.measures.paired_comparison import (
    CORRECTED_INTERVAL_NOTE,
    MOVEMENT_EXPLANATION,
    add_significance_stars,
    compare_paired,
    mean_movement,
    query_means,
)
from shaketable.measures.significance import MIN_QUERIES
from shaketable.tasks._method_findings import choose_setting
from shaketable.tasks._paper_tables import (
    ARROW_NOTE,
    PAPER_FIGURES,
    PAPER_SOURCES,
    REPLACED_COLUMNS,
    pivot_rankers,
)
from shaketable.tasks._query_changes import (
    PIPELINE,
    RERANKER,
    SETTINGS_NOTE,
    ChangedQuery,
    ChangedQueryRun,
    QueryContributions,
    build_stability_findings,
    get_variations,
    list_settings,
    make_original_queries,
    measure_changed_queries,
    rank_changed_queries,
    run_changed_queries,
)
from shaketable.tasks._slices import SLICES_NOTE, measure_slices
from shaketable.tasks._variation_tables import (
    CHANGE_INTERVAL,
    FACETS_BY_CATEGORY,
    VariationRows,
    average_by_class,
    build_comparison_row,
    build_overview,
    build_ranker_map,
    build_variation_figures,
    correlate_changes,
    group_variations,
    mark_significance,
    measure_judged_share,
    sample_method_queries,
    sample_variations,
)
from shaketable.transforms.categories import MEANING_PRESERVING
from shaketable.transforms.presets import select_transforms
from shaketable.transforms.vary import HUMAN, Variation

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.experiment import Experiment

VERDICT = "verdict"
"""The name of the setting that decides the verdict of a ranker."""


def select_verdict_transforms() -> tuple[str, ...]:
    """Return the specs of the methods that decide a facet, and `HUMAN` for the variants that people wrote."""
    methods = select_transforms()[0]
    return (*(TRANSFORMS.spec(one) for one in methods if one.category in FACETS_BY_CATEGORY), HUMAN)


@dataclass(frozen=True)
class QueryVariation:
    """Loss of effectiveness from query variations: misspelling, naturality, ordering, paraphrasing.

    `transforms` names the methods. By default they are all rule-based methods whose resources are installed, and the
    human variants of the collection; "paper_004" is the ten methods of that paper. `variations` is a file of ready
    variations instead: query, method, category, text, valid. The task reports three conventions for invalid
    variations: keep them, drop them, or replace them by the original. A query to which a method does not apply counts
    as one with an invalid variation, as in the paper.

    `settings` are the settings to run: "pipeline", "re-ranker", or "verdict" for the one that decides a ranker's
    verdict, which always runs. `depths` are those of the tables by depth; without depths, rankers score nothing for
    these tables. With a `shortlist`, a re-ranker ranks only so many documents again: the first of its list of the
    original query.

    measure     the effectiveness measure
    transforms  the methods; all rule-based ones by default
    n           the number of variations of each query by each method
    depths      the depths of re-ranking in the tables by depth
    variations  a file of ready variations
    settings    pipeline, re-ranker or verdict
    shortlist   the number of documents that a re-ranker ranks again; 0 is all of them
    """

    measure: str = "nDCG@10"
    transforms: tuple[str, ...] = ()
    n: int = 1
    depths: tuple[int, ...] = (10, 100, 1000)
    variations: str = ""
    settings: tuple[str, ...] = (PIPELINE, RERANKER)
    shortlist: int = 0

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = True
    accepts_search: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_ranges("query_variation", self, n=(1, 10_000), shortlist=(0, 1_000_000))
        check_parameter("query_variation", all(depth >= 1 for depth in self.depths), "depths", "1 or more", self.depths)
        known = (PIPELINE, RERANKER, VERDICT)
        valid = bool(self.settings) and set(self.settings) <= set(known)
        check_parameter("query_variation", valid, "settings", f"some of {', '.join(known)}", self.settings)

    def run(self, experiment: Experiment) -> Result:
        made, lacking = get_variations(experiment, self.transforms, self.n, self.variations)
        variations = sample_variations(experiment, made)
        if self.settings == (VERDICT,):  # invalid variations appear in tables only
            variations = [v for v in variations if v.valid]
        rows = self._rank_variations(experiment, variations)
        change = "change" if experiment.qrels else "overlap@10"
        tables = self._build_tables(experiment, variations, rows, change)
        per_query = tables["variations per query"]
        kept = per_query[per_query["valid"] & per_query["category"].isin(MEANING_PRESERVING)]
        slices, worst_slices = (
            measure_slices(experiment, kept, change, "change under query variation") if len(kept) else ({}, [])
        )
        by_category = rows.select_shown(tables["by category"])
        tables = {name: table for name, table in (tables | slices).items() if len(table)}
        figures = (*build_variation_figures(rows.shown_settings, change), *PAPER_FIGURES)
        arrow_note = f"In the table 'means by method', {ARROW_NOTE[0].lower()}{ARROW_NOTE[1:]}"
        return Result(
            "query-variation",
            "Which rewordings of a query hurt a ranker?",
            tables,
            tuple(figure for figure in figures if figure.table in tables),
            (
                *self._build_notes(experiment, variations, lacking),
                *([arrow_note] if experiment.qrels else []),
                *([SLICES_NOTE] if slices else []),
            ),
            (
                *(self._build_findings(by_category, rows.drops) if experiment.qrels else ()),
                *build_stability_findings(rows.stability, "category", rows.overlaps, {}),
                *rows.method_findings,
                *worst_slices,
            ),
            (*rows.examples, *rows.method_examples),
            brief=("change by category",) if experiment.qrels else ("change by category", "stability"),
            sources=PAPER_SOURCES,
        )

    def _rank_variations(self, experiment: Experiment, variations: Sequence[Variation]) -> VariationRows:
        """Rank all variations by each ranker in each setting, and return the rows of all tables."""
        changed_queries = [ChangedQuery(v.qid, v.text, v.original) for v in variations]
        originals = make_original_queries(experiment, variations)
        rows = VariationRows()
        for setting in list_settings(experiment):
            for name in experiment.live_rankers:
                decisive = choose_setting(experiment, name)
                searches_only = not can_score_texts(experiment.get_ranker(name))
                if setting not in ((decisive,) if searches_only else (*self.settings, decisive)):
                    continue
                changed_run = run_changed_queries(
                    experiment, name, changed_queries, self.measure, setting, self.shortlist
                )
                clean = self._measure_originals(experiment, name, originals, setting)
                rows.summary += self._build_rows(experiment, setting, name, variations, changed_run, clean)
                if rows.shown_settings.setdefault(name, setting) == setting:
                    rows.add_run(experiment, name, variations, changed_run)
                if setting == decisive:
                    rows.add_methods(experiment, name, variations, changed_run, self.measure)
        return rows

    def _build_tables(
        self, experiment: Experiment, variations: Sequence[Variation], rows: VariationRows, change: str
    ) -> dict[str, pd.DataFrame]:
        import pandas as pd

        by_method = mark_significance(pd.DataFrame([row for row in rows.summary if row["method"] != "all"]))
        by_category = mark_significance(
            pd.DataFrame([row for row in rows.summary if row["method"] == "all"]).drop(columns="method")
        )
        shown, categories = (rows.select_shown(table) for table in (by_method, by_category))
        tables: dict[str, pd.DataFrame] = {
            "change by category": build_overview(categories, change),
            "by category": by_category,
            "stability": pd.DataFrame(rows.stability),
            "by method": by_method,
            "by class of ranker": average_by_class(experiment, by_category, change),
            **self._measure_depths(experiment, variations),
            "recall of the first stage": self._measure_recall(experiment, variations),
            "correlation of changes": correlate_changes(variations, rows.changes),
            "map of rankers": build_ranker_map(experiment, rows.changes),
            "change by method": shown[["category", "method", "ranker", change, "queries"]],
            "variations per query": pd.DataFrame(rows.details),
        }
        if experiment.qrels:
            records = shown.to_dict("records")
            tables["means by method"] = pivot_rankers(records, ("category", "method"), *REPLACED_COLUMNS)
            tables["better than the original"] = categories[["category", "ranker", "better %", "worse %", "queries"]]
        return tables

    def _build_findings(self, by_category: pd.DataFrame, lost: QueryContributions) -> Iterator[Finding]:
        """Yield the change of each category, absolute and in per cent."""
        for row in by_category.to_dict("records"):
            category, ranker, start = row["category"], row["ranker"], row["before"]
            about: Any = {"ranker": ranker, "n": int(row["queries"]), "p": row["p (Holm)"]}
            ends = row["change"], row["low"], row["high"]
            change = dict(zip(("value", "low", "high"), ends, strict=True))
            yield Finding(name=f"change({category})", **change, **about)
            if start:
                drop = {name: 100 * value / start for name, value in change.items()}
                about |= {"against": f"its own {self.measure}"}
                yield Finding(name=f"drop({category})", **drop, **about, values=lost[category, ranker])

    def _build_rows(
        self,
        experiment: Experiment,
        setting: str,
        name: str,
        variations: Sequence[Variation],
        changed_run: ChangedQueryRun,
        clean: Mapping[str, float],
    ) -> Iterator[dict[str, Any]]:
        """Yield a row for each method, and for each category with all its methods."""
        movements = changed_run.movements
        for (category, method), members in group_variations(variations).items():
            qids = [variations[i].qid for i in members]
            valid = np.array([variations[i].valid for i in members])
            methods = {variations[i].method for i in members}
            samples = [sample_method_queries(experiment, category, one) for one in methods]
            wanted = sum(map(len, samples))
            row: dict[str, Any] = {"setting": setting, "category": category, "method": method, "ranker": name}
            if changed_run.values_before is not None and changed_run.values_after is not None:
                sampled = {qid: value for qid, value in clean.items() if any(qid in sample for sample in samples)}
                row |= self._compare_conventions(experiment, qids, valid, sampled, changed_run.values_after[members])
                row |= measure_judged_share(experiment, members, changed_run, qids)
            done = len({(variations[i].qid, variations[i].method) for i in members})
            accepted = len({(variations[i].qid, variations[i].method) for i in members if variations[i].valid})
            row |= {"valid %": 100 * accepted / wanted, "applies %": 100 * done / wanted}
            yield (
                row
                | mean_movement(qids, [movements[i] for i in members], experiment.weights)
                | {"queries": len(set(qids))}
            )

    def _compare_conventions(
        self,
        experiment: Experiment,
        qids: list[str],
        valid: NDArray[np.bool_],
        clean: Mapping[str, float],
        after: NDArray[np.float64],
    ) -> dict[str, Any]:
        """Compare by three conventions: all variations, valid ones only, and invalid ones replaced by originals."""
        base = np.array([clean[qid] for qid in qids])
        as_is = compare_paired(clean, query_means(qids, after), experiment.seed, experiment.weights)
        kept = query_means([q for q, k in zip(qids, valid, strict=True) if k], after[valid])
        accepted = compare_paired(clean, kept, experiment.seed, experiment.weights)
        mended = query_means(qids, np.where(valid, after, base))
        # a query without a variation keeps its original value
        replaced = compare_paired(clean, {**clean, **mended}, experiment.seed, experiment.weights)
        return {
            "before": as_is.before,
            "as is": as_is.after,
            "change": as_is.change,
            "low": as_is.low,
            "high": as_is.high,
            "p": as_is.p,
            "before (valid)": accepted.before,
            "valid only": accepted.after,
            "drop % (valid)": accepted.drop,
            "p (valid)": accepted.p,
            "invalid replaced": replaced.after,
            "p (replaced)": replaced.p,
            "better %": 100 * float((after > base).mean()),
            "worse %": 100 * float((after < base).mean()),
        }

    def _measure_originals(
        self, experiment: Experiment, name: str, whole: Sequence[ChangedQuery], setting: str
    ) -> dict[str, float]:
        """Return the value of each original query, normalised as its variations are."""
        if not experiment.qrels:
            return {}
        values = measure_changed_queries(
            experiment, self.measure, whole, rank_changed_queries(experiment, name, whole, setting, self.shortlist)
        )
        return {changed_query.qid: float(value) for changed_query, value in zip(whole, values, strict=True)}

    def _measure_depths(self, experiment: Experiment, variations: Sequence[Variation]) -> dict[str, pd.DataFrame]:
        """Measure every ranker as a re-ranker at several depths: means, and values by query."""
        import pandas as pd

        rows: list[dict[str, Any]] = []
        changes: list[dict[str, Any]] = []
        if PIPELINE not in list_settings(experiment) or not experiment.qrels:
            return {}
        kept = [v for v in variations if v.category in MEANING_PRESERVING]
        qids = [v.qid for v in kept]
        changed_queries = [ChangedQuery(v.qid, v.text, v.original) for v in kept]
        plain = [ChangedQuery(v.qid, v.original) for v in kept]
        for depth in sorted(d for d in self.depths if d <= experiment.depth):
            shallow = experiment.with_depth(depth)
            for name in experiment.scoring_rankers:
                ends = []
                for some in (plain, changed_queries):
                    texts = {str(i): changed_query.text for i, changed_query in enumerate(some)}
                    lists = experiment.rerank(name, texts, shallow.search_first_stage(texts))
                    run = {key: lists.get(key, {}) for key in texts}
                    ends.append(query_means(qids, measure_changed_queries(experiment, self.measure, some, run)))
                before, after = ends
                compared = compare_paired(before, after, experiment.seed, experiment.weights)
                rows.append({"ranker": name, "depth": depth, **build_comparison_row(compared)})
                changes += [
                    {"ranker": name, "depth": depth, "query": qid, "change": after[qid] - value}
                    for qid, value in before.items()
                ]
        if not rows:
            return {}
        means = add_significance_stars(pd.DataFrame(rows), interval=CHANGE_INTERVAL)
        return {"depth": means, "depth per query": pd.DataFrame(changes)}

    def _measure_recall(self, experiment: Experiment, variations: Sequence[Variation]) -> pd.DataFrame:
        """Return the share of the relevant documents that the first stage finds, by category and depth."""
        import pandas as pd

        rows: list[dict[str, Any]] = []
        if PIPELINE not in list_settings(experiment) or not experiment.qrels:
            return pd.DataFrame(rows)
        for category in dict.fromkeys(v.category for v in variations):
            some = [v for v in variations if v.category == category]
            qrels = {str(i): experiment.qrels[v.qid] for i, v in enumerate(some)}
            for depth in sorted(d for d in self.depths if d <= experiment.depth):
                recall = parse_measure(f"R@{depth}")
                ends = []
                for texts in ([v.original for v in some], [v.text for v in some]):
                    run = experiment.search_first_stage({str(i): text for i, text in enumerate(texts)})
                    values = Evaluator((recall,), qrels).evaluate(run)[recall]
                    ends.append(query_means([v.qid for v in some], list(values.values())))
                compared = compare_paired(ends[0], ends[1], experiment.seed, experiment.weights)
                rows.append({"category": category, "depth": depth, **build_comparison_row(compared)})
        return add_significance_stars(pd.DataFrame(rows), interval=CHANGE_INTERVAL) if rows else pd.DataFrame(rows)

    def _build_notes(
        self, experiment: Experiment, variations: Sequence[Variation], unavailable: Mapping[str, str]
    ) -> list[str]:
        notes = [f"Each ranker ranks {experiment.candidate_description}.", SETTINGS_NOTE]
        if experiment.qrels:
            notes += [
                (
                    f"'before' is the mean {self.measure} of the original queries, and 'as is' that of all their "
                    "variations; 'change' is the difference, and 'p (Holm)' is the probability that chance alone makes "
                    "a change as large, corrected for all rows; 'low' and 'high' are the ends of the 95 % interval of "
                    f"the change, {CORRECTED_INTERVAL_NOTE}."
                ),
                (
                    "A variation is valid if it keeps the meaning. 'valid only' is the mean of the valid "
                    "variations, beside that of their originals ('before (valid)'); for 'invalid replaced', the "
                    "original replaces every invalid variation, also for queries without a variation; 'drop % "
                    "(valid)', 'p (valid)' and 'p (replaced)' belong to these two. 'better %' and 'worse %' are the "
                    "percentages of variations that gain and that lose. 'judged@10 before' and 'judged@10' are the "
                    "shares of the first ten documents that are judged, before and after."
                ),
                (
                    "'applies %' is the percentage of queries to which a method applies, and 'valid %' that of queries "
                    "for which it makes a valid variation."
                ),
            ]
        notes.append(MOVEMENT_EXPLANATION)
        if not self.variations:
            notes.append(
                "Rules decide whether a variation is valid; docs/evidence/query-variation.md compares them with "
                "people's judgements."
            )
        if not {PIPELINE, RERANKER} <= set(self.settings):
            added = "".join(f" and in the setting {name}" for name in self.settings if name != VERDICT)
            notes.append(f"Each ranker runs in the setting that decides its verdict{added}; others are left out.")
        if not self.depths:
            notes.append("The tables by depth are left out, because no depths are given.")
        if deeper := [depth for depth in self.depths if depth > experiment.depth]:
            listed = ", ".join(map(str, deeper))
            notes.append(
                f"The table by depth leaves out {listed}, because lists end at {experiment.depth} (option --depth)."
            )
        methods = dict.fromkeys(v.method for v in variations if v.method != HUMAN)
        done = {m: len({v.qid for v in variations if v.method == m}) for m in methods}
        if partly := {m: n for m, n in done.items() if n < len(experiment.queries)}:
            listed = ", ".join(f"{method} to {n}" for method, n in partly.items())
            notes.append(f"These methods do not apply to all of the {len(experiment.queries)} queries: {listed}.")
        if unavailable:
            notes.append(
                f"These methods are left out because their data or models are not installed: {', '.join(unavailable)}. "
                "'shaketable list resources' shows what they need."
            )
        if any(v.category not in MEANING_PRESERVING for v in variations):
            notes.append(
                "A generalisation, a specialisation or another aspect has another meaning, so these changes do not "
                "count against a ranker."
            )
        if len(experiment.queries) < MIN_QUERIES:
            notes.append(f"There are fewer than {MIN_QUERIES} queries, so no change is marked as significant.")
        return notes

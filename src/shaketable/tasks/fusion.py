"""The fusion task: fuses the lists of a query's variations, and compares them with the best single list.

Penha, Câmara, Hauff. Evaluating the robustness of retrieval pipelines with query variation generators. ECIR 2022,
section 5.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.core.documents import Run, rank_docnos
from shaketable.core.errors import check_ranges
from shaketable.core.results import Figure, Finding, Result
from shaketable.measures.effectiveness import Evaluator
from shaketable.measures.measure_names import parse_measure
from shaketable.measures.paired_comparison import CORRECTED_INTERVAL_NOTE, add_significance_stars, compare_paired
from shaketable.measures.rank_distance import Overlap
from shaketable.rankers.fusion import METHODS, fuse
from shaketable.tasks._paper_tables import ARROW_NOTE, PENHA_2022, pivot_rankers
from shaketable.tasks._query_changes import (
    ChangedQuery,
    get_variations,
    list_settings,
    make_original_queries,
    measure_changed_queries,
    rank_changed_queries,
)
from shaketable.transforms.categories import MEANING_PRESERVING
from shaketable.transforms.vary import Variation

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.experiment import Experiment

RunsByMethod = Mapping[str, Run]
"""method and number -> run."""
BRIEF_COLUMNS = ["lists of", "ranker", "before", "after", "change", "low", "high", "p (Holm)", "", "lists", "queries"]


@dataclass(frozen=True)
class Fusion:
    """Fusion of the lists of a query's variations: RRF, CombSUM, CombMNZ, and the best single query.

    Variations are made as in query-variation. Variations that change the meaning are excluded, and so are invalid ones
    unless `invalid` is True. Lists are fused by category and all together, with and without the list of the original
    query. That list is also used if a query has no variation.

    Without judgements, the task measures how many of the original query's first ten documents remain in the list of a
    variation and in the fused list.

    measure     the effectiveness measure
    transforms  the methods; all rule-based ones by default
    n           the number of variations of each query by each method
    invalid     also fuse the lists of invalid variations
    variations  a file of ready variations
    """

    measure: str = "nDCG@10"
    transforms: tuple[str, ...] = ()
    n: int = 1
    invalid: bool = False
    variations: str = ""

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = True
    accepts_search: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_ranges("fusion", self, n=(1, 10_000))

    def run(self, experiment: Experiment) -> Result:
        import pandas as pd

        every = get_variations(experiment, self.transforms, self.n, self.variations)[0]
        kept = [v for v in every if v.category in MEANING_PRESERVING and (v.valid or self.invalid)]
        setting = list_settings(experiment)[0]
        plain = make_original_queries(experiment, every)
        if not experiment.qrels:
            return self._measure_stability(experiment, plain, kept, setting)
        rows = [
            row for name in experiment.live_rankers for row in self._build_rows(experiment, name, plain, kept, setting)
        ]
        summary = add_significance_stars(pd.DataFrame(rows), interval=("change", "low", "high"))
        fused = summary[summary["fusion"].isin(["rrf", "oracle"]) & summary["with original"]]
        title = f"Change of {self.measure} by fusing the lists of variations (RRF, with the original query)"
        return Result(
            "fusion",
            "What does a ranker gain if the lists of several wordings of a query are fused?",
            {
                "fusion": summary,
                "rrf with the original": fused[BRIEF_COLUMNS],
                "means of fused lists": _build_paper_table(summary),
            },
            (Figure("bars", "rrf with the original", title, x="lists of", y="change", color="ranker"),),
            tuple(self._build_notes(experiment, setting)),
            tuple(
                Finding(
                    r["ranker"],
                    f"fusion({r['lists of']})",
                    r["change"],
                    r["low"],
                    r["high"],
                    r["queries"],
                    r["p (Holm)"],
                )
                for _, r in summary[summary["with original"] & (summary["fusion"] == "rrf")].iterrows()
            ),
            brief=("rrf with the original",),
            sources={"means of fused lists": f"{PENHA_2022}, Table 7"},
        )

    def _build_notes(self, experiment: Experiment, setting: str) -> Iterator[str]:
        yield (
            f"The lists of a query and of its variations are fused into one (setting: {setting}). Each ranker ranks "
            f"{experiment.candidate_description}."
        )
        yield (
            f"'before' is the mean {self.measure} of the original queries' lists, and 'after' that of the fused ones; "
            "'change' is the difference, 'lists of' names the fused variations, and 'with original' says whether the "
            "original query is one of the fused lists. 'rrf' is reciprocal rank fusion: the score of a document is "
            "the sum of 1 / (60 + rank) over the lists. 'p (Holm)' is by a paired t-test, and a star marks p below "
            "0.05; 'low' and 'high' are the ends of the 95 % interval of 'change', "
            f"{CORRECTED_INTERVAL_NOTE}."
        )
        yield (
            "'best query' is the best list of the original and its variations according to the judgements. A system "
            "cannot know it, so it is an upper bound and is not tested."
        )
        yield (
            "'lists' is the mean number of lists per query; the original query alone needs one. "
            "'queries with lists' counts the queries that have a variation. If a query has no variation, the list of "
            "the original is used."
        )
        yield f"The table 'means of fused lists' has lists that fuse only the variations, by RRF. {ARROW_NOTE}"

    def _measure_stability(
        self, experiment: Experiment, plain: Sequence[ChangedQuery], variations: Sequence[Variation], setting: str
    ) -> Result:
        """Compare fused lists and single lists by their overlap with the list of the original query."""
        import pandas as pd

        rows = [
            row
            for name in experiment.live_rankers
            for row in self._build_stability_rows(experiment, name, plain, variations, setting)
        ]
        table = add_significance_stars(pd.DataFrame(rows), interval=("gain", "low", "high"))
        return Result(
            "fusion",
            "Does fusing the variations of a query make its list more stable?",
            {"steadiness": table} if rows else {},
            (
                Figure(
                    "bars",
                    "steadiness",
                    "Gain of overlap@10 with the original query's list by fusing the lists of its variations",
                    x="lists of",
                    y="gain",
                    color="ranker",
                ),
            )
            if rows
            else (),
            (
                (
                    f"The lists of the variations of a query are fused into one (setting: {setting}). Each ranker "
                    f"ranks {experiment.candidate_description}."
                ),
                (
                    "'one variation' is the share of the original query's top ten that are also in the top ten of a "
                    "variation, on average over variations. 'fused' is the same for the list that "
                    "reciprocal rank fusion makes of all variations, without the original. 'gain' is the difference, "
                    "with a 95 % interval ('low', 'high') over queries that have two variations or more, "
                    f"{CORRECTED_INTERVAL_NOTE}."
                ),
            ),
            tuple(
                Finding(
                    row["ranker"],
                    f"fusion gain of overlap({row['lists of']})",
                    row["gain"],
                    row["low"],
                    row["high"],
                    row["queries"],
                    row["p (Holm)"],
                )
                for row in table.to_dict("records")
            ),
        )

    def _build_stability_rows(
        self,
        experiment: Experiment,
        name: str,
        plain: Sequence[ChangedQuery],
        variations: Sequence[Variation],
        setting: str,
    ) -> list[dict[str, Any]]:
        own = rank_changed_queries(experiment, name, plain, setting)
        original = {changed_query.qid: rank_docnos(own[str(i)]) for i, changed_query in enumerate(plain)}
        run = rank_changed_queries(experiment, name, [ChangedQuery(v.qid, v.text) for v in variations], setting)
        groups = _group_lists([(v.qid, v.category, v.method, run[str(i)]) for i, v in enumerate(variations)])
        overlap = Overlap(10)
        rows = []
        for what, lists in groups.items():
            members: dict[str, list[float]] = {}
            for some in lists.values():
                for qid, scores in some.items():
                    members.setdefault(qid, []).append(overlap.between(original[qid], rank_docnos(scores)))
            alone = {qid: float(np.mean(values)) for qid, values in members.items() if len(values) > 1}
            fused = fuse([*lists.values()], "rrf") if alone else {}
            together = {qid: overlap.between(original[qid], rank_docnos(fused[qid])) for qid in alone}
            compared = compare_paired(alone, together, experiment.seed, experiment.weights)
            if compared.n:
                rows.append(
                    {
                        "lists of": what,
                        "ranker": name,
                        "one variation": compared.before,
                        "fused": compared.after,
                        "gain": compared.change,
                        "low": compared.low,
                        "high": compared.high,
                        "p": compared.p,
                        "queries": compared.n,
                    }
                )
        return rows

    def _build_rows(
        self,
        experiment: Experiment,
        name: str,
        plain: Sequence[ChangedQuery],
        variations: Sequence[Variation],
        setting: str,
    ) -> list[dict[str, Any]]:
        """Return a row for the best query, and one for each fusion of each group of lists, for one ranker."""
        wanted = parse_measure(self.measure)
        evaluator = Evaluator((wanted,), experiment.qrels)
        own = rank_changed_queries(experiment, name, plain, setting)
        original = {changed_query.qid: own[str(i)] for i, changed_query in enumerate(plain)}
        clean = dict(zip(original, measure_changed_queries(experiment, self.measure, plain, own).tolist(), strict=True))
        changed_queries = [ChangedQuery(v.qid, v.text) for v in variations]
        run = rank_changed_queries(experiment, name, changed_queries, setting)
        groups = _group_lists([(v.qid, v.category, v.method, run[str(i)]) for i, v in enumerate(variations)])
        values = (
            measure_changed_queries(experiment, self.measure, changed_queries, run) if changed_queries else np.empty(0)
        )
        best = dict(clean)
        for changed_query, value in zip(changed_queries, values.tolist(), strict=True):
            best[changed_query.qid] = max(best[changed_query.qid], value)
        rows = [self._build_row(experiment, name, "best query", "oracle", True, clean, best, groups["all"])]
        for what, lists in groups.items():
            for with_original in (False, True):
                runs = [*lists.values(), *([original] if with_original else [_select_uncovered(original, lists)])]
                for method in METHODS:
                    after = evaluator.evaluate(fuse(runs, method))[wanted]
                    rows.append(self._build_row(experiment, name, what, method, with_original, clean, after, lists))
        return rows

    def _build_row(
        self,
        experiment: Experiment,
        name: str,
        what: str,
        method: str,
        with_original: bool,
        clean: Mapping[str, float],
        after: Mapping[str, float],
        lists: RunsByMethod,
    ) -> dict[str, Any]:
        compared = compare_paired(clean, after, experiment.seed, experiment.weights)
        covered = {qid for run in lists.values() for qid in run}
        stand_ins = 0 if with_original else len(clean.keys() - covered)
        cost = (sum(map(len, lists.values())) + stand_ins) / len(clean) + with_original
        return {
            "ranker": name,
            "lists of": what,
            "fusion": method,
            "with original": with_original,
            "before": compared.before,
            "after": compared.after,
            "change": compared.change,
            "low": compared.low,
            "high": compared.high,
            "p": np.nan if method == "oracle" else compared.p,
            "lists": cost,
            "queries with lists": len(covered),
            "queries": compared.n,
        }


def _group_lists(lists: Sequence[tuple[str, str, str, Mapping[str, float]]]) -> dict[str, dict[str, Run]]:
    """Return category (and "all") -> method and number -> run."""
    groups: dict[str, dict[str, dict[str, Mapping[str, float]]]] = {"all": {}}
    list_numbers: dict[tuple[str, str], int] = {}
    for qid, category, method, scores in lists:
        list_numbers[qid, method + category] = number = list_numbers.get((qid, method + category), -1) + 1
        key = f"{method} {category} {number}"
        for what in (category, "all"):
            groups.setdefault(what, {}).setdefault(key, {})[qid] = scores
    return {what: dict(runs) for what, runs in groups.items()}


def _build_paper_table(summary: pd.DataFrame) -> pd.DataFrame:
    """Return the means of the lists fused by RRF without the original query, and of the best query."""
    fused = summary[(summary["fusion"] == "rrf") & ~summary["with original"]]
    best = summary[summary["fusion"] == "oracle"]
    return pivot_rankers([*fused.to_dict("records"), *best.to_dict("records")], ("lists of",), "after", "")


def _select_uncovered(original: Run, lists: RunsByMethod) -> Run:
    """Return the original list of each query without a variation."""
    covered = {qid for run in lists.values() for qid in run}
    return {qid: scores for qid, scores in original.items() if qid not in covered}

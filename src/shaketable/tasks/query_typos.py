"""The query typo task: the effect of a typo or a changed word on the ranking.

Wu, Zhang, Guo, Fan, Cheng. Are neural ranking models robust? TOIS 2022, sections 5.1 and 5.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.core.errors import check_ranges
from shaketable.core.protocols import TransformContext
from shaketable.core.registries import TRANSFORMS
from shaketable.core.results import Example, Figure, Finding, Result
from shaketable.measures.facets import TYPOS, WORDING
from shaketable.measures.paired_comparison import (
    CORRECTED_INTERVAL_NOTE,
    MOVEMENT_EXPLANATION,
    add_significance_stars,
    compare_paired,
    mean_movement,
    query_means,
)
from shaketable.measures.rank_distance import drop_rate
from shaketable.measures.significance import MIN_QUERIES
from shaketable.tasks._method_findings import measure_judged_percentages
from shaketable.tasks._query_changes import (
    RERANKER,
    ChangedQuery,
    ChangedQueryRun,
    QueryContributions,
    build_stability_findings,
    build_stability_rows,
    run_changed_queries,
)
from shaketable.tasks._slices import SLICES_NOTE, measure_slices
from shaketable.transforms.vary import make_rng, refuse_document_transform

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.experiment import Experiment

FACETS_BY_ATTACK = {"1-char": TYPOS, "word": WORDING}
"""The facets of one typo and of one changed word; queries with two typos are rare."""
ATTACK_NAMES = {"char_noise": "1-char", "char_noise(edits=2)": "2-char", "word_noise": "word"}
MAX_EXAMPLES = 3


@dataclass(frozen=True)
class TypoResult:
    """An attacked query, with its draw and its edits."""

    draw: int
    changed_query: ChangedQuery
    transform_names: tuple[str, ...]


@dataclass(frozen=True)
class QueryTypos:
    """Loss of effectiveness from a typo or a changed word in the query: drop rates at character and word level.

    The candidates are those of the original query, as in the paper; only the ranker sees the attacked query. Each
    attack is drawn `draws` times for each query, and a query's value is the mean. Any transform can be an attack. With
    a `shortlist`, a re-ranker ranks only so many documents again: the first of its list of the original query.

    measure     the effectiveness measure
    transforms  the attacks on a query
    draws       the number of draws of each attack for each query
    shortlist   the number of documents that a re-ranker ranks again; 0 is all of them
    """

    measure: str = "nDCG@10"
    transforms: tuple[str, ...] = tuple(ATTACK_NAMES)
    draws: int = 5
    shortlist: int = 0

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = True
    accepts_search: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_ranges("query_typos", self, draws=(1, 10_000), shortlist=(0, 1_000_000))
        for text in self.transforms:
            refuse_document_transform(TRANSFORMS.build(text))

    def run(self, experiment: Experiment) -> Result:
        import pandas as pd

        attacks = {ATTACK_NAMES.get(text, text): self._make_typos(experiment, text) for text in self.transforms}
        applicable = {name: attacked for name, attacked in attacks.items() if attacked}
        rows: list[dict[str, Any]] = []
        stability: list[dict[str, Any]] = []
        details: list[dict[str, Any]] = []
        examples: list[Example] = []
        lost: dict[tuple[str, str], Mapping[str, float]] = {}
        stay: dict[tuple[str, str], Mapping[str, float]] = {}
        judged: dict[tuple[str, str], tuple[float, float]] = {}
        for name in experiment.live_rankers:
            for attack, attacked in applicable.items():
                changed_run = run_changed_queries(
                    experiment, name, [a.changed_query for a in attacked], self.measure, RERANKER, self.shortlist
                )
                rows.append({"attack": attack, "ranker": name} | self._build_row(experiment, attacked, changed_run))
                stability += build_stability_rows(
                    experiment,
                    {"attack": attack, "ranker": name},
                    [a.changed_query.qid for a in attacked],
                    changed_run.movements,
                )
                lost[attack, name], stay[attack, name] = (
                    changed_run.compute_drops(weights=experiment.weights),
                    changed_run.compute_overlaps(),
                )
                if experiment.qrels:
                    every = range(len(changed_run.changed_queries))
                    judged[attack, name] = measure_judged_percentages(experiment, changed_run, every)
                details += _build_details(attack, name, attacked, changed_run)
                examples += _select_worst(name, attack, changed_run)
        summary = plain = pd.DataFrame(rows)
        if len(summary) and experiment.qrels:
            summary = add_significance_stars(plain, interval=("drop %", "drop % low", "drop % high"))
            # the verdict corrects the intervals of findings for the tests of a facet
            plain = summary.assign(**{end: plain[end] for end in ("drop % low", "drop % high")})
        tables = {
            "query attack": summary,
            "stability": pd.DataFrame(stability),
            "shares of edits": _count_transforms(attacks),
        }
        tables["per query"] = pd.DataFrame(details)
        slices, worst_slices = self._slice_changes(experiment, tables["per query"])
        return Result(
            "query-typos",
            "What does a typing error, or a changed word, change?",
            tables | slices,
            _build_figures(bool(experiment.qrels)) if len(summary) else (),
            (*self._build_notes(experiment, attacks), *([SLICES_NOTE] if slices else [])),
            (
                *(self._build_findings(plain, lost, judged) if experiment.qrels else ()),
                *build_stability_findings(stability, "attack", stay, {} if experiment.qrels else FACETS_BY_ATTACK),
                *worst_slices,
            ),
            tuple(examples),
            brief=("query attack", *(() if experiment.qrels else ("stability",)), "shares of edits"),
        )

    def _make_typos(self, experiment: Experiment, text: str) -> list[TypoResult]:
        """Attack every query `draws` times; queries that an attack does not apply to are left out."""
        edit = TRANSFORMS.build(text)
        attacked = []
        for qid, query in _sample_queries(experiment, ATTACK_NAMES.get(text, text)).items():
            context = TransformContext(query, experiment.queries[qid].description, experiment.vocabulary)
            for draw in range(self.draws):
                rng = make_rng(edit, experiment.seed, qid, draw)
                if hasattr(edit, "attack"):
                    outcome = edit.attack(query, rng, context)
                else:
                    changed = edit.apply(query, rng, context)
                    outcome = None if changed is None else (changed, (TRANSFORMS.spec(edit),))
                if outcome is not None:
                    attacked.append(TypoResult(draw, ChangedQuery(qid, outcome[0], query), outcome[1]))
        return attacked

    def _build_row(
        self, experiment: Experiment, attacked: list[TypoResult], changed_run: ChangedQueryRun
    ) -> dict[str, Any]:
        """Return the values before and after with their test over queries, and the spread of the drop over draws."""
        qids = [a.changed_query.qid for a in attacked]
        moved = mean_movement(qids, changed_run.movements, experiment.weights)
        if changed_run.values_before is None or changed_run.values_after is None:
            return moved | {"queries": len(set(qids))}
        compared = compare_paired(
            query_means(qids, changed_run.values_before),
            query_means(qids, changed_run.values_after),
            experiment.seed,
            experiment.weights,
        )
        start = compared.before
        by_draw = [
            100 * drop_rate(float(changed_run.values_before[part].mean()), float(changed_run.values_after[part].mean()))
            for draw in range(self.draws)
            if len(part := [i for i, a in enumerate(attacked) if a.draw == draw])
        ]
        known = [drop for drop in by_draw if not np.isnan(drop)]
        return {
            "before": start,
            "after": compared.after,
            "drop %": compared.drop,
            "drop % low": 100 * compared.low / start if start else np.nan,
            "drop % high": 100 * compared.high / start if start else np.nan,
            "p": compared.p,
            "sd over draws": float(np.std(known)) if known else np.nan,
            "effect size": compared.effect,
            "queries": compared.n,
        } | moved

    def _build_findings(
        self,
        summary: pd.DataFrame,
        lost: QueryContributions,
        judged: Mapping[tuple[str, str], tuple[float, float]],
    ) -> list[Finding]:
        return [
            Finding(
                row["ranker"],
                f"drop({row['attack']})",
                row["drop %"],
                row["drop % low"],
                row["drop % high"],
                int(row["queries"]),
                row["p (Holm)"],
                against=f"its own {self.measure}",
                facet=FACETS_BY_ATTACK.get(row["attack"], ""),
                values=lost[row["attack"], row["ranker"]],
                judged_before=judged[row["attack"], row["ranker"]][0],
                judged_after=judged[row["attack"], row["ranker"]][1],
            )
            for _, row in summary.iterrows()
        ]

    def _slice_changes(
        self, experiment: Experiment, details: pd.DataFrame
    ) -> tuple[dict[str, pd.DataFrame], list[Finding]]:
        """Return the change of value, or without judgements the overlap, by slices of the queries."""
        if not len(details):
            return {}, []
        return measure_slices(
            experiment, details, "change" if experiment.qrels else "overlap@10", "change under query attack"
        )

    def _build_notes(self, experiment: Experiment, attacks: dict[str, list[TypoResult]]) -> list[str]:
        notes = [
            f"Each ranker ranks {experiment.candidate_description}. The candidates are those of the original query."
        ]
        if experiment.qrels:
            notes += [
                (
                    f"'before' and 'after' are {self.measure} of the original and of the attacked queries, with "
                    f"{self.draws} attacks on each query, drawn at random; 'drop %' is the difference in per cent of "
                    "'before', negative where the attack hurts. For example, 1-char changes one letter."
                ),
                (
                    "'p (Holm)' is by a paired t-test, corrected for all rows, and a star marks p below 0.05; 'low' "
                    "and 'high' are the ends of the 95 % interval of the drop over queries, "
                    f"{CORRECTED_INTERVAL_NOTE}. 'sd over draws' is the "
                    "standard deviation of the drop from draw to draw, and 'effect size' is Cohen's d: the mean "
                    "change, divided by the standard deviation of the changes."
                ),
            ]
        notes.append(MOVEMENT_EXPLANATION)
        notes.append("The table 'shares of edits' counts the 'edits' of each type; 'share %' is their percentage.")
        if len(experiment.queries) < MIN_QUERIES:
            notes.append(f"There are fewer than {MIN_QUERIES} queries, so no drop is marked as significant.")
        for name, attacked in attacks.items():
            wanted = len(_sample_queries(experiment, name)) * self.draws
            if missing := wanted - len(attacked):
                notes.append(f"The attack {name} does not apply in {missing} of {wanted} cases.")
        return notes


def _sample_queries(experiment: Experiment, attack: str) -> dict[str, str]:
    return experiment.sample_queries(FACETS_BY_ATTACK.get(attack, ""), attack)


def _build_details(
    attack: str, ranker: str, attacked: list[TypoResult], changed_run: ChangedQueryRun
) -> list[dict[str, Any]]:
    rows = []
    for i, (a, moved) in enumerate(zip(attacked, changed_run.movements, strict=True)):
        row: dict[str, Any] = {"attack": attack, "ranker": ranker, "query": a.changed_query.qid, "draw": a.draw}
        row["text"] = a.changed_query.text
        if changed_run.values_before is not None and changed_run.values_after is not None:
            start, end = float(changed_run.values_before[i]), float(changed_run.values_after[i])
            row |= {"before": start, "after": end, "change": end - start}
        rows.append(row | {"overlap@10": moved.overlap, "fall of first": moved.fall})
    return rows


def _select_worst(ranker: str, attack: str, changed_run: ChangedQueryRun) -> list[Example]:
    """Return the attacked queries with the largest losses or, without judgements, the largest movements."""
    if changed_run.values_before is not None and changed_run.values_after is not None:
        loss = changed_run.values_before - changed_run.values_after
    else:
        loss = np.array([1 - moved.overlap for moved in changed_run.movements])
    order = np.argsort(-loss, kind="stable")[:MAX_EXAMPLES]
    return [changed_run.make_example(ranker, int(i), attack) for i in order if loss[i] > 0]


def _count_transforms(attacks: dict[str, list[TypoResult]]) -> pd.DataFrame:
    """Count the edits of each attack by type."""
    import pandas as pd

    rows = []
    for name, attacked in attacks.items():
        counts = Counter(kind for a in attacked for kind in a.transform_names)
        rows += [
            {"attack": name, "edit": kind, "share %": 100 * n / counts.total(), "edits": n}
            for kind, n in sorted(counts.items())
        ]
    return pd.DataFrame(rows, columns=["attack", "edit", "share %", "edits"])


def _build_figures(judged: bool) -> tuple[Figure, ...]:
    if not judged:
        title = "The share of the first ten documents that stay among the first ten"
        return (Figure("bars", "query attack", title, x="ranker", y="overlap@10", color="attack"),)
    return (
        Figure(
            "bars",
            "query attack",
            "Loss by each attack, in per cent of the mean",
            x="ranker",
            y="drop %",
            color="attack",
        ),
        Figure(
            "heatmap",
            "query attack",
            "Loss of each ranker by each attack, in per cent of the mean",
            x="ranker",
            y="attack",
            color="drop %",
        ),
    )

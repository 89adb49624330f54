"""What does fusing the variations of a query repair, and what would the best one have been worth?

Penha, Câmara, Hauff. Evaluating the robustness of retrieval pipelines with query variation generators. ECIR 2022,
section 5.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.edit.taxonomy import KEEPING
from shaketable.edit.vary import Variation
from shaketable.errors import check_within
from shaketable.measure.change import Overlap
from shaketable.measure.comparison import compare, starred
from shaketable.measure.effectiveness import Evaluator, parse
from shaketable.rankers.fusion import METHODS, fuse
from shaketable.task.changed import Trial, originals, runs_of, settings, values_of
from shaketable.task.layouts import LAYOUT, PENHA, across
from shaketable.task.query_variation import varied
from shaketable.types import Figure, Finding, Result, Run, ranking

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.bench import Bench

Lists = Mapping[str, Run]
"""method and place -> run."""


@dataclass(frozen=True)
class Fusion:
    """What fusing a query's variations repairs: RRF, CombSUM, CombMNZ, and the best single query.

    Variations are made as in query-variation; those that change the meaning take no part, nor do those that are not
    valid unless `invalid` is True. Lists are fused by category and all together, with and without the list of the
    original query, which stands in wherever a query has no variation.

    Without judgements, what is measured is how much of the original query's first ten documents is left: in the list
    of a variation, and in the fused list of several.
    """

    measure: str = "nDCG@10"
    edits: tuple[str, ...] = ()
    n: int = 1
    invalid: bool = False
    variations: str = ""

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_within("fusion", self, n=(1, 10_000))

    def run(self, bench: Bench) -> Result:
        import pandas as pd

        every = varied(bench, self.edits, self.n, self.variations)[0]
        kept = [v for v in every if v.category in KEEPING and (v.valid or self.invalid)]
        setting = settings(bench)[0]
        plain = originals(bench, every)
        if not bench.qrels:
            return self._steadiness(bench, plain, kept, setting)
        rows = [row for name in bench.scoring for row in self._rows(bench, name, plain, kept, setting)]
        summary = starred(pd.DataFrame(rows))
        columns = ["lists of", "ranker", "before", "after", "change", "low", "high", "p (Holm)", "", "lists", "queries"]
        shown = summary[summary["fusion"].isin(["rrf", "oracle"]) & summary["with original"]][columns]
        return Result(
            "fusion",
            "What does fusing the variations of a query repair?",
            {"fusion": summary, "rrf with the original": shown, "means of fused lists": _layout(summary)},
            (
                Figure(
                    "bars",
                    "rrf with the original",
                    f"What fusing the lists of variations changes in {self.measure} (RRF, with the original query)",
                    x="lists of",
                    y="change",
                    color="ranker",
                ),
            ),
            (
                (
                    f"The lists of a query and of its variations are fused into one (setting: {setting}). Each ranker "
                    f"ranks {bench.pool}."
                ),
                (
                    f"'before' is the mean {self.measure} of the original queries' lists, and 'after' that of the "
                    "fused ones; 'change' is the difference, 'lists of' names the variations that are fused, and "
                    "'with original' says whether the original is among them. 'rrf' is reciprocal rank fusion: the "
                    "score of a document is the sum of 1 / (60 + place) over the lists. 'p (Holm)' is by a paired "
                    "t-test, and a star marks p below 0.05."
                ),
                (
                    "'best query' takes the best list of the original and its variations, as the judgements tell. "
                    "Nobody can do so without them: it is an upper bound, so it is not tested."
                ),
                (
                    "'lists' is the number of lists that a query costs on average; the original query alone costs "
                    "one. 'queries with lists' counts the queries that have a variation. Where a query has no "
                    "variation, the list of the original stands in."
                ),
                f"The table 'means of fused lists' has the lists of the variations alone, fused by RRF. {LAYOUT}",
            ),
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
            sources={"means of fused lists": f"{PENHA}, Table 7"},
        )

    def _steadiness(
        self, bench: Bench, plain: Sequence[Trial], variations: Sequence[Variation], setting: str
    ) -> Result:
        """Is the fused list of the variations nearer to the list of the original query than that of a variation?"""
        import pandas as pd

        rows = [row for name in bench.scoring for row in self._steady_rows(bench, name, plain, variations, setting)]
        table = starred(pd.DataFrame(rows))
        return Result(
            "fusion",
            "Does fusing the variations of a query make its list steadier?",
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
                    f"ranks {bench.pool}."
                ),
                (
                    "'one variation' is the share of the first ten documents of the original query that the list of a "
                    "variation has as well, on average over variations. 'fused' is the same for the list that "
                    "reciprocal rank fusion makes of all variations, without the original. 'gain' is the difference, "
                    "with a 95 % interval ('low', 'high') over queries that have two variations or more."
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

    def _steady_rows(
        self, bench: Bench, name: str, plain: Sequence[Trial], variations: Sequence[Variation], setting: str
    ) -> list[dict[str, Any]]:
        own = runs_of(bench, name, plain, setting)
        original = {trial.qid: ranking(own[str(i)]) for i, trial in enumerate(plain)}
        run = runs_of(bench, name, [Trial(v.qid, v.text) for v in variations], setting)
        groups = _groups([(v.qid, v.category, v.method, run[str(i)]) for i, v in enumerate(variations)])
        overlap = Overlap(10)
        rows = []
        for what, lists in groups.items():
            members: dict[str, list[float]] = {}
            for some in lists.values():
                for qid, scores in some.items():
                    members.setdefault(qid, []).append(overlap.between(original[qid], ranking(scores)))
            alone = {qid: float(np.mean(values)) for qid, values in members.items() if len(values) > 1}
            fused = fuse([*lists.values()], "rrf") if alone else {}
            together = {qid: overlap.between(original[qid], ranking(fused[qid])) for qid in alone}
            compared = compare(alone, together, bench.seed, bench.weights)
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

    def _rows(
        self, bench: Bench, name: str, plain: Sequence[Trial], variations: Sequence[Variation], setting: str
    ) -> list[dict[str, Any]]:
        """The best query, and every way to fuse every group of lists, for one ranker."""
        wanted = parse(self.measure)
        evaluator = Evaluator((wanted,), bench.qrels)
        own = runs_of(bench, name, plain, setting)
        original = {trial.qid: own[str(i)] for i, trial in enumerate(plain)}
        clean = dict(zip(original, values_of(bench, self.measure, plain, own).tolist(), strict=True))
        trials = [Trial(v.qid, v.text) for v in variations]
        run = runs_of(bench, name, trials, setting)
        groups = _groups([(v.qid, v.category, v.method, run[str(i)]) for i, v in enumerate(variations)])
        values = values_of(bench, self.measure, trials, run) if trials else np.empty(0)
        best = dict(clean)
        for trial, value in zip(trials, values.tolist(), strict=True):
            best[trial.qid] = max(best[trial.qid], value)
        rows = [self._row(bench, name, "best query", "oracle", True, clean, best, groups["all"])]
        for what, lists in groups.items():
            for with_original in (False, True):
                runs = [*lists.values(), *([original] if with_original else [_missing(original, lists)])]
                for method in METHODS:
                    after = evaluator.per_query(fuse(runs, method))[wanted]
                    rows.append(self._row(bench, name, what, method, with_original, clean, after, lists))
        return rows

    def _row(
        self,
        bench: Bench,
        name: str,
        what: str,
        method: str,
        with_original: bool,
        clean: Mapping[str, float],
        after: Mapping[str, float],
        lists: Lists,
    ) -> dict[str, Any]:
        compared = compare(clean, after, bench.seed, bench.weights)
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


def _groups(lists: Sequence[tuple[str, str, str, Mapping[str, float]]]) -> dict[str, dict[str, Run]]:
    """category (and "all") -> method and place -> run."""
    groups: dict[str, dict[str, dict[str, Mapping[str, float]]]] = {"all": {}}
    places: dict[tuple[str, str], int] = {}
    for qid, category, method, scores in lists:
        places[qid, method + category] = place = places.get((qid, method + category), -1) + 1
        key = f"{method} {category} {place}"
        for what in (category, "all"):
            groups.setdefault(what, {}).setdefault(key, {})[qid] = scores
    return {what: dict(runs) for what, runs in groups.items()}


def _layout(summary: pd.DataFrame) -> pd.DataFrame:
    """The means of the lists fused by RRF without the original query, and of the best query."""
    fused = summary[(summary["fusion"] == "rrf") & ~summary["with original"]]
    best = summary[summary["fusion"] == "oracle"]
    return across([*fused.to_dict("records"), *best.to_dict("records")], ("lists of",), "after", "")


def _missing(original: Run, lists: Lists) -> Run:
    """The original's list of each query that has no other."""
    covered = {qid for run in lists.values() for qid in run}
    return {qid: scores for qid, scores in original.items() if qid not in covered}

"""What does fusing the variations of a query repair, and what would the best one have been worth?

Penha, Câmara, Hauff. Evaluating the robustness of retrieval pipelines with query variation generators. ECIR 2022,
section 5.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.edit.taxonomy import KEEPING
from shaketable.measure.effectiveness import Evaluator, parse
from shaketable.measure.significance import t_test
from shaketable.rank.fusion import METHODS, fuse
from shaketable.task.changed import Trial, before, runs_of, settings
from shaketable.task.query_variation import corrected, made
from shaketable.types import Figure, Result, Run

if TYPE_CHECKING:
    from shaketable.bench import Bench


@dataclass(frozen=True)
class Fusion:
    """What fusing a query's variations repairs: RRF, CombSUM, CombMNZ, and the best single query.

    Variations are made as in query-variation; those that change the meaning take no part. Lists are fused by category
    and all together, with and without the list of the original query.
    """

    measure: str = "nDCG@10"
    edits: tuple[str, ...] = ()
    n: int = 1

    needs_judgements: ClassVar[bool] = True

    def run(self, bench: Bench) -> Result:
        import pandas as pd

        variations = [v for v in made(bench, self.edits, self.n)[0] if v.category in KEEPING]
        trials = [Trial(v.qid, v.text) for v in variations]
        setting = settings(bench)[0]
        wanted = parse(self.measure)
        evaluator = Evaluator((wanted,), bench.qrels)
        rows: list[dict[str, Any]] = []
        for name in bench.scoring:
            clean = before(bench, name, self.measure, setting)
            base = np.array(list(clean.values()))
            found = runs_of(bench, name, trials, setting)
            original = bench.run(name)
            oracle = base.copy()
            lists = _lists([(v.qid, v.category, v.method, found[str(i)]) for i, v in enumerate(variations)])
            for run in lists["all"].values():
                values = evaluator.per_query(run)[wanted]
                # a query that a method does not apply to has no list, which is not the same as a bad one
                oracle = np.maximum(oracle, [values[qid] if qid in run else 0.0 for qid in clean])
            rows.append(_row(name, "best query", "oracle", True, base, oracle, _cost(lists["all"], bench, True)))
            for what, by_method in lists.items():
                for with_original in (False, True):
                    runs = [*by_method.values(), *([original] if with_original else [])]
                    for method in METHODS:
                        values = evaluator.per_query(fuse(runs, method))[wanted]
                        after = np.array([values[qid] for qid in clean])
                        cost = _cost(by_method, bench, with_original)
                        rows.append(_row(name, what, method, with_original, base, after, cost))
        summary = corrected(pd.DataFrame(rows))
        columns = ["lists of", "ranker", "before", "after", "change", "p (Holm)", "", "lists"]
        shown = summary[summary["fusion"].isin(["rrf", "oracle"]) & summary["with original"]][columns]
        return Result(
            "fusion",
            "What does fusing the variations of a query repair?",
            {"fusion": summary, "rrf with the original": shown},
            (
                Figure(
                    "bars",
                    "rrf with the original",
                    f"Change of {self.measure} by fusing lists (RRF, with the original query)",
                    x="lists of",
                    y="change",
                    color="ranker",
                ),
            ),
            (
                f"{self.measure} ({setting}); ranked: {bench.pool}.",
                "best query: the best of the original and its variations, chosen by the judgements, as no fusion can.",
                "lists: how many lists a query costs on average; one is what the original query costs alone.",
            ),
            {f"{row['ranker']}.fusion({row['lists of']})": row["change"] for _, row in shown.iterrows()},
            brief=("rrf with the original",),
        )


def _lists(found: list[tuple[str, str, str, Mapping[str, float]]]) -> dict[str, dict[str, Run]]:
    """category (and "all") -> method and place -> run."""
    lists: dict[str, dict[str, dict[str, Mapping[str, float]]]] = {"all": {}}
    places: dict[tuple[str, str], int] = {}
    for qid, category, method, scores in found:
        places[qid, method + category] = place = places.get((qid, method + category), -1) + 1
        key = f"{method} {category} {place}"
        for what in (category, "all"):
            lists.setdefault(what, {}).setdefault(key, {})[qid] = scores
    return {what: dict(runs) for what, runs in lists.items()}


def _cost(runs: dict[str, Run], bench: Bench, with_original: bool) -> float:
    return sum(map(len, runs.values())) / len(bench.qrels) + with_original


def _row(name: str, what: str, method: str, with_original: bool, base: Any, after: Any, cost: float) -> dict[str, Any]:
    return {
        "ranker": name,
        "lists of": what,
        "fusion": method,
        "with original": with_original,
        "before": float(base.mean()),
        "after": float(after.mean()),
        "change": float(after.mean() - base.mean()),
        "lists": cost,
        "queries": len(base),
        "p": float(t_test(base, after)),
    }

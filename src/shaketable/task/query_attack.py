"""What does a slip of the keyboard, or a changed word, do to the ranking?

Wu, Zhang, Guo, Fan, Cheng. Are neural ranking models robust? TOIS 2022, sections 5.1 and 5.4.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.chance import draws_for
from shaketable.measure.change import drop_rate
from shaketable.measure.significance import FEWEST_QUERIES, adjust, bootstrap_interval, effect_size, mark, t_test
from shaketable.registry import EDITS
from shaketable.task.changed import RERANKER, Trial, before, measured, paired, per_query_mean
from shaketable.types import Context, Figure, Result

if TYPE_CHECKING:
    from shaketable.bench import Bench

NAMES = {"char_attack": "1-char", "char_attack(edits=2)": "2-char", "word_attack": "word"}
EXAMPLES = 3


@dataclass(frozen=True)
class Attacked:
    """An attacked query: which draw made it, and by which edits."""

    draw: int
    trial: Trial
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class QueryAttack:
    """What a typing slip or a changed word in the query costs: drop rates at character and word level.

    Candidates are those of the original query, as in the paper: only the ranker sees the attacked one. Each query is
    attacked `draws` times by each attack; a query's value is the mean over them.
    """

    measure: str = "nDCG@10"
    attacks: tuple[str, ...] = tuple(NAMES)
    draws: int = 5

    needs_judgements: ClassVar[bool] = True

    def run(self, bench: Bench) -> Result:
        import pandas as pd

        made = {text: self._attacked(bench, text) for text in self.attacks}
        rows: list[dict[str, Any]] = []
        per_query: list[dict[str, Any]] = []
        for name in bench.scoring:
            clean = before(bench, name, self.measure, RERANKER)
            for text, attacked in made.items():
                if not attacked:
                    continue
                trials = [a.trial for a in attacked]
                values = measured(bench, name, trials, self.measure, RERANKER)
                rows.append(
                    {"attack": NAMES.get(text, text), "ranker": name} | self._row(bench, attacked, values, clean)
                )
                per_query += [
                    {"attack": NAMES.get(text, text), "ranker": name, "query": a.trial.qid, "draw": a.draw}
                    | {"text": a.trial.text, "before": clean[a.trial.qid], "after": value}
                    for a, value in zip(attacked, values.tolist(), strict=True)
                ]
        summary = pd.DataFrame(rows)
        if len(summary):
            summary["p (Holm)"] = adjust(summary["p"].to_numpy(), "holm")
            summary[""] = [mark(p, n) for p, n in zip(summary["p (Holm)"], summary["queries"], strict=True)]
            summary = summary.drop(columns="p")
        details = pd.DataFrame(per_query)
        notes = [
            f"{self.measure} on the candidates of the original query ({bench.pool}).",
            f"drop %: negative where the attack hurts; means over {self.draws} draws a query.",
            "low, high: 95 % bootstrap interval of the drop over queries.",
        ]
        if len(bench.qrels) < FEWEST_QUERIES:
            notes.append(f"Only {len(bench.qrels)} queries: no drop is marked as significant.")
        untouched = len(bench.qrels) * self.draws
        for text, attacked in made.items():
            if missing := untouched - len(attacked):
                notes.append(f"{NAMES.get(text, text)} did not apply to {missing} of {untouched} queries and draws.")
        return Result(
            "query-attack",
            "What does a slip of the keyboard, or a changed word, cost?",
            {
                "query attack": summary,
                "shares of edits": self._shares(made),
                "worst examples": _worst(details),
                "per query": details,
            },
            (
                Figure("bars", "query attack", "Drop of the mean, in per cent", x="ranker", y="drop %", color="attack"),
                Figure("heatmap", "query attack", "Drop %, attack by ranker", x="ranker", y="attack", color="drop %"),
            )
            if len(summary)
            else (),
            tuple(notes),
            {f"{r['ranker']}.drop({r['attack']})": float(r["drop %"]) for r in rows if not np.isnan(r["drop %"])},
            brief=("query attack", "shares of edits"),
        )

    def _attacked(self, bench: Bench, text: str) -> list[Attacked]:
        """Every judged query, attacked as often as asked for; what an attack does not apply to is left out."""
        edit = EDITS.build(text)
        found = []
        for qid in bench.qrels:
            for draw in range(self.draws):
                draws = draws_for(bench.seed, text, qid, draw)
                query = bench.queries[qid].text
                attack = edit.attack(query, draws, Context(query, vocabulary=bench.vocabulary))
                if attack is not None:
                    found.append(Attacked(draw, Trial(qid, attack[0]), attack[1]))
        return found

    def _row(
        self, bench: Bench, attacked: list[Attacked], values: np.ndarray[Any, Any], clean: dict[str, float]
    ) -> dict[str, Any]:
        """Before, after, and what chance could do, over queries; the spread of the drop over draws beside it."""
        after = per_query_mean([a.trial.qid for a in attacked], values)
        left, right = paired(clean, after)
        start, end = float(left.mean()), float(right.mean())
        low, high = bootstrap_interval(right - left, bench.seed)
        by_draw = []
        for draw in range(self.draws):
            part = [i for i, a in enumerate(attacked) if a.draw == draw]
            base = float(np.mean([clean[attacked[i].trial.qid] for i in part])) if part else 0.0
            by_draw.append(100 * drop_rate(base, float(values[part].mean()) if part else 0.0))
        return {
            "before": start,
            "after": end,
            "drop %": 100 * drop_rate(start, end),
            "drop % low": 100 * float(low) / start if start else np.nan,
            "drop % high": 100 * float(high) / start if start else np.nan,
            "sd over draws": float(np.nanstd(by_draw)) if not np.isnan(by_draw).all() else np.nan,
            "effect size": float(effect_size(left, right)),
            "queries": len(left),
            "p": float(t_test(left, right)),
        }

    def _shares(self, made: dict[str, list[Attacked]]) -> Any:
        """Which edits the attacks consist of."""
        import pandas as pd

        rows = []
        for text, attacked in made.items():
            counts = Counter(kind for a in attacked for kind in a.kinds)
            rows += [
                {"attack": NAMES.get(text, text), "edit": kind, "share %": 100 * n / counts.total(), "edits": n}
                for kind, n in sorted(counts.items())
            ]
        return pd.DataFrame(rows, columns=["attack", "edit", "share %", "edits"])


def _worst(details: Any) -> Any:
    """For each attack and ranker the attacked queries that lost most."""
    import pandas as pd

    if not len(details):
        return pd.DataFrame(columns=["attack", "ranker", "query", "text", "before", "after"])
    ordered = details.assign(change=details["after"] - details["before"]).sort_values("change", kind="stable")
    worst = ordered[ordered["change"] < 0].groupby(["attack", "ranker"], sort=False).head(EXAMPLES)
    return worst.sort_values(["attack", "ranker", "change"], kind="stable").drop(columns=["draw", "change"])

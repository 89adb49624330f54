"""What does a slip of the keyboard, or a changed word, do to the ranking?

Wu, Zhang, Guo, Fan, Cheng. Are neural ranking models robust? TOIS 2022, sections 5.1 and 5.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.edit.vary import chance_of, refuse_documents_edit
from shaketable.errors import check_within
from shaketable.measure.change import drop_rate
from shaketable.measure.comparison import EXPLAINED, compare, mean_movement, query_means, starred
from shaketable.measure.facets import TYPOS, WORDING
from shaketable.measure.significance import FEWEST_QUERIES
from shaketable.registry import EDITS
from shaketable.task.changed import RERANKER, Added, Shaken, Trial, shake, stability_findings, stability_rows
from shaketable.task.sliced import SLICES, sliced
from shaketable.types import Context, Example, Figure, Finding, Result

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.bench import Bench

FACETS = {"1-char": TYPOS, "word": WORDING}
"""What one slip, and one changed word, speak for. Two slips in a query are few people's."""
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
    attacked `draws` times by each attack; a query's value is the mean over them. Any edit can be an attack.
    """

    measure: str = "nDCG@10"
    attacks: tuple[str, ...] = tuple(NAMES)
    draws: int = 5

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_within("query_attack", self, draws=(1, 10_000))
        for text in self.attacks:
            refuse_documents_edit(EDITS.build(text))

    def run(self, bench: Bench) -> Result:
        import pandas as pd

        attacks = {NAMES.get(text, text): self._attacked(bench, text) for text in self.attacks}
        applicable = {name: attacked for name, attacked in attacks.items() if attacked}
        rows: list[dict[str, Any]] = []
        stability: list[dict[str, Any]] = []
        details: list[dict[str, Any]] = []
        examples: list[Example] = []
        lost: dict[tuple[str, str], Mapping[str, float]] = {}
        stay: dict[tuple[str, str], Mapping[str, float]] = {}
        for name in bench.scoring:
            for attack, attacked in applicable.items():
                shaken = shake(bench, name, [a.trial for a in attacked], self.measure, RERANKER)
                rows.append({"attack": attack, "ranker": name} | self._row(bench, attacked, shaken))
                stability += stability_rows(
                    bench, {"attack": attack, "ranker": name}, [a.trial.qid for a in attacked], shaken.movements
                )
                lost[attack, name], stay[attack, name] = shaken.drops(weights=bench.weights), shaken.overlaps()
                details += _details(attack, name, attacked, shaken)
                examples += _worst(name, attack, shaken)
        summary = pd.DataFrame(rows)
        if len(summary) and bench.qrels:
            summary = starred(summary)
        tables = {"query attack": summary, "stability": pd.DataFrame(stability), "shares of edits": _shares(attacks)}
        tables["per query"] = pd.DataFrame(details)
        slices, worst_slices = self._slices(bench, tables["per query"])
        return Result(
            "query-attack",
            "What does a slip of the keyboard, or a changed word, cost?",
            tables | slices,
            _figures(bool(bench.qrels)) if len(summary) else (),
            (*self._notes(bench, attacks), *([SLICES] if slices else [])),
            (
                *(self._findings(summary, lost) if bench.qrels else ()),
                *stability_findings(stability, "attack", stay, {} if bench.qrels else FACETS),
                *worst_slices,
            ),
            tuple(examples),
            brief=("query attack", "shares of edits")
            if bench.qrels
            else ("query attack", "stability", "shares of edits"),
        )

    def _attacked(self, bench: Bench, text: str) -> list[Attacked]:
        """Every query, attacked as often as asked for; what an attack does not apply to is left out."""
        edit = EDITS.build(text)
        attacked = []
        for qid, query in bench.texts.items():
            context = Context(query, bench.queries[qid].description, bench.vocabulary)
            for draw in range(self.draws):
                draws = chance_of(edit, bench.seed, qid, draw)
                if hasattr(edit, "attack"):
                    outcome = edit.attack(query, draws, context)
                else:
                    changed = edit.apply(query, draws, context)
                    outcome = None if changed is None else (changed, (EDITS.spec(edit),))
                if outcome is not None:
                    attacked.append(Attacked(draw, Trial(qid, outcome[0], query), outcome[1]))
        return attacked

    def _row(self, bench: Bench, attacked: list[Attacked], shaken: Shaken) -> dict[str, Any]:
        """Before, after, and what chance could do, over queries; the spread of the drop over draws beside it."""
        qids = [a.trial.qid for a in attacked]
        moved = mean_movement(qids, shaken.movements, bench.weights)
        if shaken.before is None or shaken.after is None:
            return moved | {"queries": len(set(qids))}
        compared = compare(query_means(qids, shaken.before), query_means(qids, shaken.after), bench.seed, bench.weights)
        start = compared.before
        by_draw = [
            100 * drop_rate(float(shaken.before[part].mean()), float(shaken.after[part].mean()))
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

    def _findings(self, summary: pd.DataFrame, lost: Added) -> list[Finding]:
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
                facet=FACETS.get(row["attack"], ""),
                values=lost[row["attack"], row["ranker"]],
            )
            for _, row in summary.iterrows()
        ]

    def _slices(self, bench: Bench, details: pd.DataFrame) -> tuple[dict[str, pd.DataFrame], list[Finding]]:
        """The change of value, or without judgements the overlap, by slices of the queries."""
        if not len(details):
            return {}, []
        return sliced(bench, details, "change" if bench.qrels else "overlap@10", "change under query attack")

    def _notes(self, bench: Bench, attacks: dict[str, list[Attacked]]) -> list[str]:
        notes = [f"Each ranker ranks {bench.pool}. The candidates are those of the original query."]
        if bench.qrels:
            notes += [
                (
                    f"'before' and 'after' are {self.measure} of the original and of the attacked queries, with "
                    f"{self.draws} attacks on each query, drawn at random; 'drop %' is the difference in per cent of "
                    "'before', negative where the attack hurts. For example, 1-char changes one letter."
                ),
                (
                    "'low' and 'high' are the ends of the 95 % interval of the drop over queries; 'p (Holm)' is by a "
                    "paired t-test, corrected for all rows, and a star marks p below 0.05. 'sd over draws' is the "
                    "standard deviation of the drop from draw to draw, and 'effect size' is Cohen's d: the mean "
                    "change, divided by the standard deviation of the changes."
                ),
            ]
        notes.append(EXPLAINED)
        notes.append("The table 'shares of edits' counts the 'edits' of each kind; 'share %' is their percentage.")
        if len(bench.queries) < FEWEST_QUERIES:
            notes.append(f"There are fewer than {FEWEST_QUERIES} queries, so no drop is marked as significant.")
        wanted = len(bench.queries) * self.draws
        for name, attacked in attacks.items():
            if missing := wanted - len(attacked):
                notes.append(f"The attack {name} could not be made in {missing} of {wanted} cases.")
        return notes


def _details(attack: str, ranker: str, attacked: list[Attacked], shaken: Shaken) -> list[dict[str, Any]]:
    rows = []
    for i, (a, moved) in enumerate(zip(attacked, shaken.movements, strict=True)):
        row: dict[str, Any] = {"attack": attack, "ranker": ranker, "query": a.trial.qid, "draw": a.draw}
        row["text"] = a.trial.text
        if shaken.before is not None and shaken.after is not None:
            start, end = float(shaken.before[i]), float(shaken.after[i])
            row |= {"before": start, "after": end, "change": end - start}
        rows.append(row | {"overlap@10": moved.overlap, "fall of first": moved.fall})
    return rows


def _worst(ranker: str, attack: str, shaken: Shaken) -> list[Example]:
    """The attacked queries that lost most, or without judgements moved most."""
    if shaken.before is not None and shaken.after is not None:
        loss = shaken.before - shaken.after
    else:
        loss = np.array([1 - moved.overlap for moved in shaken.movements])
    order = np.argsort(-loss, kind="stable")[:EXAMPLES]
    return [shaken.example(ranker, int(i), attack) for i in order if loss[i] > 0]


def _shares(attacks: dict[str, list[Attacked]]) -> pd.DataFrame:
    """Which edits the attacks consist of."""
    import pandas as pd

    rows = []
    for name, attacked in attacks.items():
        counts = Counter(kind for a in attacked for kind in a.kinds)
        rows += [
            {"attack": name, "edit": kind, "share %": 100 * n / counts.total(), "edits": n}
            for kind, n in sorted(counts.items())
        ]
    return pd.DataFrame(rows, columns=["attack", "edit", "share %", "edits"])


def _figures(judged: bool) -> tuple[Figure, ...]:
    if not judged:
        title = "The share of the first ten documents that stay among the first ten"
        return (Figure("bars", "query attack", title, x="ranker", y="overlap@10", color="attack"),)
    return (
        Figure(
            "bars",
            "query attack",
            "What each attack costs, in per cent of the mean",
            x="ranker",
            y="drop %",
            color="attack",
        ),
        Figure(
            "heatmap",
            "query attack",
            "What each attack costs each ranker, in per cent of the mean",
            x="ranker",
            y="attack",
            color="drop %",
        ),
    )

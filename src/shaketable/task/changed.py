"""What a ranker makes of changed queries: the part that all experiments on queries share.

Two settings. "pipeline": all of it sees the changed query; a retriever searches with it, a re-ranker re-ranks what the
first stage finds for it. "re-ranker": the candidates are those of the original query, and only the ranker sees the
changed one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shaketable.edit.vary import Variation, prepared
from shaketable.measure.comparison import (
    BETTER,
    COLUMNS,
    Movement,
    Weights,
    movement,
    movement_means,
    query_means,
)
from shaketable.measure.effectiveness import Evaluator, parse
from shaketable.types import Example, Finding, Qrels, Run, ranking

if TYPE_CHECKING:
    from shaketable.bench import Bench

PIPELINE = "pipeline"
RERANKER = "re-ranker"
SETTINGS = (
    "In the setting 'pipeline' the first stage and the ranker both see the changed query; in the setting 're-ranker' "
    "the candidates stay those of the original query, and only the ranker sees the changed one."
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One changed query: whose it is, its new text, and the text that it was made of."""

    qid: str
    text: str
    original: str = field(default="", compare=False)


def settings(bench: Bench) -> tuple[str, ...]:
    """The settings that make sense: with candidates of its own a collection has no pipeline to change."""
    return (RERANKER,) if bench.collection.candidates else (PIPELINE, RERANKER)


def runs_of(bench: Bench, ranker: str, trials: Sequence[Trial], setting: str) -> Run:
    """The list of each trial, keyed by its place; each distinct text of a query is ranked once."""
    first: dict[Trial, int] = {}
    for trial in trials:
        first.setdefault(trial, len(first))
    texts = {str(i): trial.text for trial, i in first.items()}
    if setting == PIPELINE:
        lists = bench.answer(ranker, texts)
    else:
        candidates = {str(i): bench.candidates.get(trial.qid, {}) for trial, i in first.items()}
        lists = bench.rerank(ranker, texts, candidates)
    return {str(i): lists.get(str(first[trial]), {}) for i, trial in enumerate(trials)}


def values_of(bench: Bench, measure: str, trials: Sequence[Trial], run: Run) -> NDArray[np.float64]:
    """A measure's value for each trial, by the judgements of the query it came from."""
    wanted = parse(measure)
    qrels = {str(i): bench.qrels[trial.qid] for i, trial in enumerate(trials)}
    values = Evaluator((wanted,), qrels).per_query(run)[wanted]
    return np.array([values[key] for key in qrels])


@dataclass(frozen=True)
class Shaken:
    """One ranker under one setting: the list of each trial and of the text it was made of, and what they are worth.

    Without judgements there are no values, and what is left to compare are the lists.
    """

    trials: Sequence[Trial]
    old: Run
    new: Run
    before: NDArray[np.float64] | None
    after: NDArray[np.float64] | None
    qrels: Qrels = field(default_factory=dict)

    @cached_property
    def movements(self) -> list[Movement]:
        """How far each trial's list moved."""
        tops = {key: ranking(scores) for key, scores in self.old.items()}
        return [movement(tops[str(i)], ranking(self.new[str(i)])) for i in range(len(self.trials))]

    def drops(self, places: Sequence[int] | None = None, weights: Weights | None = None) -> dict[str, float]:
        """What each query adds to the drop of the mean, in per cent, by all trials or those at some places.

        Empty without judgements, or where all was 0.
        """
        if self.before is None or self.after is None:
            return {}
        chosen = range(len(self.trials)) if places is None else places
        qids = [self.trials[i].qid for i in chosen]
        before, after = (query_means(qids, values[list(chosen)]) for values in (self.before, self.after))
        return drops(before, after, weights)

    def overlaps(self, places: Sequence[int] | None = None) -> dict[str, float]:
        """The share of the first ten documents that stay, by query."""
        chosen = range(len(self.trials)) if places is None else places
        known = [i for i in chosen if not np.isnan(self.movements[i].overlap)]
        return query_means([self.trials[i].qid for i in known], [self.movements[i].overlap for i in known])

    def example(self, ranker: str, place: int, shake: str) -> Example:
        """A trial as an example: the texts, the values, and a document that moved.

        That is the relevant one that fell furthest, or rose furthest where the value rose; without judgements, or if no
        relevant document moved, it is the one that was first.
        """
        trial, key = self.trials[place], str(place)
        old, new = ranking(self.old[key]), ranking(self.new[key])
        values = [float("nan") if v is None else float(v[place]) for v in (self.before, self.after)]
        document = self._moved(trial.qid, old, new, values[1] > values[0]) or (old[0] if old else "")
        return Example(
            ranker,
            trial.qid,
            shake,
            trial.original or trial.text,
            trial.text,
            values[0],
            values[1],
            document,
            _place(old, document),
            _place(new, document),
        )

    def _moved(self, qid: str, old: Sequence[str], new: Sequence[str], rising: bool) -> str:
        """The relevant document of either list's first ten that fell furthest, or rose; "" if none did."""
        relevant = [docno for docno in (*old[:10], *new[:10]) if self.qrels.get(qid, {}).get(docno, 0) > 0]
        below = max(len(old), len(new)) + 1
        falls = {d: (_place(new, d) or below) - (_place(old, d) or below) for d in relevant}
        furthest = max(falls, key=lambda d: -falls[d] if rising else falls[d], default="")
        return furthest if furthest and falls[furthest] and (falls[furthest] < 0) == rising else ""


def drops(before: Mapping[str, float], after: Mapping[str, float], weights: Weights | None = None) -> dict[str, float]:
    """What each query that has both values adds to the drop of their mean, in per cent of the mean before.

    >>> drops({"a": 0.5, "b": 0.5}, {"a": 0.25, "b": 0.5})
    {'a': -50.0, 'b': 0.0}
    """
    both = [qid for qid in before if qid in after]
    heavy = [weights[qid] for qid in both] if weights else None
    start = float(np.average([before[qid] for qid in both], weights=heavy)) if both else 0.0
    return {qid: 100 * (after[qid] - before[qid]) / start for qid in both} if start else {}


def shake(bench: Bench, ranker: str, trials: Sequence[Trial], measure: str, setting: str) -> Shaken:
    """Rank each trial and the text it was made of, and measure both where there are judgements."""
    plain = [Trial(trial.qid, trial.original or bench.queries[trial.qid].text) for trial in trials]
    old, new = runs_of(bench, ranker, plain, setting), runs_of(bench, ranker, trials, setting)
    if not bench.qrels:
        return Shaken(trials, old, new, None, None)
    before, after = values_of(bench, measure, plain, old), values_of(bench, measure, trials, new)
    return Shaken(trials, old, new, before, after, bench.qrels)


def _place(docnos: Sequence[str], docno: str) -> int:
    """Where a document stands, from 1; 0 if it is not there."""
    return docnos.index(docno) + 1 if docno in docnos else 0


def stability_rows(
    bench: Bench, about: Mapping[str, str], qids: Sequence[str], movements: Sequence[Movement]
) -> list[dict[str, Any]]:
    """How far the lists moved, by each measure that needs no judgements, with intervals over queries."""
    return [
        {**about, "measure": heading, "mean": mean.value, "low": mean.low, "high": mean.high, "queries": mean.n}
        for heading, mean in movement_means(qids, movements, bench.seed, bench.weights).items()
    ]


Added: TypeAlias = Mapping[tuple[str, str], Mapping[str, float]]
"""(what was done to the queries, ranker) -> what each query adds to a number."""


def stability_findings(
    rows: Sequence[Mapping[str, Any]], by: str, overlaps: Added, facets: Mapping[str, str]
) -> list[Finding]:
    """These rows as findings, such as "overlap(misspelling)" and "RBO(misspelling)".

    `facets` says what the overlap speaks for: a facet for each thing that was done, and nothing where judgements do.
    """
    findings = []
    for row in rows:
        overlap = row["measure"] == COLUMNS["overlap"]
        findings.append(
            Finding(
                row["ranker"],
                f"{'overlap' if overlap else row['measure']}({row[by]})",
                row["mean"],
                row["low"],
                row["high"],
                row["queries"],
                better=BETTER[row["measure"]],
                facet=facets.get(row[by], "") if overlap else "",
                values=overlaps[row[by], row["ranker"]] if overlap else {},
            )
        )
    return findings


def originals(bench: Bench, variations: Sequence[Variation]) -> list[Trial]:
    """The queries as trials among others, prepared as these variations of them are: in lower case, as a rule."""
    texts = {v.qid: v.original for v in variations}
    lower = all(text == text.lower() for text in texts.values())
    return [Trial(qid, texts.get(qid) or prepared(text, lower)) for qid, text in bench.texts.items()]

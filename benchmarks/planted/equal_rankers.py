"""The failure rate of the default gate for two rankers that are equally effective (an A/A test).

One ranker is the first stage and the other re-ranks its lists. Both score by the judgements plus noise of the same
size, drawn independently for each trial and query, and the queries of a trial are resampled from those of the audit. So
each trial has the real queries, judgements and spread of per-query values, and the gate should not fail. The trials use
the real tasks that compare a ranker with its first stage, and the real verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from benchmarks.planted.audits import Workers, open_collection
from benchmarks.planted.bases import UNJUDGED, KnownTexts, Level, draw_normals
from benchmarks.planted.design import MAX_QUERIES, SAMPLE
from benchmarks.planted.reading import RANKER, read_verdict

import shaketable
from shaketable.core.documents import Collection, Run, Scores, Slate
from shaketable.core.registries import TASKS
from shaketable.core.seeding import make_numpy_rng
from shaketable.measures.rates import exact_interval
from shaketable.tasks.runner import list_default_tasks

LEVELS: tuple[Level, ...] = ("low", "mediocre", "good")


@dataclass(frozen=True)
class ListedRanker:
    """A ranker with given lists."""

    recorded: Run
    name: str = RANKER

    def score(self, slates: Sequence[Slate]) -> Sequence[Scores]:
        raise NotImplementedError("a ranker with given lists has no new scores")


@dataclass(frozen=True)
class ListedModel:
    """The model of a ranker with given lists."""

    ranker: ListedRanker

    def open(self, collection: Collection) -> ListedRanker:
        return self.ranker


@dataclass(frozen=True)
class EqualRankersRate:
    """The number of trials, of failed gates, and of failures by facet or rule."""

    level: Level
    trials: int
    failed: int
    inconclusive: int
    reasons: dict[str, int]

    @property
    def interval(self) -> tuple[float, float]:
        """The exact 95 % interval of the failure rate."""
        return exact_interval(self.failed, self.trials)


def measure_equal_rankers(trials: int, workers: Workers) -> list[EqualRankersRate]:
    """Return the failure rate of the gate at each base level."""
    rates = []
    for level in LEVELS:
        outcomes = list(workers.pool.map(partial(run_trial, level), range(trials), chunksize=max(1, trials // 20)))
        failed = [reasons for headline, reasons in outcomes if headline == "FAILED"]
        undecided = sum(headline == "INCONCLUSIVE" for headline, _ in outcomes)
        reasons = Counter(reason for some in failed for reason in some)
        rates.append(EqualRankersRate(level, trials, len(failed), undecided, dict(reasons.most_common())))
    return rates


def run_trial(level: Level, number: int) -> tuple[str, list[str]]:
    """Return the headline of the verdict on one pair of equal rankers, and the facets and rules that fail."""
    known, calibration = open_collection(SAMPLE)
    lists = _search_lists()
    drawn = make_numpy_rng(0, "equal rankers", level, number).choice(sorted(lists), size=MAX_QUERIES)
    slots = {f"{slot:02d}-{qid}": str(qid) for slot, qid in enumerate(drawn)}
    first, second = (
        {slot: _draw_scores(known, qid, list(lists[qid]), calibration.noise[level], (level, number, side, slot))
         for slot, qid in slots.items()}
        for side in ("first", "second")
    )  # fmt: skip
    source = known.collection
    collection = replace(
        source,
        queries={slot: source.queries[qid] for slot, qid in slots.items()},
        qrels={slot: source.qrels[qid] for slot, qid in slots.items()},
        splits={},
        variants={},
        candidates=first,
        source="",
    )
    tasks = [name for name in list_default_tasks() if not TASKS.get_class(name).needs_scoring]
    audit = shaketable.audit(collection, {RANKER: ListedModel(ListedRanker(second))}, tasks, runs=False)
    reading = read_verdict(audit)
    failed = any(status == "fail" for status in reading.rules.values())
    undecided = "inconclusive" in reading.rules.values()
    return "FAILED" if failed else "INCONCLUSIVE" if undecided else "PASSED", reading.failures


def _draw_scores(
    known: KnownTexts, qid: str, docnos: list[str], noise: float, seed: tuple[object, ...]
) -> dict[str, float]:
    names = known.noise_names[[known.numbers[docno] for docno in docnos]]
    grades = np.array([known.grades.get(qid, {}).get(docno, UNJUDGED) for docno in docnos])
    return dict(zip(docnos, (grades + noise * draw_normals(names, *seed)).tolist(), strict=True))


def _search_lists() -> dict[str, dict[str, float]]:
    known, calibration = open_collection(SAMPLE)
    return known.search_bm25(calibration.qids)

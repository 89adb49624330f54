"""Score differences of probe pairs, and the threshold delta above which they count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Doc, Slate
from shaketable.measures.preference import (
    typical_gap,
)
from shaketable.probes.batch import PairTable, ProbeBatch
from shaketable.scoring.traits import RankerTraits

if TYPE_CHECKING:
    from shaketable.experiment import Experiment

Differences = NDArray[np.float64]


@dataclass(frozen=True)
class DeltaThreshold:
    """The queries for measuring deltas: those of another split, if the collection has one."""

    experiment: Experiment
    qids: tuple[str, ...]
    description: str

    def measure_delta(self, ranker: str) -> float:
        """Return the typical score difference between neighbours in the lists of a ranker."""
        texts = {qid: self.experiment.texts[qid] for qid in self.qids}
        lists = self.experiment.rerank(ranker, texts, self.experiment.candidates)
        return typical_gap(list(scores.values()) for scores in lists.values())


def build_delta_threshold(experiment: Experiment, max_queries: int) -> DeltaThreshold:
    """Return the queries to measure delta on."""
    for split in ("validation", "dev", "train"):
        known = experiment.collection.splits.get(split, ())
        if experiment.split and split != experiment.split and not set(known) & set(experiment.queries) and known:
            other = replace(experiment.with_collection(experiment.collection, split), limit=max_queries)
            description = f"on {len(other.queries)} queries of the split {split}, which are not tested"
            return DeltaThreshold(other, tuple(other.queries), description)
    some = tuple(experiment.queries)[:max_queries]
    return DeltaThreshold(experiment, some, f"on {len(some)} of the tested queries, because there are no others")


def score_differences(
    experiment: Experiment, ranker: str, drawn: Mapping[str, ProbeBatch], units: PairTable
) -> dict[str, Differences]:
    """Return the difference in score of each pair of each probe; NaN where the ranker failed.

    A pointwise ranker scores each distinct text once. Any other ranker scores lists: the candidates of the query with
    the changed text instead of the original. If the original is not a candidate, it scores the two texts alone, in
    both orders.
    """
    if RankerTraits.from_ranker(experiment.get_ranker(ranker), ranker).pointwise:
        scores = score_pair_table(experiment, ranker, units)
        return {key: scores[one.first] - scores[one.second] for key, one in drawn.items()}
    return _score_in_lists(experiment, ranker, drawn)


def score_pair_table(experiment: Experiment, ranker: str, units: PairTable) -> Differences:
    """Return the score of each query and text of the table."""
    by_query: dict[str, list[int]] = {}
    for number, (query, _) in enumerate(units.pairs):
        by_query.setdefault(query, []).append(number)
    slates = [Slate(query, tuple(units.pairs[n][1] for n in numbers)) for query, numbers in by_query.items()]
    answers = experiment.engine.score(experiment.get_ranker(ranker), slates, ranker, experiment.get_remote_spec(ranker))
    scores = np.full(len(units.pairs), np.nan)
    for numbers, answer in zip(by_query.values(), answers, strict=True):
        if answer is not None:
            scores[numbers] = answer
    return scores


def _score_in_lists(experiment: Experiment, ranker: str, drawn: Mapping[str, ProbeBatch]) -> dict[str, Differences]:
    slates: dict[Slate, int] = {}

    def register_slate(slate: Slate, index: int) -> tuple[int, int]:
        return slates.setdefault(slate, len(slates)), index

    wanted: dict[str, list[list[tuple[tuple[int, int], tuple[int, int]]]]] = {}
    for key, one in drawn.items():
        wanted[key] = []
        for i in range(len(one)):
            query, first = one.pair_table.pairs[one.first[i]]
            second = one.pair_table.pairs[one.second[i]][1]
            docs, index = _find_candidates(experiment, one, i)
            if index >= 0:
                lists = [Slate(query, (*docs[:index], doc, *docs[index + 1 :])) for doc in (first, second)]
                wanted[key].append([(register_slate(lists[0], index), register_slate(lists[1], index))])
            else:
                here, there = Slate(query, (first, second)), Slate(query, (second, first))
                wanted[key].append(
                    [
                        (register_slate(here, 0), register_slate(here, 1)),
                        (register_slate(there, 1), register_slate(there, 0)),
                    ]
                )
    answers = experiment.engine.score(
        experiment.get_ranker(ranker), list(slates), ranker, experiment.get_remote_spec(ranker)
    )

    def value(at: tuple[int, int]) -> float:
        answer = answers[at[0]]
        return np.nan if answer is None else float(answer[at[1]])

    return {
        key: np.array([np.mean([value(a) - value(b) for a, b in pairs]) for pairs in lists], dtype=np.float64)
        for key, lists in wanted.items()
    }


def _find_candidates(experiment: Experiment, drawn: ProbeBatch, i: int) -> tuple[list[Doc], int]:
    """Return the candidates of a pair's query, and the index of the original among them, or -1."""
    docno = drawn.docnos[i] if drawn.docnos else ""
    listed = experiment.candidates.get(drawn.qids[drawn.query_indices[i]], {})
    if not docno or docno not in listed:
        return [], -1
    docnos = list(listed)
    return [experiment.collection.docs[one] for one in docnos], docnos.index(docno)

"""Score differences of probe pairs, and the threshold delta above which they count."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.registries import RANKERS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.measures.preference import (
    typical_gap,
)
from shaketable.probes.batch import PairTable, ProbeBatch
from shaketable.training.plan import DEFAULT_FIRST_STAGE

if TYPE_CHECKING:
    from shaketable.experiment import Experiment

Differences = NDArray[np.float64]


MIN_PAIR_LISTS = 10
"""The fewest lists of pair texts from which delta is measured; the lists of the collection replace fewer."""
PAIR_LIST_DEPTH = 100
"""The longest list of pair texts."""


class DeltaThreshold(NamedTuple):
    """A threshold of score differences, and the lists that it was measured on."""

    delta: float
    description: str


def measure_delta(experiment: Experiment, ranker: str, max_queries: int = 0) -> DeltaThreshold:
    """Return the typical score difference between neighbours in the lists of a ranker for the tested queries.

    `max_queries` limits the number of queries, from the first; 0 means all of them.
    """
    texts = dict(islice(experiment.texts.items(), max_queries or None))
    lists = experiment.rerank(ranker, texts, experiment.candidates)
    every, some = len(experiment.texts), len(texts)
    which = f"all {every:,} tested queries" if some == every else f"{some:,} of the {every:,} tested queries"
    gap = typical_gap(list(scores.values()) for scores in lists.values())
    return DeltaThreshold(gap, f"on {which} of {experiment.collection.name}")


def measure_pairs_delta(experiment: Experiment, ranker: str, batch: ProbeBatch) -> DeltaThreshold | None:
    """Return the typical score difference in lists of the texts of pairs; None if there are too few lists.

    The list of a query has the texts of all pairs that BM25 finds for it.
    """
    pairs = [batch.pair_table.pairs[number] for number in np.union1d(batch.first, batch.second).tolist()]
    texts, queries = list(dict.fromkeys(doc for _, doc in pairs)), list(dict.fromkeys(query for query, _ in pairs))
    corpus = MemoryCorpus({str(number): doc for number, doc in enumerate(texts)})
    finder = RANKERS.build(DEFAULT_FIRST_STAGE).open(Collection("texts of pairs", corpus, {}))
    found = zip(queries, finder.search(queries, PAIR_LIST_DEPTH), strict=True)
    slates = [Slate(query, tuple(corpus[docno] for docno in docnos)) for query, docnos in found if len(docnos) > 1]
    if len(slates) < MIN_PAIR_LISTS:
        return None
    answers = experiment.engine.score(experiment.get_ranker(ranker), slates, ranker, experiment.get_remote_spec(ranker))
    gap = typical_gap(answer for answer in answers if answer is not None)
    return DeltaThreshold(gap, f"on {len(slates):,} queries of your pairs, over the texts of the pairs")


def score_differences(
    experiment: Experiment, ranker: str, drawn: Mapping[str, ProbeBatch], units: PairTable
) -> dict[str, Differences]:
    """Return the difference in score of each pair of each probe; NaN where the ranker failed.

    A pointwise ranker scores each distinct text once. Any other ranker scores lists: the candidates of the query with
    the changed text instead of the original. If the original is not a candidate, it scores the two texts alone, in
    both orders.
    """
    if experiment.get_traits(ranker).pointwise:
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


def _find_candidates(experiment: Experiment, drawn: ProbeBatch, i: int) -> tuple[tuple[Doc, ...], int]:
    """Return the candidates of a pair's query, and the index of the original among them, or -1."""
    docno = drawn.docnos[i] if drawn.docnos else ""
    listed = experiment.candidates.get(drawn.qids[drawn.query_indices[i]], {})
    if not docno or docno not in listed:
        return (), -1
    docnos = list(listed)
    return experiment.get_documents(docnos), docnos.index(docno)

"""The consistency task: the stability of the answers to one question, and the meaning of their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Scores, Slate, rank_docnos
from shaketable.core.errors import NotApplicable, check_parameter
from shaketable.core.protocols import can_score_texts
from shaketable.core.results import Result
from shaketable.core.seeding import make_item_rng
from shaketable.measures.facets import INPUT_ORDER, REPEATABILITY
from shaketable.measures.fail_open import INPUT_ORDER_PATTERN, ListOutcome, contradicts, detect_pattern
from shaketable.measures.input_order import mean_kendall_distance, position_sums
from shaketable.measures.rank_distance import Kendall
from shaketable.scoring.traits import RankerTraits
from shaketable.scoring.uncached import Timed
from shaketable.scoring.validation import collapse_ties
from shaketable.tasks._consistency_tables import (
    TOP_RANKS,
    ListAnswers,
    RankerAnswers,
    TiedList,
    build_consistency_findings,
    build_consistency_notes,
    build_consistency_table,
    build_list_table,
    select_consistency_examples,
)

if TYPE_CHECKING:
    from shaketable.experiment import Experiment

POINTWISE_TOLERANCE = 1e-4
"""The relative difference of scores up to which a ranker counts as pointwise: rounding depends on the batch size."""


@dataclass(frozen=True)
class _AskedList:
    """A list in the input orders that a ranker gets: its own order twice, reversed, and shuffled."""

    qid: str
    orders: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Consistency:
    """Repeatability of a ranker's answers: asked twice, with the input in other orders, and ties in the first ten.

    queries   number of lists that are asked for again, drawn at random; 0 is all of them
    shuffles  number of shuffled input orders, besides the order of the first stage and its reverse
    length    number of candidates in each list, the first of the query: at the same cost, more lists are more
              informative than longer lists

    The ranker always gets the whole list, even if it is pointwise.
    """

    queries: int = 40
    shuffles: int = 2
    length: int = 30

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = True
    accepts_search: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_parameter("consistency", self.queries >= 0, "queries", "0 or more", self.queries)
        check_parameter("consistency", 0 <= self.shuffles <= 100, "shuffles", "from 0 to 100", self.shuffles)
        check_parameter("consistency", self.length >= 2, "length", "2 or more", self.length)

    def run(self, experiment: Experiment) -> Result:
        asked = self._draw_lists(experiment)
        if not asked:
            raise NotApplicable("no list has two documents, so there is no order to compare")
        found = [
            _ask_ranker(experiment, name, asked)
            if can_score_texts(experiment.get_ranker(name))
            else _repeat_searches(experiment, name, [one.qid for one in asked], self.length)
            for name in experiment.live_rankers
        ]
        return Result(
            "consistency",
            "Does a ranker give the same answer to the same question?",
            {"consistency": build_consistency_table(found), "per query": build_list_table(found)},
            notes=tuple(build_consistency_notes(found, self.shuffles, self.length)),
            findings=tuple(build_consistency_findings(found)),
            examples=tuple(select_consistency_examples(found, experiment.texts, experiment.get_documents)),
            brief=("consistency",),
        )

    def _draw_lists(self, experiment: Experiment) -> list[_AskedList]:
        """Draw the lists; a larger number of lists contains the smaller ones."""
        sample = experiment.sample_queries(REPEATABILITY) | experiment.sample_queries(INPUT_ORDER)
        listed = [qid for qid in sample if len(experiment.candidates.get(qid, ())) > 1]
        listed.sort(key=lambda qid: make_item_rng(experiment.seed, "asked again", qid).random_bits())
        return [self._make_orders(experiment, qid) for qid in listed[: self.queries or None]]

    def _make_orders(self, experiment: Experiment, qid: str) -> _AskedList:
        own = rank_docnos(experiment.candidates[qid])[: self.length]
        shuffled = [
            make_item_rng(experiment.seed, "input order", qid, k).permutation(own) for k in range(self.shuffles)
        ]
        return _AskedList(qid, tuple(map(tuple, (own, own, own[::-1], *shuffled))))


def _ask_ranker(experiment: Experiment, name: str, asked: Sequence[_AskedList]) -> RankerAnswers:
    """Score whole lists in all input orders with a ranker, without the cache, and compare its answers.

    A ranker that declares itself pointwise also scores the first ten documents alone, as the engine may ask it to.
    """
    traits = experiment.get_traits(name)
    firsts = [(one.qid, one.orders[0]) for one in asked]
    others = [(one.qid, order) for one in asked for order in one.orders[1:]]
    if traits.pointwise:
        others += [(one.qid, one.orders[0][:TOP_RANKS]) for one in asked]
    # two calls, because a ranker may merge equal lists of one call
    before, first_times = _score_orders(experiment, name, firsts)
    scores, other_times = _score_orders(experiment, name, others)
    after, times = iter(scores), iter(other_times)
    answers = [[first, *(next(after) for _ in one.orders[1:])] for one, first in zip(asked, before, strict=True)]
    seconds = [[first, *(next(times) for _ in one.orders[1:])] for one, first in zip(asked, first_times, strict=True)]
    alone = list(after) if traits.pointwise else [None] * len(asked)
    lists = [
        _compare_answers(one, [scores for scores in given if scores is not None], took, head, traits)
        for one, given, took, head in zip(asked, answers, seconds, alone, strict=True)
        if all(scores is not None for scores in given)
    ]
    if traits.detected and (dependent := [one for one in lists if one.depends_on_list]):
        experiment.engine.refute_pointwise(experiment.get_ranker(name), name, experiment.texts[dependent[0].qid])
    return RankerAnswers(
        name,
        tuple(lists),
        tuple(_find_ties(experiment, name)),
        sum(len(order) for _, order in (*firsts, *others)),
        traits.pointwise,
        len(asked),
    )


def _repeat_searches(experiment: Experiment, name: str, qids: Sequence[str], length: int) -> RankerAnswers:
    """Search for each query twice with a search engine, and compare the lists; it gets no list, so no input order."""
    texts = {qid: experiment.texts[qid] for qid in qids}
    first, again = (experiment.search_uncached(name, texts, length) for _ in range(2))
    lists = []
    for qid in (qid for qid in qids if qid in first and qid in again):
        orders = tuple(tuple(rank_docnos(run[qid])) for run in (first, again))
        common = first[qid].keys() & again[qid].keys()
        change = max((abs(first[qid][docno] - again[qid][docno]) for docno in common), default=0.0)
        changed = orders[0][:TOP_RANKS] != orders[1][:TOP_RANKS]
        lists.append(ListAnswers(qid, changed, change, float("nan"), float("nan"), False, orders))
    return RankerAnswers(name, tuple(lists), (), 2 * len(qids), False, len(qids), searches=True)


def _score_orders(
    experiment: Experiment, name: str, wanted: Sequence[tuple[str, Sequence[str]]]
) -> tuple[list[dict[str, float] | None], list[float]]:
    """Return docno -> score of each list, or None where the ranker failed, and the seconds of a list if known."""
    slates = [Slate(experiment.texts[qid], experiment.get_documents(order)) for qid, order in wanted]
    ranker = Timed(experiment.get_ranker(name))
    answers = experiment.engine.score(ranker, slates, name)
    scores = [
        None if scores is None else dict(zip(order, scores.tolist(), strict=True))
        for (_, order), scores in zip(wanted, answers, strict=True)
    ]
    return scores, [ranker.seconds.get(slate, 0.0) for slate in slates]


def _compare_answers(
    one: _AskedList,
    answers: Sequence[Mapping[str, float]],
    seconds: Sequence[float],
    alone: Mapping[str, float] | None,
    traits: RankerTraits,
) -> ListAnswers:
    """Compare the answers to one list: the first two have the same input order, all others have another one."""
    docnos = one.orders[0]
    table = np.array([[scores[docno] for docno in docnos] for scores in answers])
    orders = [_rank(docnos, scores, traits.noise) for scores in table]
    differs = np.abs(table - table[0]) > traits.noise * np.maximum(1.0, np.abs(table[0]))
    shown = np.isin(docnos, [*orders[0][:TOP_RANKS], *orders[1][:TOP_RANKS]])
    repeated = Kendall().between(orders[0], orders[1])
    outcomes = tuple(_detect_failed_open(one, answers, seconds))
    failed = sum(bool(outcome.pattern) for outcome in outcomes)
    inputs, outputs = [one.orders[0], *one.orders[2:]], [orders[0], *orders[2:]]
    above, below = position_sums(inputs, outputs)
    return ListAnswers(
        one.qid,
        changed=orders[0][:TOP_RANKS] != orders[1][:TOP_RANKS] and bool((differs[1] & shown).any()),
        score_change=float(np.abs(table[1] - table[0]).max()),
        # random changes occur for other input orders as well, so they are subtracted
        order_sensitivity=max(0.0, mean_kendall_distance(outputs) - repeated),
        position_weight=above / below if below else float("nan"),
        # single answers without a ranking do not show that the ranker depends on the list
        depends_on_list=not 0 < failed < len(outcomes) - 2 and _depends_on_list(docnos, table, alone, traits.noise),
        orders=tuple(map(tuple, orders)),
        outcomes=outcomes,
    )


def _detect_failed_open(
    one: _AskedList, answers: Sequence[Mapping[str, float]], seconds: Sequence[float]
) -> Iterator[ListOutcome]:
    """Yield the outcome of each answer; one without a ranking must be refuted by another answer to the same list.

    A ranker may agree with the first stage, so only reversed and shuffled lists show that the input order came back.
    """
    docnos = one.orders[0]
    for number, (order, scores) in enumerate(zip(one.orders, answers, strict=True)):
        sent = np.array([scores[docno] for docno in order])
        pattern = detect_pattern(sent)
        if pattern == INPUT_ORDER_PATTERN and number < 2:
            pattern = ""
        aligned = np.array([scores[docno] for docno in docnos])
        others = [(other, given) for other, given in zip(one.orders, answers, strict=True) if given is not scores]
        refuted = any(
            contradicts(aligned, np.array([given[d] for d in docnos]), np.array([given[d] for d in other]))
            for other, given in others
        )
        yield ListOutcome(len(order), pattern if refuted else "", seconds[number], float(sent[0]))


def _rank(docnos: Sequence[str], scores: Scores, noise: float) -> list[str]:
    return rank_docnos(dict(zip(docnos, collapse_ties(scores, noise).tolist(), strict=True)))


def _depends_on_list(
    docnos: Sequence[str], table: NDArray[np.float64], alone: Mapping[str, float] | None, noise: float
) -> bool:
    """Return True if a score changes more with the other documents, or with their order, than in a repeated request."""
    tolerance = (
        max(noise, POINTWISE_TOLERANCE) * np.maximum(1.0, np.abs(table[0])) + 2 * np.abs(table[1] - table[0]).max()
    )
    if alone is not None:
        scores = np.array([alone.get(docno, table[0, i]) for i, docno in enumerate(docnos)])
        table = np.vstack([table, scores])
    return bool((np.abs(table[2:] - table[0]) > tolerance).any())


def _find_ties(experiment: Experiment, name: str) -> Iterator[TiedList]:
    """Yield the neighbours in the first ten of each list of a ranker that have the same score."""
    for qid, scores in experiment.get_run(name).items():
        order = tuple(rank_docnos(scores)[:TOP_RANKS])
        if len(order) > 1:
            top = np.array([scores[docno] for docno in order], dtype=np.float32)  # ranks are by float32
            yield TiedList(qid, order, tuple(top.tolist()))

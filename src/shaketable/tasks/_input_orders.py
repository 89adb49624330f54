"""Rankings of the same lists in several input orders, and their measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from shaketable.core.documents import Slate, rank_docnos
from shaketable.measures.input_order import (
    central_ranking,
    mean_kendall_distance,
    position_curve,
    position_sums,
    position_weight,
)
from shaketable.measures.paired_comparison import (
    MOVEMENT_HEADINGS,
)
from shaketable.rankers.llm.orders import PromptSchedule, run_schedule
from shaketable.scoring.engine import ScoringEngine

if TYPE_CHECKING:
    from shaketable.experiment import Experiment

KENDALL_COLUMN = MOVEMENT_HEADINGS["kendall"]
QUESTIONS_ALONE_COLUMN = "by the questions alone"
OrdersByQuery = Mapping[str, list[list[str]]]
"""query id -> the docnos of its list in several orders."""


@dataclass(frozen=True, eq=False)
class OrderedRankings:
    """The rankings of each list in each input order; a query that failed in any order is absent."""

    inputs: OrdersByQuery
    outputs: OrdersByQuery


def rank_in_orders(
    experiment: Experiment, name: str, inputs: OrdersByQuery, engine: ScoringEngine | None = None
) -> OrderedRankings:
    """Rank each list in each order, by the experiment's scoring engine or by another one."""
    docs = experiment.collection.docs
    texts = experiment.collection.queries
    wanted = [(qid, order) for qid, orders in inputs.items() for order in orders]
    slates = [Slate(texts[qid].text, tuple(docs[docno] for docno in order)) for qid, order in wanted]
    answers = (engine or experiment.engine).score(
        experiment.get_ranker(name), slates, name, experiment.get_remote_spec(name)
    )
    outputs: dict[str, list[list[str]]] = {}
    for (qid, order), scores in zip(wanted, answers, strict=True):
        if scores is not None:
            outputs.setdefault(qid, []).append(rank_docnos(dict(zip(order, scores.tolist(), strict=True))))
    whole = {qid: outputs[qid] for qid in inputs if len(outputs.get(qid, ())) == len(inputs[qid])}
    return OrderedRankings({qid: inputs[qid] for qid in whole}, whole)


def simulate_perfect_answers(make_schedule: Callable[[int], PromptSchedule], found: OrderedRankings) -> OrderedRankings:
    """Return the rankings if each prompt is answered by the central ranking of the list."""
    outputs: dict[str, list[list[str]]] = {}
    for qid, orders in found.inputs.items():
        ranks = {docno: at for at, docno in enumerate(central_ranking(found.outputs[qid]))}
        for order in orders:
            wanted = [ranks[docno] for docno in order]
            answer = partial(sort_by_wanted_rank, wanted)
            outputs.setdefault(qid, []).append([order[i] for i in run_schedule(make_schedule(len(order)), answer)])
    return OrderedRankings(found.inputs, outputs)


def sort_by_wanted_rank(wanted: Sequence[int], shown: tuple[int, ...]) -> tuple[int, ...]:
    """Return the perfect answer: the positions of the shown documents, sorted by their wanted ranks."""
    return tuple(sorted(range(len(shown)), key=lambda i: wanted[shown[i]]))


def measure_questions_alone(perfect: OrderedRankings) -> dict[str, float]:
    weight = position_weight(position_sums(perfect.inputs[qid], perfect.outputs[qid]) for qid in perfect.outputs)
    spreads = [mean_kendall_distance(outputs) for outputs in perfect.outputs.values()]
    return {QUESTIONS_ALONE_COLUMN: float(np.mean(spreads)), "weight of these": weight.value}


def make_scores(order: Sequence[str]) -> dict[str, float]:
    return {docno: float(-rank) for rank, docno in enumerate(order)}


def build_position_rows(found: OrderedRankings) -> Iterator[dict[str, Any]]:
    """Yield a row for each input rank."""
    at: dict[int, list[tuple[float, float]]] = {}
    for qid, outputs in found.outputs.items():
        for shown, given, shift in position_curve(found.inputs[qid], outputs):
            at.setdefault(shown, []).append((given, shift))
    for shown in sorted(at):
        given, shift = np.array(at[shown]).mean(axis=0).tolist()
        yield {"shown at": shown, "comes out at": given, "shift": shift, "lists": len(at[shown])}


def build_query_rows(found: OrderedRankings) -> Iterator[dict[str, Any]]:
    for qid, outputs in found.outputs.items():
        top, bottom = position_sums(found.inputs[qid], outputs)
        yield {
            "query": qid,
            KENDALL_COLUMN: mean_kendall_distance(outputs),
            "first documents": len({order[0] for order in outputs}),
            "position weight": top / bottom if bottom else nan,
        }

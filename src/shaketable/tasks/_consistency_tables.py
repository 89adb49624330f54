"""The tables, findings, examples and notes of the consistency task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from shaketable.core.documents import Doc
from shaketable.core.results import Example, Finding
from shaketable.measures.facets import (
    CHANGED_ANSWERS,
    FAILED_OPEN,
    INPUT_ORDER,
    INPUT_RETURNED,
    ORDER_SENSITIVITY,
    REPEATABILITY,
    TIED_NEIGHBOURS,
    TIES,
)
from shaketable.measures.fail_open import FailOpenReport, ListOutcome
from shaketable.measures.rates import Rate, measure_rate

if TYPE_CHECKING:
    import pandas as pd

TOP_RANKS = 10
ASKED_AGAIN, OTHER_ORDER, TIED = "asked again", "input reversed", "tied neighbours"
"""What examples show."""
ALWAYS_SHARE = 0.9
"""If at least this share of answers are no rankings, the ranker ranks nothing."""
SATURATED_WARNING_PERCENT = 10.0
"""The percentage of documents in the first ten with the highest score of all, from which a note warns you."""


@dataclass(frozen=True)
class ListAnswers:
    """The answers of a ranker to one list: two to the same request, the others with other input orders.

    `orders` has its rankings: asked first, asked again, with the input reversed, and with the input shuffled.
    """

    qid: str
    changed: bool
    score_change: float
    order_sensitivity: float
    position_weight: float
    depends_on_list: bool
    orders: tuple[tuple[str, ...], ...]
    outcomes: tuple[ListOutcome, ...] = ()
    """The outcome of each answer: whether it is a ranking."""


@dataclass(frozen=True)
class TiedList:
    """The first ten documents of a list with their scores."""

    qid: str
    order: tuple[str, ...]
    scores: tuple[float, ...]

    @property
    def pairs(self) -> int:
        """The number of neighbours."""
        return len(self.scores) - 1

    @property
    def tied_percent(self) -> float:
        """The percentage of neighbours with the same score."""
        return 100 * sum(a == b for a, b in pairwise(self.scores)) / self.pairs


@dataclass(frozen=True)
class RankerAnswers:
    """All answers of a ranker; `pairs` is their cost, and `asked` the number of lists, failed ones included.

    `searches` is True for a search engine: a search counts as one pair, it has no input order, and ties are not known.
    """

    ranker: str
    lists: tuple[ListAnswers, ...]
    tops: tuple[TiedList, ...]
    pairs: int
    pointwise: bool
    asked: int
    searches: bool = False

    @cached_property
    def values(self) -> dict[str, dict[str, float]]:
        """Name of the finding -> query id -> value."""
        return {
            CHANGED_ANSWERS: {one.qid: 100.0 * one.changed for one in self.lists},
            ORDER_SENSITIVITY: {one.qid: one.order_sensitivity for one in self.lists if not self.searches},
            TIED_NEIGHBOURS: {top.qid: top.tied_percent for top in self.tops},
            FAILED_OPEN: {one.qid: FailOpenReport(one.outcomes).percent for one in self.lists},
            INPUT_RETURNED: {one.qid: FailOpenReport(one.outcomes).percent_in_input_order for one in self.lists},
        }

    def measure(self, name: str) -> Rate:
        """Return a finding's value and interval; order sensitivity is a share of pairs of documents, from 0 to 1."""
        values = self.values[name]
        if self.searches and not values:
            return Rate(float("nan"), float("nan"), float("nan"), 0, 0)
        if name == ORDER_SENSITIVITY:
            pairs = {one.qid: len(one.orders[0]) * (len(one.orders[0]) - 1) // 2 for one in self.lists}
            rate = measure_rate({qid: 100 * value for qid, value in values.items()}, pairs)
            return Rate(rate.value / 100, rate.low / 100, rate.high / 100, rate.cases, rate.effective_cases)
        cases = {
            TIED_NEIGHBOURS: {top.qid: top.pairs for top in self.tops},
            FAILED_OPEN: (answers := {one.qid: len(one.outcomes) for one in self.lists}),
            INPUT_RETURNED: answers,
        }
        return measure_rate(values, cases.get(name))

    @property
    def fail_open(self) -> FailOpenReport:
        """The outcomes of all answers."""
        return FailOpenReport(tuple(outcome for one in self.lists for outcome in one.outcomes))

    @property
    def sometimes_fails_open(self) -> bool:
        """True if some answers are no rankings, and not all those to reversed and shuffled lists."""
        other_orders = sum(len(one.outcomes) - 2 for one in self.lists)
        return 0 < len(self.fail_open.failed) < ALWAYS_SHARE * other_orders

    @property
    def saturated(self) -> tuple[float, float]:
        """The highest score, and the percentage of documents in the first ten that have it."""
        scores = np.concatenate([top.scores for top in self.tops]) if self.tops else np.zeros(0)
        return (float(scores.max()), 100 * float((scores == scores.max()).mean())) if len(scores) else (0.0, 0.0)


def build_consistency_table(found: Sequence[RankerAnswers]) -> pd.DataFrame:
    """Return a row for each ranker, with the three numbers and their intervals."""
    import pandas as pd

    return pd.DataFrame([_build_row(one) for one in found])


def _build_row(one: RankerAnswers) -> dict[str, Any]:
    row: dict[str, Any] = {"ranker": one.ranker, "lists": len(one.lists)}
    for name, short in ((CHANGED_ANSWERS, "changed"), (ORDER_SENSITIVITY, "order"), (TIED_NEIGHBOURS, "tied")):
        rate = one.measure(name)
        row |= {name: rate.value, f"{short} low": rate.low, f"{short} high": rate.high}
        if name == CHANGED_ANSWERS:
            row["changed lists"] = f"{sum(answer.changed for answer in one.lists)} of {len(one.lists)}"
    weights = [answer.position_weight for answer in one.lists if not np.isnan(answer.position_weight)]
    return row | {
        "without a ranking": f"{len(one.fail_open.failed)} of {len(one.fail_open.outcomes)}",
        "largest score change": max((answer.score_change for answer in one.lists), default=float("nan")),
        "position weight": float(np.mean(weights)) if weights else float("nan"),
        "pairs": one.pairs,
    }


def build_list_table(found: Sequence[RankerAnswers]) -> pd.DataFrame:
    """Return a row for each ranker and list that was asked for again."""
    import pandas as pd

    return pd.DataFrame(
        [
            {
                "ranker": one.ranker,
                "query": answer.qid,
                "changed": answer.changed,
                "score change": answer.score_change,
                ORDER_SENSITIVITY: answer.order_sensitivity,
                "position weight": answer.position_weight,
                TIED_NEIGHBOURS: one.values[TIED_NEIGHBOURS].get(answer.qid, float("nan")),
            }
            for one in found
            for answer in one.lists
        ],
        columns=[
            *("ranker", "query", "changed", "score change", ORDER_SENSITIVITY, "position weight", TIED_NEIGHBOURS)
        ],
    )


def build_consistency_findings(found: Sequence[RankerAnswers]) -> Iterator[Finding]:
    """Yield the findings of each ranker: changed answers, order sensitivity and ties."""
    numbers = (
        (CHANGED_ANSWERS, REPEATABILITY, "its first answer"),
        (ORDER_SENSITIVITY, INPUT_ORDER, "other input orders"),
        (TIED_NEIGHBOURS, TIES, "distinct scores"),
    )
    failing = ((FAILED_OPEN, REPEATABILITY, "its other answers"), (INPUT_RETURNED, INPUT_ORDER, "its other answers"))
    for one in found:
        # without such answers, repeatability has one test only; a ranker that ranks no list fails in input order
        for name, facet, against in (*numbers, *(failing if one.sometimes_fails_open else ())):
            if values := one.values[name]:
                rate = one.measure(name)
                yield Finding(
                    one.ranker,
                    name,
                    rate.value,
                    rate.low,
                    rate.high,
                    len(values),
                    better="lower",
                    against=against,
                    facet=facet,
                    values=values,
                )


def select_consistency_examples(
    found: Sequence[RankerAnswers],
    texts: Mapping[str, str],
    get_documents: Callable[[Sequence[str]], tuple[Doc, ...]],
) -> Iterator[Example]:
    """Yield, for each ranker, the worst list of each number that is not 0."""
    for one in found:
        moves = [_find_largest_move(answer, 1) for answer in one.lists if answer.changed]
        yield from _pick_move(one.ranker, ASKED_AGAIN, moves, texts)
        moves = [_find_largest_move(answer, 2) for answer in one.lists if answer.order_sensitivity > 0]  # not NaN
        yield from _pick_move(one.ranker, OTHER_ORDER, moves, texts)
        worst = max(one.tops, key=lambda top: top.tied_percent, default=None)
        if worst and worst.tied_percent:
            at = next(i for i, (a, b) in enumerate(pairwise(worst.scores)) if a == b)
            upper, lower = get_documents(worst.order[at : at + 2])
            yield Example(one.ranker, worst.qid, TIED, upper.text, lower.text, document=worst.order[at + 1])


def _find_largest_move(answer: ListAnswers, number: int) -> tuple[str, str, int, int]:
    """Return the document of the first ten whose rank differs most in another answer: query, docno, and both ranks."""
    first, other = answer.orders[0], answer.orders[number]
    ranks = {docno: rank for rank, docno in enumerate(other, 1)}
    out = len(other) + 1  # a search may no longer find a document
    before, docno = max(enumerate(first[:TOP_RANKS], 1), key=lambda item: abs(ranks.get(item[1], out) - item[0]))
    return answer.qid, docno, before, ranks.get(docno, 0)


def _pick_move(
    ranker: str, change: str, moves: Sequence[tuple[str, str, int, int]], texts: Mapping[str, str]
) -> Iterator[Example]:
    if moves:
        qid, docno, before, after = max(moves, key=lambda move: abs(move[3] - move[2]))
        text = texts[qid]
        yield Example(ranker, qid, change, text, text, document=docno, rank_before=before, rank_after=after)


def build_consistency_notes(found: Sequence[RankerAnswers], shuffles: int, length: int) -> Iterator[str]:
    """Yield notes on the numbers, and on single rankers."""
    yield (
        f"Each ranker was asked for {max(one.asked for one in found)} lists of up to {length} candidates twice, "
        f"without the cache, and with the input reversed and shuffled ({shuffles} times). '{CHANGED_ANSWERS}' is the "
        "percentage of lists whose first ten documents come in another order, by more than the ranker's declared "
        f"noise. '{ORDER_SENSITIVITY}' is the share of pairs of documents that change order with the input order, "
        "minus the share that changes when the same input is asked for again. "
        f"'{TIED_NEIGHBOURS}' is the percentage of neighbours with the same score in the first ten of all its lists. "
        "'changed lists' is the number of lists that change when asked again, and 'largest score change' is the "
        "largest difference between the scores of the two answers. 'position weight' is the number of ranks that a "
        "document gains for each rank that it is shown earlier. 'without a ranking' is the number of answers that are "
        "the input order or one score for all documents, although other answers to the same list are rankings."
    )
    costs = (
        f"{one.pairs:,} {'searches' if one.searches else 'query-document pairs'} for {one.ranker}" for one in found
    )
    yield f"This took {', '.join(costs)}."
    if engines := [one.ranker for one in found if one.searches]:
        yield (
            f"{', '.join(engines)} searched for each query twice. A search engine gets no list of documents, so the "
            "input order is not tested. Its order is kept for tied scores, so ties are not counted."
        )
    for one in found:
        if failed := one.asked - len(one.lists):
            yield f"{one.ranker} failed on {failed} of the {one.asked} lists, which are left out."
        if one.sometimes_fails_open:
            yield (
                f"{one.ranker} fails open: {one.fail_open.describe()}. A server that returns a default when its model "
                "fails or is slow does this."
            )
        dependent = sum(answer.depends_on_list for answer in one.lists)
        if one.pointwise and dependent:
            yield (
                f"{one.ranker} declares itself pointwise, but it is not: in {dependent} of {len(one.lists)} lists, the "
                "score of a document depends on the other documents or on their order. The engine scores documents of "
                "pointwise rankers in any grouping, so other numbers of this ranker may be wrong. Set its attribute "
                "pointwise to False."
            )
        score, share = one.saturated
        if share >= SATURATED_WARNING_PERCENT and one.measure(TIED_NEIGHBOURS).value > 0:
            yield (
                f"{one.ranker} is saturated: {share:.0f} % of the documents in the first ten have its highest score, "
                f"{score:g}, so their order means nothing."
            )

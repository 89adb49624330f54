"""The tables, findings, examples and notes of the document-form task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shaketable.core.documents import MAX_CHANGED_CHARS
from shaketable.core.results import Example, Finding, excerpt_difference
from shaketable.measures.facets import DOCUMENT_FORM, FALLS_OUT, JUMPS_IN, name_test
from shaketable.measures.rates import Rate, measure_rate
from shaketable.transforms.document_form import FORM_CHANGES, FormChange

if TYPE_CHECKING:
    import pandas as pd

TOP_RANKS = 10
EXCERPT_CHARACTERS = 400
UNCHANGED_DOCUMENT = "the unchanged document"


@dataclass(frozen=True)
class FormOutcome:
    """The ranks of a document before and after a change of form; `moved` is True if it left or entered the first ten.

    `is_upper` is True for a document of the first ranks, and False for a document from below the first ten.
    """

    test: str
    qid: str
    docno: str
    is_upper: bool
    moved: bool
    rank_before: int
    rank_after: int
    before: str
    after: str


@dataclass(frozen=True)
class RankerOutcomes:
    """The outcomes of one ranker over its lists, and the number of pairs that it had to score.

    `long_documents` is the number of documents that are too long to change.
    """

    ranker: str
    outcomes: tuple[FormOutcome, ...]
    lists: int
    pairs: int
    long_documents: int = 0

    def select(self, test: str, is_upper: bool) -> list[FormOutcome]:
        """Return the outcomes of one test for the document of the first ranks, or for the one from below."""
        return [one for one in self.outcomes if one.test == test and one.is_upper == is_upper]


def _list_sides(change: FormChange) -> Iterator[tuple[str, bool]]:
    """Yield the panels of a change: the name of the panel, and whether it is about the document of the first ranks."""
    if change.tests_fall:
        yield FALLS_OUT, True
    if change.tests_rise:
        yield JUMPS_IN, False


def _measure(outcomes: Sequence[FormOutcome]) -> tuple[dict[str, float], Rate]:
    values = {one.qid: 100.0 * one.moved for one in outcomes}
    return values, measure_rate(values)


def build_form_table(found: Sequence[RankerOutcomes]) -> pd.DataFrame:
    """Return a row for each test and ranker, with both rates, their counts and their intervals."""
    import pandas as pd

    return pd.DataFrame([_build_row(change, one) for change in FORM_CHANGES for one in found])


def _build_row(change: FormChange, found: RankerOutcomes) -> dict[str, Any]:
    row: dict[str, Any] = {"test": change.name, "ranker": found.ranker}
    for panel, is_upper in _list_sides(change):
        outcomes = found.select(change.name, is_upper)
        _, rate = _measure(outcomes)
        short = "out" if is_upper else "in"
        row |= {
            f"{panel} %": rate.value,
            f"{short} low": rate.low,
            f"{short} high": rate.high,
            f"{short} of": f"{sum(one.moved for one in outcomes)} of {len(outcomes)}",
            f"{short} not applicable": found.lists - len(outcomes),
        }
    return row


def build_outcome_table(found: Sequence[RankerOutcomes]) -> pd.DataFrame:
    """Return the rank of every changed document before and after, without its text."""
    import pandas as pd

    return pd.DataFrame(
        [
            {
                "ranker": one.ranker,
                "test": case.test,
                "query": case.qid,
                "document": case.docno,
                "rank before": case.rank_before,
                "rank after": case.rank_after,
                "moved": case.moved,
            }
            for one in found
            for case in one.outcomes
        ]
    )


def build_form_findings(found: Sequence[RankerOutcomes]) -> Iterator[Finding]:
    """Yield a finding for each ranker, test and panel with at least one case."""
    for one in found:
        for change in FORM_CHANGES:
            for panel, is_upper in _list_sides(change):
                values, rate = _measure(one.select(change.name, is_upper))
                if values:
                    yield Finding(
                        one.ranker,
                        name_test(panel, change.name),
                        rate.value,
                        rate.low,
                        rate.high,
                        len(values),
                        better="lower",
                        against=UNCHANGED_DOCUMENT,
                        facet=DOCUMENT_FORM,
                        values=values,
                    )


def select_form_examples(found: Sequence[RankerOutcomes]) -> Iterator[Example]:
    """Yield, for each ranker, the largest move of each test and panel with an effect; the largest comes first."""
    for one in found:
        moved = [case for case in one.outcomes if case.moved]
        moved.sort(key=lambda case: (-abs(case.rank_after - case.rank_before), case.test, case.qid))
        largest = {(case.test, case.is_upper): case for case in reversed(moved)}
        for case in (case for case in moved if largest[case.test, case.is_upper] is case):
            before, after = excerpt_difference(case.before, case.after, EXCERPT_CHARACTERS)
            yield Example(
                one.ranker,
                case.qid,
                case.test,
                before,
                after,
                document=case.docno,
                rank_before=case.rank_before,
                rank_after=case.rank_after,
            )


def build_form_notes(found: Sequence[RankerOutcomes]) -> Iterator[str]:
    yield (
        "In each list, the form of two documents is changed: one of the first three, a relevant one if possible, and "
        f"one from below the first ten that is not known to be relevant. '{FALLS_OUT} %' is the percentage of the "
        f"first that leave the first ten, '{JUMPS_IN} %' the percentage of the second that enter it; a tie counts as "
        "no change. The counts of these two are in 'out of' and 'in of', and their exact intervals in 'out low' to 'in "
        "high'. A change that does not apply to any such document of a list, such as other years in texts without "
        "years, leaves the list out: 'out not applicable' and 'in not applicable' count these lists."
    )
    yield (
        "The lists are the first 30 documents of each ranker. These changes took "
        + ", ".join(f"{one.pairs:,} query-document pairs for {one.ranker} ({one.lists} lists)" for one in found)
        + "."
    )
    if long := max(one.long_documents for one in found):
        yield f"Documents of more than {MAX_CHANGED_CHARS:,} characters are not changed; the lists have {long} of them."

"""A sequence of findings that is also a table."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from shaketable.core.results import Finding
from shaketable.measures.regression import FindingDelta
from shaketable.measures.significance import correct_intervals

if TYPE_CHECKING:
    import pandas as pd

FindingT = TypeVar("FindingT", bound=Finding | FindingDelta)
FINDING_COLUMNS = (
    *("ranker", "finding", "facet", "task", "where", "against"),
    *("value", "low", "high", "p", "queries", "better"),
)
"""The columns that the findings of an audit and of a comparison share."""
CHANGE_COLUMNS = ("before", "after", "status", "effect", "lost")
"""The further columns of a comparison, in which `value` is the change."""


class FindingTable(tuple[FindingT, ...]):
    """The findings of an audit or of a comparison; a notebook shows them as a table.

    `to_frame` has a row for each finding. The findings of an audit and of a comparison share the columns
    `FINDING_COLUMNS`; for a comparison, `value`, `low` and `high` are the change and its interval, and `p` is corrected
    for all findings.
    """

    __slots__ = ()

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with a row for each finding; numbers are numbers."""
        import pandas as pd

        is_change = any(isinstance(one, FindingDelta) for one in self)
        tests = count_tests(one for one in self if isinstance(one, FindingDelta))
        rows = [_build_change_row(one, tests) if isinstance(one, FindingDelta) else _build_row(one) for one in self]
        return pd.DataFrame(rows, columns=[*FINDING_COLUMNS, *(CHANGE_COLUMNS if is_change else ())])

    def _repr_html_(self) -> str:
        from shaketable.report.notebook import render_frame

        return render_frame(self.to_frame(), "findings")


def _build_row(one: Finding) -> tuple[object, ...]:
    about = (one.ranker, one.name, one.facet, one.task, one.where, one.against)
    return (*about, one.value, one.low, one.high, one.p, one.n, one.better)


def count_tests(deltas: Iterable[FindingDelta]) -> int:
    """Return the number of tests that p is corrected for."""
    return max(1, sum(not math.isnan(delta.p) for delta in deltas))


def correct_change_interval(one: FindingDelta, tests: int) -> tuple[float, float]:
    """Return the 95 % interval of the change of a finding, corrected like its p."""
    pair = one.p, one.corrected_p
    low, high = map(float, correct_intervals(one.loss, one.low, one.high, *pair, one.n, tests))
    return (low, high) if one.better == "lower" else (-high, -low)


def _build_change_row(one: FindingDelta, tests: int) -> tuple[object, ...]:
    about = (one.ranker, one.name, one.facet, one.task, one.where, one.new.against)
    low, high = correct_change_interval(one, tests)
    lost = sum(loss > 0 for loss in one.losses.values())
    change = (one.after - one.before, low, high, one.corrected_p, one.n, one.better)
    return (*about, *change, one.before, one.after, one.status, one.effect, lost)

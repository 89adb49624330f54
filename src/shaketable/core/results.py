"""Results of tasks: score tables, figures, findings, examples and failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import nan
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from shaketable.core.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd
    from altair.typing import ChartType

    from shaketable.core.attack_types import AdversarialDocument


MAX_TEXT_CHARS = 10_000
"""The length of the longest text in examples and in the tables of a report; longer texts become excerpts."""
CHARACTERS_BEFORE_CHANGE = 80
MARK_SUFFIX = " mark"
"""The end of the name of a column of marks, such as "*", on the numbers of the column before it."""
LIST_LENGTH = 10
"""The number of documents in the lists of examples and of pages."""


def load_renderer(name: str) -> Callable[..., Any]:
    """Return the function of the report that draws a result or a figure, imported on first use."""
    from shaketable.core.registries import RENDERERS

    module, _, function = RENDERERS[name].partition(":")
    renderer: Callable[..., Any] = getattr(import_module(module), function)
    return renderer


@dataclass(frozen=True)
class ScoreTable:
    """The values of one effectiveness measure: one row per system, one column per topic."""

    measure: str
    systems: tuple[str, ...]
    topics: tuple[str, ...]
    values: NDArray[np.float64]

    def row(self, system: str) -> NDArray[np.float64]:
        """Return the scores of one system in topic order."""
        row: NDArray[np.float64] = self.values[self.systems.index(system)]
        return row

    def by_topic(self, system: str) -> dict[str, float]:
        """Return topic -> score of one system."""
        return dict(zip(self.topics, self.row(system).tolist(), strict=True))


@dataclass(frozen=True)
class SystemTable:
    """The systems of an experiment by measures, and which systems each of them significantly beats.

    Parameters
    ----------
    systems
        The names of the systems, in the order of the rows.
    measures
        The names of the measures; for all of them, a higher value is better.
    values
        The means, one row for each system.
    beaten
        For each system and measure, the row numbers of the systems with a significantly lower mean.
    queries
        The number of queries.
    comparison
        The test, its level and its correction; empty if nothing was tested.
    """

    systems: tuple[str, ...]
    measures: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    beaten: tuple[tuple[tuple[int, ...], ...], ...]
    queries: int
    comparison: str = ""


@dataclass(frozen=True)
class Figure:
    """A chart of one table, as data; the report draws it.

    Parameters
    ----------
    kind
        The kind of chart, such as "bars", "lines" or "heatmap"; `shaketable.report.charts.CHART_KINDS` lists all.
    table
        The name of the table in `Result.tables`.
    title
        The heading of the chart.
    x, y
        The columns of the horizontal and the vertical axis.
    color
        The column that determines the colour: the series of the chart, or the number in the cells of a heatmap.
    caption
        A sentence below the chart that says how to read it.
    join
        For a scatter chart: a column; a line connects points with equal values.
    mark
        For a scatter chart: a column whose text replaces the point.
    label
        For a scatter chart: a column that names the points if the colour means something else.
    shade
        For a scatter chart: a column of numbers; a point is darker the higher its number. Points without a number are
        as dark as the highest.
    folded
        If True, the report shows the chart collapsed, below the others.
    source
        A similar figure in the literature, such as "Wu et al. 2022, Fig. 2".
    data
        The rows of the table; a `Result` sets them.
    """

    kind: str
    table: str
    title: str
    x: str
    y: str
    color: str = ""
    caption: str = ""
    join: str = ""
    mark: str = ""
    label: str = ""
    shade: str = ""
    folded: bool = False
    source: str = ""
    data: pd.DataFrame | None = field(default=None, repr=False, compare=False)

    def chart(self) -> ChartType:
        """Return the figure as an Altair chart, to change or to show in a notebook.

        Raises
        ------
        BadInput
            If the figure belongs to no result, so that it has no data.
        """
        if self.data is None:
            raise BadInput(f"figure {self.title!r} has no data; take it from the figures of a result")
        chart: ChartType = load_renderer("chart")(self, self.data)
        return chart

    def _repr_html_(self) -> str:
        return str(load_renderer("figure")(self))


@dataclass(frozen=True)
class Failure:
    """A failed query of a ranker; failures are counted and shown, never dropped."""

    ranker: str
    query: str
    reason: str


@dataclass(frozen=True)
class Finding:
    """One number that a task reports about a ranker, with its uncertainty; gates and comparisons read findings.

    Parameters
    ----------
    ranker
        The name of the ranker.
    name
        The name of the number, such as "nDCG@10".
    value
        The number.
    low, high
        The ends of its 95 % confidence interval over the queries.
    n
        The number of queries.
    p
        The p-value of its comparison, corrected for multiple comparisons; NaN if there is none.
    better
        "higher" or "lower": the direction in which the number is better.
    task
        The spec of the task, which distinguishes two settings of one task.
    against
        The baseline of the comparison.
    where
        The slice of queries; empty for all queries.
    facet
        The facet of robustness in the verdict, such as "query typos"; empty for numbers that appear in tables only.
    values
        The contribution of each query, if the number is a mean over queries or a function of one. A comparison of two
        audits pairs these values.
    judged_before, judged_after
        The percentages of judged documents among the first ten before and after a change; NaN if the number is not such
        a comparison.
    """

    ranker: str
    name: str
    value: float
    low: float = nan
    high: float = nan
    n: int = 0
    p: float = nan
    better: Literal["higher", "lower"] = "higher"
    task: str = ""
    against: str = ""
    where: str = ""
    facet: str = ""
    values: Mapping[str, float] = field(default_factory=dict, repr=False)
    judged_before: float = nan
    judged_after: float = nan


@dataclass(frozen=True)
class Example:
    """One case before and after a change: the texts, their values and the document that moved most.

    Parameters
    ----------
    ranker
        The name of the ranker.
    query
        The id or the text of the query.
    change
        A short name of the change, such as the spec of a transform.
    before, after
        The changed text, a query or a document, before and after the change. The two are equal if the change is not in
        a text. Of texts with more than `MAX_TEXT_CHARS` characters, the example keeps excerpts.
    value_before, value_after
        The value of the measure before and after the change; NaN if there is none.
    document
        The id of the document that moved most; empty if there is none.
    rank_before, rank_after
        The ranks of this document, starting at 1; 0 means that it is not in the list.
    list_before, list_after
        The docnos of the first documents before and after the change; empty if the change leaves the other documents
        where they are.
    """

    ranker: str
    query: str
    change: str
    before: str
    after: str
    value_before: float = nan
    value_after: float = nan
    document: str = ""
    rank_before: int = 0
    rank_after: int = 0
    list_before: tuple[str, ...] = ()
    list_after: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        before, after = excerpt_difference(self.before, self.after)
        for name, text in (("query", excerpt(self.query)), ("before", before), ("after", after)):
            object.__setattr__(self, name, text)


def excerpt(text: str, start: int = 0, max_chars: int = MAX_TEXT_CHARS) -> str:
    """Return `max_chars` characters of a text, with "…" where something is left out; short texts stay whole.

    >>> excerpt("one two three", max_chars=3), excerpt("one two three", 4, 3)
    ('one…', '…two…')
    >>> excerpt(excerpt("one two three", 4, 3), max_chars=3)
    '…two…'
    """
    if len(text) <= max_chars + len("……"):  # so that an excerpt of an excerpt is the same
        return text
    end = start + max_chars
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def excerpt_difference(before: str, after: str, max_chars: int = MAX_TEXT_CHARS) -> tuple[str, str]:
    """Return excerpts of two texts that start a little before their first difference; short texts stay whole.

    >>> [len(text) for text in excerpt_difference("a" * 1000 + "b", "a" * 1000 + "c", 400)]
    [82, 82]
    """
    if max(len(before), len(after)) <= max_chars + len("……"):
        return before, after
    shared = min(len(before), len(after))
    blocks = range(0, shared, max_chars)  # comparing blocks is much faster than comparing characters
    block = next((i for i in blocks if before[i : i + max_chars] != after[i : i + max_chars]), shared)
    pairs = enumerate(zip(before[block:], after[block : block + max_chars], strict=False), block)
    first = next((i for i, (old, new) in pairs if old != new), shared) if before != after else 0
    start = max(0, first - CHARACTERS_BEFORE_CHANGE)
    return excerpt(before, start, max_chars), excerpt(after, start, max_chars)


@dataclass(frozen=True)
class Result:
    """The result of a task.

    Parameters
    ----------
    task
        The name of the task.
    question
        The question that the task answers, which is the heading of the result.
    tables
        Tidy tables by name. Files and HTML pages have all of them.
    figures
        The charts of tables.
    notes
        Sentences that a reader of the tables needs.
    findings
        The numbers that gates and comparisons read.
    examples
        Cases before and after a change.
    failures
        The queries on which a ranker failed.
    brief
        The names of the tables for the terminal; by default all short tables.
    attacked
        Documents changed by attacks, which are saved to a separate file.
    sources
        For a table's name, a similar table in the literature.
    system_table
        The systems by measures, as papers print them; None if the task has no such table.
    conclusions
        Sentences that answer the question, for tasks whose findings have no facet.
    """

    task: str
    question: str
    tables: Mapping[str, pd.DataFrame]
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    examples: tuple[Example, ...] = ()
    failures: tuple[Failure, ...] = ()
    brief: tuple[str, ...] = ()
    attacked: tuple[AdversarialDocument, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    system_table: SystemTable | None = None
    conclusions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        drawn = tuple(replace(figure, data=self.tables.get(figure.table)) for figure in self.figures)
        object.__setattr__(self, "figures", drawn)

    def _repr_html_(self) -> str:
        return str(load_renderer("result")(self))

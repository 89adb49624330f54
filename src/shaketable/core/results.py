"""Results of tasks: score tables, figures, findings, examples and failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.core.attack_types import AdversarialDocument


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
class Figure:
    """A chart of one table, as data.

    Attributes
    ----------
    kind
        The type of the chart, such as "bars", "lines" or "scatter".
    table
        The name of the table in the result.
    title, caption
        The title above and the sentence below the chart.
    x, y, color
        The columns of the axes, and of the series or the cells.
    join
        In charts of points, a column: a line connects points with equal values.
    mark
        In charts of points, a column whose text replaces the point.
    label
        In charts of points, a column that names points if the colour has another meaning.
    folded
        True if the page shows the figure collapsed, below the others.
    source
        A similar figure in the literature: "Wu et al. 2022, Fig. 2".
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
    folded: bool = False
    source: str = ""


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

    Attributes
    ----------
    ranker, query
        The ranker, and the text of the query.
    change
        The name of the change.
    before, after
        The query or the document before and after the change.
    value_before, value_after
        The value of the measure before and after; NaN if there is none.
    document
        The id of the document that moved most.
    rank_before, rank_after
        Its ranks, from 1; 0 means that the document is not in the list.
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

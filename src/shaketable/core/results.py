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
    """What one effectiveness measure says: `values` has a row for each system and a column for each topic."""

    measure: str
    systems: tuple[str, ...]
    topics: tuple[str, ...]
    values: NDArray[np.float64]

    def row(self, system: str) -> NDArray[np.float64]:
        """The scores of one system over the topics."""
        row: NDArray[np.float64] = self.values[self.systems.index(system)]
        return row

    def by_topic(self, system: str) -> dict[str, float]:
        """The same scores, by topic."""
        return dict(zip(self.topics, self.row(system).tolist(), strict=True))


@dataclass(frozen=True)
class Figure:
    """A drawing of one table, as data: what goes where. `report` knows how to draw each kind.

    `join` is a column: points that are the same there are joined by a line. `mark` is one too: what is written there
    stands in the place of the point. `label` is a column that names points whose colour says something else. All three
    are for kinds that draw points. A figure that is `folded` is for readers who ask for it, below the others. `source`
    is where the literature has one like it: "Wu et al. 2022, Fig. 2".
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
    """Something that was tried and did not work: counted and shown, never dropped."""

    ranker: str
    query: str
    reason: str


@dataclass(frozen=True)
class Finding:
    """One number that a task found of a ranker, and how far it can be trusted: what gates and comparisons read.

    `low` and `high` are its 95 % interval over `n` queries and `p` is of the comparison that it stands for, already
    corrected for the number of comparisons; NaN where there is none. `task` is the text form of the task, so that two
    settings of one task keep their numbers apart; `against` names what the ranker was compared with; `where` is the
    slice of the queries, and empty for all of them. `facet` is the side of robustness that the number speaks for in the
    answer of an audit, such as "query typos", and empty for numbers that are in the tables only. `values` has what each
    query adds, where the number is a mean over queries or a function of one: what a comparison of two audits pairs.
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


@dataclass(frozen=True)
class Example:
    """One case, before and after: the texts, what they were worth, and the document that moved most.

    Ranks count from 1; 0 means that the document is not in the list.
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
    """What a task found: tidy tables, figures that draw them, remarks, findings for gates, and examples.

    `brief` names the tables for a screen; without it all short ones are shown. Files and pages have every table.
    `attacked` are documents as attacks left them, for a file of their own. `sources` says where in the literature a
    table like ours stands, by its name.
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

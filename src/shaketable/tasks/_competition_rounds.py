"""Rounds of a ranking competition: the rankings of each round, their changes, and their effectiveness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from shaketable.core.documents import Competition, Doc, Slate, rank_docnos
from shaketable.core.errors import RankerFailed
from shaketable.measures.effectiveness import score_tables
from shaketable.measures.paired_comparison import query_means
from shaketable.measures.rank_distance import Kendall, TopChange

if TYPE_CHECKING:
    from shaketable.experiment import Experiment

CHANGE_MEASURES = ("TC", "KT")
MEASURE_HEADINGS = {"AP": "MAP", "nDCG@5": "nDCG@5"}
"""measure of a round -> heading of its mean"""
AuthorScores = Mapping[str, float]
"""author -> score, in one round of one query."""
RoundScores = Mapping[tuple[str, int], AuthorScores]
"""(query id, round) -> the scores of the authors' documents."""


@dataclass(frozen=True)
class RoundChange:
    """The change from one round of a query to the next, by one ranker."""

    qid: str
    round_before: int
    round_after: int
    scores_before: AuthorScores
    scores_after: AuthorScores

    @cached_property
    def ranking_before(self) -> list[str]:
        """The authors before the change, best first; ties are broken by name."""
        return rank_docnos(self.scores_before)

    @cached_property
    def ranking_after(self) -> list[str]:
        return rank_docnos(self.scores_after)

    @cached_property
    def tc(self) -> float:
        return TopChange().between(self.ranking_before, self.ranking_after)

    @cached_property
    def kt(self) -> float:
        return Kendall().between(self.scores_before, self.scores_after)

    @property
    def table_row(self) -> dict[str, Any]:
        first = {"first before": self.ranking_before[0], "first after": self.ranking_after[0]}
        return (
            {"query": self.qid, "round": self.round_before, "next": self.round_after}
            | first
            | {"TC": self.tc, "KT": self.kt}
        )


def list_round_changes(competition: Competition, qid: str, lists: RoundScores) -> list[RoundChange]:
    """Return the changes between consecutive ranked rounds of a query that share two or more authors."""
    return [
        RoundChange(qid, start, end, before, after)
        for start, end in pairwise(competition.get_contested_rounds(qid))
        if (before := lists.get((qid, start))) and (after := lists.get((qid, end)))
        if len(before.keys() & after.keys()) > 1
    ]


def score_rounds(experiment: Experiment, name: str, competition: Competition, qids: Sequence[str]) -> RoundScores:
    """Return the scores of every round by a ranker opened on the experiment's collection, without failed lists."""
    keys = [(qid, turn) for qid in qids for turn in competition.get_contested_rounds(qid)]
    docs = [dict(sorted(competition.rounds[turn][qid].items())) for qid, turn in keys]
    slates = [
        Slate(competition.queries[qid].text, tuple(own.values())) for (qid, _), own in zip(keys, docs, strict=True)
    ]
    answers = experiment.engine.score(experiment.get_ranker(name), slates, name, experiment.get_remote_spec(name))
    lists = {
        key: dict(zip(own, scores.tolist(), strict=True))
        for key, own, scores in zip(keys, docs, answers, strict=True)
        if scores is not None
    }
    if not any(list_round_changes(competition, qid, lists) for qid in qids):
        reason = f": {experiment.engine.failures[0].reason}" if experiment.engine.failures else ""
        raise RankerFailed(f"ranker {name} ranked no two consecutive rounds of the {len(qids)} queries{reason}")
    return lists


@dataclass(frozen=True)
class JudgedRounds:
    """The values of a measure for one ranker, for each judged round of each query."""

    values: Mapping[tuple[str, int], float]

    @property
    def means_by_query(self) -> dict[str, float]:
        return query_means([qid for qid, _ in self.values], list(self.values.values()))

    def get_round_values(self, turn: int) -> list[float]:
        return [value for (_, number), value in self.values.items() if number == turn]


def measure_rounds(
    competition: Competition, qids: Sequence[str], ranked: Mapping[str, RoundScores]
) -> dict[str, dict[str, JudgedRounds]]:
    """Return heading -> ranker -> values. Each round of a query is a topic; a ranker without a list for it has 0."""
    topics = [(qid, turn) for qid in qids for turn in competition.get_contested_rounds(qid)]
    judged = [(qid, turn) for qid, turn in topics if competition.grades.get(turn, {}).get(qid)]
    if not judged:
        return {}
    qrels = {str(i): competition.grades[turn][qid] for i, (qid, turn) in enumerate(judged)}
    runs = {n: {str(i): lists[key] for i, key in enumerate(judged) if key in lists} for n, lists in ranked.items()}
    tables = score_tables(tuple(MEASURE_HEADINGS), qrels, runs)
    return {
        heading: {name: JudgedRounds(dict(zip(judged, table.row(name).tolist(), strict=True))) for name in runs}
        for heading, table in zip(MEASURE_HEADINGS.values(), tables, strict=True)
    }


def get_round_documents(competition: Competition, step: RoundChange, author: str) -> tuple[Doc, Doc]:
    return competition.rounds[step.round_before][step.qid][author], competition.rounds[step.round_after][step.qid][
        author
    ]


def is_rewritten(competition: Competition, step: RoundChange, author: str) -> bool:
    before, after = get_round_documents(competition, step, author)
    return before != after

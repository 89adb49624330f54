"""Calls of a ranker, one list at a time, with the time of each answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from shaketable.core.documents import Doc, Scores, Slate
from shaketable.core.errors import IncompleteAnswer, RankerFailed
from shaketable.core.protocols import Ranker
from shaketable.executors.base import Executor, Job, SerialExecutor, ThreadExecutor, as_completed
from shaketable.scoring.validation import call_ranker

MAX_INCOMPLETE_ANSWERS = 3


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to one list: its scores, or the problem if there are none."""

    slate: Slate
    scores: Scores | None
    seconds: float
    problem: str = ""
    is_incomplete: bool = False
    """True if there were fewer scores than texts."""

    @property
    def by_text(self) -> dict[str, float]:
        """The score of each text; empty if there are no scores."""
        if self.scores is None:
            return {}
        return dict(zip((doc.text for doc in self.slate.docs), self.scores.tolist(), strict=True))


def make_slate(query: str, texts: Sequence[str]) -> Slate:
    """Return a slate of plain texts."""
    return Slate(query, tuple(map(Doc, texts)))


@dataclass
class Examiner:
    """A caller of one ranker that sends each list alone, as many at a time as the ranker allows."""

    ranker: Ranker
    name: str
    asked: int = 0
    """The number of lists so far."""
    _executor: Executor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        concurrent = int(getattr(self.ranker, "max_concurrency", 1))
        self._executor = ThreadExecutor(concurrent) if concurrent > 1 else SerialExecutor()

    def ask(self, slates: Sequence[Slate]) -> list[Answer]:
        """Return the answer to each list; a list that the ranker fails on has a problem in place of scores."""
        self.asked += len(slates)
        jobs = ((i, Job(Examiner._ask_one, self, (slate,))) for i, slate in enumerate(slates))
        answers: dict[int, Answer] = dict(as_completed(self._executor, jobs))
        return [answers[i] for i in range(len(slates))]

    def ask_scores(self, query: str, texts: Sequence[str]) -> Scores:
        """Return the scores of one list; raise the ranker's error if it fails, or if three answers are incomplete."""
        for _ in range(MAX_INCOMPLETE_ANSWERS):
            (answer,) = self.ask([make_slate(query, texts)])
            if answer.scores is not None:
                return answer.scores
            if not answer.is_incomplete:
                break
        raise RankerFailed(answer.problem)

    def _ask_one(self, slate: Slate) -> Answer:
        started = time.perf_counter()
        try:
            (scores,) = call_ranker(self.ranker, self.name, [slate])
        except RankerFailed as error:
            incomplete = isinstance(error, IncompleteAnswer)
            return Answer(slate, None, time.perf_counter() - started, str(error), incomplete)
        return Answer(slate, np.asarray(scores, dtype=np.float64), time.perf_counter() - started)

"""The attack runner: advances many attacks together, so that their requests reach the ranker in large batches."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shaketable.attacks.target import Target
from shaketable.core.attack_types import Attack, AttackCase, AttackOutcome, AttackSteps, ModelQuery, RankQuery, Ranks
from shaketable.core.documents import Doc
from shaketable.core.errors import BadInput, RankerFailed
from shaketable.core.progress import ProgressFactory, no_progress
from shaketable.core.results import Failure
from shaketable.core.seeding import make_item_rng

MAX_CONCURRENT_ATTACKS = 512
"""Attacks that run at the same time."""


def run_attacks(
    attack: Attack,
    cases: Sequence[AttackCase],
    target: Target,
    *,
    budget: int | None = None,
    seed: int = 0,
    max_concurrent: int = MAX_CONCURRENT_ATTACKS,
    progress: ProgressFactory = no_progress,
    progress_label: str = "attacking",
) -> list[AttackOutcome | Failure]:
    """Return the outcome or the failure of each case, in the order of the cases.

    The budget is a number of trials for all cases. It is divided in advance, so neither the order of the cases nor
    `max_concurrent` changes an outcome. A case ends when its attack ends, its share of the budget is spent, or its goal
    is reached. An exception, a ranker failure included, ends only the attack that raised it.
    """
    shares = split_budget(cases, budget)
    waiting = deque(
        (
            i,
            _Running(
                case,
                attack.steps(case, make_item_rng(seed, "attack", *case.key)),
                shares[i],
                target.count_pairs_per_trial(case),
            ),
        )
        for i, case in enumerate(cases)
    )
    running: dict[int, _Running] = {}
    outcomes: dict[int, AttackOutcome | Failure] = {}
    with progress(progress_label, len(cases), "documents") as advance:
        while running or waiting:
            while waiting and len(running) < max_concurrent:
                i, one = waiting.popleft()
                running[i] = one
                one.advance(None)
            answers = _answer_requests(running, target)
            for i, answer in answers.items():
                running[i].record_answer(answer)
            ended = {i: one.result for i, one in running.items() if one.result is not None}
            outcomes |= ended
            running = {i: one for i, one in running.items() if i not in ended}
            advance(len(ended))
    return [outcomes[i] for i in range(len(cases))]


def split_budget(cases: Sequence[AttackCase], budget: int | None) -> list[int | None]:
    """Return the number of trials of each case; the remainder goes to the cases with the smallest keys.

    The shares depend on the keys, so the order of the cases has no effect.
    """
    if budget is None:
        return [None] * len(cases)
    if budget < 1:
        raise BadInput(f"the trial budget must be at least 1, not {budget}; None means no limit")
    share, rest = divmod(budget, len(cases)) if cases else (0, 0)
    first = sorted(range(len(cases)), key=lambda i: cases[i].key)[:rest]
    return [share + (i in set(first)) for i in range(len(cases))]


@dataclass(eq=False)
class _Running:
    """A running attack, with its pending request and its best text so far."""

    case: AttackCase
    steps: AttackSteps
    trials_left: int | None
    pairs_per_trial: int
    request: RankQuery | ModelQuery | None = None
    trial_docs: list[Doc] = field(default_factory=list)
    best_doc: Doc | None = None
    best_ranks: Ranks = ()
    trials: int = 0
    first_success: int = 0
    result: AttackOutcome | Failure | None = None

    def __post_init__(self) -> None:
        self.best_ranks = self.case.ranks

    def advance(self, answer: Any) -> None:
        """Send an answer or an error to the attack and store its next request."""
        try:
            if isinstance(answer, Exception):
                self.request = self.steps.throw(answer)
            else:
                self.request = self.steps.send(answer)
        except StopIteration:
            self.finish()
            return
        except Exception as error:
            self.fail(f"{type(error).__name__}: {error}")
            return
        if isinstance(self.request, RankQuery):
            docs = list(self.request.docs)
            self.trial_docs = docs if self.trials_left is None else docs[: self.trials_left]
            if len(self.trial_docs) < len(docs) and not self.trial_docs:
                self.steps.close()
                self.finish()
        elif not isinstance(self.request, ModelQuery):
            self.fail(f"the attack must yield a RankQuery or a ModelQuery, not {type(self.request).__name__}")

    def record_answer(self, answer: Any) -> None:
        """Record the results of a request and advance the attack."""
        if not isinstance(self.request, RankQuery) or isinstance(answer, Exception):
            self.advance(answer)
            return
        goal = self.case.goal
        best = goal.utility(self.best_ranks)
        for doc, places in zip(self.trial_docs, answer, strict=True):
            self.trials += 1
            if self.request.may_be_outcome and (worth := goal.utility(places)) > best:
                self.best_doc, self.best_ranks, self.first_success, best = (
                    doc,
                    places,
                    self.first_success or self.trials,
                    worth,
                )
        cut = len(self.trial_docs) < len(self.request.docs)
        if self.trials_left is not None:
            self.trials_left -= len(self.trial_docs)
        if cut or goal.is_reached(self.best_ranks):
            self.steps.close()
            self.finish()
        else:
            self.advance(answer)

    def finish(self) -> None:
        doc = self.case.doc if self.best_doc is None else self.best_doc
        self.result = AttackOutcome(
            doc, self.case.ranks, self.best_ranks, self.trials, self.trials * self.pairs_per_trial, self.first_success
        )

    def fail(self, reason: str) -> None:
        self.steps.close()
        self.result = Failure("", self.case.query, reason)


def _answer_requests(running: Mapping[int, _Running], target: Target) -> dict[int, Any]:
    """Return the answer for each running attack: ranks for a `RankQuery`, the model's answer for a `ModelQuery`."""
    asks = {i: one for i, one in running.items() if one.result is None and isinstance(one.request, RankQuery)}
    consults = defaultdict(list)
    for i, one in running.items():
        if one.result is None and isinstance(one.request, ModelQuery):
            consults[one.request.model].append((i, one.request.question))
    answers: dict[int, Any] = {}
    for source, questions in consults.items():
        answers |= _answer_model_queries(source, questions)
    found = iter(target.rank_trials([(one.case, doc) for one in asks.values() for doc in one.trial_docs]))
    for i, one in asks.items():
        places = [next(found) for _ in one.trial_docs]
        failed = RankerFailed(f"no scores for the query {one.case.query!r}") if None in places else None
        answers[i] = failed or places
    return answers


def _answer_model_queries(source: Any, questions: Sequence[tuple[int, Any]]) -> dict[int, Any]:
    """Answer all questions at once; if that fails, answer them one by one, so that only the failing ones fail."""
    try:
        answers = list(source([question for _, question in questions]))
        if len(answers) != len(questions):
            raise ValueError(f"{len(answers)} answers to {len(questions)} questions")
        return {i: answer for (i, _), answer in zip(questions, answers, strict=True)}
    except Exception as error:
        if len(questions) == 1:
            return {questions[0][0]: error}
        return {i: answer for one in questions for i, answer in _answer_model_queries(source, [one]).items()}

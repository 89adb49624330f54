"""Many attacks at once: all advance together, so that what they ask for reaches the ranker in large batches."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shaketable.attacks.target import Target
from shaketable.chance import draws_for
from shaketable.errors import BadInput, RankerFailed
from shaketable.types import Ask, Attack, Case, Consult, Doc, Failure, Outcome, Places, Steps, Watch, unwatched

TOGETHER = 512
"""Attacks that advance at the same time."""


def drive(
    attack: Attack,
    cases: Sequence[Case],
    target: Target,
    *,
    budget: int | None = None,
    seed: int = 0,
    together: int = TOGETHER,
    watch: Watch = unwatched,
    what: str = "attacking",
) -> list[Outcome | Failure]:
    """The outcome of each case, in the order of the cases; whatever goes wrong with one stands in its place.

    The budget is a number of trials for all cases, divided before the first of them, so neither the order of the cases
    nor how many advance together changes an outcome. A case ends when its attack does, when its share of the budget is
    spent, or when its goal is reached. What an attack raises, a ranker's failure included, ends that attack alone.
    """
    shares = divided(cases, budget)
    waiting = deque(
        (i, _Running(case, attack.steps(case, draws_for(seed, "attack", *case.name)), shares[i], target.cost(case)))
        for i, case in enumerate(cases)
    )
    running: dict[int, _Running] = {}
    outcomes: dict[int, Outcome | Failure] = {}
    with watch(what, len(cases), "documents") as advance:
        while running or waiting:
            while waiting and len(running) < together:
                i, one = waiting.popleft()
                running[i] = one
                one.advance(None)
            answers = _answered(running, target)
            for i, answer in answers.items():
                running[i].take(answer)
            ended = {i: one.end for i, one in running.items() if one.end is not None}
            outcomes |= ended
            running = {i: one for i, one in running.items() if i not in ended}
            advance(len(ended))
    return [outcomes[i] for i in range(len(cases))]


def divided(cases: Sequence[Case], budget: int | None) -> list[int | None]:
    """The trials of each case; what does not divide evenly goes to those whose names come first.

    Names decide, not places in the sequence, so that the order of the cases does not matter.
    """
    if budget is None:
        return [None] * len(cases)
    if budget < 1:
        raise BadInput(f"a budget of {budget} trials buys nothing; an attack needs 1 or more, or none to be unlimited")
    share, rest = divmod(budget, len(cases)) if cases else (0, 0)
    first = sorted(range(len(cases)), key=lambda i: cases[i].name)[:rest]
    return [share + (i in set(first)) for i in range(len(cases))]


@dataclass(eq=False)
class _Running:
    """An attack under way: what it wants next, and the best of what it offered."""

    case: Case
    steps: Steps
    left: int | None
    cost: int
    wanted: Ask | Consult | None = None
    asked: list[Doc] = field(default_factory=list)
    best: Doc | None = None
    after: Places = ()
    trials: int = 0
    first: int = 0
    end: Outcome | Failure | None = None

    def __post_init__(self) -> None:
        self.after = self.case.places

    def advance(self, answer: Any) -> None:
        """Send an answer, or an error, and hear what is wanted next."""
        try:
            if isinstance(answer, Exception):
                self.wanted = self.steps.throw(answer)
            else:
                self.wanted = self.steps.send(answer)
        except StopIteration:
            self.finish()
            return
        except Exception as error:
            self.fail(f"{type(error).__name__}: {error}")
            return
        if isinstance(self.wanted, Ask):
            docs = list(self.wanted.docs)
            self.asked = docs if self.left is None else docs[: self.left]
            if len(self.asked) < len(docs) and not self.asked:
                self.steps.close()
                self.finish()
        elif not isinstance(self.wanted, Consult):
            self.fail(f"the attack yielded {type(self.wanted).__name__}, neither an Ask nor a Consult")

    def take(self, answer: Any) -> None:
        """Note what became of a trial, and go on."""
        if not isinstance(self.wanted, Ask) or isinstance(answer, Exception):
            self.advance(answer)
            return
        goal = self.case.goal
        best = goal.worth(self.after)
        for doc, places in zip(self.asked, answer, strict=True):
            self.trials += 1
            if self.wanted.offered and (worth := goal.worth(places)) > best:
                self.best, self.after, self.first, best = doc, places, self.first or self.trials, worth
        cut = len(self.asked) < len(self.wanted.docs)
        if self.left is not None:
            self.left -= len(self.asked)
        if cut or goal.reached(self.after):
            self.steps.close()
            self.finish()
        else:
            self.advance(answer)

    def finish(self) -> None:
        doc = self.case.doc if self.best is None else self.best
        self.end = Outcome(doc, self.case.places, self.after, self.trials, self.trials * self.cost, self.first)

    def fail(self, reason: str) -> None:
        self.steps.close()
        self.end = Failure("", self.case.query, reason)


def _answered(running: Mapping[int, _Running], target: Target) -> dict[int, Any]:
    """What each of the running attacks is to be sent: places for an Ask, the source's answer for a Consult."""
    asks = {i: one for i, one in running.items() if one.end is None and isinstance(one.wanted, Ask)}
    consults = defaultdict(list)
    for i, one in running.items():
        if one.end is None and isinstance(one.wanted, Consult):
            consults[one.wanted.source].append((i, one.wanted.question))
    answers: dict[int, Any] = {}
    for source, questions in consults.items():
        answers |= _consulted(source, questions)
    found = iter(target.places([(one.case, doc) for one in asks.values() for doc in one.asked]))
    for i, one in asks.items():
        places = [next(found) for _ in one.asked]
        failed = RankerFailed(f"no scores for the query {one.case.query!r}") if None in places else None
        answers[i] = failed or places
    return answers


def _consulted(source: Any, questions: Sequence[tuple[int, Any]]) -> dict[int, Any]:
    """Answers to all questions at once; if that fails, one by one, so that each fails for itself."""
    try:
        answers = list(source([question for _, question in questions]))
        if len(answers) != len(questions):
            raise ValueError(f"{len(answers)} answers to {len(questions)} questions")
        return {i: answer for (i, _), answer in zip(questions, answers, strict=True)}
    except Exception as error:
        if len(questions) == 1:
            return {questions[0][0]: error}
        return {i: answer for one in questions for i, answer in _consulted(source, [one]).items()}

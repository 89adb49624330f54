"""Questions with known answers as lists in random order, and what the answers show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shaketable.core.seeding import make_item_rng
from shaketable.datasets.known_answers import KnownAnswer
from shaketable.measures.fail_open import (
    FEWER_RESULTS_PATTERN,
    AnswerPattern,
    FailOpenReport,
    ListOutcome,
    contradicts,
    detect_pattern,
)
from shaketable.rankers.diagnosis.asking import Answer, Examiner, make_slate

Numbers = NDArray[np.float64]
BASE_LENGTH = 8
"""Texts in the lists that are asked for three times: as they are, again, and reversed."""
MIN_REPEATED = 10
"""The least number of questions whose lists are asked for three times."""
OTHER_LENGTHS = (12, 20)
"""Texts in the lists of the other rounds, in turn."""
SERVER_LISTS, LOCAL_LISTS = 200, 60
"""The lists of a diagnosis. With 200 lists, a server that fails open on 3 % of them is found in at least 95 % of the
diagnoses. A ranker in this process hardly fails open.
"""


@dataclass(frozen=True, eq=False)
class AskedQuestions:
    """The answers to all questions: in base lists, the same again, reversed, and in other lists; and what failed open.

    An answer that failed open, or that has no scores, is no evidence for anything else, so `usable` leaves it out.
    """

    questions: tuple[KnownAnswer, ...]
    rounds: tuple[tuple[Answer, ...], ...]
    fail_open: FailOpenReport
    problems: tuple[str, ...]
    _ranked: frozenset[Answer]

    def get_scores(self, number: int, question: int) -> dict[str, float]:
        """Return text -> score of a question in a round; empty if there is no usable answer."""
        answers = self.rounds[number]
        return answers[question].by_text if question < len(answers) and answers[question] in self._ranked else {}

    def iterate_usable(self) -> Iterator[tuple[KnownAnswer, dict[str, float]]]:
        """Yield each question with text -> score, once for each usable answer."""
        for number in range(len(self.rounds)):
            for i, question in enumerate(self.questions):
                if scores := self.get_scores(number, i):
                    yield question, scores

    @property
    def margins(self) -> Numbers:
        """The median score difference of relevant and irrelevant text of each question; NaN if there is none."""
        found: dict[str, list[float]] = {one.query: [] for one in self.questions}
        for question, scores in self.iterate_usable():
            found[question.query].append(scores[question.relevant] - scores[question.irrelevant])
        return np.array([np.median(some) if some else np.nan for some in found.values()])

    @property
    def answered(self) -> int:
        return int((self.margins > 0).sum())


def ask_questions(examiner: Examiner, questions: Sequence[KnownAnswer], seed: int, lists: int) -> AskedQuestions:
    """Ask all questions in lists in random order, and ask again where an answer looks as if it had failed open."""
    total = len(questions)
    repeated = min(total, max(MIN_REPEATED, (lists - total) // 2))
    base = [_draw_texts(questions, i, BASE_LENGTH, seed, 0) for i in range(total)]
    texts = [base, base[:repeated], [some[::-1] for some in base[:repeated]]]
    for number, start in enumerate(range(total + 2 * repeated, lists, total)):
        length = OTHER_LENGTHS[number % len(OTHER_LENGTHS)]
        texts.append([_draw_texts(questions, i, length, seed, 1 + number) for i in range(min(total, lists - start))])
    rounds = tuple(
        tuple(examiner.ask([make_slate(q.query, some) for q, some in zip(questions, asked, strict=False)]))
        for asked in texts
    )
    answers = [answer for some in rounds for answer in some]
    outcomes = find_failed_open(examiner, answers, seed)
    ranked = frozenset(
        answer
        for answer, outcome in zip(answers, outcomes, strict=True)
        if answer.scores is not None and not outcome.pattern
    )
    problems = tuple(answer.problem for answer in answers if answer.problem and not answer.is_incomplete)
    return AskedQuestions(tuple(questions), rounds, FailOpenReport(tuple(outcomes)), problems, ranked)


def find_failed_open(examiner: Examiner, answers: Sequence[Answer], seed: int) -> list[ListOutcome]:
    """Return the outcome of each list; a suspicious one is asked for again in another order, which must confirm it."""
    patterns: list[AnswerPattern] = [
        "" if answer.scores is None else detect_pattern(answer.scores) for answer in answers
    ]
    suspects = [i for i, pattern in enumerate(patterns) if pattern]
    orders = [make_item_rng(seed, "asked again", i).permutation(range(len(answers[i].slate.docs))) for i in suspects]
    again = examiner.ask(
        [
            make_slate(answers[i].slate.query, [answers[i].slate.docs[j].text for j in order])
            for i, order in zip(suspects, orders, strict=True)
        ]
    )
    others = [answer for i, answer in enumerate(answers) if not patterns[i]]
    confirmed = {
        i
        for i, order, second in zip(suspects, orders, again, strict=True)
        if _is_confirmed(answers[i], second, order, others)
    }
    return [
        ListOutcome(
            len(answer.slate.docs),
            FEWER_RESULTS_PATTERN if answer.is_incomplete else patterns[i] if i in confirmed else "",
            answer.seconds,
            float(answer.scores[0]) if answer.scores is not None else 0.0,
        )
        for i, answer in enumerate(answers)
    ]


def _is_confirmed(first: Answer, second: Answer, order: Sequence[int], others: Sequence[Answer]) -> bool:
    """Return True if another answer shows that the first was no ranking: to the same texts, or to some of them."""
    if first.scores is None or second.scores is None:
        return second.is_incomplete
    aligned = np.empty_like(second.scores)
    aligned[list(order)] = second.scores
    if contradicts(first.scores, aligned, second.scores):
        return True
    texts = {doc.text for doc in first.slate.docs}
    return not np.ptp(first.scores) and any(
        other.slate.query == first.slate.query
        and len({score for text, score in other.by_text.items() if text in texts}) > 1
        for other in others
    )


def _draw_texts(questions: Sequence[KnownAnswer], i: int, length: int, seed: int, number: int) -> list[str]:
    """Return the two texts of a question and relevant texts of other questions, in random order."""
    rng = make_item_rng(seed, "question", i, number)
    others = [one.relevant for j, one in enumerate(questions) if j != i]
    texts = [questions[i].relevant, questions[i].irrelevant, *rng.permutation(others)[: length - 2]]
    return rng.permutation(texts)


def ask_pairs(
    examiner: Examiner, questions: Sequence[KnownAnswer], build: Callable[[KnownAnswer, KnownAnswer], tuple[str, ...]]
) -> Numbers:
    """Return the margin of each question: the score of the first text minus that of the second.

    `build` returns the query and the two texts, from a question and another question. The first text comes first in
    every second list, so that an input order has no effect on the mean.
    """
    slates = []
    for i, question in enumerate(questions):
        query, first, second = build(question, questions[(i + 7) % len(questions)])
        slates.append(make_slate(query, (first, second)[:: -1 if i % 2 else 1]))
    answers = examiner.ask(slates)
    scores = np.array([[np.nan] * 2 if answer.scores is None else answer.scores for answer in answers])
    margins: Numbers = -np.diff(undo_sigmoid(scores), axis=1)[:, 0]
    margins[1::2] *= -1
    return margins


def undo_sigmoid(scores: Numbers) -> Numbers:
    """Return the logits of scores between 0 and 1, because a sigmoid hides differences; other scores are unchanged.

    >>> undo_sigmoid(np.array([0.5, 0.731])).round(2).tolist(), undo_sigmoid(np.array([0.5, 7.0])).tolist()
    ([0.0, 1.0], [0.5, 7.0])
    """
    known = scores[~np.isnan(scores)]
    if not ((known >= 0) & (known <= 1)).all():
        return scores
    shares = np.clip(scores, 1e-6, 1 - 1e-6)
    logits: Numbers = np.log(shares / (1 - shares))
    return logits

"""The diagnosis of a ranker: questions with known answers, and the faults that the pattern of errors shows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from shaketable.core.errors import RankerFailed
from shaketable.core.protocols import Ranker
from shaketable.datasets.known_answers import read_known_answers
from shaketable.datasets.validation import ValidationCheck
from shaketable.rankers.diagnosis.asking import Examiner
from shaketable.rankers.diagnosis.evidence import (
    MIN_ANSWERED_SHARE,
    ROUNDING,
    WEAK_SEPARATION,
    Truncation,
    ask_usual_pairs,
    exchange_roles,
    find_missing_template,
    find_truncation,
    measure_stability,
    separation,
)
from shaketable.rankers.diagnosis.faults import Evidence, Fault, name_faults
from shaketable.rankers.diagnosis.questions import LOCAL_LISTS, SERVER_LISTS, ask_questions


@dataclass(frozen=True)
class Diagnosis:
    """The faults of a ranker, and the checks behind them."""

    answered: int
    questions: int
    lists: int
    """The number of lists that the ranker was asked for."""
    faults: tuple[Fault, ...]
    checks: tuple[ValidationCheck, ...]

    @property
    def summary(self) -> str:
        """The outcome in one or a few sentences."""
        if self.faults:
            return " ".join(fault.sentence for fault in self.faults)
        if any(check.severity == "error" for check in self.checks):
            return "The ranker cannot be used; the reason is below."
        if not self.questions:
            return "No fault found. A search engine scores no text outside its index, so it got no questions."
        return f"The ranker answers {self.answered} of {self.questions} questions; no fault found."


def diagnose_ranker(ranker: Ranker, name: str, *, lists: int = 0, seed: int = 0) -> Diagnosis:
    """Ask a ranker questions with known answers in shuffled lists, and name its faults.

    `lists` is the number of shuffled lists, at least 60; by default 200 for a server, and 60 for a ranker in this
    process.
    """
    lists = lists or (SERVER_LISTS if getattr(ranker, "volatile", False) else LOCAL_LISTS)
    questions = read_known_answers()
    examiner = Examiner(ranker, name)
    examiner.ask_scores(questions[0].query, (questions[0].relevant, questions[0].irrelevant))  # raises its errors
    asked = ask_questions(examiner, questions, seed, lists)
    evidence = Evidence(asked)
    if not np.isnan(asked.margins).all():
        evidence = _collect_more(examiner, evidence, seed)
    faults = tuple(name_faults(evidence))
    checks = [ValidationCheck(fault.kind, "error", 0, 0, (), fault.advice) for fault in faults]
    return Diagnosis(asked.answered, len(questions), examiner.asked, faults, (*_build_checks(evidence), *checks))


def _collect_more(examiner: Examiner, evidence: Evidence, seed: int) -> Evidence:
    """Return the evidence with exchanged roles, templates if the answers are weak, stability and truncation."""
    asked = evidence.asked
    usual = ask_usual_pairs(examiner, asked.questions)
    evidence = replace(evidence, exchange=exchange_roles(examiner, asked.questions, usual))
    is_weak = asked.answered < MIN_ANSWERED_SHARE * len(asked.questions) or separation(usual) < WEAK_SEPARATION
    if is_weak:
        evidence = replace(evidence, template=find_missing_template(examiner, asked.questions, usual))
    stability = measure_stability(examiner, asked, seed)
    noise = stability.noise * float(np.nanmedian(np.abs(asked.margins)))
    noise = noise if stability.noise > ROUNDING else 0.0
    try:
        truncation = find_truncation(examiner, asked.questions, noise)
    except RankerFailed as error:
        truncation = Truncation(0, 0, str(error))
    return replace(evidence, stability=stability, truncation=truncation)


def _build_checks(evidence: Evidence) -> list[ValidationCheck]:
    """Return the checks without faults: the answers, the lists without a ranking, and truncation."""
    asked, found = evidence.asked, evidence.truncation
    total, lists = len(asked.questions), len(asked.fail_open.outcomes)
    few = asked.answered < MIN_ANSWERED_SHARE * total
    checks = [
        ValidationCheck(
            "questions with a known answer that it answers",
            "warning" if few else "ok",
            asked.answered,
            total,
            (),
            "rankers in order answer nearly all of them" if few else "",
        ),
        ValidationCheck(
            "shuffled lists that came back without a ranking",
            "warning" if asked.fail_open.failed else "ok",
            len(asked.fail_open.failed),
            lists,
            (),
            "the ranker fails open" if asked.fail_open.failed else "",
        ),
    ]
    if found is not None:
        checks.append(_build_truncation_check(found))
    return checks


def _build_truncation_check(found: Truncation) -> ValidationCheck:
    name = "the length at which a text is truncated"
    if found.refusal:
        advice = f"longer texts are refused, not truncated: {found.refusal}"
        return ValidationCheck(name, "warning", 0, 0, (f"refused at {found.unread:,} words",), advice)
    if found.unread:
        advice = "the rest of a longer text does not count; split long documents into passages"
        return ValidationCheck(name, "warning", 0, 0, (f"after about {found.unread:,} words",), advice)
    return ValidationCheck(name, "ok", 0, 0, (f"above {found.read:,} words",))

"""Faults of a ranker, named from the pattern of its answers to questions with known answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp

import numpy as np

from shaketable.measures.fail_open import INPUT_ORDER_PATTERN
from shaketable.rankers.diagnosis.evidence import MIN_ANSWERED_SHARE, Exchange, Stability, Truncation
from shaketable.rankers.diagnosis.questions import AskedQuestions

FAILS_OPEN, ORDER_DEPENDENCE = "fails open", "order dependence"
ALWAYS_SHARE = 0.9
"""A pattern in at least this share of lists is the rule, and not a failure of single requests."""
INVERTED_SHARE = 0.25
"""A ranker that answers at most this share of questions prefers the wrong text; by chance, that has p < 0.001."""
MAX_UNTRAINED_LOGIT = 1.0
"""The scores of an untrained head are near 0: its weights have a standard deviation of 0.02."""
MIN_READ_WORDS = 64
"""A ranker that reads fewer words than this of a text does not read a passage."""
MIN_FLIPS = 0.02
MIN_BATCH_CHANGE = 0.01
"""The share of pairs that change order, and the change of a score as a share of the median margin, that are a fault.

Half precision changes scores by about a thousandth.
"""
RANDOM_FLIPS = 0.25
"""The share of pairs that change order from one request to the next in scores that are mostly noise."""


@dataclass(frozen=True)
class Fault:
    """A fault of a ranker: its kind, one sentence with the numbers that show it, and advice."""

    kind: str
    sentence: str
    advice: str


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that a diagnosis found out about a ranker; None for what could not be asked."""

    asked: AskedQuestions
    exchange: Exchange | None = None
    template: tuple[str, Exchange] | None = None
    stability: Stability | None = None
    truncation: Truncation | None = None

    @property
    def score(self) -> str:
        """The number of answered questions, in words."""
        return f"{self.asked.answered} of {len(self.asked.questions)} questions"


def name_faults(evidence: Evidence) -> list[Fault]:
    """Return the faults, the most serious first; a fault that another one explains is left out."""
    asked = evidence.asked
    if fault := _find_constant_pattern(evidence):
        return [fault]
    found = list(_find_failing_lists(evidence))
    few = asked.answered < MIN_ANSWERED_SHARE * len(asked.questions)
    if few and evidence.stability and evidence.stability.flips_again >= RANDOM_FLIPS:
        sentence = (
            f"The answers are random: {100 * evidence.stability.flips_again:.1f} % of the pairs of texts change order "
            f"when the same list is asked for again; the ranker answers {evidence.score}."
        )
        return [*found, Fault("random answers", sentence, "Is a sampling temperature or dropout switched on?")]
    named = [*_find_wrong_scores(evidence), *_find_truncation(evidence), *_find_instability(evidence)]
    if few and not named:
        named.append(_name_wrong_model(evidence))
    if any(fault.kind == ORDER_DEPENDENCE for fault in named):  # it explains lists in input order
        in_order = {one.pattern for one in asked.fail_open.failed} <= {INPUT_ORDER_PATTERN}
        found = [fault for fault in found if not (in_order and fault.kind == FAILS_OPEN)]
    return found + named


def _find_constant_pattern(evidence: Evidence) -> Fault | None:
    """Return the fault of a ranker that ranks no list at all."""
    outcomes = evidence.asked.fail_open.outcomes
    scores = [answer.scores for some in evidence.asked.rounds for answer in some if answer.scores is not None]
    if scores and sum(not np.ptp(some) for some in scores) >= ALWAYS_SHARE * len(outcomes):
        values = sorted({float(some[0]) for some in scores})
        what = f"{values[0]:g}" if len(values) == 1 else f"one score per list, from {values[0]:g} to {values[-1]:g}"
        sentence = f"The scores are constant: all texts of a list get the same score ({what})."
        advice = "The model probably has no ranking head, or the server returns a default: is a ranking model loaded?"
        return Fault("constant scores", sentence, advice)
    count = sum(bool((np.diff(some) <= 0).all()) for some in scores)
    if count >= ALWAYS_SHARE * len(outcomes):
        sentence = f"Nothing is re-ranked: {count} of {len(outcomes)} lists came back in input order."
        advice = "Is a ranking model loaded? Or are results sorted by score, while their indexes are not?"
        return Fault("input order", sentence, advice)
    return None


def _find_failing_lists(evidence: Evidence) -> Iterator[Fault]:
    report, problems = evidence.asked.fail_open, evidence.asked.problems
    if report.failed:
        advice = (
            "The server probably returns a default when its model is slow or fails: look for a time limit or a caught "
            "error, and return an error status in its place."
        )
        yield Fault(FAILS_OPEN, f"It fails open: {report.describe()}.", advice)
    if problems:
        sentence = f"It failed on {len(problems)} of {len(report.outcomes)} lists; the first error: {problems[0]}"
        yield Fault("failing requests", sentence, "Look at the log of the server.")


def _find_wrong_scores(evidence: Evidence) -> list[Fault]:
    """Return the fault behind wrong or weak scores: head, roles, sign, template or query."""
    asked, exchange = evidence.asked, evidence.exchange
    total = len(asked.questions)
    if values := _find_untrained_scores(asked):
        relevant, irrelevant = values
        sentence = (
            f"The ranking head seems to be untrained: relevant texts score {relevant:.3g} and irrelevant ones "
            f"{irrelevant:.3g} on average, close together on both sides of the middle; a trained model separates such "
            f"texts far more (it answers {evidence.score})."
        )
        return [Fault("untrained head", sentence, "Were the weights of the classifier loaded with the model?")]
    if exchange and exchange.is_better:
        sentence = (
            f"Query and document seem to be swapped: with the text sent as the query, {exchange.larger} of "
            f"{exchange.total} questions have a larger margin, and the margins are {exchange.ratio:.1f} times as "
            f"clearly separated (as sent now, it answers {evidence.score})."
        )
        return [
            Fault("swapped roles", sentence, "Give the query as the first segment, and the document as the second.")
        ]
    if asked.answered <= INVERTED_SHARE * total:
        sentence = (
            f"The scores seem to be inverted: the ranker prefers the wrong text in {total - asked.answered} of {total} "
            "questions."
        )
        return [Fault("inverted scores", sentence, "Is the score a distance or a loss? Change its sign.")]
    if evidence.template:
        name, better = evidence.template
        sentence = (
            f"A template or prefix seems to be missing: with {name} the ranker answers {better.answered} of {total} "
            f"questions, and without it {evidence.score}."
        )
        return [
            Fault("missing template", sentence, "Add the prefixes or the template that the model was trained with.")
        ]
    if _ignores_query(asked):
        sentence = (
            "The scores do not depend on the query: each text has the same score for all queries (it answers "
            f"{evidence.score})."
        )
        return [Fault("query ignored", sentence, "Is the query passed on to the model?")]
    return []


def _name_wrong_model(evidence: Evidence) -> Fault:
    sentence = f"It answers only {evidence.score} that rankers in order answer; no single cause is visible."
    advice = "Is it a ranking model with its trained head, and for English? Is a template or an instruction missing?"
    return Fault("wrong answers", sentence, advice)


def _find_untrained_scores(asked: AskedQuestions) -> tuple[float, float] | None:
    """Return the mean scores of relevant and irrelevant texts if they look like those of an untrained head.

    They lie close to 0 on both sides of it, or close to 0.5 after a sigmoid. Cosines lie on one side of 0.
    """
    pairs = [(scores[one.relevant], scores[one.irrelevant]) for one, scores in asked.iterate_usable()]
    if not pairs:
        return None
    values = np.array(pairs)
    middles = [(0.0, MAX_UNTRAINED_LOGIT)]
    if (values > 0).all() and (values < 1).all():
        middles.append((0.5, 1 / (1 + exp(-MAX_UNTRAINED_LOGIT)) - 0.5))
    for middle, width in middles:
        relevant, irrelevant = (values - middle).mean(axis=0)
        near = np.abs(values - middle).max() <= width
        if near and relevant * irrelevant < 0 and 0.2 <= abs(relevant / irrelevant) <= 5:
            return float(relevant + middle), float(irrelevant + middle)
    return None


def _ignores_query(asked: AskedQuestions) -> bool:
    """Return True if each text has the same score for all queries."""
    by_text: dict[str, list[float]] = {}
    for _, scores in asked.iterate_usable():
        for text, score in scores.items():
            by_text.setdefault(text, []).append(score)
    if not by_text:
        return False
    within = float(np.mean([np.var(some) for some in by_text.values()]))
    return within <= 1e-4 * float(np.var([score for some in by_text.values() for score in some]))


def _find_truncation(evidence: Evidence) -> Iterator[Fault]:
    found = evidence.truncation
    if found and found.unread and not found.refusal and found.read < MIN_READ_WORDS:
        words = len(evidence.asked.questions[0].query.split()) + found.unread
        sentence = (
            f"Texts are truncated: a sentence after {found.unread} words has no effect on the score. Question and text "
            f"together are cut at about {words} words, which is {words * 4 // 3} to {words * 2} tokens."
        )
        yield Fault("truncation", sentence, "Increase the maximum length of the tokenizer (max_length).")


def _find_instability(evidence: Evidence) -> Iterator[Fault]:
    found = evidence.stability
    if found is None:
        return
    if found.flips_order - found.flips_again >= MIN_FLIPS:
        sentence = (
            f"The input order matters: {100 * found.flips_order:.1f} % of the pairs of texts change order when the "
            f"list is reversed, and {100 * found.flips_again:.1f} % when it is asked for again."
        )
        yield Fault(ORDER_DEPENDENCE, sentence, "Is it a listwise model? Average over several input orders.")
        return
    threshold = max(MIN_BATCH_CHANGE, 3 * found.noise)
    if found.by_list > threshold:
        return  # a listwise model, or scores normalised over the list: no fault
    for change, what, advice in (
        (found.by_length, "a long text joins its list", "Is the attention mask of padded texts passed on?"),
        (found.by_batch, "it is sent alone", "Compare how the server builds batches and single requests."),
    ):
        if change > threshold:
            sentence = (
                f"Batch and single requests differ: the score of a text changes by {100 * change:.0f} % of the median "
                f"margin when {what}, and by {100 * found.by_list:.1f} % when another text of the list is replaced."
            )
            yield Fault("batch differs", sentence, advice)
            return

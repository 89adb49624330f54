"""Lists that can be reckoned in the head, for the tests of recipes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from shaketable.attacks.goals import Promote
from shaketable.attacks.runner import run_attacks
from shaketable.attacks.target import Target
from shaketable.core.attack_types import Attack, AttackCase, AttackOutcome, Goal, RankQuery
from shaketable.core.documents import Doc, Slate
from shaketable.core.seeding import make_item_rng
from tests.attacks.setups import target_for


class Weighted:
    """A ranker that adds the weights of the words of a text; a text that is a number scores that number."""

    name, pointwise = "weighted", True

    def __init__(self, weights: Mapping[str, float]):
        self.weights = weights

    def score(self, slates: Sequence[Slate]):
        return [np.array([self._of(doc.text) for doc in slate.docs]) for slate in slates]

    def _of(self, text: str) -> float:
        if re.fullmatch(r"-?\d+(\.\d+)?", text):
            return float(text)
        return sum(self.weights.get(word, 0.0) for word in re.findall(r"[^\W_]+", text.lower()))


def case_of(
    doc: Doc, weights: Mapping[str, float], goal: Goal | None = None, queries: Sequence[str] = ("boat",)
) -> tuple[Target, AttackCase]:
    """Return a document among rivals that score -10, -9.5, ... 10, so that each half point is one rank."""
    target = target_for(Weighted(weights))
    rivals = [Doc(str(score / 2)) for score in range(-20, 21)]
    docnos = [f"r{n:02}" for n in range(len(rivals))]
    target.read_lists({f"q{n}": (Slate(query, (*rivals, doc)), (*docnos, "d")) for n, query in enumerate(queries)})
    (case,) = target.build_cases([("d", doc, [f"q{n}" for n in range(len(queries))])], goal or Promote())
    return target, case


def outcome_of(attack: Attack, target: Target, case: AttackCase) -> AttackOutcome:
    (outcome,) = run_attacks(attack, [case], target)
    assert isinstance(outcome, AttackOutcome), outcome
    return outcome


def first_request(attack: Attack, case: AttackCase) -> list[Doc]:
    """Return the documents of the first request of an attack."""
    first = next(attack.steps(case, make_item_rng(0, "first")), None)
    if first is None:
        return []
    assert isinstance(first, RankQuery)
    return list(first.docs)

"""Defences by training: what a ranker learns from, and what is made small, so that attacks move it less.

A defence makes another plan of the plan of a training; learners and the training loop stay as they are. The settings
are those of paper 003 (section 4.1) where it tells them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from shaketable.defend.adversaries import Examples
from shaketable.errors import check_within
from shaketable.learners.attacked import Augmented, BesideAttacked, WithAttacked
from shaketable.learners.neural import OBJECTIVES
from shaketable.learners.plan import Plan
from shaketable.registry import ATTACKS, SYNONYMS

RECIPE = "white_wsra"
"""Words give way to synonyms, at most 20, as the gradients of the net itself advise."""


@dataclass(frozen=True)
class ST:
    """Standard training: no defence, the plan as it is."""

    def plan(self, plan: Plan, adversaries: Callable[[], Path]) -> Plan:
        return plan


@dataclass(frozen=True, kw_only=True)
class _ByExamples:
    """What defences by adversarial examples share: which are made.

    recipe      the attack on the ranker that standard training gives
    documents   documents of each query that are attacked, drawn from its candidates that are not relevant
    queries     queries to learn from whose documents are attacked, drawn at random; 0 is all of them
    """

    recipe: str = RECIPE
    documents: int = 10
    queries: int = 0

    def __post_init__(self) -> None:
        check_within(type(self).__name__.lower(), self, documents=(1, 10_000), queries=(0, 100_000_000))
        ATTACKS.build(self.recipe)

    @property
    def examples(self) -> Examples:
        """The adversarial examples that it learns from."""
        return Examples(self.recipe, self.documents, self.queries)


@dataclass(frozen=True, kw_only=True)
class DA(_ByExamples):
    """Data augmentation: every list also as copies whose texts have words replaced by synonyms at random.

    copies      of each list
    words       that are replaced in a text; 0 is as many as the attack changes, and only then there is one
    objective   of all lists, the copies and the others; "" is what the plan has
    """

    copies: int = 2
    words: int = 20
    synonyms: str = "thesaurus"
    objective: str = "hinge"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_within("da", self, copies=(1, 100), words=(0, 10_000))
        SYNONYMS.build(self.synonyms)
        if self.objective:
            OBJECTIVES.build(self.objective)

    def plan(self, plan: Plan, adversaries: Callable[[], Path]) -> Plan:
        path = "" if self.words else str(adversaries())
        lists = Augmented(plan.lists, self.copies, self.words, self.synonyms, path)
        return replace(plan, lists=lists, objective=self.objective or plan.objective)


@dataclass(frozen=True, kw_only=True)
class AT(_ByExamples):
    """Adversarial training: for each list another one, whose documents that are not relevant were attacked."""

    def plan(self, plan: Plan, adversaries: Callable[[], Path]) -> Plan:
        return replace(plan, lists=WithAttacked(plan.lists, path=str(adversaries())))


@dataclass(frozen=True, kw_only=True)
class PIAT(_ByExamples):
    """Perturbation-invariant adversarial training: lists should keep their order when documents are attacked.

    loss, phi, top, detach, per_text    as in `learners.invariance.Invariance`
    lambda_                             the share of the natural loss, which is that of the plan
    size, attacked                      documents of a list without labels, and how many of them are attacked ones
    """

    loss: Literal["kl", "listnet", "listnet_ce", "listmle"] = "listmle"
    lambda_: float = 0.5
    phi: Literal["exp", "linear", "sigmoid"] = "exp"
    top: int = 1
    detach: bool = False
    per_text: bool = False
    size: int = 20
    attacked: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        check_within("piat", self, lambda_=(0, 1), top=(1, 3), size=(2, 10_000), attacked=(1, self.size))

    def plan(self, plan: Plan, adversaries: Callable[[], Path]) -> Plan:
        from shaketable.learners import invariance

        natural = {"natural": plan.objective} if plan.objective else {}
        objective = invariance.PIAT(
            loss=self.loss,
            lambda_=self.lambda_,
            phi=self.phi,
            top=self.top,
            detach=self.detach,
            per_text=self.per_text,
            **natural,
        )
        lists = BesideAttacked(plan.lists, path=str(adversaries()), size=self.size, attacked=self.attacked)
        return replace(plan, lists=lists, objective=OBJECTIVES.spec(objective))

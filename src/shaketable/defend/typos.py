"""Training that makes little of how a query is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from shaketable.errors import check
from shaketable.learners.plan import TYPOS, Plan, VariedQueries


@dataclass(frozen=True)
class Typos:
    """A share of the lists has another way to write the query, with a slip of the keyboard for instance.

    edits         who writes queries anew, from `registry.EDITS`: any variation, not misspellings alone
    share         of the lists
    teach         the order of a list under the query teaches its order under the variant (self_teaching, at `weight`
                  and `temperature`); without it, the variant takes the query's place (data augmentation)

    What is made small on the queries themselves is the objective of the plan, softmax where it names none: begin with
    the plan of a learner, which has its own.

    Zhuang, Zuccon. CharacterBERT and self-teaching for improving the robustness of dense retrievers on queries with
    typos. SIGIR 2022. Augmentation: the same. Dealing with typos for BERT-based passage retrieval and ranking.
    EMNLP 2021.
    """

    edits: tuple[str, ...] = TYPOS
    share: float = 0.5
    teach: bool = True
    weight: float = 1.0
    temperature: float = 1.0

    def __post_init__(self) -> None:
        VariedQueries(edits=self.edits, share=self.share)  # which checks both
        check("typos", 0 < self.weight < float("inf"), "weight", "a number above 0", self.weight)
        check("typos", 0 < self.temperature < float("inf"), "temperature", "a number above 0", self.temperature)

    def plan(self, plan: Plan, adversaries: Callable[[], Path]) -> Plan:
        """The plan with lists of varied queries, and with an objective that looks at both ways to write one."""
        lists = VariedQueries(plan.lists, self.edits, self.share, instead=not self.teach)
        if not self.teach:
            return replace(plan, lists=lists)
        settings = f"natural={plan.objective or 'softmax'!r}, weight={self.weight!r}, temperature={self.temperature!r}"
        return replace(plan, lists=lists, objective=f"self_teaching({settings})")

"""What a changed document must still be, for attacks that are to pass for honest writing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shaketable.attacks.knowledge import Knowledge
from shaketable.errors import check
from shaketable.measure.wording import words_changed
from shaketable.registry import CONSTRAINTS
from shaketable.types import Case, Check, Doc


def checks(constraints: Sequence[str], knowledge: Knowledge) -> list[Check]:
    """The constraints of a recipe, opened; the cheap ones should be named first."""
    opened: list[Check] = [CONSTRAINTS.build(text).open(knowledge) for text in constraints]
    return opened


@dataclass(frozen=True)
class MostWords:
    """At most so many words differ from the original, counted as `measure.wording.words_changed` does."""

    most: int = 20

    def __post_init__(self) -> None:
        check("most_words", self.most >= 1, "most", "1 or more", self.most)

    def open(self, knowledge: Knowledge) -> Check:
        return self._check

    def _check(self, questions: Sequence[tuple[Case, Sequence[Doc]]]) -> list[list[bool]]:
        return [[words_changed(case.doc, doc) <= self.most for doc in docs] for case, docs in questions]

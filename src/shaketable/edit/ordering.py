"""Ordering: the same words in another order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shaketable.chance import Draws
from shaketable.edit.taxonomy import ORDERING
from shaketable.types import Context


@dataclass(frozen=True)
class RandomOrderSwap:
    """Swap two random words that differ; stop-words may be swapped too.

    Penha, Câmara, Hauff. Evaluating the robustness of retrieval pipelines with query variation generators. ECIR 2022.
    """

    category: ClassVar[str] = ORDERING

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        words = text.split()
        if len(words) < 2:
            return None
        i = draws.below(len(words))
        others = [j for j, word in enumerate(words) if word != words[i]]
        if not others:
            return None
        j = draws.choice(others)
        words[i], words[j] = words[j], words[i]
        return " ".join(words)

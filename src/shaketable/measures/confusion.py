"""How well labels are guessed: which are taken for which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shaketable.core.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Confusion:
    """How often a label (row) was guessed to be another (column)."""

    labels: tuple[str, ...]
    counts: NDArray[np.int64]

    @property
    def accuracy(self) -> float:
        """The share of guesses that are right."""
        return float(np.trace(self.counts) / self.counts.sum())

    @property
    def f1(self) -> NDArray[np.float64]:
        """2·right / (is + guessed) for each label: the harmonic mean of precision and recall; 0 where none is right."""
        both = self.counts.sum(axis=0) + self.counts.sum(axis=1)
        return np.asarray(2 * np.diag(self.counts) / np.maximum(both, 1))

    @property
    def macro_f1(self) -> float:
        """The mean of F1 over the labels, each of which weighs the same."""
        return float(self.f1.mean())

    def to_frame(self) -> pd.DataFrame:
        """A row for each label: how often it was guessed to be which, and precision, recall and F1."""
        import pandas as pd

        right, is_, guessed = np.diag(self.counts), self.counts.sum(axis=1), self.counts.sum(axis=0)
        return pd.DataFrame(
            {
                "kind": self.labels,
                **{f"as {label}": self.counts[:, i] for i, label in enumerate(self.labels)},
                "precision": right / np.maximum(guessed, 1),
                "recall": right / np.maximum(is_, 1),
                "F1": self.f1,
                "queries": is_,
            }
        )


def compute_confusion(truth: Sequence[str], guesses: Sequence[str]) -> Confusion:
    """The confusion of guesses with the truth, over all labels that either has.

    >>> found = compute_confusion(["who", "who", "where"], ["who", "where", "where"])
    >>> found.counts.tolist(), round(found.accuracy, 3), round(found.macro_f1, 3)
    ([[1, 0], [1, 1]], 0.667, 0.667)
    """
    if len(truth) != len(guesses) or not truth:
        raise BadInput(f"{len(truth)} labels and {len(guesses)} guesses cannot be compared")
    labels = tuple(sorted({*truth, *guesses}))
    index = {label: i for i, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), np.int64)
    np.add.at(counts, ([index[t] for t in truth], [index[g] for g in guesses]), 1)
    return Confusion(labels, counts)

"""The confusion matrix of predicted labels, with accuracy and F1."""

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
    """Counts of each true label (row) by predicted label (column)."""

    labels: tuple[str, ...]
    counts: NDArray[np.int64]

    @property
    def accuracy(self) -> float:
        """The share of correct predictions."""
        return float(np.trace(self.counts) / self.counts.sum())

    @property
    def f1(self) -> NDArray[np.float64]:
        """2·correct / (true + predicted) per label, the harmonic mean of precision and recall; 0 if none is correct."""
        both = self.counts.sum(axis=0) + self.counts.sum(axis=1)
        return np.asarray(2 * np.diag(self.counts) / np.maximum(both, 1))

    @property
    def macro_f1(self) -> float:
        """The unweighted mean of F1 over the labels."""
        return float(self.f1.mean())

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each label: its predictions by label, and precision, recall and F1."""
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
    """Return the confusion of predictions with the truth, over all labels of both.

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

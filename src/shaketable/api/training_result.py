"""The results of `train`: what a training reports in tables, figures, JSON and one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shaketable.core.registries import WRITERS
from shaketable.core.results import Figure, Result
from shaketable.rankers.saved import SavedModel
from shaketable.training.seq2seq import Seq2SeqWriter

if TYPE_CHECKING:
    import pandas as pd

HISTORY_TABLE = "training history"


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training: the model, the learner with its settings, and the model card."""

    model: SavedModel
    learner: str
    card: Mapping[str, Any]
    trials: Sequence[Mapping[str, Any]] = ()
    """The validation value of each point of the tuning grid; empty without tuning."""
    test: Mapping[str, float] = field(default_factory=dict)
    """The mean of each measure on the test file, as `evaluate` computes it; empty without a test file."""

    def build_tables(self) -> dict[str, pd.DataFrame]:
        """Return the training history, the feature importances, and the tuning trials as tables."""
        import pandas as pd

        measure = self._valid_measure
        importance = self.card.get("importance", {})
        looks = pd.DataFrame({"feature": list(importance), "importance": list(importance.values())})
        tables = {
            HISTORY_TABLE: _build_history(self.card, _name_history_columns(self.card) or {"valid": measure}),
            "feature importance": looks,
            "tuning trials": pd.DataFrame(list(self.trials)),
            "folds": pd.DataFrame(list(self.card.get("models", ()))).rename(columns={"value": f"{measure} validation"}),
        }
        tables = {name: table for name, table in tables.items() if len(table)}
        if "tuning trials" in tables:
            best_first = tables["tuning trials"].sort_values("valid", ascending=False, kind="stable")
            tables["tuning trials"] = best_first.rename(columns={"valid": measure})
        return tables

    @property
    def _valid_measure(self) -> str:
        """The name of the measure on the validation queries."""
        return str((self.card.get("valid") or {}).get("measure", "validation value"))

    def to_result(self) -> Result:
        """Return the tables with figures of the training curve and of the feature importances."""
        tables = self.build_tables()
        figures: list[Figure] = []
        if HISTORY_TABLE in tables:
            tables["curve"], figure = _build_curve(tables[HISTORY_TABLE])
            figures.append(figure)
        if "feature importance" in tables:
            tables["feature importance"] = tables["feature importance"].head(20)
            title = "Feature importance: the share of each feature in the total gain of the trees, or in the weights"
            figures.append(Figure("bars", "feature importance", title, x="feature", y="importance"))
        notes = tuple(self.card.get("notes", ()))
        return Result("train", f"How did {self.learner} learn?", tables, tuple(figures), notes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        about = {"schema": "shaketable.train/1", "model": self.model.path, "learner": self.learner}
        numbers = {"trials": [dict(trial) for trial in self.trials], "test": dict(self.test)}
        return about | {"card": dict(self.card)} | numbers

    def __str__(self) -> str:
        """Return one sentence on the training."""
        parts = [f"{self.model.path}: {self.learner}, trained on {self.card['train']['queries']} queries"]
        if folds := self.card.get("folds"):
            parts = [f"{self.model.path}: {self.learner}, trained in {folds} folds", "its run joins the test folds"]
        elif "value" in self.card and (valid := self.card.get("valid")):
            step = f"step {self.card['best']} is the best, with " if "best" in self.card else ""
            value = f"{self._valid_measure} {self.card['value']:.4f}"
            parts.append(f"{step}{value} on {valid['queries']} validation queries")
        if self.test:
            means = " and ".join(f"{measure} {value:.4f}" for measure, value in self.test.items())
            parts.append(f"{means} on the test queries")
        if defence := self.card.get("defence"):
            parts.append(f"defended by {defence['text']}")
        if "seconds" in self.card:
            parts.append(f"{self.card['seconds']:.0f} s")
        return "; ".join(parts)


@dataclass(frozen=True)
class TrainedWriter:
    """The result of training a writer: the folder of its checkpoint, the writer, and its card."""

    folder: str
    writer: Seq2SeqWriter
    card: Mapping[str, Any]

    @property
    def usage(self) -> str:
        """The flag that uses the folder."""
        return self.writer.usage.format(folder=self.folder)

    def build_tables(self) -> dict[str, pd.DataFrame]:
        """Return the training history as a table."""
        return {HISTORY_TABLE: _build_history(self.card, {"valid": "ln p of a piece"})}

    def to_result(self) -> Result:
        """Return the training history as a table and a figure."""
        tables = self.build_tables()
        tables["curve"], figure = _build_curve(tables[HISTORY_TABLE])
        question = f"How did {WRITERS.spec(self.writer)} learn?"
        return Result("train", question, tables, (figure,), tuple(self.card.get("notes", ())))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        about = {"schema": "shaketable.train/1", "model": self.folder, "learner": WRITERS.spec(self.writer)}
        return about | {"card": dict(self.card), "usage": self.usage}

    def __str__(self) -> str:
        """Return one sentence on the training and on the use of the writer."""
        card, pairs = self.card, self.card["pairs"]
        parts = [
            f"{self.folder}: {WRITERS.spec(self.writer)}, trained on {pairs['learned']} pairs ({card['origin']})",
            f"step {card['best']} is best: ln p {card['value']:.4f} per piece on {pairs['held']} held-out pairs",
            f"{card['seconds']:.0f} s",
            f"use it: {self.usage}",
        ]
        if not self.writer.checkpoint:
            parts.append("it started from random weights (checkpoint=''), so it is only a test that training works")
        return "; ".join(parts)


def _name_history_columns(card: Mapping[str, Any]) -> dict[str, str]:
    """Return the headings of a history of training and validation values, which name the measure."""
    measure = card.get("history_measure")
    return {"train": f"{measure} train", "valid": f"{measure} validation"} if measure else {}


def _build_history(card: Mapping[str, Any], headings: Mapping[str, str]) -> pd.DataFrame:
    """Return the validations of a training as a table."""
    import pandas as pd

    return pd.DataFrame(list(card.get("history", ()))).rename(columns=dict(headings))


def _build_curve(course: pd.DataFrame) -> tuple[pd.DataFrame, Figure]:
    """Return the table and the figure of the training curve."""
    import pandas as pd

    step, *curves = [name for name in course.columns if pd.api.types.is_numeric_dtype(course[name])]
    points = course.melt(step, curves, "curve", "value").dropna()
    return points, Figure("lines", "curve", "Training history", x=step, y="value", color="curve")

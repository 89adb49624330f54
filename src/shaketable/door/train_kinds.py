"""Queries whose kind is known in, a model that tells the kind of others out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shaketable.data.kinds import learn_kinds, told
from shaketable.data.load import load
from shaketable.data.splits import TRAIN, folds
from shaketable.errors import BadInput
from shaketable.measure.confusion import Confusion, confusion
from shaketable.types import Collection

PARTS = 5


@dataclass(frozen=True)
class TrainedKinds:
    """A model of kinds: where it is, what it learned from, and how well it does on queries that it has not seen.

    `confusion` is of cross-validation: each fifth of the queries, by a model that learned from the other four.
    """

    folder: Path
    learned_from: str
    confusion: Confusion

    def __str__(self) -> str:
        found = self.confusion
        how_well = f"accuracy {found.accuracy:.3f}, macro F1 {found.macro_f1:.3f} by {PARTS}-fold cross-validation"
        return f"{self.folder}: learned from {found.counts.sum()} queries ({self.learned_from}); {how_well}"

    def json(self) -> dict[str, Any]:
        """All of it as plain values."""
        found = self.confusion
        return {
            "schema": "shaketable.kinds/1",
            "folder": str(self.folder),
            "accuracy": found.accuracy,
            "macro F1": found.macro_f1,
            "kinds": list(found.labels),
            "confusion": found.counts.tolist(),
        }


def train_kinds(
    data: str | Path | Collection,
    out: str | Path,
    *,
    split: str | None = None,
    kinds: str | Path | None = None,
    seed: int = 0,
) -> TrainedKinds:
    """Learn the kinds of queries from a collection that knows them, for `audit(kinds=FOLDER)`.

    It learns from the split train where there is one, unless another is named; "all" is every query. `kinds` may be a
    file, where the collection itself does not say them.
    """
    folder = Path(out)
    if folder.exists():
        raise BadInput("is there already; name a new folder for the model", folder)
    whole = load(data, kinds=kinds)
    part = (TRAIN if TRAIN in whole.splits else "all") if split is None else split
    collection = whole if part == "all" else load(whole, part)
    queries = {qid: query for qid, query in collection.queries.items() if query.kind}
    if len(queries) < 2 * PARTS:
        raise BadInput(
            f"{len(queries)} queries of {collection.name} have a kind, and {2 * PARTS} are needed to learn from; "
            "name a file of kinds (--kinds)"
        )
    model = learn_kinds(queries)
    guesses: dict[str, str] = {}
    for fold in folds(list(queries), PARTS, seed):
        seen = learn_kinds({qid: queries[qid] for qid in (*fold.train, *fold.valid)})
        guesses |= zip(fold.test, seen.predict([queries[qid].text for qid in fold.test]), strict=True)
    model.save(folder)
    found = confusion([query.kind for query in queries.values()], [guesses[qid] for qid in queries])
    return TrainedKinds(folder, told(collection.queries), found)

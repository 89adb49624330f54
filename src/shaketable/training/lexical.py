"""Lexical rankers as learners: `fit` tunes the parameters of their formula.

The grids are those of paper 000, section 3.3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from shaketable.core.documents import Collection, Run, Slate, rank_docnos
from shaketable.core.errors import BadInput
from shaketable.core.progress import ProgressFactory, no_progress
from shaketable.core.protocols import Model
from shaketable.core.registries import RANKERS
from shaketable.measures.effectiveness import score_table
from shaketable.rankers import saved_spec
from shaketable.rankers.saved import SavedModel
from shaketable.scoring.validation import call_ranker, call_retriever
from shaketable.training.plan import TrainingPlan


@dataclass(frozen=True)
class LexicalLearner:
    """A lexical ranker such as bm25, whose parameters can be tuned on the validation queries.

    ranker     the ranker whose parameters are tuned or kept
    measure    the measure that tuning maximises
    tuned      whether `fit` chooses the parameters, from coarse to fine (`search_coarse_to_fine`)
    """

    ranker: str = field(metadata={"example": "bm25"})
    measure: str = "AP"
    tuned: bool = False

    def __post_init__(self) -> None:
        RANKERS.build(self.ranker)

    @property
    def grid(self) -> Mapping[str, Sequence[Any]]:
        values: Mapping[str, Sequence[Any]] = getattr(RANKERS.build(self.ranker), "grid", {})
        return values

    def fit(
        self,
        collection: Collection,
        train: Sequence[str],
        *,
        valid: Sequence[str] = (),
        seed: int = 0,
        plan: TrainingPlan | None = None,
        candidates: Run | None = None,
        folder: str | Path,
        depth: int = 100,
        progress: ProgressFactory = no_progress,
        overwrite: bool = False,
    ) -> SavedModel:
        """Save the ranker, tuned or as it is, with its value on `valid`, or on `train`; return the model."""
        if plan is not None and plan != TrainingPlan():
            raise BadInput(f"{self.ranker} learns from judgements alone; {plan.spec} is for other learners")
        qids = list(valid or train)
        model = RANKERS.build(self.ranker)
        if self.tuned:  # tune in the mode of use: full retrieval if the collection has no candidates
            candidates = collection.candidates or None
            chosen = self._search_parameters(model, collection, qids, candidates, depth, progress)
            model = replace(model, **chosen)
        value = self._evaluate(model, collection, qids, candidates, depth)
        card = {
            "learner": self.ranker,
            "collection": {"name": collection.name, "fingerprint": collection.fingerprint},
            "train": {"queries": len(train)},
            "valid": {"queries": len(qids), "measure": self.measure},
            "value": value,
            "seed": seed,
        }
        saved_spec.save(RANKERS.spec(model), folder, card, overwrite=overwrite)
        return SavedModel(str(folder))

    def choose(
        self,
        collection: Collection,
        qids: Sequence[str],
        candidates: Run | None = None,
        depth: int = 100,
        progress: ProgressFactory = no_progress,
    ) -> tuple[LexicalLearner, list[dict[str, Any]]]:
        """Return the learner with the best parameters of the grid on these queries, and the value of each trial."""
        model = RANKERS.build(self.ranker)
        if not self.grid:
            raise BadInput(f"{self.ranker} has no parameters to choose")
        trials: list[dict[str, Any]] = []
        points = list(product(*self.grid.values()))
        with progress(f"tuning {self.ranker}", len(points), "trials") as advance:
            for point in points:
                settings = dict(zip(self.grid, point, strict=True))
                value = self._evaluate(replace(model, **settings), collection, qids, candidates, depth)
                trials.append(settings | {"valid": value})
                advance(1)
        winner = max(trials, key=lambda trial: trial["valid"])
        best = replace(model, **{name: winner[name] for name in self.grid})
        return replace(self, ranker=RANKERS.spec(best)), trials

    def _search_parameters(
        self,
        model: Any,
        collection: Collection,
        qids: Sequence[str],
        candidates: Run | None,
        depth: int,
        progress: ProgressFactory,
    ) -> dict[str, Any]:
        """Return the best parameters of a search from coarse to fine; empty if there are none to tune."""
        if not self.grid:
            return {}
        with progress(f"tuning {self.ranker}", 0, "trials") as advance:

            def value(settings: Mapping[str, Any]) -> float:
                advance(1)
                return self._evaluate(replace(model, **settings), collection, qids, candidates, depth)

            return search_coarse_to_fine(self.grid, value)

    def _evaluate(
        self, model: Model, collection: Collection, qids: Sequence[str], candidates: Run | None, depth: int
    ) -> float:
        judged = [qid for qid in qids if collection.qrels.get(qid)]
        if not judged:
            raise BadInput(f"collection {collection.name}: no tuning query has judgements")
        ranker: Any = model.open(collection)
        texts = [collection.queries[qid].text for qid in judged]
        given = candidates or collection.candidates
        run: dict[str, Mapping[str, float]] = {}
        if given:
            lists = [rank_docnos(given.get(qid, {}))[:depth] for qid in judged]
            slates = [Slate(t, tuple(collection.docs[d] for d in ds)) for t, ds in zip(texts, lists, strict=True)]
            answers = call_ranker(ranker, self.ranker, slates)
            for qid, docnos, scores in zip(judged, lists, answers, strict=True):
                run[qid] = dict(zip(docnos, scores.tolist(), strict=True))
        else:
            run = {
                q: f.head(depth) for q, f in zip(judged, call_retriever(ranker, self.ranker, texts, depth), strict=True)
            }
        qrels = {qid: collection.qrels[qid] for qid in judged}
        return float(score_table(self.measure, qrels, {self.ranker: run}).values.mean())


def search_coarse_to_fine(
    grid: Mapping[str, Sequence[Any]], evaluate: Callable[[Mapping[str, Any]], float], initial_values: int = 8
) -> dict[str, Any]:
    """Return a grid point with a high value, found by halving the step; each point is tried at most once.

    The search starts with about `initial_values` values of each parameter, evenly spread. It then tries the neighbours
    of the best point, and halves the distance when none is better. It finds a single maximum; of several, it finds the
    one with the best start. Ties go to the point that was tried first.

    >>> search_coarse_to_fine({"x": range(1000)}, lambda point: -abs(point["x"] - 700))
    {'x': 700}
    """
    names = list(grid)
    steps = [max(1, len(grid[name]) // initial_values) for name in names]
    known: dict[tuple[int, ...], float] = {}

    def look(places: Sequence[Sequence[int]]) -> tuple[int, ...]:
        for point in product(*places):
            if point not in known:
                known[point] = evaluate({name: grid[name][at] for name, at in zip(names, point, strict=True)})
        return max(known, key=known.__getitem__)

    best = look([range(step // 2, len(grid[name]), step) for name, step in zip(names, steps, strict=True)])
    while True:
        around = [
            [at for at in (place - step, place, place + step) if 0 <= at < len(grid[name])]
            for name, place, step in zip(names, best, steps, strict=True)
        ]
        nearer = look(around)
        if nearer == best:  # no neighbour is better: halve the distance
            if max(steps) == 1:
                return {name: grid[name][at] for name, at in zip(names, best, strict=True)}
            steps = [max(1, step // 2) for step in steps]
        best = nearer

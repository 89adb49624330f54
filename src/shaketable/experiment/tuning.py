"""The choice of a learner's settings on validation queries, and cross-validated training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shaketable.core.errors import BadInput
from shaketable.core.protocols import Learner
from shaketable.core.registries import LEARNERS
from shaketable.datasets.splits import make_folds
from shaketable.rankers import run_file
from shaketable.rankers.persistence import refuse_taken
from shaketable.rankers.saved import SavedModel
from shaketable.training.jobs import TunedLearner
from shaketable.training.plan import TrainingPlan

if TYPE_CHECKING:
    from shaketable.experiment.experiment import Experiment


def tune_learner(
    experiment: Experiment,
    learner: str | Learner,
    train: str | Sequence[str],
    valid: str | Sequence[str] | None,
    plan: TrainingPlan | None,
    grid: Mapping[str, Sequence[Any]] | None,
) -> TunedLearner:
    """Return the learner with the grid settings that do best on the validation queries."""
    how: Learner = LEARNERS.build(learner) if isinstance(learner, str) else learner
    qids, judges = experiment.resolve_query_ids(train, valid)
    if hasattr(how, "choose"):
        progress, given = experiment.engine.progress, experiment.collection.candidates or None
        best, trials = how.choose(experiment.collection, judges or qids, given, experiment.depth, progress)
        return TunedLearner(best, trials)
    grid = how.grid if grid is None else grid
    if not grid:
        raise BadInput(f"{LEARNERS.spec(how)} has no grid of settings to choose from")
    if not judges:
        raise BadInput("tuning needs validation queries, and there are none; add them with --split-ratio 60/20/20")
    points = [dict(zip(grid, point, strict=True)) for point in product(*grid.values())]
    with experiment.engine.progress(f"tuning {LEARNERS.spec(how)}", len(points), "trials") as advance:
        wanted = [experiment.training_job(replace(how, **point), qids, judges, plan) for point in points]  # type: ignore[type-var]
        models = experiment.run_jobs(wanted, advance)
    values = [float(model.read_card()["value"]) for model in models]
    trials = [point | {"valid": value} for point, value in zip(points, values, strict=True)]
    winner = max(trials, key=lambda trial: trial["valid"])
    return TunedLearner(replace(how, **{name: winner[name] for name in grid}), trials)  # type: ignore[type-var]


def fit_folds(
    experiment: Experiment,
    learner: str | Learner,
    k: int,
    folder: str | Path,
    plan: TrainingPlan | None,
    overwrite: bool,
) -> SavedModel:
    """Train a model for each fold, and save the joined run of the test folds as a ranker."""
    refuse_taken(folder, overwrite=overwrite)
    collection, seed = experiment.collection, experiment.seed
    judged = [qid for qid in collection.queries if collection.qrels.get(qid)]
    joined: dict[str, Mapping[str, float]] = {}
    dealt = make_folds(judged, k, seed)
    models = experiment.run_jobs([experiment.training_job(learner, fold.train, fold.valid, plan) for fold in dealt])
    for fold, model in zip(dealt, models, strict=True):
        test = replace(collection, queries={qid: collection.queries[qid] for qid in fold.test}, splits={})
        alone = replace(experiment.with_collection(test), models={model.path: model}, limit=None)
        joined |= alone.get_run(model.path)
    spec = learner if isinstance(learner, str) else LEARNERS.spec(learner)
    card = {"learner": spec, "folds": k, "seed": seed, "train": {"queries": len(judged)}}
    run_file.save({qid: joined[qid] for qid in judged if qid in joined}, folder, card, overwrite=overwrite)
    return SavedModel(str(folder))

"""The choice of a learner's settings on validation queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from shaketable.core.errors import BadInput
from shaketable.core.protocols import Learner
from shaketable.core.registries import LEARNERS
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

"""Training jobs: which queries to learn from, where a trained model is stored, and the jobs that train it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shaketable.core.documents import Collection, Qrels, Query, Run, fingerprint
from shaketable.core.errors import BadInput, Damaged, UnknownName
from shaketable.core.home import home_folder
from shaketable.core.progress import ProgressFactory, no_progress
from shaketable.core.protocols import Learner, Model
from shaketable.core.registries import LEARNERS
from shaketable.core.registry import find_named_files
from shaketable.datasets.splits import TEST, find_validation_split
from shaketable.executors.base import Executor, Job, as_completed
from shaketable.files.checksums import digest_files
from shaketable.files.scratch import find_writable_path
from shaketable.files.staging import set_aside
from shaketable.rankers.persistence import MODEL_FILE, SCHEMA, read_verified, remove_leftovers
from shaketable.rankers.saved import SavedModel
from shaketable.training.plan import TrainingPlan

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class TunedLearner:
    """A learner with the best of the tried settings, and the validation value of each setting."""

    learner: Learner
    trials: list[dict[str, Any]]


def resolve_query_ids(
    collection: Collection, train: str | Sequence[str], valid: str | Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the query ids to learn from and to validate on; a part is the name of a split, or query ids."""
    splits = collection.splits
    if valid is None:
        valid = (find_validation_split(collection) or ()) if isinstance(train, str) else ()
    named = [part for part in (train, valid) if isinstance(part, str)]
    if absent := [name for name in named if name not in splits]:
        if not splits or tuple(splits) == (TEST,):
            raise BadInput(
                f"collection {collection.name} has no split {absent[0]}; create splits with --split-ratio 60/20/20, "
                "or use cross-validation with --folds 5"
            )
        raise UnknownName("split", absent[0], splits)
    return _resolve_split(collection, train), _resolve_split(collection, valid)


def _resolve_split(collection: Collection, part: str | Sequence[str]) -> tuple[str, ...]:
    """Return the query ids of a split that have a text, or the given ids."""
    known = collection.queries
    if isinstance(part, str):
        return tuple(qid for qid in collection.splits[part] if qid in known)
    if strange := [qid for qid in part if qid not in known]:
        raise BadInput(f"collection {collection.name}: there is no query {strange[0]!r}")
    return tuple(part)


def get_model_folder(
    learner: Learner,
    collection: Collection,
    train: Sequence[str],
    valid: Sequence[str],
    plan: TrainingPlan | None,
    *settings: int | str,
) -> Path:
    """Return the folder of a trained model, named by everything that the model depends on."""
    text = LEARNERS.spec(learner, paths=True)
    plan_fingerprint = plan.fingerprint if plan else ""
    parts = (SCHEMA, text, digest_files(find_named_files(text)), plan_fingerprint, collection.fingerprint)
    return home_folder() / "models" / fingerprint(*parts, train, valid, *settings)


def is_stored(model_folder: Path, repair_notes: list[str]) -> bool:
    """Return True if the folder has an intact model; a damaged one is renamed if possible, with a note."""
    if not (model_folder / MODEL_FILE).is_file():
        return False
    try:
        remove_leftovers(model_folder)
        read_verified(model_folder)
    except Damaged as error:
        with suppress(OSError):
            set_aside(model_folder)
        repair_notes.append(f"a cached model was damaged and is trained again ({error})")
        return False
    return True


def find_model_folder(kept: Path, repair_notes: list[str]) -> tuple[Path, bool]:
    """Return the folder of a model, and True if it has the model; otherwise the folder can be written to."""
    if is_stored(kept, repair_notes):
        return kept, True
    folder, remark = find_writable_path(kept)
    if remark and remark not in repair_notes:
        repair_notes.append(remark)
    return folder, folder != kept and is_stored(folder, repair_notes)


def run_training_jobs(
    executor: Executor, wanted: Sequence[SavedModel | Job], on_done: Callable[[int], None] = lambda done: None
) -> list[SavedModel]:
    """Run the jobs among the wanted models and return all models.

    `on_done` is called with the number of models that have become ready.
    """
    jobs = {one.arguments[0]: one for one in wanted if isinstance(one, Job)}
    on_done(sum(isinstance(one, SavedModel) for one in wanted))
    trained: dict[Path, SavedModel] = {}
    started = time.perf_counter()
    for folder, model in as_completed(executor, jobs.items()):
        trained[folder] = model
        learner, seconds = LEARNERS.spec(jobs[folder].arguments[1]), time.perf_counter() - started
        LOG.info("%s was trained, after %.1f seconds; its model is in %s.", learner, seconds, folder)
        on_done(1)
    return [one if isinstance(one, SavedModel) else trained[one.arguments[0]] for one in wanted]


def run_fit_job(
    collection: Collection,
    folder: Path,
    learner: Learner,
    queries: Mapping[str, Query],
    qrels: Qrels,
    candidates: Run,
    train: Sequence[str],
    valid: Sequence[str],
    seed: int,
    plan: TrainingPlan | None,
    depth: int,
    overwrite: bool,
    training_name: str,
    progress: ProgressFactory = no_progress,
) -> Model:
    """Call `Learner.fit` in a job; of the collection only the documents are used, all other data come with the job."""
    asked = replace(collection, queries=queries, qrels=qrels, splits={}, candidates={}, variants={})
    what: Any = {"valid": valid, "seed": seed, "plan": plan, "candidates": candidates, "depth": depth}
    try:
        return learner.fit(asked, train, **what, folder=folder, progress=progress, overwrite=overwrite)
    except BadInput as error:
        if not training_name:
            raise
        raise BadInput(f"it cannot be trained on {training_name} ({error})") from error

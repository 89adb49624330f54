"""`shaketable train`: training of rankers and writers on a collection or on files."""

from __future__ import annotations

from typing import Any

from shaketable.cli.options.data import CandidateFlags
from shaketable.cli.options.output import Html, Json
from shaketable.cli.options.performance import WorkerFlags
from shaketable.cli.options.training import LearnerText, LearningFlags, ModelFolder, TrainingDataFlags


def train(
    *,
    learner: LearnerText,
    model: ModelFolder,
    source: TrainingDataFlags,
    how: LearningFlags,
    candidates: CandidateFlags,
    html_to: Html = None,
    json_to: Json = None,
    workers: WorkerFlags,
) -> None:
    """Train a ranker, for use with '--ranker FOLDER', or a writer, which generates texts."""
    import shaketable as st
    from shaketable.cli.console import show_training

    given: dict[str, Any] = {**vars(source), **vars(how), "not_worse_than": how.not_worse_than or ()}
    done = st.train(learner, given.pop("data"), model, **given, **candidates.to_options(), **workers.to_options())
    show_training(done, json_to, html_to)

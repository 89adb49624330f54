"""`train`: training of rankers and writers on a collection or on files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from shaketable.api.audit import open_experiment
from shaketable.api.options import (
    DEFAULT_DEPTH,
    DEFAULT_FIRST_STAGE,
    CollectionLike,
    Notify,
    TrainingOptions,
    ignore_message,
)
from shaketable.api.training_result import TrainedWriter, TrainingResult
from shaketable.core.documents import Collection
from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.progress import ProgressFactory, no_progress
from shaketable.core.protocols import Defence, Learner
from shaketable.core.registries import DEFENCES, LEARNERS, LEXICAL_RANKERS, WRITERS
from shaketable.datasets.letor import Letor, read_letor
from shaketable.datasets.load import load
from shaketable.datasets.splits import TRAIN
from shaketable.datasets.trec import read_topics, write_qrels, write_run
from shaketable.defences.training import add_unlabelled_queries, plan_defended_training
from shaketable.experiment import Experiment
from shaketable.measures.effectiveness import score_tables
from shaketable.rankers import run_file
from shaketable.rankers.persistence import refuse_taken
from shaketable.rankers.saved import SavedModel
from shaketable.training import feature_learner as fitting
from shaketable.training.baselines import read_baselines
from shaketable.training.feature_learner import FeatureLearner, Floats
from shaketable.training.neural import NeuralLearner
from shaketable.training.plan import TrainingPlan
from shaketable.training.seq2seq import Seq2SeqWriter
from shaketable.training.seq2seq_folder import CARD_FILE, refuse_occupied_folder

TEST_MEASURES = ("nDCG@10", "nDCG(dcg='exp-log2')@10")
"""The measures on a test file: linear gain, as everywhere else, and exponential gain, as in training and its papers."""


def train(
    learner: str | Learner | Seq2SeqWriter,
    data: CollectionLike | None = None,
    model: str | Path = "model",
    *,
    text_pairs: str | Path | None = None,
    letor: str | Path | None = None,
    letor_valid: str | Path | None = None,
    letor_test: str | Path | None = None,
    train_split: str = TRAIN,
    valid_split: str | None = None,
    folds: int = 0,
    not_worse_than: Sequence[str] = (),
    tune: bool = False,
    preset: str | None = None,
    defence: str | Defence | None = None,
    adversarial_documents: str | Path | None = None,
    unlabelled: str | Path | None = None,
    overwrite: bool = False,
    **options: Unpack[TrainingOptions],
) -> TrainingResult | TrainedWriter:
    """Train a ranker or a writer, save it to a folder, and return the result.

    After an interruption, the same call continues the training.

    Parameters
    ----------
    learner
        A learner such as "knrm" or "lambdamart(objective='georisk')", or a writer, which generates texts.
    data
        The collection to learn from.
    model
        The folder to write the model to.
    text_pairs
        For a writer, instead of `data`: a TSV file with an input text and an output text on each line.
    letor
        Instead of `data`: a LETOR file of features to learn from.
    letor_valid
        With `letor`: the file of features to validate on.
    letor_test
        With `letor`: a file of features to rank with the trained model.
    train_split
        The split of the collection to learn from; "all" means every query.
    valid_split
        The split to validate on; by default "validation" or "dev", if the collection has one of them.
    folds
        The number of folds for cross-validation; the test lists of all folds are joined into one run. 0 means none.
        With `letor`, the folder also gets the model of each fold (fold-1, fold-2, ...), test.run and test.qrels.
    not_worse_than
        The baselines of a risk-sensitive objective, which penalises losses against them.
    tune
        If True, choose the settings from the grid of the learner's paper on the validation queries.
    preset
        The name of a data set whose settings a neural ranker uses: "robust04", "mq2007" or "msmarco".
    defence
        A defence against attacks, such as "at" or "piat".
    adversarial_documents
        The file of adversarial documents that the defence learns from. Without it, an undefended ranker is trained and
        attacked first.
    unlabelled
        A file of queries without judgements (topics, or a query id, a tab and a text on each line), from whose attacked
        lists the defence "piat" also learns.
    overwrite
        If True, replace a model in the folder.
    **options
        split_ratio, candidates, first_stage, depth, seed, progress, notify, executor
        (`shaketable.api.options.TrainingOptions`).

    Returns
    -------
    TrainingResult or TrainedWriter
        The model, its settings and its model card.

    Raises
    ------
    BadInput
        If options exclude each other, the folder has a model, or there is nothing to learn from.

    Examples
    --------
    >>> import shaketable as st
    >>> st.train("knrm(steps=200)", "sample", "my-model")  # doctest: +SKIP
    >>> st.audit("sample", "./my-model")  # doctest: +SKIP
    """
    given: dict[str, object] = {"--letor": letor, "--letor-valid": letor_valid, "--letor-test": letor_test}
    given |= {"--folds": folds, "--valid-split": valid_split, "--not-worse-than": not_worse_than, "--tune": tune}
    given |= {"--preset": preset, "--defence": defence, "--unlabelled": unlabelled}
    given |= {"--adversarial-documents": adversarial_documents}
    chosen = _build_learner(learner) if isinstance(learner, str) else learner
    if isinstance(chosen, Seq2SeqWriter):
        _refuse_options(given, f"{WRITERS.spec(chosen)} is a writer and does not learn to rank")
        return train_writer(
            chosen, data, model, text_pairs=text_pairs, train_split=train_split, overwrite=overwrite, **options
        )
    _refuse_options({"--text-pairs": text_pairs}, f"{LEARNERS.spec(chosen)} learns to rank, not to write texts")
    chosen = _apply_preset(chosen, preset) if preset else chosen
    only_collections: dict[str, object] = {"--train-split": train_split != TRAIN, "--valid-split": valid_split}
    only_collections |= {"--split-ratio": options.get("split_ratio"), "--candidates": options.get("candidates")}
    _check_options(given, only_collections, data)
    refuse_taken(model, overwrite=overwrite)  # before hours of work
    if letor is not None:
        settings = (Path(model), not_worse_than, tune, options.get("seed", 0), overwrite)
        if folds:
            return _cross_validate_features(chosen, Path(letor), folds, *settings, options.get("progress", no_progress))
        return _train_from_features(chosen, Path(letor), letor_valid, letor_test, *settings)
    assert data is not None
    experiment = _open_training(data, unlabelled, train_split, options)
    plan = _plan_with_baselines(chosen, not_worse_than)
    trials: Sequence[Mapping[str, Any]] = ()
    if tune:
        tuned = experiment.tune(chosen, train_split, valid=valid_split, plan=plan)
        chosen, trials = tuned.learner, tuned.trials
    notify = options.get("notify", ignore_message)
    if defence is not None:
        parts = (train_split, valid_split, adversarial_documents, folds)
        plan = plan_defended_training(experiment, chosen, defence, plan, *parts, notify)
    if folds:
        saved = experiment.fit_folds(chosen, folds, folder=model, plan=plan, overwrite=overwrite)
    else:
        saved = experiment.fit(chosen, train_split, valid=valid_split, plan=plan, folder=model, overwrite=overwrite)
    return _describe_model(saved, chosen, trials, notify, experiment.collect_remarks())


def _open_training(
    data: CollectionLike, unlabelled: str | Path | None, train_split: str, options: TrainingOptions
) -> Experiment:
    """Return the experiment to train on, with queries without judgements if there are any."""
    experiment = open_experiment(data, {}, split="all", **options)
    if unlabelled is None:
        return experiment
    return add_unlabelled_queries(experiment, read_topics(Path(unlabelled)), train_split)


def _apply_preset(learner: Learner, name: str) -> Learner:
    """Return a neural learner with the settings for a data set."""
    if not hasattr(learner, "preset"):
        raise BadInput(f"presets are for neural rankers, and {LEARNERS.spec(learner)} is not one")
    chosen: Learner = learner.preset(name)
    return chosen


def _check_options(
    given: Mapping[str, object], only_collections: Mapping[str, object], data: CollectionLike | None
) -> None:
    """Refuse training options that exclude each other."""
    if (given["--letor"] is None) == (data is None):
        raise BadInput("give either a collection (--data) or a feature file (--letor) to learn from")
    attacked, defence = ({name: given[name]} for name in ("--adversarial-documents", "--defence"))
    if given["--defence"] is None:
        _refuse_options(attacked, "adversarial documents are for a defence (--defence)")
    if given["--unlabelled"] is not None and not _uses_unlabelled(given["--defence"]):
        _refuse_options({"--unlabelled": True}, "only the defence piat learns from queries without judgements")
    if given["--letor"] is not None:
        _refuse_options(defence, "a defence needs texts, so give a collection (--data)")
        _refuse_options(only_collections, "a feature file (--letor) has no splits and no texts; a collection has")
        if given["--folds"]:
            files = {name: given[name] for name in ("--letor-valid", "--letor-test")}
            _refuse_options(files, "with --folds, each fold validates and tests on queries of --letor")
    elif given["--letor-valid"] or given["--letor-test"]:
        raise BadInput("--letor-valid and --letor-test need --letor, the feature file to learn from")


def _uses_unlabelled(defence: object) -> bool:
    """Return True if a defence learns from queries without judgements."""
    built = DEFENCES.build(defence) if isinstance(defence, str) else defence
    return bool(getattr(built, "uses_unlabelled", False))


def _plan_with_baselines(learner: Learner, not_worse_than: Sequence[str]) -> TrainingPlan | None:
    """Return a plan with the baselines of a risk-sensitive objective; None without baselines."""
    # the default plan may have a teacher
    own = learner.make_default_plan() if isinstance(learner, NeuralLearner) else TrainingPlan()
    return replace(own, baselines=tuple(not_worse_than)) if not_worse_than else None


def _describe_model(
    model: SavedModel,
    learner: Learner,
    trials: Sequence[Mapping[str, Any]],
    notify: Notify,
    remarks: Mapping[str, str],
) -> TrainingResult:
    """Return the result of a training; report remarks, and a defence that did not improve the validation value."""
    for name, remark in remarks.items():
        notify(f"{name}: {remark}")
    card = {"train": {"queries": 0}} | model.read_card()
    if card.get("defence") and card.get("best") == 0:
        notify("no training step improved the validation value, so the saved model has no defence")
    return TrainingResult(model, LEARNERS.spec(learner), card, trials)


def train_writer(
    writer: str | Seq2SeqWriter,
    data: CollectionLike | None = None,
    model: str | Path = "model",
    *,
    text_pairs: str | Path | None = None,
    train_split: str = TRAIN,
    overwrite: bool = False,
    **options: Unpack[TrainingOptions],
) -> TrainedWriter:
    """Train a T5 writer on text pairs, save its checkpoint, and return the result.

    After an interruption, the same call continues the training.

    Parameters
    ----------
    writer
        The writer, as a text or an object.
    data
        The collection that the pairs come from. Without it and without `text_pairs`, the writer uses its default pairs.
    model
        The folder to write the checkpoint to.
    text_pairs
        A TSV file of pairs, instead of `data`.
    train_split
        The split of the collection to learn from; "all" means every query.
    overwrite
        If True, replace a checkpoint in the folder.
    **options
        The options of `train`.
    """
    chosen: Seq2SeqWriter = WRITERS.build(writer) if isinstance(writer, str) else writer
    candidates, split_ratio = options.get("candidates"), options.get("split_ratio", "")
    depth, first_stage = options.get("depth", DEFAULT_DEPTH), options.get("first_stage", DEFAULT_FIRST_STAGE)
    seed, progress = options.get("seed", 0), options.get("progress", no_progress)
    if data is not None and text_pairs is not None:
        raise BadInput("give either a collection (--data) or a file of pairs (--text-pairs) to learn from, not both")
    if data is None:
        only_collections: dict[str, object] = {"--train-split": train_split != TRAIN, "--split-ratio": split_ratio}
        _refuse_options(only_collections, "they apply to a collection (--data), and there is none")
    if data is None or not chosen.uses_candidates:
        given = {
            "--candidates": candidates,
            "--depth": depth != DEFAULT_DEPTH,
            "--first-stage": first_stage != DEFAULT_FIRST_STAGE,
        }
        _refuse_options(given, f"{WRITERS.spec(chosen)} does not use candidates here")
    refuse_occupied_folder(Path(model), overwrite=overwrite)  # before hours of work
    notes: list[str] = []
    if text_pairs is not None:
        found, origin = chosen.read_pairs_file(Path(text_pairs)), str(text_pairs)
    elif data is not None and chosen.pair_origin:
        collection = load(data, None, candidates, split_ratio, seed)
        qids, origin = _select_queries(collection, train_split), f"{collection.name}, split {train_split}"
        found = chosen.build_pairs(collection, qids, depth=depth, first_stage=first_stage, seed=seed)
        if not found:
            raise BadInput(f"{chosen.kind} learns from {chosen.pair_origin}, and there are none in {origin}")
    else:
        (found, notes), origin = chosen.load_default_pairs(), "topics of ir_datasets"
    folder = chosen.fit(found, model, seed=seed, progress=progress, origin=origin, overwrite=overwrite)
    card = json.loads((folder / CARD_FILE).read_text(encoding="utf-8"))
    return TrainedWriter(str(model), chosen, card | {"notes": notes})


def _build_learner(text: str) -> Learner | Seq2SeqWriter:
    """Return the learner or the writer that a text names."""
    named = re.fullmatch(r"\s*([\w-]+)\s*(\(.*)?", text, re.DOTALL)
    name = named[1].replace("-", "_") if named else ""
    if name in WRITERS:
        writer: Seq2SeqWriter = WRITERS.build(text)
        return writer
    if name and name not in (*LEARNERS, *LEXICAL_RANKERS):
        raise UnknownName("learner", name, (*LEARNERS, *WRITERS))
    learner: Learner = LEARNERS.build(text)
    return learner


def _refuse_options(options: Mapping[str, object], why: str) -> None:
    """Raise an error if one of these options is set."""
    if given := [name for name, value in options.items() if value]:
        raise BadInput(f"leave out {' and '.join(given)}: {why}")


def _select_queries(collection: Collection, split: str) -> list[str]:
    """Return the ids of the queries of a split that have a text; "all" is every query."""
    if split == "all":
        return list(collection.queries)
    if split not in collection.splits:
        raise BadInput(
            f"collection {collection.name} has no split {split}; create splits with --split-ratio 60/20/20, or "
            "use all queries with --train-split all"
        )
    return [qid for qid in collection.splits[split] if qid in collection.queries]


def _train_from_features(
    learner: Learner,
    letor: Path,
    letor_valid: str | Path | None,
    letor_test: str | Path | None,
    out: Path,
    texts: Sequence[str],
    tune: bool,
    seed: int,
    overwrite: bool,
) -> TrainingResult:
    """Train a ranker on rows of features and return the result."""
    chosen = _require_feature_learner(learner)
    learn_from = read_letor(letor)
    validate_on = read_letor(Path(letor_valid), feature_count=learn_from.feature_count) if letor_valid else None
    baselines, trials = read_baselines(texts), []
    if tune:
        if validate_on is None:
            raise BadInput("tuning needs validation queries: give a file of them with --letor-valid")
        parts = (fitting.normalise_features(part, "query") for part in (learn_from, validate_on))
        tuned = fitting.tune(chosen, *parts, seed=seed, baselines=baselines)
        chosen, trials = tuned.learner, [dict(trial) for trial in tuned.trials]
    model = fitting.learn(chosen, learn_from, validate_on, seed=seed, baselines=baselines)
    model.save(out, overwrite=overwrite)
    held_out = read_letor(Path(letor_test), feature_count=learn_from.feature_count) if letor_test else None
    means = {} if held_out is None else _rank_rows(held_out, model.score_letor(held_out), out)
    return TrainingResult(SavedModel(str(out)), model.learner, model.card, trials, means)


def _cross_validate_features(
    learner: Learner,
    letor: Path,
    folds: int,
    out: Path,
    texts: Sequence[str],
    tune: bool,
    seed: int,
    overwrite: bool,
    progress: ProgressFactory,
) -> TrainingResult:
    """Train a ranker for each fold of the queries, save the joined run of the test folds and the models."""
    chosen = _require_feature_learner(learner)
    data = read_letor(letor)
    scores, models = fitting.cross_validate(
        chosen,
        data,
        k=folds,
        seed=seed,
        grid=chosen.grid if tune else None,
        baselines=read_baselines(texts),
        progress=progress,
    )
    names = [f"fold-{number}" for number in range(1, folds + 1)]
    card: dict[str, Any] = {
        "learner": LEARNERS.spec(chosen),
        "folds": folds,
        "seed": seed,
        "train": {"queries": data.query_count, "rows": data.row_count, "source": data.source},
        "models": [
            {"folder": name, "learner": model.learner, "best": model.card["best"], "value": model.card["value"]}
            for name, model in zip(names, models, strict=True)
        ],
        "valid": {"measure": models[0].card["valid"]["measure"]},
    }
    run_file.save(data.to_run(scores), out, card, overwrite=overwrite)
    for name, model in zip(names, models, strict=True):
        model.save(out / name, overwrite=True)
    return TrainingResult(SavedModel(str(out)), card["learner"], card, (), _rank_rows(data, scores, out))


def _require_feature_learner(learner: Learner) -> FeatureLearner:
    if not isinstance(learner, FeatureLearner):
        raise BadInput(f"{LEARNERS.spec(learner)} learns from texts, not features: give a collection (--data)")
    return learner


def _rank_rows(held_out: Letor, scores: Floats, out: Path) -> dict[str, float]:
    """Write the lists of the test rows as files for `evaluate`, and return the means that `evaluate` computes."""
    run, qrels = held_out.to_run(scores), held_out.to_qrels()
    write_run(run, out / "test.run", tag=out.name)
    write_qrels(qrels, out / "test.qrels")
    return {table.measure: float(table.values.mean()) for table in score_tables(TEST_MEASURES, qrels, {out.name: run})}

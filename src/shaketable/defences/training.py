"""Set-up of defended training: the plan of a defence, and the adversarial examples that it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from shaketable.attacks.setup import build_attacker_knowledge, open_recipe, open_target
from shaketable.core.documents import Query, fingerprint, rank_docnos
from shaketable.core.errors import BadInput
from shaketable.core.protocols import Defence, Learner
from shaketable.core.registries import DEFENCES, LEARNERS, RECIPES
from shaketable.defences.adversarial_examples import ExampleGenerator, ExampleSpec, draw_documents
from shaketable.experiment import Experiment
from shaketable.rankers.saved import SavedModel
from shaketable.training.neural import NeuralLearner
from shaketable.training.plan import TrainingPlan, split_train_valid

STANDARD_MODEL_NAME = "the model of standard training"
"""The name of the attacked ranker."""


def plan_defended_training(
    experiment: Experiment,
    learner: Learner,
    defence: str | Defence,
    plan: TrainingPlan | None,
    train: str,
    valid: str | None,
    attacked: str | Path | None,
    folds: int,
    notify: Callable[[str], None],
) -> TrainingPlan | None:
    """Return the plan of a training with a defence, or the given plan (or None) if the defence changes nothing."""
    defence = DEFENCES.build(defence) if isinstance(defence, str) else defence
    if not isinstance(defence, Defence):
        raise BadInput(f"{type(defence).__name__} is not a defence: it has no method plan")
    spec, about = DEFENCES.spec(defence), dict[str, Any]()
    unfit = BadInput(f"{spec} needs a neural learner, and {LEARNERS.spec(learner)} is not one; use for example knrm")
    called = False

    def make_adversarial_examples() -> Path:
        nonlocal called
        called = True
        if not isinstance(learner, NeuralLearner):
            raise unfit
        if attacked is not None:
            about["attacked"] = str(attacked)
            return Path(attacked)
        if folds:
            raise BadInput(f"{spec} learns from attacks on one model, but --folds trains several; leave out --folds, "
                           "or name attacked documents with --adversarial-documents")  # fmt: skip
        path, details = _make_examples(
            experiment, cast(Learner, learner), getattr(defence, "examples", ExampleSpec()), train, valid, notify
        )
        about.update(details)
        return path

    own = learner.make_default_plan() if isinstance(learner, NeuralLearner) else plan or TrainingPlan()
    own = replace(own, baselines=plan.baselines if plan else ())
    new = defence.plan(own, make_adversarial_examples)
    if attacked is not None and not called:
        raise BadInput(f"leave out --adversarial-documents: {spec} does not learn from attacked documents")
    if new == own:
        return plan
    if not isinstance(learner, NeuralLearner):
        raise unfit
    return replace(new, card_extras={"defence": {"text": spec} | about})


def add_unlabelled_queries(experiment: Experiment, queries: Mapping[str, Query], train: str) -> Experiment:
    """Return the experiment with more training queries, which have no judgements.

    If the collection has candidates, those of the new queries come from the first stage.
    """
    whole = experiment.collection
    if taken := [qid for qid in queries if qid in whole.queries]:
        raise BadInput(f"the unlabelled query {taken[0]!r} has the id of a query of {whole.name}; rename it")
    splits = {**whole.splits, **({train: (*whole.splits[train], *queries)} if train in whole.splits else {})}
    more = replace(whole, queries={**whole.queries, **queries}, splits=splits, candidates={})
    found = experiment.with_collection(more).get_training_candidates(list(queries)) if whole.candidates else {}
    return experiment.with_collection(replace(more, candidates={**whole.candidates, **(found or {})}))


def _make_examples(
    experiment: Experiment,
    learner: Learner,
    examples: ExampleSpec,
    train: str,
    valid: str | None,
    notify: Callable[[str], None],
) -> tuple[Path, dict[str, Any]]:
    """Make adversarial examples against the model of standard training; return their file, and the cost of both."""
    notify(f"First {LEARNERS.spec(learner)} is trained without a defence, to attack it; the model is cached.")
    model = experiment.fit(learner, train, valid=valid)
    card = model.read_card()
    notify(f"The training without a defence took {card['seconds']:.0f} seconds for {card['steps']} steps.")
    kept = build_example_generator(experiment, model, examples, train, valid).run(notify)
    notify(
        f"{kept.changed_count:,} of {kept.document_count:,} attacked documents have a higher score than before. Now it "
        "is trained with the defence."
    )
    standard = {"seconds": card["seconds"], "steps": card["steps"], "value": card["value"]}
    return kept.path, {"recipe": examples.recipe, "examples": kept.to_card(), "standard training": standard}


def build_example_generator(
    experiment: Experiment, model: SavedModel, examples: ExampleSpec, train: str, valid: str | None = None
) -> ExampleGenerator:
    """Return the generator of examples: the attack on a model for its training queries."""
    collection = experiment.collection
    qids, _ = split_train_valid(collection, *experiment.resolve_query_ids(train, valid), experiment.seed)
    found = experiment.get_training_candidates(qids) or {}
    candidates = {
        qid: {docno: found[qid][docno] for docno in rank_docnos(found[qid])[: experiment.depth]}
        for qid in qids
        if qid in found
    }
    table = replace(experiment, models={STANDARD_MODEL_NAME: model}, split=None)
    documents = draw_documents(collection, candidates, qids, examples, experiment.seed)
    texts = {qid: collection.queries[qid].text for qid in documents}
    traits = table.get_traits(STANDARD_MODEL_NAME)
    lists = [(qid, sorted(candidates[qid].items())) for qid in documents]

    def open_attack() -> Any:
        return open_recipe(
            table,
            STANDARD_MODEL_NAME,
            RECIPES.build(examples.recipe),
            build_attacker_knowledge(table, STANDARD_MODEL_NAME, list(texts)),
        )

    return ExampleGenerator(
        STANDARD_MODEL_NAME,
        fingerprint(traits.fingerprint, lists),
        collection,
        examples.recipe,
        documents,
        open_attack,
        lambda some: open_target(table, STANDARD_MODEL_NAME, {qid: texts[qid] for qid in some}, candidates),
        experiment.seed,
        experiment.engine.progress,
    )

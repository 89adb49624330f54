"""A defence put to work: the plan of a training that attacks move less, and the adversarial examples that it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from shaketable.bench import Bench
from shaketable.defend.adversaries import Examples, Making, drawn
from shaketable.errors import BadInput
from shaketable.learners.neural import NeuralLearner
from shaketable.learners.plan import Plan, divided
from shaketable.rankers.saved import Saved
from shaketable.registry import ATTACKS, DEFENCES, LEARNERS
from shaketable.score.road import Traits
from shaketable.task.campaign import knowledge, open_target, opened
from shaketable.types import Defence, Learner, fingerprint, ranking

STANDARD = "the model of standard training"
"""What a ranker that is attacked for examples is called."""


def defended(
    bench: Bench,
    learner: Learner,
    defence: str | Defence,
    plan: Plan | None,
    train: str,
    valid: str | None,
    attacked: str | Path | None,
    folds: int,
    say: Callable[[str], None],
) -> Plan | None:
    """The plan of a training with a defence; None, or the plan that was given, where it changes nothing."""
    how = DEFENCES.build(defence) if isinstance(defence, str) else defence
    if not isinstance(how, Defence):
        raise BadInput(f"{type(how).__name__} is no defence: it has no method plan")
    spec, about = DEFENCES.spec(how), dict[str, Any]()
    unfit = BadInput(f"{spec} defends nets, which learn from texts; {LEARNERS.spec(learner)} is none, knrm is one")
    called = False

    def adversaries() -> Path:
        nonlocal called
        called = True
        if not isinstance(learner, NeuralLearner):
            raise unfit
        if attacked is not None:
            about["attacked"] = str(attacked)
            return Path(attacked)
        if folds:
            raise BadInput(f"{spec} learns from attacks on one model, and --folds trains several; leave it out, or "
                           "give attacked documents with --attacked")  # fmt: skip
        path, told = _made(bench, cast(Learner, learner), getattr(how, "examples", Examples()), train, valid, say)
        about.update(told)
        return path

    own = learner.plan() if isinstance(learner, NeuralLearner) else plan or Plan()
    own = replace(own, baselines=plan.baselines if plan else ())
    new = how.plan(own, adversaries)
    if attacked is not None and not called:
        raise BadInput(f"leave out --attacked: {spec} learns from no attacked documents")
    if new == own:
        return plan
    if not isinstance(learner, NeuralLearner):
        raise unfit
    return replace(new, about={"defence": {"text": spec} | about})


def _made(
    bench: Bench, learner: Learner, examples: Examples, train: str, valid: str | None, say: Callable[[str], None]
) -> tuple[Path, dict[str, Any]]:
    """Adversarial examples against the model of standard training, and what both of them cost."""
    say(f"First {LEARNERS.spec(learner)} is trained without a defence, to attack it; the model is kept.")
    model = bench.fit(learner, train, valid=valid)
    card = model.card()
    say(f"The training without a defence took {card['seconds']:.0f} seconds for {card['steps']} steps.")
    making = attack_on(bench, model, examples, train, valid)
    kept = making.run(say)
    say(
        f"{kept.changed:,} of {kept.documents:,} attacked documents have a higher score than before. Now it is trained "
        "with the defence."
    )
    standard = {"seconds": card["seconds"], "steps": card["steps"], "value": card["value"]}
    return kept.path, {"recipe": examples.recipe, "examples": kept.about(), "standard training": standard}


def attack_on(bench: Bench, model: Saved, examples: Examples, train: str, valid: str | None = None) -> Making:
    """The attack on a model that gives examples, for the queries that it learned from."""
    collection = bench.collection
    qids, _ = divided(collection, *bench.parts(train, valid), bench.seed)
    found = bench.candidates_of(qids) or {}
    candidates = {
        qid: {docno: found[qid][docno] for docno in ranking(found[qid])[: bench.depth]} for qid in qids if qid in found
    }
    table = replace(bench, models={STANDARD: model}, split=None)
    documents = drawn(collection, candidates, qids, examples, bench.seed)
    texts = {qid: collection.queries[qid].text for qid in documents}
    traits = Traits.of(table.ranker(STANDARD), STANDARD)
    lists = [(qid, sorted(candidates[qid].items())) for qid in documents]

    def opened_attack() -> Any:
        return opened(table, STANDARD, ATTACKS.build(examples.recipe), knowledge(table, STANDARD, list(texts)))

    return Making(
        STANDARD,
        fingerprint(traits.fingerprint, lists),
        collection,
        examples.recipe,
        documents,
        opened_attack,
        lambda some: open_target(table, STANDARD, {qid: texts[qid] for qid in some}, candidates),
        bench.seed,
        bench.road.watch,
    )

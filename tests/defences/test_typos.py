"""The defence against typos: a plan becomes another plan, and a net is trained by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shaketable.core.errors import BadInput
from shaketable.core.registries import DEFENCES, LEARNERS
from shaketable.datasets.sample import read_sample
from shaketable.defences.typos import TYPO_TRANSFORMS, TypoTraining, VariedQuerySource
from shaketable.training.plan import ShuffledLabelSource, TrainingPlan


def refuse_adversaries() -> Path:
    raise AssertionError("typos need no adversaries")


def test_the_objective_of_the_plan_becomes_the_natural_one():
    plan = TypoTraining(share=0.25, weight=2.0).plan(
        TrainingPlan(ShuffledLabelSource(), "softmax(temperature=0.05)", ("bm25",)), refuse_adversaries
    )
    assert plan.lists == VariedQuerySource(ShuffledLabelSource(), TYPO_TRANSFORMS, 0.25)
    natural = "natural='softmax(temperature=0.05)'"
    assert plan.objective == f"self_teaching({natural}, weight=2.0, temperature=1.0)"
    assert plan.baselines == ("bm25",)


def test_without_teaching_the_queries_are_varied_and_the_objective_stays():
    plan = TypoTraining(("real_typo",), teach=False).plan(TrainingPlan(objective="hinge"), refuse_adversaries)
    assert plan == TrainingPlan(VariedQuerySource(transforms=("real_typo",), instead=True), "hinge")


def test_two_defences_can_follow_each_other():
    once = TypoTraining(("real_typo",)).plan(TrainingPlan(objective="hinge"), refuse_adversaries)
    twice = TypoTraining(("drop_letter",), teach=False).plan(once, refuse_adversaries)
    assert twice.lists == VariedQuerySource(once.lists, ("drop_letter",), instead=True)
    assert twice.objective == once.objective


def test_a_defence_is_a_value_with_a_text():
    text = "typos(transforms=('syn_swap',), share=1.0, teach=False)"
    assert DEFENCES.build(text) == TypoTraining(("syn_swap",), 1.0, False)
    assert DEFENCES.spec(DEFENCES.build(text)) == text
    for wrong in ("transforms=()", "share=0", "weight=-1", "temperature=0", "transforms=('add_queries',)"):
        with pytest.raises(BadInput):
            DEFENCES.build(f"typos({wrong})")


@pytest.mark.parametrize("teach", [True, False])
def test_a_net_is_trained_on_the_sample(tmp_path, teach):
    pytest.importorskip("torch")
    collection = read_sample()
    learner = LEARNERS.build("knrm(steps=4, lists=4, size=4, every=2, dim=8)")
    plan = TypoTraining(share=1.0, teach=teach).plan(learner.make_default_plan(), refuse_adversaries)
    train, valid = (collection.splits[name][:20] for name in ("train", "validation"))
    models = [
        learner.fit(collection, train, valid=valid, folder=tmp_path / name, plan=plan, depth=20)
        for name in ("first", "second")
    ]
    card = models[0].read_card()
    assert card["plan"] == plan.spec
    assert "varied_queries(share=1.0" in card["plan"]
    assert card["objective"] == ("self_teaching" if teach else "softmax")
    assert card["steps"] == 4
    losses = [[row.get("loss") for row in model.read_card()["history"]] for model in models]
    assert losses[0] == losses[1], "chance is tied to seed, query and pass"

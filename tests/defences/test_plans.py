"""Defences as values: the plan that each returns."""

from __future__ import annotations

from pathlib import Path

import pytest

from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.protocols import Defence
from shaketable.core.registries import DEFENCES
from shaketable.defences.adversarial_examples import ExampleSpec
from shaketable.defences.adversarial_training import AdversarialSource, AdversarialTraining
from shaketable.defences.data_augmentation import AugmentedSource, DataAugmentation
from shaketable.defences.piat import PIAT, PairedSource
from shaketable.defences.standard import Standard
from shaketable.training.plan import ImitationSource, JudgementSource, TrainingPlan

FILE = Path("left.jsonl")
PLAN = TrainingPlan(JudgementSource(), "ranknet", ("bm25",))


def file() -> Path:
    return FILE


def no_adversaries() -> Path:
    raise AssertionError("this defence needs no adversarial examples")


def test_standard_training_is_the_plan_as_it_is():
    assert Standard().plan(PLAN, no_adversaries) is PLAN


def test_augmentation_needs_no_attack_unless_it_counts_words():
    assert DataAugmentation(words=20).plan(PLAN, no_adversaries) == TrainingPlan(
        AugmentedSource(copies=2, words=20), "hinge", ("bm25",)
    )
    assert DataAugmentation(words=20, objective="").plan(PLAN, no_adversaries).objective == "ranknet"
    other = TrainingPlan(ImitationSource())
    assert DataAugmentation(copies=1, words=5, synonyms="wordnet").plan(other, no_adversaries).lists == AugmentedSource(
        ImitationSource(), 1, 5, "wordnet"
    )
    assert DataAugmentation().plan(PLAN, file).lists == AugmentedSource(words=0, path="left.jsonl")


def test_adversarial_training_keeps_the_objective():
    assert AdversarialTraining().plan(PLAN, file) == TrainingPlan(
        AdversarialSource(path="left.jsonl"), "ranknet", ("bm25",)
    )


def test_perturbation_invariant_training_mixes_the_objective_of_the_plan():
    pytest.importorskip("torch")
    plan = PIAT(loss="listnet", lambda_=0.2, top=2, size=8, attacked=3).plan(PLAN, file)
    assert plan.lists == PairedSource(path="left.jsonl", size=8, attacked=3)
    assert plan.objective == "piat(loss='listnet', top=2, natural='ranknet', lambda_=0.2)"
    assert plan.baselines == ("bm25",)
    assert PIAT().plan(TrainingPlan(), file).objective == "piat"


@pytest.mark.parametrize(
    "text", ["standard", "da(copies=3)", "at(queries=5)", "piat(loss='kl', detach=True, per_text=True)"]
)
def test_a_defence_is_a_value_with_a_text(text):
    defence = DEFENCES.build(text)
    assert isinstance(defence, Defence)
    assert DEFENCES.spec(defence) == text


def test_defences_declare_their_examples():
    assert AdversarialTraining(recipe="greedy", documents=3, queries=7).examples == ExampleSpec("greedy", 3, 7)
    assert PIAT().examples == ExampleSpec("white_wsra", 10, 0)


@pytest.mark.parametrize(
    "text",
    [
        "piat(lambda_=2)",
        "piat(lambda_=-1e-9)",
        "piat(loss='rank')",
        "piat(top=9)",
        "piat(size=5, attacked=6)",
        "at(documents=0)",
        "at(queries=-1)",
        "da(copies=0)",
        "da(words=-1)",
    ],
)
def test_senseless_settings_are_refused(text):
    with pytest.raises(BadInput):
        DEFENCES.build(text)


@pytest.mark.parametrize("text", ["pait", "at(recipe='wrsa')", "da(synonyms='x')", "da(objective='hinges')"])
def test_unknown_names_are_refused(text):
    with pytest.raises(UnknownName):
        DEFENCES.build(text)

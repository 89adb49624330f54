"""Laws of every recipe, and success rates on the sample."""

from __future__ import annotations

import dataclasses
from functools import cache

import pytest

from shaketable.attacks.goals import Demote, Promote, Top
from shaketable.attacks.runner import run_attacks
from shaketable.core.attack_types import AttackOutcome
from shaketable.core.documents import Doc
from shaketable.core.registries import RECIPES
from shaketable.measures.text_change import count_changed_words
from shaketable.rankers.lexical import BM25
from tests.attacks.setups import Stretched, cases_on, load_sample, open_attack, target_for

pytestmark = pytest.mark.slow

SAMPLE = load_sample()
AWKWARD = {
    "empty": Doc(""),
    "blank": Doc(" \n "),
    "title only": Doc("", title="Boats and ships of the coast"),
    "one word": Doc("boat"),
    "one letter": Doc("a"),
    "no words": Doc("?! -- 🙂 ..."),
    "other scripts": Doc("東京 の 船 は速い。 Лодки плывут."),
    "many blanks": Doc("  a  quick\n\n boat\t sails.  It  sank. ", title=" Boats  "),
    "one long word": Doc("boat" * 500),
    "capitals": Doc("THE QUICK BOAT SAILS. İT IS FAST.", title="QUICK"),
    "address": Doc("A quick boat. It sank.", title="Boats", url="http://boats/quick"),
    "marks around": Doc("(quick), «fast»; 'begin' ... \"end\"!"),
}


@cache
def cases_for(goal, stretched=False):
    ranker = BM25().open(SAMPLE)
    target = target_for(Stretched(ranker) if stretched else ranker)
    return target, cases_on(SAMPLE, target, queries=2, goal=goal)


@pytest.fixture(params=list(RECIPES))
def recipe(request):
    return RECIPES.build(request.param)


@pytest.fixture
def attack(recipe):
    return open_attack(recipe, SAMPLE)


def driven(attack, goal, **how):
    target, cases = cases_for(goal, how.pop("stretched", False))
    outcomes = run_attacks(attack, cases, target, **how)
    assert all(isinstance(outcome, AttackOutcome) for outcome in outcomes), outcomes
    return cases, outcomes


@pytest.mark.parametrize("goal", [Promote(), Demote()], ids=str)
def test_an_outcome_depends_on_nothing_but_the_case_and_the_seed(attack, goal):
    target, cases = cases_for(goal)
    together = run_attacks(attack, cases, target, seed=3)
    assert run_attacks(attack, cases, target, seed=3) == together
    assert run_attacks(attack, cases[::-1], target, seed=3, max_concurrent=2)[::-1] == together
    assert [run_attacks(attack, [case], target, seed=3)[0] for case in cases[::3]] == together[::3]


def test_an_outcome_depends_on_ranks_alone(attack):
    assert driven(attack, Promote())[1] == driven(attack, Promote(), stretched=True)[1]


@pytest.mark.parametrize("goal", [Promote(), Demote(), Top(10)], ids=str)
def test_an_outcome_is_better_or_the_original_and_keeps_the_limits(recipe, attack, goal):
    for case, outcome in zip(*driven(attack, goal), strict=True):
        changed = outcome.doc != case.doc
        assert changed == (goal.utility(outcome.ranks_after) > goal.utility(outcome.ranks_before))
        assert changed or outcome.ranks_after == outcome.ranks_before
        assert outcome.doc.url == case.doc.url
        assert len(outcome.doc.title.split()) == len(case.doc.title.split())
        if hasattr(recipe, "words"):
            assert count_changed_words(case.doc, outcome.doc) <= recipe.words
            assert len(outcome.doc.body.split()) == len(case.doc.body.split())


WORDS = [name for name in RECIPES if hasattr(RECIPES.get_class(name), "words") and "wsra" not in name]
"""Those of wsra are in test_wsra.py: chance leads a net of random weights to the right word too rarely."""


@pytest.mark.parametrize("recipe", WORDS, indirect=True)
def test_a_limit_of_one_word_is_kept(recipe):
    attack = open_attack(dataclasses.replace(recipe, words=1), SAMPLE)
    cases, outcomes = driven(attack, Demote())
    assert {count_changed_words(case.doc, outcome.doc) for case, outcome in zip(cases, outcomes, strict=True)} <= {0, 1}
    assert any(outcome.doc != case.doc for case, outcome in zip(cases, outcomes, strict=True))


def test_constraints_are_kept(recipe):
    attack = open_attack(dataclasses.replace(recipe, constraints=("most_words(2)",)), SAMPLE)
    for goal in (Promote(), Demote()):
        for case, outcome in zip(*driven(attack, goal), strict=True):
            assert count_changed_words(case.doc, outcome.doc) <= 2


@pytest.mark.parametrize("goal", [Promote(), Demote(), Top(10)], ids=str)
def test_awkward_documents_in_one_list_and_in_several(attack, goal):
    target, _ = cases_for(goal)
    qids = list(target.target_lists)
    documents = [(name, doc, some) for name, doc in AWKWARD.items() for some in (qids[:1], qids)]
    cases = target.build_cases([(f"{name} {len(some)}", doc, some) for name, doc, some in documents], goal)
    assert len(cases) == len(documents)
    for case, outcome in zip(cases, run_attacks(attack, cases, target), strict=True):
        assert isinstance(outcome, AttackOutcome), outcome
        assert len(outcome.ranks_after) == len(case.lists)
        assert outcome.doc.url == case.doc.url
        assert len(outcome.doc.title.split()) == len(case.doc.title.split())


@cache
def successes(text: str, goal) -> float:
    """Return the success rate of an attack on three documents for each of 10 queries of the sample."""
    target = target_for(BM25().open(SAMPLE))
    cases = cases_on(SAMPLE, target, queries=10, goal=goal)
    outcomes = run_attacks(open_attack(RECIPES.build(text), SAMPLE), cases, target)
    return sum(outcome.ranks_after != outcome.ranks_before for outcome in outcomes) / len(cases)


@pytest.mark.parametrize("text", ["query_insertion", "query_line", "keyword_stuffing", "sentence_insertion"])
def test_texts_of_the_query_lift_nearly_all_documents_for_bm25(text):
    assert successes(text, Promote()) > 0.95


def test_synonyms_lift_some_documents_and_sink_more_for_bm25():
    assert 0 < successes("greedy", Promote()) < successes("greedy", Demote()) < 1


@pytest.mark.parametrize("text", ["characters", "homoglyphs", "invisible"])
def test_words_that_are_spelled_otherwise_sink_documents_for_bm25(text):
    assert successes(text, Demote()) > 0.9


def test_other_letters_cannot_lift_a_document_for_bm25():
    """Its terms that are no words of the query count by their number alone, and that stays."""
    assert successes("homoglyphs", Promote()) == 0

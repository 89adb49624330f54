"""The order of words by deletion, and the changes that the search keeps, on lists small enough to check by hand."""

from __future__ import annotations

import pytest

from shaketable.attacks.goals import Demote, Promote, Top
from shaketable.attacks.runner import run_attacks
from shaketable.attacks.synonyms import GreedySynonyms, SynonymSearch, describe_synonym_sources
from shaketable.attacks.tokenized_document import TokenizedDocument
from shaketable.attacks.word_replacement import MAX_DELETIONS_PER_REQUEST, rank_words_by_deletion
from shaketable.core.attack_types import AttackOutcome
from shaketable.core.documents import Doc
from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.seeding import make_item_rng
from tests.attacks.by_hand import case_of, outcome_of
from tests.attacks.setups import knowledge_of, load_sample

DOC = Doc("A bad, bad boat sails far.", title="Bad boats")
WEIGHTS = {"bad": -1.0, "boat": 2.0, "boats": 1.0, "ship": 4.0, "ships": 0.5, "good": 1.0, "fine": 2.0}


class Listed(dict):
    """A source of synonyms with a few words in it."""

    def lookup(self, word):
        return self.get(word, ())


SYNONYMS = Listed(bad=("good", "fine"), boat=("ship",), boats=("ships",), far=("wide",))


def test_words_with_a_synonym_in_the_query_come_first_and_no_trial_is_spent_on_importance():
    target, case = case_of(DOC, WEIGHTS, queries=("a fine ship",))
    search = SynonymSearch(SYNONYMS, 20, order="query")
    steps = search.steps(case, make_item_rng(0, "any"))
    first = next(steps)
    assert first.may_be_outcome
    assert [doc.text for doc in first.docs] == [
        "Fine boats A fine, fine boat sails far.",
        "Good boats A good, good boat sails far.",
    ], "the synonym in the query is the first"
    outcome = outcome_of(search, target, case)
    assert outcome.doc == Doc("A fine, fine ship sails far.", title="Fine boats")
    assert outcome.trials == 4, "every synonym once, until the goal is reached"
    with pytest.raises(BadInput, match="order should be deletion or query, not 'size'"):
        GreedySynonyms(order="size")


class Ordering:
    """Asks for the order of words and keeps it."""

    def steps(self, case, draws):
        wording = TokenizedDocument(case.doc)
        self.order = yield from rank_words_by_deletion(case, wording, list(wording.occurrences))


@pytest.mark.parametrize(
    ("goal", "order"),
    [
        (Promote(), ["bad", "a", "sails", "far", "boats", "boat"]),
        (Demote(), ["boat", "boats", "a", "sails", "far", "bad"]),
    ],
)
def test_words_are_ordered_by_the_gain_of_deletion(goal, order):
    target, case = case_of(DOC, WEIGHTS, goal)
    ordering = Ordering()
    outcome = outcome_of(ordering, target, case)
    assert ordering.order == order
    assert (outcome.doc, outcome.trials) == (DOC, len(order)), "deletions are looked at, never offered"


def test_all_occurrences_are_deleted_and_many_words_are_asked_about_in_parts():
    words = [f"w{n}" for n in range(2 * MAX_DELETIONS_PER_REQUEST + 3)]
    weights = {"w7": -3.0, "w100": -1.0, "w130": 2.0}
    target, case = case_of(Doc(" ".join(words + words)), weights)
    ordering = Ordering()
    assert outcome_of(ordering, target, case).trials == len(words)
    assert ordering.order[:2] == ["w7", "w100"]
    assert ordering.order[-1] == "w130"
    assert ordering.order[2:-1] == [w for w in words if w not in weights]


def test_the_best_synonym_replaces_all_occurrences_in_their_case():
    target, case = case_of(DOC, WEIGHTS)
    outcome = outcome_of(SynonymSearch(SYNONYMS, 20), target, case)
    assert outcome.doc == Doc("A fine, fine ship sails far.", title="Fine boats")
    assert outcome.trials == 4 + 2 + 1 + 1 + 1, "deletions of words that have synonyms, then the synonyms"


def test_the_goal_decides_which_synonyms_stay():
    target, case = case_of(Doc("good boats and a ship"), WEIGHTS, Demote())
    source = Listed(good=("bad", "fine"), ship=("boat",), boats=("ships",), a=("the",))
    assert outcome_of(SynonymSearch(source, 20), target, case).doc.body == "bad ships and a boat"


@pytest.mark.parametrize(
    ("words", "doc"),
    [
        (1, Doc("A bad, bad boat sails far.", title="Fine boats")),
        (2, Doc("A fine, bad boat sails far.", title="Fine boats")),
        (3, Doc("A fine, fine boat sails far.", title="Fine boats")),
        (4, Doc("A fine, fine ship sails far.", title="Fine boats")),
    ],
)
def test_no_more_words_differ_than_may(words, doc):
    target, case = case_of(DOC, WEIGHTS)
    assert outcome_of(SynonymSearch(SYNONYMS, words), target, case).doc == doc


def test_a_synonym_that_does_not_improve_the_rank_is_dropped():
    target, case = case_of(Doc("a boat far away"), {"boat": 0.25, "wide": 0.2, "off": -0.2})
    outcome = outcome_of(SynonymSearch(Listed(far=("wide",), away=("off",)), 5), target, case)
    assert outcome.doc == case.doc
    assert outcome.ranks_after == outcome.ranks_before


def test_it_is_over_when_the_goal_is_reached():
    _, case = case_of(DOC, WEIGHTS)
    near = case_of(DOC, WEIGHTS, Top(case.ranks[0] - 1))
    outcome = outcome_of(SynonymSearch(SYNONYMS, 20), *near)
    assert outcome.ranks_after[0] < outcome.ranks_before[0]
    assert outcome.trials == 4 + 2


def test_one_text_serves_all_lists():
    target, case = case_of(DOC, WEIGHTS, queries=("boat", "ship"))
    outcome = outcome_of(SynonymSearch(SYNONYMS, 20), target, case)
    assert len(outcome.ranks_after) == 2
    assert outcome.doc.body == "A fine, fine ship sails far."


def test_the_recipe_takes_its_synonyms_by_name():
    target, case = case_of(Doc("They begin at once"), {"start": 3.0})
    outcome = outcome_of(GreedySynonyms().open(knowledge_of(load_sample())), target, case)
    assert outcome.doc.body == "They start at once"


def test_a_source_that_cannot_be_read_is_one_error(tmp_path):
    with pytest.raises(UnknownName, match="no synonym source is called 'nonsense'"):
        GreedySynonyms(synonyms="nonsense")
    recipe = GreedySynonyms(synonyms=f"listed({str(tmp_path / 'mine.tsv')!r})")
    with pytest.raises(BadInput, match="there is no such file"):
        recipe.open(knowledge_of(load_sample()))
    (tmp_path / "mine.tsv").write_text("boat\tship\n")
    target, case = case_of(DOC, WEIGHTS)
    assert outcome_of(recipe.open(knowledge_of(load_sample())), target, case).doc.body == "A bad, bad ship sails far."


def test_a_spent_budget_keeps_the_best_text_so_far():
    target, case = case_of(DOC, WEIGHTS)
    (outcome,) = run_attacks(SynonymSearch(SYNONYMS, 20), [case], target, budget=4 + 2)
    assert isinstance(outcome, AttackOutcome)
    assert outcome.doc == Doc("A fine, fine boat sails far.", title="Fine boats")


@pytest.mark.parametrize("words", [0, -1, 10**6])
def test_a_limit_that_makes_no_sense_is_refused(words):
    with pytest.raises(BadInput, match="greedy: words should be between 1 and 10,000"):
        GreedySynonyms(words=words)


def test_a_recipe_notes_its_source_of_synonyms(home):
    own = "greedy(synonyms='counterfitted')"
    (said,) = describe_synonym_sources(["greedy", own, own, "keyword_stuffing"])
    assert said.startswith(f"{own}: there are no counter-fitted neighbours")
    (home / "resources").mkdir(parents=True)
    (home / "resources" / "counterfitted-neighbors.json").write_text("{}")
    (said,) = describe_synonym_sources([own])
    assert said.startswith(f"{own}: the synonyms are from {home / 'resources' / 'counterfitted-neighbors.json'}; ")

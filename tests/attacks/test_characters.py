"""Misspelled words: which ones, how many, and whether a reader sees the change."""

from __future__ import annotations

import pytest

from shaketable.attacks.characters import MISSPELLINGS, Homoglyphs, InvisibleCharacters, Misspellings
from shaketable.attacks.goals import Demote, Promote
from shaketable.attacks.runner import run_attacks
from shaketable.core.documents import Doc
from shaketable.core.errors import BadInput, UnknownName
from shaketable.nlp.characters import HOMOGLYPHS, INVISIBLE_CHARACTERS, count_suspicious_characters
from shaketable.nlp.edit_distance import damerau_levenshtein
from shaketable.rankers.lexical import BM25
from tests.attacks.by_hand import case_of, first_request, outcome_of
from tests.attacks.setups import cases_on, knowledge_of, load_sample, target_for

SAMPLE = load_sample()
KNOWLEDGE = knowledge_of(SAMPLE)
DOC = Doc("The Cargo vessel carries cargo; no other vessel sinks.", title="CARGO Vessels")
WEIGHTS = {"cargo": 1.0, "sinks": -2.0, "carries": -1.0}
BACK = str.maketrans({stranger: letter for letter, stranger in HOMOGLYPHS.items()})


def plain(text: str) -> str:
    """Return the text as a reader sees it."""
    return "".join(c for c in text.translate(BACK) if c not in INVISIBLE_CHARACTERS)


def differing(before: Doc, after: Doc) -> list[tuple[str, str]]:
    pairs = zip(before.text.split(), after.text.split(), strict=True)
    return [(old, new) for old, new in pairs if old != new]


@pytest.mark.parametrize("recipe", [Misspellings(), Homoglyphs(), InvisibleCharacters()])
@pytest.mark.parametrize(
    ("goal", "words"), [(Promote(), {"carries", "sinks."}), (Demote(), {"CARGO", "Cargo", "cargo;"})]
)
def test_words_that_stand_in_the_way_of_the_goal_are_spelled_otherwise(recipe, goal, words):
    target, case = case_of(DOC, WEIGHTS, goal)
    outcome = outcome_of(recipe.open(KNOWLEDGE), target, case)
    assert {old for old, _ in differing(DOC, outcome.doc)} == words


@pytest.mark.parametrize("recipe", [Misspellings(words=1), Homoglyphs(words=1), InvisibleCharacters(words=1)])
def test_the_most_harmful_word_is_the_first(recipe):
    target, case = case_of(DOC, WEIGHTS)
    outcome = outcome_of(recipe.open(KNOWLEDGE), target, case)
    assert [old for old, _ in differing(DOC, outcome.doc)] == ["sinks."]


@pytest.mark.parametrize("edit", MISSPELLINGS)
def test_a_misspelling_is_small_and_the_same_in_all_places(edit):
    target, case = case_of(Doc("A Receipt, the receipt"), {"receipt": 1.0}, Demote())
    outcome = outcome_of(Misspellings(transforms=(edit,)).open(KNOWLEDGE), target, case)
    spelled = [new.strip(",").lower() for _, new in differing(case.doc, outcome.doc)]
    assert len(spelled) == 2
    assert len(set(spelled)) == 1
    assert 1 <= damerau_levenshtein("receipt", spelled[0]) <= 2


def test_a_misspelling_that_is_two_words_is_passed_over():
    target, case = case_of(DOC, WEIGHTS, Demote())
    assert outcome_of(Misspellings(transforms=("split_word", "join_words")).open(KNOWLEDGE), target, case).doc == DOC


def test_only_misspelling_transforms_are_accepted():
    with pytest.raises(BadInput, match="characters: transforms should be transforms that misspell a word"):
        Misspellings(transforms=("random_order_swap",))
    with pytest.raises(BadInput, match="characters: transforms should be one transform or more"):
        Misspellings(transforms=())
    with pytest.raises(UnknownName, match="neighb_char_swap"):
        Misspellings(transforms=("neighbor_char_swap",))


@pytest.mark.parametrize("recipe", [Homoglyphs(), InvisibleCharacters()])
def test_a_reader_sees_no_difference_and_a_counter_does(recipe):
    target = target_for(BM25().open(SAMPLE))
    cases = cases_on(SAMPLE, target, queries=2, goal=Demote())
    outcomes = run_attacks(recipe.open(KNOWLEDGE), cases, target)
    assert any(outcome.doc != case.doc for case, outcome in zip(cases, outcomes, strict=True))
    for case, outcome in zip(cases, outcomes, strict=True):
        assert (plain(outcome.doc.title), plain(outcome.doc.body)) == (case.doc.title, case.doc.body)
        changes = differing(case.doc, outcome.doc)
        assert all(count_suspicious_characters(new) for _, new in changes)


def test_capitals_become_capitals_of_the_other_script():
    target, case = case_of(Doc("COPE Cope cope"), {"cope": 1.0}, Demote())
    outcome = outcome_of(Homoglyphs().open(KNOWLEDGE), target, case)
    assert plain(outcome.doc.body) == case.doc.body
    assert len(differing(case.doc, outcome.doc)) == 3


def test_words_without_a_suitable_letter_stay():
    target, case = case_of(Doc("f k 7 mm"), {"f": 1.0, "k": 1.0, "7": 1.0, "mm": 1.0}, Demote())
    assert outcome_of(Homoglyphs().open(KNOWLEDGE), target, case).trials == 0
    assert [
        old for old, _ in differing(case.doc, outcome_of(InvisibleCharacters().open(KNOWLEDGE), target, case).doc)
    ] == ["mm"]


@pytest.mark.parametrize(("recipe", "ways"), [(Homoglyphs(words=0), 2), (InvisibleCharacters(words=0), 4)])
def test_without_a_limit_words_are_changed_at_once(recipe, ways):
    """All words, all that are not in the query, and those of the query."""
    doc = Doc("The cargo vessel sinks.", title="Cargo vessels")
    docs = first_request(recipe.open(KNOWLEDGE), case_of(doc, {}, queries=("a cargo vessel",))[1])
    assert len(docs) == 3 * ways
    assert {plain(changed.text) for changed in docs} == {doc.text}
    mine = {"Cargo", "cargo", "vessel"}
    for changed in docs[:ways]:
        assert len(differing(doc, changed)) == 6
    for changed in docs[ways : 2 * ways]:
        assert {old for old, _ in differing(doc, changed)} == {"vessels", "The", "sinks."}
    for changed in docs[2 * ways :]:
        assert {old for old, _ in differing(doc, changed)} == mine

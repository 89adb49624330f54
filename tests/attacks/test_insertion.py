"""The query and its words in a document, as the templates of content injection have them."""

from __future__ import annotations

import json

import pytest

from shaketable.attacks.insertion import KeywordStuffingRecipe, QueryInsertion, QueryLine
from shaketable.core.documents import Doc
from shaketable.core.errors import BadInput
from tests.attacks.by_hand import case_of, first_request, outcome_of
from tests.attacks.setups import knowledge_of, load_sample

KNOWLEDGE = knowledge_of(load_sample())
DOC = Doc("Some text\nof  a boat.", title="Title", url="http://boat")
QUERIES = ("What is a boat?", "of cargo ships")


def list_trials(recipe, doc=DOC, queries=QUERIES[:1]):
    return first_request(recipe.open(KNOWLEDGE), case_of(doc, {}, queries=queries)[1])


def without(text: str, words: list[str]) -> list[str]:
    """Return the words of a text, without the first occurrence of each of these words."""
    left = text.split()
    for word in words:
        left.remove(word)
    return left


def test_the_query_at_the_start_at_the_end_and_again():
    assert [doc.body for doc in list_trials(QueryInsertion("start"))] == ["What is a boat? Some text\nof  a boat."]
    (twice,) = list_trials(QueryInsertion("end", times=2))
    assert twice == Doc("Some text\nof  a boat. What is a boat? What is a boat?", DOC.title, DOC.url)
    (both,) = list_trials(QueryInsertion("end"), queries=QUERIES)
    assert both.body == "Some text\nof  a boat. What is a boat? of cargo ships"


def test_the_query_line():
    assert list_trials(QueryLine()) == [Doc(f"Query: What is a boat?\n{DOC.body}", DOC.title, DOC.url)]
    (two,) = list_trials(QueryLine(), queries=QUERIES)
    assert two.body == f"Query: What is a boat?\nQuery: of cargo ships\n{DOC.body}"


def test_keywords_once_twice_and_three_times():
    texts = [doc.body for doc in list_trials(KeywordStuffingRecipe(), queries=QUERIES)]
    assert texts == [DOC.body + " boat cargo ships" * n for n in (1, 2, 3)]
    assert [doc.body for doc in list_trials(KeywordStuffingRecipe((2,), "start"))] == [f"boat boat {DOC.body}"]
    for n, doc in enumerate(list_trials(KeywordStuffingRecipe(place="middle")), 1):
        assert sorted(without(doc.body, ["boat"] * n)) == sorted(DOC.body.split())
        assert (doc.body.split()[0], doc.body.split()[-1]) == ("Some", "boat.")


def test_each_position_is_a_trial_and_the_start_is_the_first():
    start, end, middle = (doc.body for doc in list_trials(QueryInsertion("each")))
    assert start == f"What is a boat? {DOC.body}"
    assert end == f"{DOC.body} What is a boat?"
    assert middle.split()[0] == "Some"
    assert middle.split()[-1] == "boat."
    assert "What is a boat?" in middle
    texts = [doc.body for doc in list_trials(KeywordStuffingRecipe((3, 1), "each"))]
    assert texts[0] == f"boat boat boat {DOC.body}"
    assert texts[1] == f"{DOC.body} boat boat boat"
    assert texts[3:5] == [f"boat {DOC.body}", f"{DOC.body} boat"]
    assert len(texts) == 6


def test_a_query_of_stop_words_has_no_keywords():
    assert list_trials(KeywordStuffingRecipe(), queries=("what is it",)) == []


def test_the_best_number_of_times_is_the_outcome():
    """Twice is better than once, and three times are far too often."""
    target, case = case_of(Doc("Nothing"), {}, queries=("boat",))
    plain, worth = target.score, (0.0, 1.0, 2.0, -9.0)
    target.score = lambda slates: [
        scores + worth[slate.docs[0].text.count("boat")] for scores, slate in zip(plain(slates), slates, strict=True)
    ]
    assert outcome_of(KeywordStuffingRecipe().open(KNOWLEDGE), target, case).doc.body == "Nothing boat boat"


def test_numbers_of_times_that_make_no_sense_are_refused():
    for times in ((), (0,), (1, 101)):
        with pytest.raises(BadInput, match="keyword_stuffing: times should be numbers between 1 and 100"):
            KeywordStuffingRecipe(times)


@pytest.mark.parametrize("recipe", [QueryInsertion, KeywordStuffingRecipe])
def test_an_unknown_position_is_refused(recipe):
    with pytest.raises(BadInput, match="place should be start, middle, end or each, not 'nowhere'"):
        recipe(place="nowhere")


def test_they_are_the_templates_of_the_study(shared_data):
    """Each published template of the query and its words, filled in by hand, is a text that a recipe offers."""
    path = shared_data / "attacks" / "injection" / "templates.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    query, injected = QUERIES[0], {"query": QUERIES[0], "keywords": "boat"}
    checked = 0
    for row in rows:
        kind, place = row["kind"], row["place"]
        if kind == "query-line":
            texts = {row["text"].format(query=query, passage=DOC.body)}
            (doc,) = list_trials(QueryLine())
        elif kind in injected:
            recipe = QueryInsertion(place) if kind == "query" else KeywordStuffingRecipe((1,), place)
            ends = [len("Some"), len("Some text"), len("Some text\nof"), len("Some text\nof  a")]
            texts = {
                row["text"].format(
                    passage=DOC.body, injected=injected[kind], before=DOC.body[:end], after=DOC.body[end:].lstrip()
                )
                for end in ends
            }
            (doc,) = list_trials(recipe)
        else:
            continue
        assert doc.body.split() in [text.split() for text in texts], row
        checked += 1
    assert checked == 7

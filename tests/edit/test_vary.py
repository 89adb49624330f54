"""From queries to variations: how many, which, in which order, and what people wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.edit.attack import CharAttack, WordAttack
from shaketable.edit.naturality import ChangeCase, RemoveStopWords, ToQuestion
from shaketable.edit.ordering import RandomOrderSwap
from shaketable.edit.vary import not_applicable, read_variants, vary, written
from shaketable.errors import BadInput
from shaketable.types import Query, Variant

QUERIES = {
    "q1": Query("What is durable medical equipment"),
    "q2": Query("flu symptoms"),
    "q3": Query("right pelvic pain causes"),
    "q4": Query("tea"),
}
EDITS = [CharAttack(), RandomOrderSwap(), RemoveStopWords()]


def test_one_variation_for_each_query_and_method_where_it_applies():
    made = vary(QUERIES, EDITS)
    by_method = {
        method: [v.qid for v in made if v.method == method] for method in dict.fromkeys(v.method for v in made)
    }
    assert by_method == {
        "char_attack": ["q1", "q2", "q3", "q4"],
        "random_order_swap": ["q1", "q2", "q3"],
        "remove_stop_words": ["q1"],
    }
    assert not_applicable(QUERIES, EDITS, made) == {"char_attack": 0, "random_order_swap": 1, "remove_stop_words": 3}
    assert made[-1].text == "durable medical equipment"
    assert made[-1].original == "what is durable medical equipment"
    assert all(v.valid for v in made)


def test_the_method_is_the_text_that_builds_it():
    assert {v.method for v in vary(QUERIES, [CharAttack(edits=2)])} == {"char_attack(edits=2)"}


def test_case_is_kept_where_asked_for():
    assert vary(QUERIES, [RemoveStopWords()], lower=False)[0].original == "What is durable medical equipment"


@given(st.integers(1, 12), st.integers(0, 5))
def test_more_variations_are_distinct_and_begin_with_the_same(n, seed):
    few, many = vary(QUERIES, EDITS, n=1, seed=seed), vary(QUERIES, EDITS, n=n, seed=seed)
    for v in few:
        texts = [w.text for w in many if (w.qid, w.method) == (v.qid, v.method)]
        assert texts[0] == v.text
        assert len(texts) == len(set(texts)) <= n


def test_as_many_as_there_are():
    made = vary(QUERIES, [RandomOrderSwap()], n=50)
    assert sorted(v.text for v in made if v.qid == "q2") == ["symptoms flu"]
    assert len([v for v in made if v.qid == "q3"]) <= 6  # pairs of four words
    assert len([v for v in vary(QUERIES, [CharAttack()], n=20) if v.qid == "q1"]) == 20


@given(st.permutations(list(QUERIES)), st.permutations(EDITS))
def test_order_and_company_do_not_matter(qids, edits):
    alone = {v for qid in QUERIES for edit in EDITS for v in vary({qid: QUERIES[qid]}, [edit], n=3)}
    assert set(vary({qid: QUERIES[qid] for qid in qids}, edits, n=3)) == alone


def test_seeds_differ():
    assert vary(QUERIES, EDITS, seed=1) != vary(QUERIES, EDITS, seed=2)


@dataclass(frozen=True)
class Shout:
    """A user's edit, without a row in the catalogue; it counts how often it is asked."""

    name: str = "shout"
    category: ClassVar[str] = "naturality"
    asked: ClassVar[list[int]] = []

    def apply(self, text, draws, context):
        raise AssertionError("apply_many is there")

    def apply_many(self, texts, draws, contexts):
        self.asked.append(len(texts))
        return [None if text == "tea" else text.upper() for text in texts]


def test_an_edit_that_takes_many_at_once_is_asked_once():
    made = vary(QUERIES, [Shout()], n=5)
    assert [v.text for v in made][:2] == ["WHAT IS DURABLE MEDICAL EQUIPMENT", "FLU SYMPTOMS"]
    assert {v.method for v in made} == {"shout"}
    assert Shout.asked == [4]


def test_the_vocabulary_reaches_the_edits():
    made = vary(QUERIES, [WordAttack()], n=10, vocabulary=["zulu"])
    assert {word for v in made for word in v.text.split()} - {w for v in made for w in v.original.split()} == {"zulu"}


def test_at_least_one():
    with pytest.raises(BadInput, match="at least one variation"):
        vary(QUERIES, EDITS, n=0)


def test_no_queries_no_edits():
    assert vary({}, EDITS) == vary(QUERIES, []) == []


def test_what_people_wrote():
    made = written(QUERIES, {"q2": (Variant("Influenza signs", "paraphrasing"), Variant("symptoms flu", ""))})
    assert [(v.method, v.category, v.text, v.valid) for v in made] == [
        ("human", "paraphrasing", "influenza signs", True),
        ("human", "ordering", "symptoms flu", True),
    ]
    same, empty = written(QUERIES, {"q2": (Variant("flu  symptoms", "naturality"), Variant(" ", "naturality"))})
    assert (same.why, empty.why) == ("the original", "empty")
    with pytest.raises(BadInput, match="'q9', but no such query"):
        written(QUERIES, {"q9": (Variant("tea", ""),)})


def test_files_of_variants(tmp_path: Path):
    tsv, jsonl = tmp_path / "variants.tsv", tmp_path / "variants.jsonl"
    tsv.write_text("q2\tsymptoms flu\tordering\nq2\tflu signs\n")
    rows = [{"query": "q2", "text": "symptoms flu", "category": "ordering"}, {"query": "q2", "text": "flu signs"}]
    jsonl.write_text("\n".join(map(json.dumps, rows)))
    expected = {"q2": (Variant("symptoms flu", "ordering"), Variant("flu signs", ""))}
    assert read_variants(tsv) == read_variants(jsonl) == expected


@pytest.mark.parametrize(("line", "message"), [("q2", "a line is a query id"), ("q2\tx\tfunny", "not 'funny'")])
def test_broken_files_of_variants(line, message, tmp_path: Path):
    (tmp_path / "v.tsv").write_text(f"q1\tfine\n{line}\n")
    with pytest.raises(BadInput, match=rf"v\.tsv:2: .*{message}"):
        read_variants(tmp_path / "v.tsv")


def test_case_and_questions_are_judged_as_naturality():
    made = vary(QUERIES, [ChangeCase(), ToQuestion()])
    assert made
    assert [v for v in made if not v.valid] == []

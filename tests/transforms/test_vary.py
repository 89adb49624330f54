"""Variations of queries: their number and order, and those that people wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.documents import Query, Variant
from shaketable.core.errors import BadInput
from shaketable.core.registries import TRANSFORMS as CATALOGUE
from shaketable.transforms.availability import find_unavailable_reason
from shaketable.transforms.case import ChangeCase
from shaketable.transforms.noise import CharNoise, WordNoise
from shaketable.transforms.presets import list_default_methods
from shaketable.transforms.question_rewriting import ToQuestion
from shaketable.transforms.stopwords import RemoveStopWords
from shaketable.transforms.typos import RandomCharSub
from shaketable.transforms.vary import (
    HUMAN,
    NOT_APPLICABLE_REASON,
    Variation,
    build_human_variations,
    count_not_applicable,
    fill_missing_variations,
    normalise_query,
    read_variants,
    vary,
)
from shaketable.transforms.word_order import RandomOrderSwap

QUERIES = {
    "q1": Query("What is durable medical equipment"),
    "q2": Query("flu symptoms"),
    "q3": Query("right pelvic pain causes"),
    "q4": Query("tea"),
}
EDITS = [CharNoise(), RandomOrderSwap(), RemoveStopWords()]


def test_one_variation_for_each_query_and_applicable_method():
    made = vary(QUERIES, EDITS)
    by_method = {
        method: [v.qid for v in made if v.method == method] for method in dict.fromkeys(v.method for v in made)
    }
    assert by_method == {
        "char_noise": ["q1", "q2", "q3", "q4"],
        "random_order_swap": ["q1", "q2", "q3"],
        "remove_stop_words": ["q1"],
    }
    assert count_not_applicable(QUERIES, EDITS, made) == {
        "char_noise": 0,
        "random_order_swap": 1,
        "remove_stop_words": 3,
    }
    assert made[-1].text == "durable medical equipment"
    assert made[-1].original == "what is durable medical equipment"
    assert all(v.valid for v in made)


def test_the_method_is_the_text_that_builds_it():
    assert {v.method for v in vary(QUERIES, [CharNoise(edits=2)])} == {"char_noise(edits=2)"}


def test_case_is_kept_on_request():
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
    assert len([v for v in vary(QUERIES, [CharNoise()], n=20) if v.qid == "q1"]) == 20


@given(st.permutations(list(QUERIES)), st.permutations(EDITS))
def test_order_and_company_do_not_matter(qids, edits):
    alone = {v for qid in QUERIES for edit in EDITS for v in vary({qid: QUERIES[qid]}, [edit], n=3)}
    assert set(vary({qid: QUERIES[qid] for qid in qids}, edits, n=3)) == alone


def test_seeds_differ():
    assert vary(QUERIES, EDITS, seed=1) != vary(QUERIES, EDITS, seed=2)


@dataclass(frozen=True)
class Shout:
    """A user's transform without a registry row; it counts its calls."""

    name: str = "shout"
    category: ClassVar[str] = "naturality"
    asked: ClassVar[list[int]] = []

    def apply(self, text, rng, context):
        raise AssertionError("apply_many is there")

    def apply_many(self, texts, draws, contexts):
        self.asked.append(len(texts))
        return [None if text == "tea" else text.upper() for text in texts]


def test_a_batch_transform_is_called_once():
    made = vary(QUERIES, [Shout()], n=5)
    assert [v.text for v in made][:2] == ["WHAT IS DURABLE MEDICAL EQUIPMENT", "FLU SYMPTOMS"]
    assert {v.method for v in made} == {f"{__name__}:Shout"}
    assert Shout.asked == [4]


def test_the_vocabulary_reaches_the_edits():
    made = vary(QUERIES, [WordNoise()], n=10, vocabulary=["zulu"])
    assert {word for v in made for word in v.text.split()} - {w for v in made for w in v.original.split()} == {"zulu"}


def test_at_least_one():
    with pytest.raises(BadInput, match="the number of variations must be at least 1"):
        vary(QUERIES, EDITS, n=0)


def test_no_queries_no_edits():
    assert vary({}, EDITS) == vary(QUERIES, []) == []


def test_human_variations():
    made = build_human_variations(
        QUERIES, {"q2": (Variant("Influenza signs", "paraphrasing"), Variant("symptoms flu", ""))}
    )
    assert [(v.method, v.category, v.text, v.valid) for v in made] == [
        ("human", "paraphrasing", "influenza signs", True),
        ("human", "ordering", "symptoms flu", True),
    ]
    same, empty = build_human_variations(
        QUERIES, {"q2": (Variant("flu  symptoms", "naturality"), Variant(" ", "naturality"))}
    )
    assert (same.why, empty.why) == ("It is the original.", "The text is empty.")
    with pytest.raises(BadInput, match="the query 'q9', which does not exist"):
        build_human_variations(QUERIES, {"q9": (Variant("tea", ""),)})


def test_files_of_variants(tmp_path: Path):
    tsv, jsonl = tmp_path / "variants.tsv", tmp_path / "variants.jsonl"
    tsv.write_text("q2\tsymptoms flu\tordering\nq2\tflu signs\n")
    rows = [{"query": "q2", "text": "symptoms flu", "category": "ordering"}, {"query": "q2", "text": "flu signs"}]
    jsonl.write_text("\n".join(map(json.dumps, rows)))
    expected = {"q2": (Variant("symptoms flu", "ordering"), Variant("flu signs", ""))}
    assert read_variants(tsv) == read_variants(jsonl) == expected


@pytest.mark.parametrize(("line", "message"), [("q2", "a line has a query id"), ("q2\tx\tfunny", "not 'funny'")])
def test_broken_files_of_variants(line, message, tmp_path: Path):
    (tmp_path / "v.tsv").write_text(f"q1\tfine\n{line}\n")
    with pytest.raises(BadInput, match=rf"v\.tsv:2: .*{message}"):
        read_variants(tmp_path / "v.tsv")


def test_case_and_questions_are_judged_as_naturality():
    made = vary(QUERIES, [ChangeCase(), ToQuestion()])
    assert made
    assert [v for v in made if not v.valid] == []


ODD = {"q": Query("  What IS\tWi-Fi  good for? ")}


@pytest.mark.parametrize(
    "name", [name for name in list_default_methods() if not find_unavailable_reason(CATALOGUE.build(name))]
)
def test_original_and_variation_are_prepared_alike(name):
    """The normalisation must not cost a case-sensitive ranker anything."""
    for v in vary(ODD, [CATALOGUE.build(name)], n=5):
        assert v.original == normalise_query(ODD["q"].text) == "what is wi-fi good for?"
        assert v.text == " ".join(v.text.split())
        assert v.text == v.text.lower() or v.text.lower() == v.original, "case changes only where nothing else does"


def test_people_s_variants_are_prepared_as_well():
    (v,) = build_human_variations(ODD, {"q": (Variant(" WHAT use is  Wi-Fi", "paraphrasing"),)})
    assert (v.original, v.text) == ("what is wi-fi good for?", "what use is wi-fi")
    (v,) = build_human_variations(ODD, {"q": (Variant("What  is Wi-Fi for", ""),)}, lower=False)
    assert (v.original, v.text) == ("What IS Wi-Fi good for?", "What is Wi-Fi for")


def test_a_substituted_letter_is_in_the_case_of_the_rest():
    made = vary(QUERIES, [RandomCharSub()], n=20)
    assert made
    assert all(v.text == v.text.lower() for v in made)
    assert any(v.text != v.text.lower() for v in vary(QUERIES, [RandomCharSub()], n=20, lower=False))


def test_a_transform_without_a_category_gets_one_from_the_words():
    @dataclass(frozen=True)
    class Backwards:
        name: str = "backwards"
        category: ClassVar[str] = ""

        def apply(self, text, rng, context):
            return " ".join(reversed(text.split()))

    assert {v.category for v in vary({"q": Query("red boat")}, [Backwards()])} == {"ordering"}


def test_the_judge_gets_the_sources_of_a_transform():
    @dataclass(frozen=True)
    class Swaps:
        name: str = "swaps"
        category: ClassVar[str] = "paraphrasing"
        sources: ClassVar[tuple[str, ...]] = ("thesaurus",)

        def apply(self, text, rng, context):
            return "flu signs"

    class Swapped(Swaps):
        sources: ClassVar[tuple[str, ...]] = ()

    (circular,), (independent,) = (vary({"q2": QUERIES["q2"]}, [edit]) for edit in (Swaps(), Swapped()))
    assert not circular.valid
    assert not circular.judged
    assert "only the thesaurus that it comes from" in circular.why
    assert independent.valid


def test_a_complete_grid_by_hand():
    """Three queries, two methods: of six places two are filled by one variation each, and one by two."""
    queries = {"q1": Query("Red boat"), "q2": Query("tea"), "q3": Query("green tea")}
    given = [
        Variation("q3", "swap", "ordering", "tea green", "green tea"),
        Variation("q1", "swap", "ordering", "boat red", "red boat"),
        Variation("q1", "typo", "misspelling", "rde boat", "red boat"),
        Variation("q1", "typo", "misspelling", "red baot", "red boat", False, "x"),
        Variation("q2", HUMAN, "paraphrasing", "infusion", "tea"),
        Variation("elsewhere", "swap", "ordering", "b a", "a b"),
    ]
    rows = fill_missing_variations(given, queries)
    assert [(v.method, v.qid, v.text, v.valid) for v in rows] == [
        ("swap", "q1", "boat red", True),
        ("swap", "q2", "tea", False),
        ("swap", "q3", "tea green", True),
        ("typo", "q1", "rde boat", True),
        ("typo", "q1", "red baot", False),
        ("typo", "q2", "tea", False),
        ("typo", "q3", "green tea", False),
        (HUMAN, "q2", "infusion", True),
    ]
    stand_ins = [v for v in rows if v.text == v.original]
    assert {v.why for v in stand_ins} == {NOT_APPLICABLE_REASON}
    assert {v.category for v in stand_ins if v.method == "typo"} == {"misspelling"}
    valid = [v.valid for v in rows if v.method == "swap"]
    assert 100 * sum(valid) / len(valid) == pytest.approx(66.67, abs=0.01)  # as Table 3 of paper 004 counts it


def test_a_grid_has_methods_that_apply_to_no_query():
    made = vary({"q4": Query("Tea")}, EDITS)
    rows = fill_missing_variations(made, {"q4": Query("Tea")}, EDITS)
    assert [(v.method, v.category, v.text, v.valid) for v in rows[1:]] == [
        ("random_order_swap", "ordering", "tea", False),
        ("remove_stop_words", "naturality", "tea", False),
    ]
    assert rows[0] == made[0]


@given(st.sets(st.sampled_from(sorted(QUERIES))), st.integers(1, 3))
def test_a_grid_keeps_all_variations_and_leaves_no_gap(qids, n):
    queries = {qid: QUERIES[qid] for qid in sorted(qids)}
    made = vary(queries, EDITS, n=n)
    rows = fill_missing_variations(made, queries, EDITS)
    assert [v for v in rows if v.why != NOT_APPLICABLE_REASON] == made
    assert {(v.method, v.qid) for v in rows} == {
        (m, q) for m in ("char_noise", "random_order_swap", "remove_stop_words") for q in queries
    }
    assert fill_missing_variations(rows, queries, EDITS) == rows

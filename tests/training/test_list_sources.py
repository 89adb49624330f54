"""Training lists: their content, and draws that depend only on seed, query and pass."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from shaketable.core.documents import Collection, Doc, Query, Slate
from shaketable.core.errors import BadInput
from shaketable.core.registries import RANKERS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.training.list_sources import (
    JudgedLists,
    Sample,
    ShuffledLabels,
    TeacherLists,
    build_candidate_lists,
    build_sentence_lists,
    label_with_teacher,
    retrieve_by_name,
    split_sentences,
)
from tests.toys import Overlap, text

DOCS = {f"d{i:02}": Doc(f"{text(i)} number{i}.") for i in range(40)}
QRELS = {"q1": {"d00": 3, "d01": 1, "d02": 0, "d03": -1}, "q2": {"d04": 2}, "q3": {"d05": 0}}
QUERIES = {"q1": Query("oak elm"), "q2": Query("fir"), "q3": Query("yew"), "q4": Query("ash")}
CANDIDATES = {"q1": {f"d{i:02}": 20.0 - i for i in range(20)}, "q2": {"d04": 3.0, "d06": 2.0}}
COLLECTION = Collection("toy", MemoryCorpus(DOCS), QUERIES, QRELS)
DOCNOS = {doc.text: docno for docno, doc in DOCS.items()}


def make_judged_lists(**settings: int) -> JudgedLists:
    return JudgedLists(COLLECTION, list(QUERIES), CANDIDATES, **settings)


def test_only_queries_with_a_relevant_document_have_lists():
    assert make_judged_lists().usable_qids == ["q1", "q2"]
    with pytest.raises(BadInput, match="no training query has a relevant document"):
        len(JudgedLists(COLLECTION, ["q3", "q4"], {}))


@pytest.mark.parametrize("turn", range(20))
def test_a_list_has_a_relevant_text_a_lower_one_candidates_and_a_random_one(turn):
    sample = make_judged_lists(size=7).draw(0, turn)
    docnos = [DOCNOS[body] for body in sample.texts]
    assert len(set(docnos)) == 7
    assert sample.labels == tuple(max(0, QRELS["q1"].get(docno, 0)) for docno in docnos)
    best = max(sample.labels)
    assert best in (1, 3)
    assert sample.labels.count(best) == 1
    assert any(QRELS["q1"].get(docno, best) < best for docno in docnos), "one of a lower grade"
    assert sum(docno in CANDIDATES["q1"] for docno in docnos) >= 6
    assert (sample.name, sample.query) == ("q1", "oak elm")


def test_lists_are_a_function_of_seed_query_and_pass():
    assert make_judged_lists().draw(0, 5) == make_judged_lists().draw(0, 5)
    assert make_judged_lists().draw(0, 5) != make_judged_lists().draw(0, 6)
    assert make_judged_lists().draw(0, 5) != make_judged_lists(seed=1).draw(0, 5)
    other = JudgedLists(COLLECTION, ["q2", "q1"], CANDIDATES)
    assert other.draw(1, 5) == make_judged_lists().draw(0, 5), "where a query stands does not matter"


def test_the_position_of_the_relevant_text_is_random():
    places = Counter(int(np.argmax(make_judged_lists(size=4).draw(0, turn).labels)) for turn in range(400))
    assert set(places) == {0, 1, 2, 3}
    assert min(places.values()) > 60


def test_few_candidates_are_filled_up_at_random():
    sample = make_judged_lists(size=6).draw(1, 0)
    assert len(sample.texts) == len(set(sample.texts)) == 6
    assert sorted(sample.labels) == [0, 0, 0, 0, 0, 2]


def test_a_tiny_collection_has_short_lists():
    docs = MemoryCorpus({"a": Doc("x"), "b": Doc("y")})
    tiny = Collection("tiny", docs, {"q": Query("x")}, {"q": {"a": 1, "gone": 2}})
    assert sorted(JudgedLists(tiny, ["q"], {}).draw(0, 0).labels) == [0, 1]


def test_shuffled_labels_are_the_same_labels():
    plain, control = make_judged_lists(), ShuffledLabels(make_judged_lists())
    moved = 0
    for turn in range(30):
        before, after = plain.draw(0, turn), control.draw(0, turn)
        assert (before.texts, sorted(before.labels)) == (after.texts, sorted(after.labels))
        moved += before.labels != after.labels
    assert len(control) == len(plain)
    assert moved > 20


def test_a_teacher_labels_lists_in_units_of_their_spread():
    lists = build_candidate_lists(COLLECTION, ["q1", "q2", "q4"], CANDIDATES)
    assert [sample.name for sample in lists] == ["q1", "q2"]
    assert [DOCNOS[body] for body in lists[1].texts] == ["d04", "d06"]
    teacher = Overlap()
    taught = label_with_teacher(teacher, lists)
    raw = [teacher.score([slate])[0] for slate in _slates(lists)]
    spread = np.sqrt(np.mean([scores.var() for scores in raw]))
    for sample, scores in zip(taught, raw, strict=True):
        assert sample.labels == pytest.approx((scores / spread).tolist())


def _slates(lists: list[Sample]) -> list[Slate]:
    return [Slate(sample.query, tuple(map(Doc, sample.texts))) for sample in lists]


def test_a_taught_list_always_has_the_teachers_best():
    source = TeacherLists(label_with_teacher(Overlap(), build_candidate_lists(COLLECTION, ["q1"], CANDIDATES)), size=4)
    whole, seen = dict(zip(source.lists[0].texts, source.lists[0].labels, strict=True)), set()
    for turn in range(20):
        sample = source.draw(0, turn)
        assert len(sample.texts) == 4
        assert max(sample.labels) == max(whole.values())
        assert [whole[body] for body in sample.texts] == list(sample.labels)
        seen |= set(sample.texts)
    assert len(seen) > 10


def test_nothing_to_teach_on_is_said():
    with pytest.raises(BadInput, match="no training lists with at least two texts"):
        label_with_teacher(Overlap(), [Sample("q", "oak", ("oak",), (0.0,))])


def test_sentences_are_queries_and_their_passage_is_shown_without_them():
    trees = {"oak": "deep", "elm": "wet", "fir": "thin", "yew": "dry"}
    bodies = {
        tree: Doc(f"The {tree} is a tall old tree. A {tree} likes {soil} soil. Sit under it.")
        for tree, soil in trees.items()
    }
    corpus = MemoryCorpus(bodies)
    finder = RANKERS.build("bm25").open(Collection("toy", corpus, {}))
    lists = build_sentence_lists(corpus, finder, count=3, depth=5, seed=1)
    assert len(lists) == 3
    for sample in lists:
        own = bodies[sample.name].body
        assert sample.query in own
        assert 4 <= len(sample.query.split()) <= 30
        assert sample.texts[0] == " ".join(s for s in split_sentences(own) if s != sample.query)
        assert own not in sample.texts
        assert set(sample.texts[1:]) <= {doc.body for doc in bodies.values()}
    assert [sample.name for sample in build_sentence_lists(corpus, finder, 9, 5, seed=1)][:3] == [s.name for s in lists]


def test_a_ranker_that_cannot_search_finds_nothing():
    with pytest.raises(BadInput, match="overlap cannot search a collection"):
        retrieve_by_name(Overlap(), {"q": "oak"}, 3)

"""Adversarial training examples: a finer scale than ranks, the drawn documents, and the cache."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.attacks.goals import Promote
from shaketable.attacks.runner import run_attacks
from shaketable.core.documents import Slate, rank_docnos
from shaketable.core.errors import BadInput
from shaketable.datasets.adversarial_documents import read_adversarial_documents
from shaketable.datasets.sample import read_sample
from shaketable.defences import adversarial_examples
from shaketable.defences.adversarial_examples import ExampleSpec, as_score_target, draw_documents, rank_score
from shaketable.measures.text_change import count_changed_words
from shaketable.rankers.lexical import BM25
from tests.attacks.setups import cases_on, target_for
from tests.defences.making import RECIPE, knowledge_of, making
from tests.toys import Normalised

pytestmark = pytest.mark.slow

floats = st.floats(width=32, allow_nan=False)


@given(floats, floats)
def test_the_rank_of_a_score_follows_its_number(a, b):
    assert (rank_score(a) < rank_score(b)) == (a > b)
    assert rank_score(a) >= 1
    goal = Promote()
    assert (goal.utility((rank_score(a),)) > goal.utility((rank_score(b),))) == (a > b)  # a float can hold all of them


@given(floats.filter(lambda x: -1e38 < x < 1e38))
def test_neighbouring_numbers_are_one_rank_apart(a):
    above = float(np.nextafter(np.float32(a), np.float32(np.inf)))
    assert rank_score(a) - rank_score(above) == 1


@pytest.mark.parametrize("ranker", [BM25(), Normalised()], ids=["pointwise", "of lists"])
def test_a_target_by_score_keeps_its_lists_and_tells_more(ranker):
    collection = read_sample()
    ranker = ranker.open(collection) if hasattr(ranker, "open") else ranker
    plain = target_for(ranker)
    cases = cases_on(collection, plain, queries=3)
    fine = as_score_target(plain)
    assert {q: p.target_ranking.docnos for q, p in fine.target_lists.items()} == {
        q: p.target_ranking.docnos for q, p in plain.target_lists.items()
    }
    finer = fine.build_cases([(c.docno, c.doc, [c.lists[0].qid]) for c in cases], Promote())
    for case, other in zip(cases, finer, strict=True):
        pool = plain.target_lists[case.lists[0].qid]
        score = pool.scores[pool.index_by_docno[case.docno]]
        assert other.ranks == (rank_score(float(score)),)
        assert not Promote().is_reached(other.ranks)
        (place,) = fine.rank_trials([(other, collection.docs[case.docno])])
        assert place == other.ranks


def test_kept_changes_raise_the_score_even_if_no_rank_changes():
    collection = read_sample()
    ranker = BM25().open(collection)
    rows = read_adversarial_documents(making(queries=12, documents=6).run().path)
    still = 0
    for one in rows:
        (query,) = one.queries.values()
        old, new = (
            float(s[0]) for s in ranker.score([Slate(query, (d,)) for d in (collection.docs[one.docno], one.doc)])
        )
        if one.doc == collection.docs[one.docno]:
            assert (one.ranks_before, new) == (one.ranks_after, old)
        else:
            assert np.float32(new) > np.float32(old)
            assert one.ranks_after[0] <= one.ranks_before[0]
            still += one.ranks_after == one.ranks_before
        assert count_changed_words(collection.docs[one.docno], one.doc) <= 3
        assert (one.ranker, one.recipe) == ("bm25", "greedy(words=3)")
        assert one.original.text == collection.docs[one.docno].text
    assert still, "acceptance by place would have left these as they were"


def test_no_attack_by_ranks_gains_more():
    one = making(queries=8, documents=4)
    plain = one.open_target(list(one.documents))
    wanted = [(docno, one.collection.docs[docno], [qid]) for qid, some in one.documents.items() for docno in some]
    by_place = run_attacks(RECIPE.open(knowledge_of(one.collection)), plain.build_cases(wanted, Promote()), plain)
    changed = sum(outcome.doc != doc for outcome, (_, doc, _) in zip(by_place, wanted, strict=True))
    assert one.run().changed_count > changed


def test_documents_are_drawn_from_candidates_that_are_not_relevant():
    collection = read_sample()
    qids = list(collection.qrels)[:10]
    found = BM25().open(collection).search([collection.queries[qid].text for qid in qids], 30)
    candidates = dict(zip(qids, found, strict=True))
    chosen = draw_documents(collection, candidates, qids, ExampleSpec(documents=5), 0)
    assert list(chosen) == qids
    for qid, docnos in chosen.items():
        assert len(set(docnos)) == len(docnos) == 5
        assert set(docnos) <= candidates[qid].keys()
        assert all(collection.qrels[qid].get(docno, 0) <= 0 for docno in docnos)
    alone = draw_documents(collection, candidates, qids[3:4], ExampleSpec(documents=5), 0)
    assert alone[qids[3]] == chosen[qids[3]]
    assert draw_documents(collection, candidates, qids, ExampleSpec(documents=5), 1) != chosen
    few = draw_documents(collection, candidates, qids, ExampleSpec(documents=5, queries=4), 0)
    assert len(few) == 4
    assert few == {qid: chosen[qid] for qid in few}
    first = {qid: {rank_docnos(candidates[qid])[0]: 1.0} for qid in qids}
    with pytest.raises(BadInput, match="nothing to attack"):
        draw_documents(collection, first, qids, ExampleSpec(), 0)


def test_examples_are_made_once_and_alike(home, tmp_path, monkeypatch):
    asked: list[list[str]] = []
    one = making(count=asked.append)
    kept = one.run()
    assert asked
    assert kept.path.parent == home / "adversaries"
    assert kept.document_count == 18
    assert kept.failed_count == 0
    assert 0 < kept.changed_count <= 18
    assert kept.cost.pairs > 18
    asked.clear()
    assert making(count=asked.append).run() == kept
    assert asked == []
    text = kept.path.read_text()
    monkeypatch.setenv("SHAKETABLE_HOME", str(tmp_path / "elsewhere"))
    monkeypatch.setattr(adversarial_examples, "QUERIES_PER_PART", 2)  # company changes nothing
    again = making().run()
    assert again.path != kept.path
    assert again.path.name == kept.path.name
    assert again.path.read_text() == text
    assert sorted(p.name for p in again.path.parent.iterdir()) == sorted(p.name for p in kept.path.parent.iterdir())


def test_other_examples_have_other_names():
    names = {making().path, making(seed=1).path, making(documents=2).path, making(queries=5).path}
    assert len(names) == 4


def test_parts_finished_before_a_kill_are_reused(home, monkeypatch):
    monkeypatch.setattr(adversarial_examples, "QUERIES_PER_PART", 2)
    killed = subprocess.run([sys.executable, "-m", "tests.defences.making", "3"], capture_output=True, text=True)
    assert killed.returncode == -9, killed.stderr
    one = making()
    assert not one.path.exists()
    assert len(list(one.path.with_suffix("").glob("part-*.jsonl"))) == 2
    asked: list[list[str]] = []
    kept = making(count=asked.append).run()
    assert asked == [list(one.documents)[4:6]]
    assert not one.path.with_suffix("").exists()
    monkeypatch.setenv("SHAKETABLE_HOME", str(home / "other"))
    whole = making().run()
    assert whole.path.read_text() == kept.path.read_text()
    assert whole.cost.pairs == kept.cost.pairs


@pytest.mark.parametrize(
    "harm", [lambda text: text[:-40], lambda text: text.replace("greedy", "greedi", 1), lambda _: ""]
)
def test_files_changed_on_disk_are_made_again(harm):
    kept = making(queries=2).run()
    whole = kept.path.read_text()
    kept.path.write_text(harm(whole))
    assert making(queries=2).run().changed_count == kept.changed_count
    assert kept.path.read_text() == whole


def test_how_long_it_may_take_is_said(monkeypatch):
    monkeypatch.setattr(adversarial_examples, "QUERIES_PER_PART", 2)
    said: list[str] = []
    making().run(said.append)
    assert "attacking 18 documents of 6 queries with greedy(words=3)" in said[0]
    assert "the first 2 queries took" in said[1]
    assert len(said) == 2


def test_an_attack_that_fails_everywhere_is_said_in_a_sentence():
    class Broken:
        def steps(self, case, draws):
            raise ValueError("no")
            yield

    with pytest.raises(BadInput, match="failed on all documents"):
        replace(making(), open_attack=Broken).run()

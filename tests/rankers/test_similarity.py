"""One judge for all: the evidence of this machine and of a collection."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest

from shaketable.core.documents import Collection, Doc, Query
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.datasets.sample import read_sample
from shaketable.rankers import similarity
from shaketable.rankers.similarity import build_validity_judge, make_encoder_similarity
from shaketable.transforms.presets import select_transforms
from shaketable.transforms.synonyms import SynSwap
from shaketable.transforms.validity import NO_EVIDENCE_REASON, ValidityCase
from shaketable.transforms.vary import normalise_query, vary

LABELS = Path(__file__).parents[2] / "evidence" / "syn_swap_labels.tsv"
WAR = Collection(
    "war",
    MemoryCorpus({f"d{i}": Doc("the world war, and a war of the world", title="World War") for i in range(3)}),
    {"q": Query("first world war")},
)


@pytest.fixture
def no_encoder(monkeypatch):
    monkeypatch.setattr(similarity, "has_extra", lambda extra: False)


@pytest.fixture
def an_encoder():
    if make_encoder_similarity() is None:
        pytest.skip("the extra neural is not installed")


def test_phrases_of_the_collection_are_evidence(no_encoder):
    case = ("paraphrasing", "first world war", "first globe war", SynSwap.sources)
    assert "'world war' but not 'globe war'" in build_validity_judge(WAR).judge(*case)
    unlisted = ("paraphrasing", "world peace", "globe peace", SynSwap.sources)
    assert build_validity_judge().judge(*unlisted) == NO_EVIDENCE_REASON
    assert build_validity_judge(WAR).judge(*unlisted) == ""


def test_phrases_are_counted_in_the_first_documents(monkeypatch):
    length = len("World War the world war, and a war of the world")
    assert similarity.count_bigrams(WAR).count_pair("world", "war") == 6
    monkeypatch.setattr(similarity, "MAX_CHARACTERS", 2 * length)
    assert similarity.count_bigrams(WAR).count_pair("world", "war") == 4


def test_nothing_is_loaded_or_read_before_the_first_question(monkeypatch):
    class Closed:
        fingerprint = "closed"

        def items(self):
            raise AssertionError("the documents were read")

    monkeypatch.setattr(similarity, "_open_encoder", lambda: pytest.fail("the encoder was loaded"))
    judge = build_validity_judge(Collection("closed", Closed(), {}))
    assert judge.judge("misspelling", "red boat", "rde boat") == ""


def test_the_encoder_distinguishes_paraphrases_from_other_texts(an_encoder):
    ask = make_encoder_similarity()
    alike, apart = ask(["how tall is the tower"] * 2, ["the tower's height", "rye bread"])
    assert alike > 0.7 > 0.3 > apart


def test_one_variation_has_one_verdict_for_all_callers(an_encoder):
    """In one batch, one by one and in another order: `vary` and tasks give the same result."""
    collection = read_sample()
    queries = {qid: collection.queries[qid] for qid in list(collection.queries)[:12]}
    edits, _ = select_transforms(categories=["paraphrasing", "naturality"])
    made = vary(queries, edits, validity=build_validity_judge(collection))
    again = list(made)
    random.Random(5).shuffle(again)
    sources = {"syn_swap": SynSwap.sources}
    cases = [
        ValidityCase(v.category, v.original, v.text, sources.get(v.method, ()), queries[v.qid].text) for v in again
    ]
    assert build_validity_judge(collection).judge_all(cases) == [v.why for v in again]
    alone = [build_validity_judge(collection).judge(*case) for case in cases[:10]]
    assert [not why for why in alone] == [v.valid for v in again[:10]]


def test_the_judge_agrees_with_our_labels_of_the_sample(an_encoder):
    """Of all swaps 70 % are valid; of those that the judge lets pass, far more must be."""
    collection, truth, cases = read_sample(), [], []
    with LABELS.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["collection"] == "sample":
                tokens = normalise_query(collection.queries[row["query"]].text).split()
                changed = [*tokens[: int(row["place"])], row["word"], *tokens[int(row["place"]) + 1 :]]
                cases.append(ValidityCase("paraphrasing", " ".join(tokens), " ".join(changed), SynSwap.sources))
                truth.append(row["valid"] == "yes")
    passed = [not why for why in build_validity_judge(collection).judge_all(cases)]
    hits = sum(a and b for a, b in zip(truth, passed, strict=True))
    assert len(truth) > 90
    assert sum(truth) / len(truth) < 0.72
    assert hits / sum(passed) > 0.8
    assert hits / sum(truth) > 0.7

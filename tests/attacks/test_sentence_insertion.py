"""Sentences of rivals: where they come from, where they go, and in which order they are tried."""

from __future__ import annotations

from collections import Counter
from math import log, sqrt

import pytest

from shaketable.attacks.goals import Promote
from shaketable.attacks.runner import run_attacks
from shaketable.attacks.sentence_insertion import RIVALS_PER_LIST, SentenceInsertion, Weights, collect_rival_sentences
from shaketable.core.attack_types import AttackCase, TargetRanking
from shaketable.core.documents import Doc
from shaketable.core.errors import BadInput
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.sentences import split_sentences
from shaketable.rankers.lexical import BM25
from shaketable.transforms.insertion import insert_sentence
from tests.attacks.by_hand import first_request
from tests.attacks.setups import cases_on, knowledge_of, load_sample, target_for

SAMPLE = load_sample()
KNOWLEDGE = knowledge_of(SAMPLE)
BOATS = Doc("Boats float on water. Wood is light.  Harbours are safe.", title="Boats", url="http://boats")
RIVAL = Doc("Light wood floats well. Safe harbours have walls! Nobody knows.", title="Not this one.")
OTHER = Doc("Wood is light. Cargo boats float on deep water.")


def case_with(doc=BOATS, rivals=(RIVAL, OTHER), queries=("floating boats",)):
    docnos = (*(f"r{n}" for n in range(len(rivals))), "d")
    lists = tuple(TargetRanking(f"q{n}", query, docnos, (*rivals, doc)) for n, query in enumerate(queries))
    return AttackCase("d", doc, lists, Promote(), (len(docnos),) * len(queries))


def test_a_term_of_no_document_weighs_as_one_of_a_single_document():
    weights = Weights(3, {"wood": 3, "harbour": 1})
    known, unknown = weights.vectorize("wood harbour"), weights.vectorize("wood zeppelin")
    assert list(known.values()) == pytest.approx(list(unknown.values()))
    assert unknown["zeppelin"] / unknown["wood"] == pytest.approx(log(1 + 3 / 1) / log(1 + 3 / 3))


def list_trials(case, **settings):
    return first_request(SentenceInsertion(**settings).open(KNOWLEDGE), case)


def by_definition(case, share):
    """Compute the ordered candidates in another way: utility, sentence, and its best boundaries."""
    terms = Analyzer()
    known = [set(terms(doc.text)) for doc in case.lists[0].docs]

    def vector(text):
        tf = Counter(terms(text))
        return {t: n * log(1 + len(known) / max(1, sum(t in some for some in known))) for t, n in tf.items()}

    def cosine(left, right):
        dot = sum(weight * right.get(term, 0.0) for term, weight in left.items())
        sizes = [sqrt(sum(weight**2 for weight in one.values())) for one in (left, right)]
        return dot / (sizes[0] * sizes[1]) if all(sizes) else 0.0

    own = split_sentences(case.doc.body)
    vectors, query = [vector(sentence) for sentence in own], vector(case.query)
    rated = []
    for sentence in collect_rival_sentences(case):
        one = vector(sentence)
        if sentence in own or not one:
            continue
        near = [vectors[max(0, at - 1) : at + 1] for at in range(len(own) + 1)]
        links = [sum(cosine(one, other) for other in some) / len(some) for some in near]
        worth = share * cosine(one, query) + (1 - share) * max(links)
        rated.append((worth, sentence, [at for at, link in enumerate(links) if max(links) - link < 1e-12]))
    return sorted(rated, key=lambda one: -one[0])


def test_candidates_are_sentences_of_the_bodies_of_others():
    case = case_with()
    found = {split for doc in (RIVAL, OTHER) for split in split_sentences(doc.body)}
    assert set(collect_rival_sentences(case)) == found
    texts = [doc.body for doc in list_trials(case)]
    assert len(texts) == len(found) - 1, "one of them is in the document already"
    for text in texts:
        (new,) = set(split_sentences(text)) - set(split_sentences(BOATS.body))
        assert new in found


def test_a_candidate_goes_where_it_connects():
    bodies = {doc.body for doc in list_trials(case_with())}
    assert "Boats float on water. Cargo boats float on deep water. Wood is light.  Harbours are safe." not in bodies
    assert "Cargo boats float on deep water. Boats float on water. Wood is light.  Harbours are safe." in bodies
    assert "Boats float on water. Wood is light.  Harbours are safe. Safe harbours have walls!" in bodies


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_texts_and_their_order_by_definition(share):
    target = target_for(BM25().open(SAMPLE))
    for case in cases_on(SAMPLE, target, queries=1):
        expected = by_definition(case, share)
        body = case.doc.body
        worths = {insert_sentence(body, sentence, at): worth for worth, sentence, ats in expected for at in ats}
        texts = list_trials(case, relevance=share)
        assert len(texts) == 20
        assert [worths[doc.body] for doc in texts] == pytest.approx([worth for worth, _, _ in expected[:20]])


def test_the_start_and_the_end_can_be_asked_for():
    case = case_with()
    assert all(doc.body.endswith(BOATS.body) for doc in list_trials(case, place="start"))
    assert all(doc.body.startswith(BOATS.body) for doc in list_trials(case, place="end"))
    assert len(list_trials(case, candidates=2)) == 2


def test_the_other_sentences_stay_unchanged():
    for place in ("best", "start", "end"):
        for doc in list_trials(case_with(), place=place):
            assert (doc.title, doc.url) == (BOATS.title, BOATS.url)
            (new,) = set(split_sentences(doc.body)) - set(split_sentences(BOATS.body))
            left = doc.body.replace(f" {new}", "") if f" {new}" in doc.body else doc.body.replace(f"{new} ", "")
            assert left == BOATS.body


@pytest.mark.parametrize("body", ["", " "])
def test_a_document_without_sentences_becomes_one(body):
    texts = list_trials(case_with(Doc(body, title="Boats")))
    assert {doc.body for doc in texts} == set(collect_rival_sentences(case_with()))
    assert texts[0].body == "Cargo boats float on deep water.", "the most relevant first"


def test_no_rivals_no_trials():
    assert list_trials(case_with(rivals=())) == []
    assert list_trials(case_with(rivals=(Doc(""), Doc("?!")))) == []


def test_every_list_gives_its_best_documents():
    far = [Doc(f"Sentence number {n}. It has a second one, number {n}.") for n in range(RIVALS_PER_LIST + 5)]
    expected = [sentence for doc in far[:RIVALS_PER_LIST] for sentence in split_sentences(doc.body)]
    assert collect_rival_sentences(case_with(rivals=far)) == expected
    assert collect_rival_sentences(case_with(rivals=[Doc("A document of one sentence.")])) == []
    one, two = case_with(rivals=(RIVAL,)), case_with(rivals=(OTHER,))
    both = AttackCase("d", BOATS, (one.lists[0], two.lists[0]), Promote(), (2, 2))
    assert collect_rival_sentences(both) == [*split_sentences(RIVAL.body), *split_sentences(OTHER.body)]


def test_the_outcome_has_one_sentence_more():
    target = target_for(BM25().open(SAMPLE))
    cases = cases_on(SAMPLE, target, queries=2)
    outcomes = run_attacks(SentenceInsertion().open(KNOWLEDGE), cases, target)
    for case, outcome in zip(cases, outcomes, strict=True):
        assert outcome.trials <= 20
        assert len(split_sentences(outcome.doc.body)) == len(split_sentences(case.doc.body)) + 1


def test_settings_that_make_no_sense_are_refused():
    for settings in ({"candidates": 0}, {"relevance": 1.5}, {"place": "middle"}):
        with pytest.raises(BadInput, match="sentence_insertion"):
            SentenceInsertion(**settings)

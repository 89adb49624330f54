"""The bundled minimal pairs in other languages."""

from __future__ import annotations

import pytest

from shaketable.core.errors import ShaketableError
from shaketable.core.languages import ENGLISH
from shaketable.datasets.languages import (
    LIST_LENGTH,
    build_language_collection,
    list_bundled_languages,
    list_language_cases,
    read_language_pairs,
)
from shaketable.measures.significance import MIN_QUERIES
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.unicode_words import fold_text

EVERY = (ENGLISH, *list_bundled_languages())


def test_there_are_ten_languages_with_enough_pairs():
    assert len(list_bundled_languages()) == 10
    assert len(read_language_pairs(ENGLISH)) >= MIN_QUERIES + 4


@pytest.mark.parametrize("language", EVERY)
def test_pairs_are_parallel_and_minimal(language):
    pairs = read_language_pairs(language)
    assert pairs.keys() == read_language_pairs(ENGLISH).keys()
    texts = [text for pair in pairs.values() for text in (pair.first, pair.second)]
    assert len(set(texts)) == len(texts)
    for pair in pairs.values():
        first, second = (fold_text(text).split() for text in (pair.first, pair.second))
        assert len(set(first) ^ set(second)) <= 6, pair.qid
        assert pair.first_query != pair.second_query


@pytest.mark.parametrize("language", EVERY)
def test_a_right_text_has_what_the_query_names_and_the_wrong_text_has_less_of_it(language):
    analyze = Analyzer.for_language(language)
    for case in list_language_cases(language):
        right, wrong = (len({*analyze(case.query)} & {*analyze(text)}) for text in (case.right, case.wrong))
        assert right > wrong, case.qid


def test_each_list_has_the_right_text_its_twin_and_others_of_the_language():
    collection = build_language_collection(("de", "zh"))
    assert len(collection.queries) == 96
    for qid, listed in collection.candidates.items():
        assert len(listed) == LIST_LENGTH
        assert collection.qrels[qid] == {docno: int(docno == qid) for docno in listed}
        assert {docno[:2] for docno in listed} == {qid[:2]}
        assert sum(docno[:-2] == qid[:-2] for docno in listed) == 2
    assert build_language_collection(("zh",)).candidates.items() <= collection.candidates.items()


def test_a_language_without_pairs_is_refused():
    with pytest.raises(ShaketableError, match="bundled pairs"):
        read_language_pairs("sv")

"""Languages: planted flaws are named by their test, sound rankers pass, and numbers are as by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks.planted.languages import FLAWS, SOUND, LanguageRanker, audit_ranker

import shaketable as st
from shaketable.core.documents import Collection, Doc, Query, Variant
from shaketable.core.errors import NotApplicable, ShaketableError
from shaketable.core.registries import RANKERS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.datasets.languages import list_language_cases
from shaketable.experiment import Experiment
from shaketable.measures.facets import LANGUAGES_FACET, find_test
from shaketable.measures.status import FAIL, NOT_TESTED, PASS
from shaketable.report.default_gate import FACETS_TESTED
from shaketable.tasks.languages import LanguagesTask, list_collection_languages
from shaketable.tasks.runner import list_default_tasks


@pytest.fixture(scope="module")
def german() -> st.Audit:
    return st.audit("sample", ["bm25", "bm25(language='de')"], "languages", languages="de", runs=False, budget=None)


def value(audit: st.Audit, ranker: str, name: str) -> float:
    (found,) = [one for one in audit.findings if one.ranker == ranker and one.name == name]
    return found.value


@pytest.mark.slow
@pytest.mark.parametrize("flaw", FLAWS, ids=lambda flaw: flaw.name)
def test_a_planted_flaw_is_named(flaw):
    language = {"ru": "ru", "zh": "zh", "ar": "ar"}.get(flaw.tests[0][-2:], "ar" if "direction" in flaw.name else "fr")
    reading = audit_ranker(LanguageRanker(flaw.name, flaw), (language,))
    assert (reading.status, reading.named) == (FAIL, True), reading


@pytest.mark.slow
@pytest.mark.parametrize("ranker", SOUND[:2], ids=lambda ranker: ranker.name)
def test_a_sound_ranker_passes(ranker):
    assert audit_ranker(ranker, ("de", "ru", "zh")).status == PASS


@pytest.mark.slow
def test_a_ranker_that_reads_no_chinese_fails_and_one_that_does_passes():
    rankers = {"english": "bm25", "chinese": "bm25(language='zh')"}
    audit = st.audit("sample", rankers, "languages", languages="zh", runs=False, budget=None)
    assert value(audit, "english", "wrong(minimal_pairs in zh) %") > 75
    assert value(audit, "chinese", "wrong(minimal_pairs in zh) %") == 0
    assert value(audit, "chinese", "English preferred(own_language in zh) %") == 0


@pytest.mark.slow
def test_accents_cost_only_the_ranker_that_does_not_fold_them(german):
    assert value(german, "bm25", "drop(strip_accents in de)") < -2
    assert value(german, "bm25(language='de')", "drop(strip_accents in de)") == 0


@pytest.mark.slow
def test_every_finding_of_a_test_is_in_the_table_and_most_are_in_the_verdict(german):
    table = german["languages"].tables["languages"]
    assert len(table) == len(german.findings)
    tests = {find_test(one.name) for one in german.findings if one.facet == LANGUAGES_FACET}
    assert {"strip_accents in de", "split_compound in de", "minimal_pairs in de", "own_language in de"} <= tests
    assert not any("other_language" in test or "direction" in test for test in tests)
    cells = {one.ranker: one.facet_cells[LANGUAGES_FACET] for one in german.verdict.ranker_verdicts}
    assert " in de" in cells["bm25"].text


@pytest.mark.slow
def test_it_gives_the_same_numbers_twice_and_in_another_order(german):
    again = st.audit("sample", ["bm25(language='de')", "bm25"], "languages", languages="de", runs=False, budget=None)
    first = {(one.ranker, one.name): (one.value, one.low, one.high) for one in german.findings}
    assert first == {(one.ranker, one.name): (one.value, one.low, one.high) for one in again.findings}


def test_an_audit_of_english_queries_does_not_test_languages():
    assert "languages" not in list_default_tasks()
    audit = st.audit("sample", "bm25", "effectiveness", max_queries=20, runs=False)
    verdict = audit.verdict
    assert LANGUAGES_FACET not in verdict.facets
    assert any("Not tested" in text and LANGUAGES_FACET in text for text in verdict.untested)
    rules = {one.rule: one for one in verdict.gate_results}
    assert FACETS_TESTED not in rules or (
        rules[FACETS_TESTED].status == NOT_TESTED and LANGUAGES_FACET not in rules[FACETS_TESTED].message
    )


def test_a_task_without_a_language_does_not_apply(experiment):
    with pytest.raises(NotApplicable, match="--languages de,fr"):
        LanguagesTask().run(experiment)


@pytest.mark.parametrize(("given", "message"), [("xx", "no language"), ("en", "other than English")])
def test_a_wrong_language_is_an_error(given, message):
    with pytest.raises(ShaketableError, match=message):
        st.audit("sample", "bm25", "effectiveness", languages=given)


def make_german_collection(**more: object) -> Collection:
    cases = list_language_cases("de")
    return Collection(
        "german",
        MemoryCorpus({case.qid: Doc(case.right) for case in cases}),
        {case.qid: Query(case.query, language="de") for case in cases},
        {case.qid: {case.qid: 1} for case in cases},
        **more,  # type: ignore[arg-type]
    )


def test_the_queries_of_a_german_collection_ask_for_the_task():
    collection = make_german_collection()
    assert list_collection_languages(collection.queries) == ("de",)
    result = LanguagesTask().run(Experiment(collection, {"bm25": RANKERS.build("bm25")}))
    assert "The changed queries in de are those of the collection." in result.notes
    accents = next(one for one in result.findings if one.name == "drop(strip_accents in de)")
    assert set(accents.values) <= set(collection.queries)
    assert accents.n == sum(
        query.text != query.text.encode("ascii", "ignore").decode() for query in collection.queries.values()
    )


def test_parallel_queries_of_a_collection_are_asked_in_english():
    english = {case.qid.replace("en-", "de-", 1): case.query for case in list_language_cases("en")}
    variants = {qid: (Variant(text, "", "en"),) for qid, text in english.items()}
    collection = make_german_collection(variants=variants)
    result = LanguagesTask().run(Experiment(collection, {"bm25": RANKERS.build("bm25")}))
    asked = next(one for one in result.findings if one.name == "drop(other_language in de)")
    assert (asked.n, asked.facet) == (48, LANGUAGES_FACET)
    assert asked.value < -50, "bm25 cannot answer English queries with German texts"


def test_without_judgements_the_first_ten_are_compared():
    collection = replace(make_german_collection(), qrels={})
    result = LanguagesTask().run(Experiment(collection, {"bm25": RANKERS.build("bm25(language='de')")}))
    names = {one.name for one in result.findings}
    assert "overlap(strip_accents in de)" in names
    assert "drop(strip_accents in de)" not in names

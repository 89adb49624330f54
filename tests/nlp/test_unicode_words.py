"""Words of any script, and the analysis of lexical rankers by language."""

from __future__ import annotations

import pytest

from shaketable.core.documents import Collection, Doc, Query
from shaketable.core.errors import ShaketableError
from shaketable.core.languages import LANGUAGES, parse_languages
from shaketable.core.registries import RANKERS
from shaketable.datasets.beir import read_beir, write_beir
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.datasets.load import load
from shaketable.nlp.analyzer import Analyzer


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_language_has_an_analyzer(code):
    assert Analyzer.for_language(code)("Straße 東京 2024")


def test_english_keeps_its_analysis():
    assert Analyzer.for_language("en") == Analyzer()
    assert RANKERS.build("bm25(language='en')") == RANKERS.build("bm25")
    assert RANKERS.spec(RANKERS.build("bm25(language='en')")) == "bm25"
    assert RANKERS.build("bm25").analyzer == Analyzer()


def test_equal_words_have_equal_terms_in_every_form():
    german = Analyzer.for_language("de")
    assert german("Größe") == german("GROSSE") == german("Gro\u0308ße") == german("Ｇröße") == german("Grö\u200fße")
    japanese = Analyzer.for_language("ja")
    assert japanese("ニンジン") == japanese("ﾆﾝｼﾞﾝ") == ["ニン", "ンジ", "ジン"]


def test_scripts_without_spaces_give_pairs_of_characters():
    assert Analyzer.for_language("zh")("我在2024年买了iPhone手机") == ["我在", "2024", "年买", "买了", "iphone", "手机"]
    assert Analyzer.for_language("th")("น้ำ")


def test_a_parameter_replaces_a_part_of_the_language():
    assert RANKERS.build("bm25(language='de', stemmer='none')").analyzer == Analyzer(
        split="unicode", stopwords="none", stemmer="none"
    )


@pytest.mark.parametrize(("language", "query", "right"), [("zh", "牙科医生", "a"), ("ru", "красивый сад", "b")])
def test_a_lexical_ranker_searches_in_a_language(language, query, right):
    docs = {"a": Doc("中午以前可以预约牙科医生。"), "b": Doc("В красивом саду растут яблони."), "c": Doc("A garden.")}
    for name in ("bm25", "ql", "ql_jm"):
        ranker = RANKERS.build(f"{name}(language={language!r})").open(Collection("toy", MemoryCorpus(docs), {}))
        assert next(iter(ranker.search([query], 3)[0])) == right


def test_an_unknown_language_is_refused():
    for wrong in ("bm25(language='xx')", "bm25(language='')"):
        with pytest.raises(ShaketableError, match="language"):
            RANKERS.build(wrong)
    with pytest.raises(ShaketableError, match="xx"):
        parse_languages("de,xx")


def test_the_language_of_queries_is_read_and_written(tmp_path):
    queries = {"q1": Query("Zahnarzt", language="de"), "q2": Query("dentist")}
    write_beir(
        Collection("toy", MemoryCorpus({"d": Doc("Ein Zahnarzt.")}), queries, {"q1": {"d": 1}}), tmp_path / "toy"
    )
    assert read_beir(tmp_path / "toy").queries == queries
    declared = load(f"{tmp_path / 'toy'}?language=fr")
    assert [query.language for query in declared.queries.values()] == ["de", "fr"]
    assert load(declared.source).queries == declared.queries
    with pytest.raises(ShaketableError, match="xx"):
        load(f"{tmp_path / 'toy'}?language=xx")


def test_a_wrong_language_in_a_file_is_named_with_its_line(tmp_path):
    queries = {"q1": Query("Zahnarzt", language="de")}
    write_beir(Collection("toy", MemoryCorpus({"d": Doc("Ein Zahnarzt.")}), queries), tmp_path / "toy")
    path = tmp_path / "toy" / "queries.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace('"de"', '"german"'), encoding="utf-8")
    with pytest.raises(ShaketableError, match=r"queries.jsonl.*1.*german"):
        read_beir(tmp_path / "toy")

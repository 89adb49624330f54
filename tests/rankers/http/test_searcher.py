"""Search engines by their URL: detection, hits, templates, keys, and refusals that say what to write."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.documents import Collection, Doc, Query, rank_docnos
from shaketable.core.errors import BadInput, RankerFailed, ShaketableError
from shaketable.core.registries import RANKERS
from shaketable.rankers.http.hits import Hit, HitCorpus, HitFields, order_scores, parse_hits
from shaketable.rankers.http.json_paths import parse_path, select_rows
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from shaketable.testing import check_retriever
from tests import servers
from tests.search_engines import FILMS, elasticsearch, find, own_api, running, solr

NOWHERE = Collection("empty", HitCorpus(), {"q1": Query("boat water")})


def open_searcher(spec: str):
    return RANKERS.build(spec).open(NOWHERE)


def failure(spec: str) -> str:
    with pytest.raises(ShaketableError) as caught:
        open_searcher(spec).search(["boat"], 3)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    return str(caught.value)


def suggestion(message: str) -> str:
    """Return the spec in an error message."""
    return re.findall(r"write (?:--ranker )?((?:search|http)\S*?\(.*?\)|search:\S+|http\S+)(?:$|,| )", message)[0]


@pytest.mark.parametrize(
    ("reply", "path", "dialect", "fields"),
    [
        (elasticsearch(), "/films", "elasticsearch", ("title", "body")),
        (elasticsearch(), "/films/_search", "elasticsearch", ("title", "body")),
        (elasticsearch(distribution="opensearch"), "/films", "opensearch", ("title", "body")),
        (solr, "/solr/films", "solr", ("text_txt",)),
        (solr, "/solr/films/select?defType=dismax&qf=text_txt", "solr", ("text_txt",)),
    ],
)
def test_the_url_of_an_index_is_enough(reply, path, dialect, fields):
    with running(reply) as engine:
        ranker = open_searcher(f"search:{engine.root}{path}")
        (found,) = ranker.search(["boat on the water"], 3)
        assert ranker.profile.dialect == dialect
        assert ranker.profile.fields.text == fields
        assert list(found) == [docno for docno, _ in find("boat on the water", 3)]
        assert ranker.corpus["f1"].body.endswith(FILMS["f1"][1])
        check_retriever(ranker, ["boat", "green tea", "zzzz", ""])


def test_parameters_in_the_url_of_solr_are_kept():
    with running(solr) as engine:
        open_searcher(f"search:{engine.root}/solr/films/select?defType=dismax&qf=text_txt").search(["tea & boats?"], 2)
        _, path, _ = engine.requests[-1]
    assert "defType=dismax" in path
    assert "edismax" not in path
    assert "q=tea+%26+boats%3F" in path
    assert "rows=2" in path


def test_an_api_of_no_known_family_needs_a_template(tmp_path):
    template = tmp_path / "template.json"
    template.write_text(json.dumps({"question": {"text": "{query}"}, "page_size": "{k}"}))
    with running(own_api) as engine:
        rest = "hits='$.data.items[*]', id='key.doc', text='passage', score='relevance'"
        posted = open_searcher(f"search(url='{engine.root}/find', body='{template}', {rest})")
        fetched = open_searcher(f"search(url='{engine.root}/find?q={{query}}&n={{k}}', {rest})")
        query = 'boat "water" {k} \\ on'
        assert posted.search([query], 2) == fetched.search([query], 2)
        assert engine.requests[-1][0] == "GET"
        bodies = [body for method, _, body in engine.requests if method == "POST"]
        assert bodies[-1] == {"question": {"text": query}, "page_size": 2}


def test_your_own_request_to_elasticsearch(tmp_path):
    template = tmp_path / "match.json"
    template.write_text(json.dumps({"query": {"match": {"body": "{query}"}}, "size": "{k}"}))
    with running(elasticsearch()) as engine:
        (found,) = open_searcher(f"search(url='{engine.root}/films/_search', body='{template}')").search(["tea"], 5)
        assert list(found) == ["f3"]
        assert engine.requests[-1][2] == {"query": {"match": {"body": "tea"}}, "size": 5}


def test_the_order_of_the_engine_is_kept():
    tied = [Hit("z", 2.0, ""), Hit("a", 2.0, ""), Hit("b", 2.0, ""), Hit("c", 1.0, "")]
    scores = list(order_scores(tied).values())
    assert scores[0] > scores[1] > scores[2] > scores[3]
    assert list(order_scores([Hit("a", 1.0, ""), Hit("b", 3.0, "")]).values()) == [1.0, 0.5]
    with running(elasticsearch(sorted_by_date=True)) as engine:
        (found,) = open_searcher(f"search:{engine.root}/films").search(["boat water"], 3)
    assert list(found.items()) == [("f1", 1.0), ("f2", 0.5), ("f5", pytest.approx(1 / 3))]


def test_an_index_that_does_not_exist():
    with running(elasticsearch()) as engine:
        assert suggestion(failure(f"search:{engine.root}/filmz")) == f"search:{engine.root}/films"
        message = failure(f"search:{engine.root}")
        assert "names no index" in message
        assert suggestion(message) == f"search:{engine.root}/films"
    with running(solr) as engine:
        assert suggestion(failure(f"search:{engine.root}/solr/filmz")) == f"search:{engine.root}/solr/films"


def test_an_engine_that_wants_authentication(monkeypatch):
    for key in ("secret-key-of-films", "reader:pass-word"):
        with running(elasticsearch(key=key)) as engine:
            spec = suggestion(failure(f"search:{engine.root}/films"))
            assert "key_env='MY_KEY'" in spec
            monkeypatch.setenv("MY_KEY", "wrong-key-of-films")
            message = failure(spec)
            assert "was sent, but the server rejects it" in message
            assert "wrong-key" not in message
            monkeypatch.setenv("MY_KEY", key)
            assert open_searcher(spec).search(["tea"], 1) == [{"f3": 2.0}]


def test_hits_without_text():
    with running(elasticsearch(source=False)) as engine:
        message = failure(f"search:{engine.root}/films")
        assert "the hits have no text" in message
        assert "text='FIELD'" in suggestion(message)
        spec = f"search(url='{engine.root}/films', text=None)"
        assert spec in message
        assert list(open_searcher(spec).search(["tea"], 5)[0]) == ["f3"]
    with running(elasticsearch()) as engine:
        message = failure(f"search(url='{engine.root}/films', text='contents')")
        assert "no field 'contents'" in message
        assert "title, body, year" in message


def test_a_template_that_matches_nothing(tmp_path):
    template = tmp_path / "template.json"
    template.write_text(json.dumps({"question": {"text": "{query}"}, "page_size": "{k}"}))
    with running(own_api) as engine:
        message = failure(f"search(url='{engine.root}/find', body='{template}', id='key.doc', text='passage')")
        assert "'$.results[*]' matches nothing" in message
        assert list(open_searcher(suggestion(message)).search(["tea"], 2)[0]) == ["f3"]
        message = failure(f"search(url='{engine.root}/find', body='{template}', hits='$.data.items[*]')")
        assert "no field 'id' for the id; they have key, passage, relevance" in message
    template.write_text(json.dumps({"question": "always the same"}))
    assert 'has no "{query}"' in failure(f"search(url='http://127.0.0.1:1/find', body='{template}')")
    template.write_text("{")
    assert "is not JSON" in failure(f"search(url='http://127.0.0.1:1/find', body='{template}')")


def test_a_rerank_endpoint_is_no_search_engine_and_the_other_way_round():
    with servers.running(servers.Server(servers.simple)) as server:
        message = failure(f"search:{server.url}")
        assert f"is a rerank endpoint, not a search engine: write {server.url} without" in message
    for reply, path in ((elasticsearch(), "/films/_search"), (elasticsearch(), "/films"), (solr, "/solr/films")):
        with running(reply) as engine, pytest.raises(RankerFailed) as caught:
            RANKERS.build(f"{engine.root}{path}").open(NOWHERE).profile  # noqa: B018 - sends the first request
        assert f"write search:{engine.root}{path}" in str(caught.value)


def test_an_api_that_is_not_known():
    with running(lambda *request: (200, {"hello": "world"}, {})) as engine:
        message = failure(f"search:{engine.root}/api")
    assert "is not known as a search engine" in message
    assert "body='template.json'" in suggestion(message)


def test_a_busy_engine_is_asked_again_and_a_dead_one_is_left_alone():
    healthy, calls = elasticsearch(), []

    def busy(*request):
        calls.append(request)
        return (429, {"error": "busy"}, {"Retry-After": "0"}) if len(calls) % 3 == 0 else healthy(*request)

    with running(busy) as engine:
        ranker = open_searcher(f"search(url='{engine.root}/films', backoff=0)")
        assert [list(found) for found in ranker.search(["tea"] * 5, 5)] == [["f3"]] * 5
        assert "retries" in ranker.notice
        engine.reply = lambda *request: (500, {"error": "down"}, {})
        for _ in range(6):
            with pytest.raises(RankerFailed):
                ranker.search(["tea"], 5)
        count = len(engine.requests)
        with pytest.raises(RankerFailed, match="gets no more requests"):
            ranker.search(["tea"], 5)
        assert len(engine.requests) == count


def test_a_part_of_the_hits_is_not_an_answer():
    healthy = elasticsearch()

    def broken(*request):
        status, answer, headers = healthy(*request)
        return status, {**answer, "_shards": {"total": 5, "successful": 3, "failed": 2}}, headers

    with running(broken) as engine:
        assert "2 of 5 shards failed; repair the index" in failure(f"search:{engine.root}/films/_search")


def test_more_hits_than_the_window_of_the_engine():
    with running(elasticsearch()) as engine, pytest.raises(RankerFailed, match="write --depth 10000"):
        open_searcher(f"search:{engine.root}/films").search(["boat"], 20_000)


def test_cached_lists_are_used_only_while_the_index_is_the_same(tmp_path):
    with running(elasticsearch()) as engine:
        store = Store(tmp_path / "scores.sqlite")
        spec = f"search(url='{engine.root}/films', revision='1')"
        before = ScoringEngine(store).search(open_searcher(spec), ["boat", "tea"], 5)
        count = len(engine.requests)
        again = ScoringEngine(store)
        assert again.search(open_searcher(spec), ["boat", "tea"], 5) == before
        assert not again.changed_rankers
        verified = len(engine.requests) - count
        FILMS["f7"] = ("New boat", "A boat that was added to the index later. A boat, a boat!")
        try:
            later = ScoringEngine(store)
            assert "f7" in later.search(open_searcher(spec), ["boat", "tea"], 5)[0]
            assert later.changed_rankers
        finally:
            del FILMS["f7"]
    assert verified > 0


def test_hits_are_documents_that_are_found_again_from_the_disk(monkeypatch, tmp_path):
    monkeypatch.setenv("SHAKETABLE_HOME", str(tmp_path))
    corpus = HitCorpus()
    corpus.add("http://h/films", [Hit("a", 1.0, "a boat")])
    other = HitCorpus()
    other.add_source("http://h/films")
    assert other["a"] == Doc("a boat")
    assert "b" not in other
    assert len(other) == 0
    assert list(corpus.list_documents(["a"]).items()) == [("a", Doc("a boat"))]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.sampled_from(["$[*]", "$.a[*]", "$.a.b[*]", "$.a[*].b[*]", "a"]))
def test_any_answer_gives_hits_or_a_reason(answer, path):
    rows = select_rows(answer, path) or []
    fields = HitFields("a", ("b", "c.d"), "b")
    try:
        hits = parse_hits(rows, "d", fields)
    except ValueError:
        assert not all(isinstance(row, dict) and type(row.get("a")) in (int, float) for row in rows)
        return
    scores = order_scores(hits)
    assert list(scores) == [hit.docno for hit in hits]
    assert rank_docnos(scores) == list(scores)


def test_an_answer_that_is_nested_deeply():
    deep = {"text": "a boat on the water"}
    for _ in range(400):
        deep = {"more": deep, "list": [[[]]]}
    reply = {"hits": {"hits": [{"_id": "x", "_score": 1.0, "_source": deep}]}}
    with running(lambda *request: (200, reply, {"X-elastic-product": "Elasticsearch"})) as engine:
        assert "the hits have no text" in failure(f"search:{engine.root}/films")


@pytest.mark.parametrize("path", ["$..a", "$.a[0]", "a b", "", "$.a[*", "__import__('os')"])
def test_paths_are_names_and_lists_only(path):
    with pytest.raises(BadInput, match="is not a path"):
        parse_path(path)


def test_a_path_selects_a_list():
    answer = {"groups": [{"docs": [1, 2]}, {"docs": [3]}], "empty": []}
    assert select_rows(answer, "$.groups[*].docs[*]") == [1, 2, 3]
    assert select_rows(answer, "$.empty[*]") == []
    assert select_rows(answer, "$.groups[*].none[*]") is None
    assert select_rows([1], "$[*]") == [1]

"""Rerank endpoints: requests in the format of the server, sorted answers, and a clear message for each fault."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.errors import BadInput, RankerFailed, UnknownName
from shaketable.core.registries import RANKERS
from shaketable.rankers.http.dialects import (
    DIALECTS,
    order_scores,
    parse_missing_fields,
    parse_rows,
    parse_text_limit,
    wants_model,
)
from shaketable.rankers.http.reranker import HttpEndpoint
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from shaketable.scoring.traits import RankerTraits
from shaketable.testing import check_ranker
from tests import servers
from tests.servers import always, rows, simple, worth

NOWHERE = Collection("empty", {}, {})
SLATE = Slate("red boat", (Doc("tea"), Doc("a red boat", title="Boats"), Doc("boat")))
EXPECTED = [worth(SLATE.query, doc.text) for doc in SLATE.docs]
KNOWN = {"dialect": "cohere", "pointwise": False, "revision": "1"}
"""Settings that leave nothing open, so that the first request is the first list."""
SPEAKERS = {
    "cohere": servers.cohere,
    "infinity": servers.infinity("m"),
    "tei": servers.tei,
    "vllm-score": servers.vllm_score,
    "mixedbread": servers.mixedbread,
    "voyage": servers.voyage,
    "pinecone": servers.pinecone,
    "elasticsearch": servers.elasticsearch,
    "plain": servers.own,
}


def ask(server, slate=SLATE, **settings):
    return HttpEndpoint(server.url, backoff=0.0, **{**KNOWN, **settings}).open(NOWHERE).score([slate])[0]


def failure(server, **settings) -> str:
    with pytest.raises(RankerFailed) as caught:
        ask(server, **settings)
    message = str(caught.value)
    assert server.url in message
    assert "red boat" in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", DIALECTS)
def test_each_dialect_gives_scores_in_the_order_of_the_documents(serve, name):
    model = "" if name in ("tei", "vllm-score", "elasticsearch", "plain") else "m"
    assert ask(serve(SPEAKERS[name]), dialect=name, model=model).tolist() == EXPECTED


def test_infinity_gives_its_logits_only_if_asked(serve):
    server = serve(servers.infinity("m"))
    assert ask(server, dialect="cohere", model="m").tolist() == pytest.approx(1 / (1 + np.exp(-np.array(EXPECTED))))
    assert "raw_scores" not in server.bodies[-1]
    assert ask(server, dialect="infinity", model="m").tolist() == EXPECTED
    assert server.bodies[-1]["raw_scores"] is True


@pytest.mark.parametrize("reply", [servers.simple, servers.tei, servers.by_list])
def test_a_served_ranker_keeps_the_contract(serve, reply):
    check_ranker(HttpEndpoint(serve(reply).url).open(NOWHERE))


def test_what_is_sent_to_a_cohere_like_server(serve):
    server = serve(simple)
    ask(server, model="m")
    assert server.bodies == [
        {"model": "m", "query": "red boat", "documents": ["tea", "Boats a red boat", "boat"], "top_n": 3}
    ]
    assert "authorization" not in server.headers[0]


def test_what_is_sent_to_tei(serve):
    server = serve(servers.tei)
    ask(server, dialect="tei")
    assert server.bodies == [
        {"query": "red boat", "texts": ["tea", "Boats a red boat", "boat"], "raw_scores": True, "truncate": True}
    ]


@pytest.mark.parametrize(
    ("url", "dialect"),
    [
        ("https://api.voyageai.com/v1/rerank", "voyage"),
        ("https://api.mixedbread.com/v1/reranking", "mixedbread"),
        ("https://api.pinecone.io/rerank", "pinecone"),
        ("https://es.example.org:9200/_inference/rerank/mine", "elasticsearch"),
        ("http://localhost:8000/score", "vllm-score"),
        ("https://api.cohere.com/v2/rerank", ""),
        ("http://localhost:8000/v1/rerank", ""),
    ],
)
def test_some_addresses_tell_the_dialect(url, dialect):
    from shaketable.rankers.http.dialects import detect_dialect_from_url

    assert detect_dialect_from_url(url) == dialect


def test_a_slate_is_one_request_and_order_is_kept(serve):
    server = serve(simple)
    slates = [Slate(f"word{i}", tuple(Doc(f"word{j} text") for j in range(30))) for i in range(20)]
    scores = HttpEndpoint(server.url, **KNOWN).open(NOWHERE).score(slates)
    assert len(server.bodies) == 20
    assert [int(np.argmax(s)) for s in scores] == list(range(20))


def test_several_requests_are_under_way_at_once(serve):
    together = threading.Barrier(3, timeout=20)  # the server answers when three requests have arrived

    def reply(nth, body):
        together.wait()
        return simple(nth, body)

    scores = HttpEndpoint(serve(reply).url, concurrency=3, **KNOWN).open(NOWHERE).score([SLATE] * 6)
    assert all((s == scores[0]).all() for s in scores)


def test_batch_splits_lists_of_pointwise_rankers(serve):
    server = serve(simple)
    scores = ask(server, pointwise=True, batch=2)
    assert sorted(len(body["documents"]) for body in server.bodies) == [1, 2]
    assert scores.tolist() == EXPECTED


def test_no_documents_no_request(serve):
    server = serve(simple)
    ranker = HttpEndpoint(server.url, **KNOWN).open(NOWHERE)
    assert [s.shape for s in ranker.score([Slate("q", ()), Slate("q", ())])] == [(0,), (0,)]
    assert ranker.score([]) == []
    assert server.bodies == []


def test_an_empty_text_goes_as_a_blank(serve):
    server = serve(simple)
    ask(server, Slate("", (Doc(""), Doc("a"))))
    assert (server.bodies[0]["query"], server.bodies[0]["documents"]) == (" ", [" ", "a"])


def test_half_a_character_can_be_sent(serve):
    server = serve(simple)
    ask(server, Slate("q", (Doc("broken \ud83d emoji"),)))
    assert server.bodies[0]["documents"] == ["broken \ud83d emoji"]


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (400, {"message": "query too long"}, "query too long"),
        (413, b"payload too large", "refuses lists of 3 texts"),
        (422, b"missing field `texts` at line 1 column 9", "dialect='tei'"),
        (422, {"detail": [{"loc": ["body", "text_2"], "input": {}}]}, "dialect='vllm-score'"),
        (303, b"", "303"),
    ],
)
def test_refusals_are_final_and_give_a_reason(serve, status, body, said):
    server = serve(always(status, body))
    assert said in failure(server)
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html><body>Welcome to nginx</body></html>", "did not answer with JSON: '<html>"),
        (b'{"results": [', "did not answer with JSON"),
        (b"\xff\xfe", "did not answer with JSON"),
        ({"error": "model not loaded"}, 'in a format of no known dialect: \'{"error": "model not loaded"}\''),
        ("text", "in a format of no known dialect"),
        (None, "in a format of no known dialect"),
        ({"results": ["a", "b", "c"]}, "in a format of no known dialect"),
        (rows((0, 1.0), (2, 0.5)), "scored 2 texts of 3 (indexes 0, 2)"),
        (rows(), "scored 0 texts of 3 (indexes none)"),
        (rows((0, 1.0), (2, 0.5), (2, 0.5)), "scored the text with index 2 more than once"),
        (rows((0, 1.0), (1, 0.5), (3, 0.5)), "scored a text with index 3, which was not sent"),
        (rows((0, 1.0), (1, 0.5), (-1, 0.5)), "scored a text with index -1, which was not sent"),
        (rows((3, 1.0), (1, 0.5), (2, 0.5)), "indexes begin at 1 (3, 1, 2)"),
        (rows((0, 1.0), ("1", 0.5), (2, 0.5)), "indexes are texts (0, '1', 2)"),
        (rows((0, 1.0), ([1], 0.5), (2, 0.5)), "indexes are not whole numbers"),
        (rows((0, 1.0), (True, 0.5), (2, 0.5)), "indexes are not whole numbers"),
    ],
)
def test_answers_that_are_no_scores(serve, body, said):
    server = serve(always(200, body))
    assert said in failure(server)
    unreadable = isinstance(body, bytes)
    assert (len(server.bodies) > 1) == unreadable, "what cannot be read at all may be a proxy's; the next may do"


def test_many_rows_are_read_in_linear_time():
    """No time is measured: comparing each row with all others would take hours."""
    number = 300_000
    pairs = [(index, float(index)) for index in reversed(range(number))]
    assert order_scores(pairs, number) == [float(index) for index in range(number)]
    with pytest.raises(ValueError, match="index 7 more than once"):
        order_scores([*pairs[:-1], (7, 1.0)], number)
    with pytest.raises(ValueError, match="it scored 300,000 texts of 3"):
        order_scores(pairs, 3)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), None])
def test_scores_that_are_no_numbers(serve, score):
    assert "for the text 'Boats a red boat'" in failure(serve(always(200, rows((0, 1.0), (1, score), (2, 0.5)))))


def test_scores_that_are_words(serve):
    assert "scores are not numbers" in failure(serve(always(200, rows((0, 1.0), (1, "high"), (2, 0.5)))))


def test_answers_before_a_failure_are_cached(serve, tmp_path):
    server = serve(lambda nth, body: (400, {"error": "no"}, {}) if body["query"] == "bad" else simple(nth, body))
    given = [Slate(query, SLATE.docs) for query in ("one", "two", "bad", "three")]
    with pytest.raises(RankerFailed):
        ScoringEngine(Store(tmp_path / "s.sqlite")).score(HttpEndpoint(server.url, concurrency=1).open(NOWHERE), given)
    asked = len(server.lists)
    ScoringEngine(Store(tmp_path / "s.sqlite")).score(HttpEndpoint(server.url).open(NOWHERE), given[:2])
    assert all(body["query"] in ("one", "two") for body in server.lists[asked:])
    assert len(server.lists) - asked <= 4, "no more than a few, to see whether the server still says the same"


def negate_scores(reply, when):
    def reply_negated(nth, body):
        status, answer, headers = reply(nth, body)
        if when(body):
            for row in answer["results"]:
                row["relevance_score"] = -row["relevance_score"]
        return status, answer, headers

    return reply_negated


@pytest.mark.parametrize("revision", ["", "one"])
def test_cached_answers_of_another_model_at_the_same_address_are_not_used(serve, tmp_path, revision):
    """What is served is known by what it says at first, or by its revision; then a few answers are compared."""
    now = {"worse": False}
    first_words_too = revision == ""
    server = serve(
        negate_scores(simple, lambda body: now["worse"] and (first_words_too or "planet" not in body["query"]))
    )
    given = [Slate(query, SLATE.docs) for query in ("red boat", "boat tea", "tea")]

    def scores():
        engine = ScoringEngine(Store(tmp_path / "s.sqlite"))
        return engine, engine.score(HttpEndpoint(server.url, revision=revision).open(NOWHERE), given)

    _, first = scores()
    now["worse"] = True
    engine, second = scores()
    np.testing.assert_allclose(second, [-s for s in first])
    assert bool(engine.list_warnings()) == bool(revision)
    if revision:
        assert "no longer returns its cached scores" in engine.list_warnings()[0]
    else:  # and the answers of the first model are still there when it is back
        now["worse"], asked = False, len(server.lists)
        _, third = scores()
        np.testing.assert_allclose(third, first)
        assert len(server.lists) - asked < len(given) * 3


def test_a_server_of_which_only_lists_have_changed_is_caught(serve, tmp_path):
    now = {"worse": False}
    server = serve(negate_scores(simple, lambda body: now["worse"] and "planet" not in body["query"]))
    given = [Slate(query, SLATE.docs) for query in ("red boat", "boat tea", "tea")]
    first = ScoringEngine(Store(tmp_path / "s.sqlite")).score(HttpEndpoint(server.url).open(NOWHERE), given)
    now["worse"] = True
    engine = ScoringEngine(Store(tmp_path / "s.sqlite"))
    np.testing.assert_allclose(engine.score(HttpEndpoint(server.url).open(NOWHERE), given), [-s for s in first])
    assert "no longer returns its cached scores" in engine.list_warnings()[0]


def test_scores_are_cached_across_runs(serve, tmp_path):
    server = serve(simple)
    given = [Slate(f"boat {i}", SLATE.docs) for i in range(50)]
    first = ScoringEngine(Store(tmp_path / "s.sqlite")).score(HttpEndpoint(server.url).open(NOWHERE), given)
    asked = len(server.lists)
    second = ScoringEngine(Store(tmp_path / "s.sqlite")).score(HttpEndpoint(server.url).open(NOWHERE), given)
    np.testing.assert_array_equal(first, second)
    assert len(server.lists) - asked <= 6, "three pairs, twice"


def test_a_fingerprint_depends_on_the_request(serve):
    server = serve(simple)
    url = server.url
    traits = RankerTraits.from_ranker(HttpEndpoint(url, pointwise=False).open(NOWHERE))
    assert (traits.name, traits.pointwise, traits.volatile, traits.max_concurrency, traits.chunk) == (
        url,
        False,
        True,
        4,
        1,
    )
    marks = {
        HttpEndpoint(url, revision="1").open(NOWHERE).fingerprint,
        HttpEndpoint(url, revision="1", timeout=9).open(NOWHERE).fingerprint,
        HttpEndpoint(url.removeprefix("http://"), revision="1").open(NOWHERE).fingerprint,
        HttpEndpoint(url, revision="2").open(NOWHERE).fingerprint,
        HttpEndpoint(url, revision="1", model="m").open(NOWHERE).fingerprint,
        HttpEndpoint(url, revision="1", dialect="tei", pointwise=True).open(NOWHERE).fingerprint,
        HttpEndpoint(url).open(NOWHERE).fingerprint,
    }
    assert len(marks) == 5
    assert None not in marks


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (HttpEndpoint("http://"), "is not the URL"),
        (HttpEndpoint("ftp://host/x"), "is not the URL"),
        (HttpEndpoint("http://host:port/x"), "is not a URL"),
        (HttpEndpoint("https://me:hush@host/rerank"), "contains a password"),
        (HttpEndpoint("http://host/", batch=8, pointwise=False), "pointwise=False forbids"),
        (HttpEndpoint("http://host/", concurrency=0), "must be above 0"),
        (HttpEndpoint("http://host/", timeout=0), "must be above 0"),
    ],
)
def test_settings_that_cannot_be(model, said):
    with pytest.raises(BadInput, match=said) as caught:
        model.open(NOWHERE)
    assert "hush" not in str(caught.value)


def test_an_unknown_dialect_suggests_the_nearest():
    with pytest.raises(UnknownName, match="did you mean cohere"):
        HttpEndpoint("http://host/", dialect="coher").open(NOWHERE)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://host:80/v1/rerank", "http://host:80/v1/rerank"),
        ("localhost:8080/rerank", "http://localhost:8080/rerank"),
        ("localhost/rerank", "http://localhost/rerank"),
        ("127.0.0.1:7997/rerank", "http://127.0.0.1:7997/rerank"),
        ("reranker.example.org:443/v1/rerank", "https://reranker.example.org:443/v1/rerank"),
        ("[::1]:8080/rerank", "http://[::1]:8080/rerank"),
        ("gpu-box:8080", "http://gpu-box:8080"),
    ],
)
def test_written_as_an_address_with_or_without_a_scheme(text, address):
    model = RANKERS.build(text)
    assert model == HttpEndpoint(text)
    assert model.address == address
    assert RANKERS.spec(model) == text


def test_written_in_full():
    model = HttpEndpoint("http://host/rerank", dialect="tei", pointwise=True, batch=32)
    assert RANKERS.build(RANKERS.spec(model)) == model


def test_an_address_without_a_scheme_is_asked(serve):
    server = serve(simple)
    ranker = RANKERS.build(server.url.removeprefix("http://")).open(NOWHERE)
    assert ranker.score([SLATE])[0].tolist() == EXPECTED


def test_the_engine_names_the_query_that_a_server_fails_on(serve):
    server = serve(lambda nth, body: (400, "no", {}) if body["query"] == "bad" else simple(nth, body))
    engine = ScoringEngine(keep_going=True)
    answers = engine.score(HttpEndpoint(server.url).open(NOWHERE), [SLATE, Slate("bad", SLATE.docs)])
    assert answers[0] is not None
    assert answers[1] is None
    assert [failure.query for failure in engine.failures] == ["bad"]


@pytest.mark.parametrize(
    ("status", "message", "sent", "most"),
    [
        (422, '{"error":"batch size 33 > maximum allowed batch size 32","error_type":"Validation"}', 33, 32),
        (413, "batch size 129 > maximum allowed batch size 128", 129, 128),
        (400, '{"detail":"The number of documents cannot exceed 1000."}', 1200, 1000),
        (400, "batch size is invalid, it should not be larger than 10.: input.contents", 20, 10),
        (400, '{"message": "too many documents: 1500, the maximum is 1000"}', 1500, 1000),
        (413, "Payload Too Large", 9, 4),
        (413, "Payload Too Large", 1, 0),
        (422, "`inputs` must have less than 512 tokens. Given: 534", 900, 0),
        (422, "missing field `texts` at line 1 column 9", 100, 0),
        (400, "input exceeds the maximum of 512 tokens", 900, 0),
        (500, "maximum allowed batch size 32", 33, 0),
    ],
)
def test_limits_are_read_from_refusals(status, message, sent, most):
    assert parse_text_limit(status, message, sent) == most


def test_refusals_about_models_and_fields():
    assert wants_model('{"detail":[{"type":"missing","loc":["body","model"],"msg":"Field required"}]}')
    assert wants_model('{"message":"invalid request: model is required"}')
    assert wants_model("The model `x` does not exist.")
    assert not wants_model('{"detail":[{"loc":["body","texts"],"input":{"query":"model is required"}}]}')
    assert parse_missing_fields('{"detail":[{"type":"missing","loc":["body","texts"],"msg":"Field required"}]}') == [
        "texts"
    ]


def test_answers_of_every_shape_are_read():
    expected = [(1, 0.9), (0, 0.1)]
    lists = [[{"index": i, name: s} for i, s in expected] for name in ("score", "relevance_score")]
    for found in lists:
        for answer in (found, {"results": found}, {"data": found}, {"rerank": found, "usage": {}}):
            assert parse_rows(answer) == expected
            assert order_scores(parse_rows(answer), 2) == [0.1, 0.9]
    assert parse_rows([0.1, 0.9]) == parse_rows({"scores": [0.1, 0.9]}) == [(0, 0.1), (1, 0.9)]

"""The first words with a server: its address is enough; where it is not, the error says what to write."""

from __future__ import annotations

import re

import pytest

from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.errors import RankerFailed
from shaketable.core.registries import RANKERS
from shaketable.rankers.http.discovery import SAMPLE_TEXTS
from shaketable.rankers.http.reranker import HttpEndpoint
from tests import servers
from tests.servers import always, models, rows, worth

NOWHERE = Collection("empty", {}, {})
SLATE = Slate("red boat", (Doc("tea"), Doc("a red boat", title="Boats"), Doc("boat")))
EXPECTED = [worth(SLATE.query, doc.text) for doc in SLATE.docs]
LONG = Slate("red boat", tuple(Doc(f"boat number {i}" + " red" * (i % 7)) for i in range(100)))


def open_endpoint(server, **settings):
    return HttpEndpoint(server.url, backoff=0.0, **settings).open(NOWHERE)


def failure(server, **settings) -> str:
    with pytest.raises(RankerFailed) as caught:
        open_endpoint(server, **settings).score([SLATE])
    assert "\n" not in str(caught.value)
    return str(caught.value)


def paste_spec(message: str) -> HttpEndpoint:
    """Build the ranker of the spec in an error message."""
    (spec,) = re.findall(r"write (http\(.*?\))(?:$|;| with )", message)
    return RANKERS.build(spec)


@pytest.mark.parametrize(
    ("reply", "pages", "dialect", "model"),
    [
        (servers.simple, {}, "cohere", ""),
        (servers.tei, {}, "tei", ""),
        (servers.vllm, {}, "cohere", ""),
        (servers.vllm_score, {}, "vllm-score", ""),
        (servers.own, {}, "plain", ""),
        (servers.infinity("a-reranker"), {"/models": models("a-reranker")}, "infinity", "a-reranker"),
        (
            servers.infinity("embedder", "reranker"),
            {"/models": models("embedder", "reranker", rerank=("reranker",))},
            "infinity",
            "reranker",
        ),
        (servers.jina, {"/v1/models": models("j")}, "cohere", "j"),
        (servers.cohere, {"/v1/models": models("c")}, "cohere", "c"),
        (servers.voyage, {"/v1/models": models("v")}, "voyage", "v"),
        (servers.mixedbread, {"/v1/models": models("m")}, "mixedbread", "m"),
    ],
)
def test_an_address_is_enough(serve, reply, pages, dialect, model):
    server = serve(reply, pages=pages)
    ranker = open_endpoint(server)
    assert ranker.score([SLATE])[0].tolist() == EXPECTED
    assert (ranker.profile.dialect, ranker.profile.model, ranker.pointwise) == (dialect, model, True)
    assert sorted(EXPECTED, reverse=True) != EXPECTED, "most servers answer best first: another order"


def test_two_small_requests_are_all_that_a_common_server_is_asked(serve):
    server = serve(servers.simple)
    assert open_endpoint(server).pointwise
    assert [len(body["documents"]) for body in server.bodies] == [5, 3]


def test_nothing_is_asked_before_it_is_needed_and_nothing_that_is_known(serve):
    server = serve(servers.simple)
    ranker = open_endpoint(server, dialect="cohere", pointwise=False, revision="1")
    assert ranker.fingerprint
    assert ranker.score([SLATE])[0].tolist() == EXPECTED
    assert len(server.bodies) == 1


def test_scores_that_depend_on_the_list_are_seen_to(serve):
    server = serve(servers.by_list)
    ranker = open_endpoint(server)
    assert not ranker.pointwise
    assert ranker.chunk == 1
    assert ranker.profile.noise == 0
    assert not open_endpoint(serve(servers.by_place)).pointwise


@pytest.mark.parametrize("rank", ["from the top", "from the bottom"])
def test_ranks_are_not_per_pair(serve, rank):
    def reply(nth, body):
        found = servers.rank_rows(body["query"], body["documents"])
        places = range(len(found)) if rank == "from the top" else range(len(found), 0, -1)
        signs = -1 if rank == "from the top" else 1
        return 200, rows(*((row["index"], signs * place) for row, place in zip(found, places, strict=True))), {}

    assert not open_endpoint(serve(reply)).pointwise


def test_noise_is_distinguished_from_dependence_on_the_list(serve):
    def reply(nth, body):
        found = servers.rank_rows(body["query"], body["documents"])
        return 200, {"results": [{**row, "relevance_score": row["relevance_score"] + 0.01 * nth} for row in found]}, {}

    ranker = open_endpoint(serve(reply))
    assert ranker.pointwise
    assert ranker.profile.noise == pytest.approx(0.02)
    assert "differ by up to 0.02" in ranker.remark


def test_tei_takes_32_texts_and_longer_lists_go_in_parts(serve):
    server = serve(servers.tei)
    ranker = open_endpoint(server)
    assert ranker.score([LONG])[0].tolist() == [worth(LONG.query, doc.text) for doc in LONG.docs]
    assert sorted(len(body["texts"]) for body in server.lists) == [25, 25, 25, 25, 100]
    ranker.score([LONG])
    assert len(server.lists) == 9, "its limit is remembered"


def test_a_refusal_without_a_limit_halves_the_list(serve):
    def reply(nth, body):
        return servers.simple(nth, body) if len(body["documents"]) <= 20 else (413, b"Payload Too Large", {})

    server = serve(reply)
    assert open_endpoint(server).score([LONG])[0].tolist() == [worth(LONG.query, doc.text) for doc in LONG.docs]
    assert [len(body["documents"]) for body in server.lists][:3] == [100, 50, 25]


def test_a_list_that_must_not_be_cut_is_not(serve):
    message = failure_of(serve(servers.by_list))
    assert "--depth 50" in message
    assert "pointwise=True, batch=50" in message


def failure_of(server) -> str:
    with pytest.raises(RankerFailed) as caught:
        open_endpoint(server).score([LONG])
    return str(caught.value)


def test_of_several_models_the_message_has_a_spec_to_paste(serve):
    server = serve(servers.infinity("one", "two"), pages={"/models": models("one", "two")})
    message = failure(server)
    assert "it serves one, two" in message
    assert paste_spec(message) == HttpEndpoint(server.url, backoff=0.0, model="one")
    assert paste_spec(message).open(NOWHERE).score([SLATE])[0].tolist() == EXPECTED


def test_a_model_that_is_not_served(serve):
    server = serve(servers.vllm, pages={"/v1/models": models("served")})
    message = failure(server, model="srved")
    assert "does not exist" in message
    assert paste_spec(message).model == "served"


def test_a_model_that_the_server_does_not_name(serve):
    assert paste_spec(failure(serve(servers.jina))).model == "MODEL"


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank"])
def test_another_address_of_the_host_is_found(serve, path):
    server = serve(servers.simple, paths=(path,))
    message = failure(server)
    assert paste_spec(message).url == server.url.replace("/rerank", path)
    assert paste_spec(message).open(NOWHERE).score([SLATE])[0].tolist() == EXPECTED


def test_no_endpoint_at_all(serve):
    assert "is this the address of a rerank endpoint" in failure(serve(servers.simple, paths=("/nowhere",)))


def test_a_server_of_no_family(serve):
    server = serve(always(400, {"error": "no"}))
    message = failure(server)
    assert "the dialects tried are cohere, tei, vllm-score, mixedbread, voyage, plain" in message
    assert "with one of cohere, infinity, tei" in message
    assert len(server.bodies) == 6
    assert "a format of no known dialect" in failure(serve(always(200, {"error": "model not loaded"})))


def test_a_server_that_would_not_talk_is_not_asked_twice(serve):
    server = serve(always(401, {"detail": "Unauthorized"}))
    ranker = open_endpoint(server)
    for _ in range(3):
        with pytest.raises(RankerFailed, match="requires a key"):
            _ = ranker.pointwise
    assert len(server.bodies) == 1


def test_the_dialect_that_was_named_is_spoken(serve):
    server = serve(servers.tei)
    message = failure(server, dialect="cohere")
    assert "missing field `texts`" in message
    assert len(server.bodies) == 1


def test_a_refusal_that_repeats_the_texts_is_not_read_as_a_limit(serve):
    def reply(nth, body):
        if "planet" in body["query"]:
            return servers.simple(nth, body)
        return 422, {"detail": [{"msg": "Query too long", "input": {"documents": ["at most 2 models"]}}]}, {}

    server = serve(reply)
    message = failure(server)
    assert "answered 422" in message
    assert len(server.lists) == 1


def test_texts_that_are_sent_first_tell_servers_apart():
    scores = [worth("which planet is known for its rings", text) for text in SAMPLE_TEXTS]
    assert scores[0] == max(scores)
    assert len(set(scores)) == len(scores)

"""The line to a server: retries, waits, redirects, keys, what is in flight at a time, and when to stop asking."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.errors import BadInput, RankerFailed
from shaketable.core.registries import RANKERS
from shaketable.rankers.http import connection
from shaketable.rankers.http.client import MAX_FAILURES_IN_A_ROW, ConcurrencyLimiter
from shaketable.rankers.http.reranker import HttpEndpoint
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from tests import servers
from tests.servers import Server, always, rows, simple, worth

NOWHERE = Collection("empty", {}, {})
SLATE = Slate("red boat", (Doc("tea"), Doc("a red boat", title="Boats"), Doc("boat")))
EXPECTED = [worth(SLATE.query, doc.text) for doc in SLATE.docs]
KNOWN = {"dialect": "cohere", "pointwise": False, "revision": "1"}
"""Settings that leave nothing open, so that the first request is the first list."""
SECRET = "sk-very-secret"


def slates(number):
    return [Slate(f"query {i} boat", SLATE.docs) for i in range(number)]


def ask(server, slate=SLATE, **settings):
    return HttpEndpoint(server.url, **{"backoff": 0.0, **KNOWN, **settings}).open(NOWHERE).score([slate])[0]


def failure(server, **settings) -> str:
    with pytest.raises(RankerFailed) as caught:
        ask(server, **settings)
    message = str(caught.value)
    assert server.url in message
    assert "red boat" in message
    assert "\n" not in message
    return message


def test_a_busy_server_is_asked_again_after_the_wait_it_names(serve):
    server = serve(lambda nth, body: (429, "busy", {"Retry-After": "0"}) if nth < 3 else simple(nth, body))
    assert ask(server, backoff=3600.0).tolist() == EXPECTED  # Retry-After goes before the back-off
    assert len(server.bodies) == 3


def test_a_server_that_asks_for_an_hour_is_not_waited_for(serve):
    message = failure(serve(always(429, "quota", Retry_After="3600")))
    assert "a pause of 3,600 seconds" in message


def test_all_threads_wait_if_one_is_asked_to_wait(serve):
    """A rate limit: after a 429 the client sends nothing for as long as the server wants."""
    came: list[float] = []

    def reply(nth, body):
        came.append(time.monotonic())
        return (429, "slow down", {"Retry-After": "1"}) if nth == 5 else simple(nth, body)

    ranker = HttpEndpoint(serve(reply).url, concurrency=4, **KNOWN).open(NOWHERE)
    assert len(ranker.score(slates(60))) == 60
    refused = sorted(came)[4]
    assert sum(refused < moment < refused + 0.9 for moment in came) <= 20, "not all of them, as without a wait"
    assert ranker.http_client.limiter.retry_count == 1


@pytest.mark.slow
def test_no_request_is_sent_before_the_time_that_the_server_names(serve):
    """Requests in the queue wait as well, and all of them succeed if the wait ends before the deadline."""
    came: list[float] = []
    refused: list[float] = []

    def reply(nth, body):
        came.append(time.monotonic())
        time.sleep(0.02)
        if nth == 20:
            refused.append(time.monotonic())
            return 429, "slow down", {"Retry-After": "1"}
        return simple(nth, body)

    ranker = HttpEndpoint(serve(reply).url, concurrency=8, deadline=2.0, **KNOWN).open(NOWHERE)
    assert len(ranker.score(slates(60))) == 60
    (moment,) = refused
    assert sum(came_at > moment + 1.0 for came_at in came) >= 60 - 20 - 8
    assert not [came_at for came_at in came if moment + 0.2 < came_at < moment + 1.0]


def test_a_wait_beyond_the_deadline_is_an_error(serve):
    server = serve(always(503, "later", Retry_After="5"))
    assert "a pause of 5 seconds" in failure(server, deadline=4.0)
    assert len(server.bodies) == 1


def test_a_rate_limit_costs_no_tries_while_others_are_answered(serve):
    """At most two at a time: the server refuses further requests, and none of them fails in the end."""
    lock, inside = threading.Lock(), [0]

    def reply(nth, body):
        with lock:
            inside[0] += 1
            crowd = inside[0]
        try:
            if crowd > 2:
                return 429, "too many", {}
            time.sleep(0.005)
            return simple(nth, body)
        finally:
            with lock:
                inside[0] -= 1

    server = serve(reply)
    ranker = HttpEndpoint(server.url, concurrency=16, retries=6, backoff=0.01, **KNOWN).open(NOWHERE)
    assert len(ranker.score(slates(100))) == 100
    assert ranker.http_client.limiter._allowed < 16
    assert "at a time" in ranker.status
    assert "retries" in ranker.status


def test_the_gate_halves_once_for_a_crowd_and_grows_again():
    gate, stop = ConcurrencyLimiter(8), threading.Event()
    for _ in range(8):
        assert gate.acquire(stop)
    for _ in range(8):  # all of them get a rate limit error
        gate.release(False)
        gate.report_busy(None)
    assert gate._allowed == 4
    for _ in range(4 + 5 + 6 + 7):
        assert gate.acquire(stop)
        gate.release(True)
    assert gate._allowed == 8
    assert gate.status == ""


def test_the_gate_opens_again_within_a_few_rounds(serve):
    """One busy answer must not halve the requests in flight for the rest of an audit."""
    server = serve(lambda nth, body: (503, "wait", {}) if nth == 50 else simple(nth, body))
    ranker = HttpEndpoint(server.url, concurrency=64, backoff=0.0, **KNOWN).open(NOWHERE)
    ranker.score(slates(50))
    assert "at most 32 requests at a time" in ranker.status
    ranker.score(slates(32 + 40 + 50 + 62))
    assert ranker.http_client.limiter._allowed == 64


def test_a_server_that_fails_once_is_asked_again(serve):
    server = serve(lambda nth, body: (503, "loading", {}) if nth == 1 else simple(nth, body))
    assert ask(server).tolist() == EXPECTED


def test_a_server_that_always_fails(serve):
    server = serve(always(500, {"error": "CUDA out of memory"}))
    message = failure(server, retries=2)
    assert len(server.bodies) == 3
    for part in ("500", "CUDA out of memory", "3 attempts"):
        assert part in message


def test_one_failure_ends_the_others_waiting(serve):
    server = serve(lambda nth, body: (400, "no", {}) if body["query"] == "bad" else (503, "wait", {}))
    given = [Slate(query, SLATE.docs) for query in ("bad", "good", "fine")]
    with pytest.raises(RankerFailed, match="answered 400"):
        HttpEndpoint(server.url, backoff=3600.0, **KNOWN).open(NOWHERE).score(given)


def test_a_server_that_does_not_answer(serve):
    done = threading.Event()

    def reply(nth, body):
        done.wait(20)
        return 200, rows(), {}

    try:
        message = failure(serve(reply), timeout=0.05, retries=1)
    finally:
        done.set()
    assert "no answer within 0.05 seconds" in message
    assert "2 attempts" in message


def nowhere() -> Server:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return Server(always(200, {}), port=free.getsockname()[1])


def test_a_server_that_is_down(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    message = failure(nowhere(), retries=1)
    assert "cannot be reached" in message
    assert "is the server running" in message


def test_requests_to_a_dead_server_stop_and_its_answers_are_cached(serve, tmp_path):
    server = serve(lambda nth, body: simple(nth, body) if nth <= 20 else (500, "out of memory", {}))
    engine = ScoringEngine(Store(tmp_path / "s.sqlite"), keep_going=True)
    ranker = HttpEndpoint(server.url, retries=1, backoff=0.0, concurrency=2, **KNOWN).open(NOWHERE)
    answers = engine.score(ranker, slates(100))
    assert sum(answer is not None for answer in answers) == 20
    assert len(server.bodies) <= 20 + 2 * (MAX_FAILURES_IN_A_ROW + 2), (
        "two tries each of the few that show that it is gone"
    )
    assert "gets no more requests: 5 requests in a row failed" in engine.failures[-1].reason
    assert "20 requests were answered before" in engine.failures[-1].reason
    assert ranker.status.startswith("no more requests")
    (said,) = engine.list_warnings()
    assert "failed on 80 of 100 lists (80%)" in said

    server.reply = simple
    asked = len(server.bodies)
    again = ScoringEngine(Store(tmp_path / "s.sqlite"))
    assert all(a is not None for a in again.score(HttpEndpoint(server.url, **KNOWN).open(NOWHERE), slates(100)))
    assert len(server.bodies) - asked == 80 + 6, "those that were missing, and three twice to see that it is the same"


def test_the_error_of_a_dead_server_reports_the_cached_scores(serve, tmp_path):
    server = serve(lambda nth, body: simple(nth, body) if nth <= 20 else (500, "out of memory", {}))
    ranker = HttpEndpoint(server.url, retries=0, concurrency=1, **KNOWN).open(NOWHERE)
    with pytest.raises(
        RankerFailed, match=r"out of memory.*20 of 100 scores were complete; they are cached: run the same"
    ):
        ScoringEngine(Store(tmp_path / "s.sqlite")).score(ranker, slates(100))


@pytest.mark.parametrize("concurrency", [1, 4, 64])
def test_a_list_is_one_request_however_many_are_in_flight(serve, concurrency):
    server = serve(simple)
    apart = {**KNOWN, "pointwise": True}
    ScoringEngine().score(HttpEndpoint(server.url, concurrency=concurrency, **apart).open(NOWHERE), slates(8))
    assert len(server.bodies) == 8


def test_a_failure_now_and_then_does_not_end_the_asking(serve):
    server = serve(lambda nth, body: (400, "no", {}) if "7" in body["query"] else simple(nth, body))
    engine = ScoringEngine(keep_going=True)
    answers = engine.score(HttpEndpoint(server.url, **KNOWN).open(NOWHERE), slates(100))
    assert sum(answer is None for answer in answers) == 19


def test_redirects_within_the_host_are_followed_once(serve):
    server = serve(simple)

    def reply(nth, body):
        moved = server.asked[nth - 1] == "/rerank"
        return (307, b"", {"Location": "/rerank/"}) if moved else simple(nth, body)

    server.reply = reply
    ranker = HttpEndpoint(server.url, concurrency=1, **KNOWN).open(NOWHERE)
    for _ in range(3):
        assert ranker.score([SLATE])[0].tolist() == EXPECTED
    assert server.asked == ["/rerank", "/rerank/", "/rerank/", "/rerank/"]


def test_redirects_to_another_origin_are_reported(serve, monkeypatch):
    monkeypatch.setenv("MY_KEY", SECRET)
    other = serve(simple)
    server = serve(always(308, b"", Location=f"http://localhost:{other.port}/rerank"))
    message = failure(server, key_env="MY_KEY")
    assert f"redirects to http://localhost:{other.port}/rerank" in message
    assert other.bodies == []


@pytest.mark.parametrize("with_key", [True, False])
def test_a_redirect_to_another_port_is_another_server(serve, monkeypatch, with_key):
    monkeypatch.setenv("MY_KEY", SECRET)
    other = serve(simple)
    server = serve(always(307, b"", Location=other.url))
    message = failure(server, key_env="MY_KEY" if with_key else "")
    assert f"redirects to {other.url}" in message
    assert other.bodies == []


def test_redirects_in_a_circle_end(serve):
    server = serve(simple)
    server.reply = lambda nth, body: (302, b"", {"Location": f"/{nth % 2}"})
    assert "answered 302" in failure(server)


def test_a_wrong_key_and_a_missing_key_have_different_messages(serve, monkeypatch):
    def reply(nth, body):
        sent = server.headers[-1].get("authorization")
        return 401, {"message": "invalid api token" if sent else "no api key supplied"}, {}

    server = serve(reply)
    message = failure(server)
    assert "none was sent" in message
    assert "key_env='MY_KEY')" in message
    monkeypatch.setenv("MY_KEY", "sk-not-this")
    message = failure(server, key_env="MY_KEY")
    assert "the key in the environment variable MY_KEY was sent, but the server rejects it" in message
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(BadInput, match=r"MY_KEY \(the API key\) is not set"):
        ask(server, key_env="MY_KEY")


@pytest.mark.parametrize(
    ("dialect", "reply", "header", "value"),
    [
        ("cohere", servers.simple, "authorization", f"Bearer {SECRET}"),
        ("tei", servers.tei, "authorization", f"Bearer {SECRET}"),
        ("elasticsearch", servers.elasticsearch, "authorization", f"ApiKey {SECRET}"),
        ("pinecone", servers.pinecone, "api-key", SECRET),
    ],
)
def test_the_key_goes_into_its_header(serve, monkeypatch, dialect, reply, header, value):
    server = serve(reply)
    monkeypatch.setenv("MY_KEY", SECRET + "\n")
    assert ask(server, dialect=dialect, model="m", key_env="MY_KEY").tolist() == EXPECTED
    assert server.headers[0][header] == value


def test_no_key_goes_to_a_host_that_it_is_not_for(serve, monkeypatch):
    for name in ("SHAKETABLE_API_KEY", "COHERE_API_KEY", "JINA_API_KEY"):
        monkeypatch.setenv(name, SECRET)
    server = serve(simple)
    ask(server)
    assert SECRET not in str(server.headers)
    assert HttpEndpoint("https://api.cohere.com/v2/rerank").open(NOWHERE).http_client.secret == SECRET
    assert HttpEndpoint("https://api.voyageai.com/v1/rerank").open(NOWHERE).http_client.secret == ""
    assert HttpEndpoint("https://cohere.com.evil.org/rerank").open(NOWHERE).http_client.secret == ""


@pytest.mark.parametrize(
    "url", ["http://api.cohere.com/v2/rerank", "http://10.0.0.7:8080/rerank", "gpu-box:8080/rerank"]
)
def test_no_key_crosses_the_network_in_the_clear(monkeypatch, url):
    monkeypatch.setenv("MY_KEY", SECRET)
    with pytest.raises(BadInput, match="sent unencrypted") as caught:
        HttpEndpoint(url, key_env="MY_KEY").open(NOWHERE)
    assert SECRET not in str(caught.value)
    for fine in ("http://localhost:8080/rerank", "http://[::1]:80/rerank", "https://api.cohere.com/v2/rerank"):
        HttpEndpoint(fine, key_env="MY_KEY").open(NOWHERE)


def test_the_key_goes_nowhere_else(serve, monkeypatch):
    monkeypatch.setenv("MY_KEY", SECRET)
    server = serve(always(401, {"error": f"the key {SECRET} is not known"}))
    assert SECRET not in failure(server, key_env="MY_KEY")
    model = HttpEndpoint(server.url, key_env="MY_KEY", **KNOWN)
    ranker = model.open(NOWHERE)
    for text in (repr(ranker), repr(ranker.http_client), ranker.name, repr(model), RANKERS.spec(model)):
        assert SECRET not in text
    monkeypatch.setenv("MY_KEY", "another")
    assert model.open(NOWHERE).fingerprint == ranker.fingerprint


@pytest.mark.parametrize("key", ["gr\u00fcn", "two\nlines"])
def test_a_key_that_no_header_can_carry(monkeypatch, key):
    monkeypatch.setenv("MY_KEY", key)
    with pytest.raises(BadInput, match="MY_KEY") as caught:
        HttpEndpoint("http://localhost/rerank", key_env="MY_KEY").open(NOWHERE)
    assert key not in str(caught.value)


def test_an_unreadable_answer_is_asked_for_again(serve):
    server = serve(lambda nth, body: (200, b"<html>busy</html>", {}) if nth == 1 else simple(nth, body))
    np.testing.assert_allclose(ask(server), EXPECTED)


def test_an_answer_without_end_is_given_up(serve, monkeypatch):
    monkeypatch.setattr(connection, "MAX_RESPONSE_BYTES", 1 << 20)
    server = serve(always(200, b"[" + b" " * (1 << 21)))
    with pytest.raises(RankerFailed, match="more than 1 MB"):
        ask(server, retries=0)


def test_an_answer_that_drips_has_a_deadline():
    listener = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            for _ in range(40):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return
                time.sleep(0.05)

    threading.Thread(target=drip, daemon=True).start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/rerank"
    with pytest.raises(RankerFailed, match=r"within 0\.3 seconds"):  # each byte came in time, the whole did not
        HttpEndpoint(url, retries=0, timeout=5, deadline=0.3, **KNOWN).open(NOWHERE).score([SLATE])
    listener.close()


@pytest.mark.parametrize("concurrency", [7, 64])
@pytest.mark.parametrize("pointwise", [True, False])
def test_the_number_of_requests_in_flight_is_that_of_the_setting(serve, pointwise, concurrency):
    """The server answers when that many requests have arrived, and never has more."""
    together = threading.Barrier(concurrency, timeout=20)
    lock, inside, most = threading.Lock(), [0], [0]

    def reply(nth, body):
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        together.wait()
        with lock:
            inside[0] -= 1
        return simple(nth, body)

    settings = {**KNOWN, "pointwise": pointwise, "concurrency": concurrency}
    ranker = HttpEndpoint(serve(reply).url, **settings).open(NOWHERE)
    given = slates(4 * concurrency)
    answers = ScoringEngine().score(ranker, given)
    assert [a.tolist() for a in answers] == [[worth(s.query, d.text) for d in s.docs] for s in given]
    assert most[0] == concurrency


def test_retries_are_shown_beside_the_progress(serve):
    shown: list[str] = []

    @contextmanager
    def progress(what, total, unit):
        class Bar:
            def set_status(self, notify):
                self.notify = notify

            def __call__(self, done):
                shown.append(self.notify())

        yield Bar()

    server = serve(lambda nth, body: (503, "wait", {}) if nth == 3 else simple(nth, body))
    ScoringEngine(progress=progress).score(
        HttpEndpoint(server.url, concurrency=1, backoff=0.0, **KNOWN).open(NOWHERE), slates(6)
    )
    assert shown[0] == ""
    assert "1 retries" in shown[-1]


def test_the_proxy_of_the_environment_is_gone_through(serve, monkeypatch):
    """A proxy is asked for the whole address; a host that is excepted is asked itself."""
    proxy = serve(simple)
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
    there = HttpEndpoint("http://reranker.example.org/rerank", **KNOWN).open(NOWHERE)
    assert there.score([SLATE])[0].tolist() == EXPECTED
    assert proxy.asked == ["http://reranker.example.org/rerank"]
    server = serve(simple)
    ask(server)
    assert (len(server.bodies), len(proxy.bodies)) == (1, 1)


def test_a_compressed_answer_is_read(serve):
    packed = gzip.compress(json.dumps(rows((0, 1.0), (1, 0.5), (2, 0.25))).encode())
    server = serve(always(200, packed, Content_Encoding="gzip"))
    assert ask(server).tolist() == [1.0, 0.5, 0.25]
    assert "gzip" in server.headers[0]["accept-encoding"]

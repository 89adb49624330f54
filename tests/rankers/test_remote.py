"""A rerank endpoint is asked in its own words, its answers are put in order, and whatever it does wrong is said."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from shaketable.errors import BadInput, RankerFailed, UnknownName
from shaketable.rankers import remote
from shaketable.rankers.remote import DIALECTS, HTTP, Dialect
from shaketable.registry import RANKERS
from shaketable.score.road import Road, Traits
from shaketable.score.store import Store
from shaketable.testing import check_ranker
from shaketable.types import Collection, Doc, Slate

NOWHERE = Collection("empty", {}, {})
SLATE = Slate("red boat", (Doc("tea"), Doc("a red boat", title="Boats"), Doc("boat")))
SECRET = "sk-very-secret"


def worth(query: str, text: str) -> float:
    """What the servers here think of a text: shared words over length."""
    return len(set(query.split()) & set(text.split())) / (1 + len(text))


@dataclass
class Server:
    """A real server on the loopback; `reply` makes the answer to the nth request, as (status, body, headers)."""

    reply: Callable[[int, Any], tuple[int, Any, dict[str, str]]]
    bodies: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""


def well(dialect: Dialect) -> Callable[[int, Any], tuple[int, Any, dict[str, str]]]:
    """A server that speaks a dialect: best first, as all of them do."""

    def reply(nth: int, body: Any) -> tuple[int, Any, dict[str, str]]:
        texts = [text["text"] if dialect.wrapped else text for text in body[dialect.documents]]
        if not all(texts) or not body[dialect.query]:
            return 422, {"error": "`inputs` must not be empty"}, {}
        if dialect.top and body[dialect.top] != len(texts):
            return 400, {"error": "this test wants all results"}, {}
        rows = [{"index": i, dialect.score: worth(body[dialect.query], text)} for i, text in enumerate(texts)]
        rows.sort(key=lambda row: -row[dialect.score])
        return 200, ({dialect.results: rows} if dialect.results else rows), {}

    return reply


def always(status: int, body: Any, **headers: str) -> Callable[[int, Any], tuple[int, Any, dict[str, str]]]:
    return lambda nth, asked: (status, body, {name.replace("_", "-"): value for name, value in headers.items()})


def rows(*pairs: tuple[object, object]) -> dict[str, object]:
    return {"results": [{"index": index, "relevance_score": score} for index, score in pairs]}


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Server]]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("SHAKETABLE_API_KEY", raising=False)
    running: list[ThreadingHTTPServer] = []

    def start(reply: Callable[[int, Any], tuple[int, Any, dict[str, str]]]) -> Server:
        server = Server(reply)
        lock = threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    server.bodies.append(body)
                    server.headers.append({name.lower(): value for name, value in self.headers.items()})
                    nth = len(server.bodies)
                status, answer, headers = reply(nth, body)
                content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: object) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, *args: object) -> None:  # a client that hung up is part of the tests
                pass

        http = Quiet(("127.0.0.1", 0), Handler)
        threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
        running.append(http)
        server.url = f"http://127.0.0.1:{http.server_address[1]}/rerank"
        return server

    yield start
    for http in running:
        http.shutdown()
        http.server_close()


def ask(server: Server, slate: Slate = SLATE, **settings: Any) -> Any:
    return HTTP(server.url, backoff=0.0, **settings).open(NOWHERE).score([slate])[0]


def failure(server: Server, **settings: Any) -> str:
    with pytest.raises(RankerFailed) as caught:
        ask(server, **settings)
    message = str(caught.value)
    assert server.url in message
    assert "red boat" in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", DIALECTS)
def test_each_dialect_gives_scores_in_the_order_of_the_documents(serve, name):
    server = serve(well(DIALECTS[name]))
    expected = [worth(SLATE.query, doc.text) for doc in SLATE.docs]
    assert ask(server, dialect=name).tolist() == expected
    assert expected != sorted(expected, reverse=True)  # so the server's order was another


@pytest.mark.parametrize("name", ["cohere", "tei"])
def test_a_served_ranker_keeps_the_contract(serve, name):
    server = serve(well(DIALECTS[name]))
    check_ranker(HTTP(server.url, dialect=name, pointwise=True, batch=2).open(NOWHERE))


def test_what_is_sent_to_a_cohere_like_server(serve):
    server = serve(well(DIALECTS["cohere"]))
    ask(server, model="m")
    assert server.bodies == [
        {"model": "m", "query": "red boat", "documents": ["tea", "Boats a red boat", "boat"], "top_n": 3}
    ]
    assert "authorization" not in server.headers[0]


def test_what_is_sent_to_tei(serve):
    server = serve(well(DIALECTS["tei"]))
    ask(server, dialect="tei")
    assert server.bodies == [
        {"query": "red boat", "texts": ["tea", "Boats a red boat", "boat"], "raw_scores": True, "truncate": True}
    ]


@pytest.mark.parametrize(
    ("url", "dialect"),
    [
        ("https://api.cohere.com/v2/rerank", "cohere"),
        ("http://localhost:8000/v1/rerank", "cohere"),
        ("https://api.voyageai.com/v1/rerank", "voyage"),
        ("https://api.mixedbread.com/v1/reranking", "mixedbread"),
        ("https://api.pinecone.io/rerank", "pinecone"),
        ("https://es.example.org:9200/_inference/rerank/mine", "elasticsearch"),
        ("http://localhost:8000/score", "vllm-score"),
    ],
)
def test_auto_goes_by_the_url(url, dialect):
    assert HTTP(url).open(NOWHERE).dialect == DIALECTS[dialect]


def test_a_slate_is_one_request_and_order_is_kept(serve):
    server = serve(well(DIALECTS["cohere"]))
    slates = [Slate(f"word{i}", tuple(Doc(f"word{j} text") for j in range(30))) for i in range(20)]
    scores = HTTP(server.url).open(NOWHERE).score(slates)
    assert len(server.bodies) == 20
    assert [int(np.argmax(s)) for s in scores] == list(range(20))


def test_several_requests_are_under_way_at_once(serve):
    together = threading.Barrier(3, timeout=20)  # nobody is answered before three have asked
    speak = well(DIALECTS["cohere"])

    def reply(nth: int, body: Any) -> tuple[int, Any, dict[str, str]]:
        together.wait()
        return speak(nth, body)

    scores = HTTP(serve(reply).url, concurrency=3).open(NOWHERE).score([SLATE] * 6)
    assert all((s == scores[0]).all() for s in scores)


def test_batch_cuts_what_is_pointwise(serve):
    server = serve(well(DIALECTS["cohere"]))
    scores = ask(server, pointwise=True, batch=2)
    assert sorted(len(body["documents"]) for body in server.bodies) == [1, 2]
    assert scores.tolist() == [worth(SLATE.query, doc.text) for doc in SLATE.docs]


def test_no_documents_no_request(serve):
    server = serve(well(DIALECTS["cohere"]))
    ranker = HTTP(server.url).open(NOWHERE)
    assert [s.shape for s in ranker.score([Slate("q", ()), Slate("q", ())])] == [(0,), (0,)]
    assert ranker.score([]) == []
    assert server.bodies == []


def test_an_empty_text_goes_as_a_blank(serve):
    server = serve(well(DIALECTS["cohere"]))
    ask(server, Slate("", (Doc(""), Doc("a"))))
    assert (server.bodies[0]["query"], server.bodies[0]["documents"]) == (" ", [" ", "a"])


def test_half_a_character_can_be_sent(serve):
    server = serve(well(DIALECTS["cohere"]))
    ask(server, Slate("q", (Doc("broken \ud83d emoji"),)))
    assert server.bodies[0]["documents"] == ["broken \ud83d emoji"]


def test_a_server_that_is_busy_is_asked_again(serve):
    speak = well(DIALECTS["cohere"])
    server = serve(lambda nth, body: (429, "busy", {"Retry-After": "0"}) if nth < 3 else speak(nth, body))
    scores = HTTP(server.url, backoff=3600.0).open(NOWHERE).score([SLATE])[0]  # Retry-After goes before the back-off
    assert (len(scores), len(server.bodies)) == (3, 3)


def test_a_server_that_fails_once_is_asked_again(serve):
    speak = well(DIALECTS["cohere"])
    server = serve(lambda nth, body: (503, "loading", {}) if nth == 1 else speak(nth, body))
    assert len(ask(server)) == 3


def test_a_server_that_always_fails(serve):
    server = serve(always(500, {"error": "CUDA out of memory"}))
    message = failure(server, retries=2)
    assert len(server.bodies) == 3
    assert "500" in message
    assert "CUDA out of memory" in message
    assert "tried 3 times" in message


def test_one_failure_ends_the_others_waiting(serve):
    server = serve(lambda nth, body: (400, "no", {}) if body["query"] == "bad" else (503, "wait", {}))
    slates = [Slate(query, SLATE.docs) for query in ("bad", "good", "fine")]
    with pytest.raises(RankerFailed, match="answered 400"):
        HTTP(server.url, backoff=3600.0).open(NOWHERE).score(slates)


def test_a_server_that_does_not_answer(serve):
    done = threading.Event()

    def reply(nth: int, body: Any) -> tuple[int, Any, dict[str, str]]:
        done.wait(20)
        return 200, rows(), {}

    try:
        message = failure(serve(reply), timeout=0.05, retries=1)
    finally:
        done.set()
    assert "no answer within 0.05 seconds" in message
    assert "tried 2 times" in message


def test_a_server_that_is_down(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/rerank"
    message = failure(Server(always(200, {}), url=url), retries=1)
    assert "cannot be reached" in message
    assert "is the server running" in message


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (400, {"message": "query too long"}, "query too long"),
        (401, {"message": "who are you"}, "environment variable SHAKETABLE_API_KEY"),
        (404, b"not found", "is this the address of a rerank endpoint"),
        (413, b"payload too large", "the list is too long for this server; lower --depth"),
        (422, b"missing field `texts` at line 1 column 9", "set dialect to 'tei'"),
        (422, {"detail": [{"loc": ["body", "text_2"], "input": {}}]}, "set dialect to 'vllm-score'"),
        (307, b"", "307"),
    ],
)
def test_refusals_are_final_and_say_why(serve, status, body, said):
    server = serve(always(status, body))
    assert said in failure(server)
    assert len(server.bodies) == 1


def test_a_pydantic_server_names_the_field_it_misses(serve):
    compact = b'{"detail":[{"type":"missing","loc":["body","texts"],"msg":"Field required","input":{"query":"x"}}]}'
    assert "set dialect to 'tei'" in failure(serve(always(422, compact)))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html><body>Welcome to nginx</body></html>", "answered no JSON: '<html>"),
        (b'{"results": [', "answered no JSON"),
        (b"\xff\xfe", "answered no JSON"),
        (
            {"error": "model not loaded"},
            'answered in another shape: \'{"error": "model not loaded"}\'; set dialect to one',
        ),
        ("text", "answered in another shape"),
        (None, "answered in another shape"),
        ({"results": [1, 2, 3]}, "answered in another shape"),
        ([{"index": 0, "score": 1.0}], "set dialect to 'tei'"),
        ({"data": [{"index": 0, "relevance_score": 1.0}]}, "set dialect to 'voyage'"),
        (rows((0, 1.0), (2, 0.5)), "scored 2 texts of 3 (indexes 0, 2)"),
        (rows(), "scored 0 texts of 3 (indexes none)"),
        (rows((0, 1.0), (2, 0.5), (2, 0.5)), "scored 3 texts of 3 (indexes 0, 2, 2), each must come once"),
        (rows((0, 1.0), (1, 0.5), (3, 0.5)), "each must come once"),
        (rows((0, 1.0), ("1", 0.5), (2, 0.5)), "each must come once"),
        (rows((0, 1.0), ([1], 0.5), (2, 0.5)), "each must come once"),
    ],
)
def test_answers_that_are_no_scores(serve, body, said):
    server = serve(always(200, body))
    assert said in failure(server)
    unreadable = isinstance(body, bytes)
    assert (len(server.bodies) > 1) == unreadable, "what cannot be read at all may be a proxy's; the next may do"


def test_an_unreadable_answer_is_asked_for_again(serve):
    fine = well(DIALECTS["cohere"])
    server = serve(lambda nth, body: (200, b"<html>busy</html>", {}) if nth == 1 else fine(nth, body))
    scores = HTTP(server.url, backoff=0.01).open(NOWHERE).score([SLATE])[0]
    np.testing.assert_allclose(scores, [worth(SLATE.query, doc.text) for doc in SLATE.docs])


def test_an_answer_without_end_is_given_up(serve, monkeypatch):
    monkeypatch.setattr(remote, "MOST_BYTES", 1 << 20)
    server = serve(always(200, b"[" + b" " * (1 << 21)))
    with pytest.raises(RankerFailed, match="more than 1 MB"):
        HTTP(server.url, retries=0).open(NOWHERE).score([SLATE])


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
    started = time.monotonic()
    with pytest.raises(RankerFailed, match=r"within 0\.3 seconds"):
        HTTP(url, retries=0, timeout=5, deadline=0.3).open(NOWHERE).score([SLATE])
    assert time.monotonic() - started < 2, "each byte came in time, the whole did not"
    listener.close()


def test_what_was_answered_before_a_failure_is_kept(serve, tmp_path):
    fine = well(DIALECTS["cohere"])
    server = serve(lambda nth, body: (400, {"error": "no"}, {}) if body["query"] == "bad" else fine(nth, body))
    given = [Slate(query, SLATE.docs) for query in ("one", "two", "bad", "three")]
    with pytest.raises(RankerFailed):
        Road(Store(tmp_path / "s.sqlite")).score(HTTP(server.url, concurrency=1).open(NOWHERE), given)
    asked = len(server.bodies)
    Road(Store(tmp_path / "s.sqlite")).score(HTTP(server.url).open(NOWHERE), given[:2])
    assert all(body["query"] in ("one", "two") for body in server.bodies[asked:])
    assert len(server.bodies) - asked <= 4, "no more than a few, to see whether the server still says the same"


def test_kept_answers_of_another_model_behind_the_same_address_are_not_used(serve, tmp_path):
    fine = well(DIALECTS["cohere"])
    worse = {"now": False}

    def reply(nth, body):
        status, answer, headers = fine(nth, body)
        if worse["now"]:
            for row in answer["results"]:
                row["relevance_score"] = -row["relevance_score"]
        return status, answer, headers

    server = serve(reply)
    given = [Slate(query, SLATE.docs) for query in ("red boat", "boat tea", "tea")]
    first = Road(Store(tmp_path / "s.sqlite")).score(HTTP(server.url).open(NOWHERE), given)
    worse["now"] = True
    road = Road(Store(tmp_path / "s.sqlite"))
    second = road.score(HTTP(server.url).open(NOWHERE), given)
    np.testing.assert_allclose(second, [-scores for scores in first])
    assert "no longer answers as it did" in road.remarks()[0]


@pytest.mark.parametrize("score", [float("nan"), float("inf"), None])
def test_scores_that_are_no_numbers(serve, score):
    assert "for the text 'Boats a red boat'" in failure(serve(always(200, rows((0, 1.0), (1, score), (2, 0.5)))))


def test_scores_that_are_words(serve):
    assert "scores are not numbers" in failure(serve(always(200, rows((0, 1.0), (1, "high"), (2, 0.5)))))


@pytest.mark.parametrize(
    ("dialect", "header", "value"),
    [
        ("cohere", "authorization", f"Bearer {SECRET}"),
        ("tei", "authorization", f"Bearer {SECRET}"),
        ("elasticsearch", "authorization", f"ApiKey {SECRET}"),
        ("pinecone", "api-key", SECRET),
    ],
)
def test_the_key_goes_into_its_header(serve, monkeypatch, dialect, header, value):
    server = serve(well(DIALECTS[dialect]))
    monkeypatch.setenv("MY_KEY", SECRET + "\n")
    ask(server, dialect=dialect, key_env="MY_KEY")
    assert server.headers[0][header] == value


def test_the_key_goes_nowhere_else(serve, monkeypatch):
    monkeypatch.setenv("SHAKETABLE_API_KEY", SECRET)
    server = serve(always(401, {"error": f"the key {SECRET} is not known"}))
    assert SECRET not in failure(server)
    model = HTTP(server.url, revision="1")
    ranker = model.open(NOWHERE)
    for text in (repr(ranker), repr(vars(ranker)["client"]), ranker.name, repr(model), RANKERS.spec(model)):
        assert SECRET not in text
    monkeypatch.setenv("SHAKETABLE_API_KEY", "another")
    assert model.open(NOWHERE).fingerprint == ranker.fingerprint


@pytest.mark.parametrize("key", ["gr\u00fcn", "two\nlines"])
def test_a_key_that_no_header_can_carry(monkeypatch, key):
    monkeypatch.setenv("SHAKETABLE_API_KEY", key)
    with pytest.raises(BadInput, match="SHAKETABLE_API_KEY") as caught:
        HTTP("http://localhost/rerank").open(NOWHERE)
    assert key not in str(caught.value)


def test_a_fingerprint_names_what_is_asked():
    url = "http://localhost:8000/rerank"
    traits = Traits.of(HTTP(url).open(NOWHERE))
    assert (traits.name, traits.pointwise, traits.volatile, traits.in_flight, traits.chunk) == (url, False, True, 4, 1)
    marks = {
        HTTP(url, revision="1").open(NOWHERE).fingerprint,
        HTTP(url, revision="1", timeout=9).open(NOWHERE).fingerprint,
        HTTP(url, revision="2").open(NOWHERE).fingerprint,
        HTTP(url, revision="1", model="m").open(NOWHERE).fingerprint,
        HTTP(url, revision="1", dialect="tei").open(NOWHERE).fingerprint,
    }
    assert len(marks) == 4
    assert None not in marks


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (HTTP("localhost:8000/rerank"), "is not the URL"),
        (HTTP("http://"), "is not the URL"),
        (HTTP("ftp://host/x"), "is not the URL"),
        (HTTP("http://host:port/x"), "is not a URL"),
        (HTTP("https://me:hush@host/rerank"), "holds a password"),
        (HTTP("http://host/", batch=8), "only pointwise=True allows"),
        (HTTP("http://host/", concurrency=0), "must be above 0"),
        (HTTP("http://host/", timeout=0), "must be above 0"),
    ],
)
def test_settings_that_cannot_be(model, said):
    with pytest.raises(BadInput, match=said) as caught:
        model.open(NOWHERE)
    assert "hush" not in str(caught.value)


def test_an_unknown_dialect_says_which_are_near():
    with pytest.raises(UnknownName, match="did you mean cohere"):
        HTTP("http://host/", dialect="coher").open(NOWHERE)


def test_written_as_a_url_or_in_full():
    assert RANKERS.build("http://host:80/v1/rerank") == HTTP("http://host:80/v1/rerank")
    model = HTTP("http://host/rerank", dialect="tei", pointwise=True, batch=32)
    assert RANKERS.build(RANKERS.spec(model)) == model


def test_the_road_names_the_query_that_a_server_fails_on(serve):
    speak = well(DIALECTS["cohere"])
    server = serve(lambda nth, body: (400, "no", {}) if body["query"] == "bad" else speak(nth, body))
    road = Road(go_on=True)
    answers = road.score(HTTP(server.url).open(NOWHERE), [SLATE, Slate("bad", SLATE.docs)])
    assert answers[0] is not None
    assert answers[1] is None
    assert [failure.query for failure in road.failures] == ["bad"]

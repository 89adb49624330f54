"""The live page over real HTTP on the loopback interface."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

import shaketable as st
from shaketable.api.viewing.server import MAX_BODY_BYTES, ViewServer
from shaketable.cli import main
from shaketable.core.documents import Collection, Doc, Query, rank_docnos
from shaketable.core.redaction import register_secret
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.probes.user_pairs import read_expectations
from tests.cases import check_each
from tests.report.samples import HOSTILE
from tests.servers import Server, running, simple
from tests.toys import Normalised

JSON = {"Content-Type": "application/json"}
QUERY = "how do nocturnal hunters sneak up without making a sound"


@dataclass(frozen=True)
class Client:
    """A program that sends requests to a page."""

    page: ViewServer

    @property
    def port(self) -> int:
        return int(urlsplit(self.page.url).port or 0)

    @property
    def token(self) -> str:
        return urlsplit(self.page.url).path.strip("/")

    def request(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], str]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body or None, headers or {})
            answer = connection.getresponse()
            return answer.status, dict(answer.headers), answer.read().decode()
        finally:
            connection.close()

    def post(self, action: str, **fields: Any) -> dict[str, Any]:
        body = json.dumps(fields).encode()
        status, _, text = self.request("POST", f"/{self.token}/api/{action}", body, JSON)
        answer: dict[str, Any] = json.loads(text)
        assert (status == 200) == ("error" not in answer)
        return answer

    def refusal(self, action: str, **fields: Any) -> str:
        sentence: str = self.post(action, **fields)["error"]
        assert "\n" not in sentence
        assert "Traceback" not in sentence
        return sentence

    def rank(self, query: str, **fields: Any) -> dict[str, dict[str, Any]]:
        return {one["name"]: one for one in self.post("rank", query=query, **fields)["rankers"]}

    def open(self, docno: str) -> dict[str, Any]:
        return {"docno": docno, **self.post("document", docno=docno)}


@contextmanager
def serving(*args: Any, **options: Any) -> Iterator[Client]:
    with st.view(*args, **options) as page:
        yield Client(page)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The sample with two lexical rankers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHAKETABLE_HOME", str(tmp_path_factory.mktemp("home")))
        with serving("sample", ["bm25", "ql"], write_pairs=tmp_path_factory.mktemp("pairs") / "p.jsonl") as client:
            yield client


def docnos(ranker: dict[str, Any]) -> list[str]:
    return [row["docno"] for row in ranker["rows"]]


# ---- rankings


def test_the_lists_are_those_of_rank(sample):
    run = st.rank("sample", "ql", depth=100, split="test", max_queries=1)
    ((_, scores),) = run.items()
    found = sample.rank(QUERY)["ql"]
    assert docnos(found) == rank_docnos(scores)
    assert [row["score"] for row in found["rows"]] == [scores[docno] for docno in docnos(found)]
    assert [row["rank"] for row in found["rows"]] == list(range(1, len(scores) + 1))


def test_an_edited_document_gets_the_rank_of_its_new_text(sample):
    before = sample.rank(QUERY)
    last = docnos(before["bm25"])[-1]
    doc = sample.open(last)
    same = sample.rank(QUERY, **doc)
    assert {name: docnos(one) for name, one in same.items()} == {name: docnos(one) for name, one in before.items()}
    edited = sample.rank(QUERY, **(doc | {"body": f"{QUERY} {QUERY} {doc['body']}"}))
    for name, ranker in edited.items():
        move = ranker["move"]
        assert (move["rank_before"], move["rank_after"]) == (len(docnos(before[name])), 1)
        assert move["score_after"] > move["score_before"] == before[name]["rows"][-1]["score"]
        assert docnos(ranker) == [last, *(docno for docno in docnos(before[name]) if docno != last)]
        assert ranker["rows"][1]["rank_before"] == 1


def test_a_document_outside_the_list_is_added_to_it(sample):
    listed = {docno for ranker in sample.rank(QUERY).values() for docno in docnos(ranker)}
    docno = next(docno for docno in st.load("sample").docs if docno not in listed)
    ranker = sample.rank(QUERY, **sample.open(docno))["bm25"]
    assert docnos(ranker)[-1] == docno
    assert ranker["move"]["listed_before"] is False
    assert ranker["rows"][-1]["rank_before"] == 0


def test_a_changed_query_is_compared_with_its_original(sample):
    answer = sample.post("rank", query="owls hunt at night", base_query="owls hunt")
    assert answer["query_difference"]["after"] == [["owls hunt", ""], ["at night", "ins"]]
    (alone,) = (one for one in sample.post("rank", query="owls hunt")["rankers"] if one["name"] == "bm25")
    places = {row["docno"]: row["rank"] for row in alone["rows"]}
    rows = answer["rankers"][0]["rows"]
    assert [row["rank_before"] for row in rows] == [places.get(row["docno"], 0) for row in rows]
    assert any(row["rank_before"] != row["rank"] for row in rows)


def make_collection(**more: Any) -> Collection:
    docs = {f"d{i}": Doc(f"oak {'leaf ' * i}tree", "Oaks") for i in range(1, 5)}
    return Collection("trees", MemoryCorpus(docs), {"q1": Query("oak leaf"), "q2": Query("tree")}, **more)


def test_candidates_of_the_collection_are_ranked_and_stay_for_a_changed_query(tmp_path):
    trees = make_collection(candidates={"q1": {"d1": 2.0, "d3": 1.0}})
    with serving(trees, "bm25", write_pairs=tmp_path / "p.jsonl") as client:
        assert set(docnos(client.rank("oak leaf")["bm25"])) == {"d1", "d3"}
        assert set(docnos(client.rank("leaf oak", base_query="oak leaf")["bm25"])) == {"d1", "d3"}
        assert set(docnos(client.rank("leaf oak")["bm25"])) == {"d1", "d2", "d3", "d4"}


def test_a_listwise_ranker_scores_the_whole_list_with_the_edited_text(tmp_path):
    ranker = Normalised()
    with serving(make_collection(), {"list": ranker}, write_pairs=tmp_path / "p.jsonl") as client:
        doc = client.open("d4") | {"body": "oak leaf"}
        found = client.rank("oak leaf", **doc)["list"]
        (scores,) = ranker.score([st.Slate("oak leaf", tuple(Doc(row["text"], "Oaks") for row in found["rows"]))])
        np.testing.assert_allclose([row["score"] for row in found["rows"]], scores)
        assert found["move"]["rank_after"] == 1


def test_a_run_file_shows_its_lists_and_refuses_what_it_cannot_do(tmp_path):
    (tmp_path / "a.run").write_text("q1 Q0 d2 1 3.0 x\nq1 Q0 d1 2 2.0 x\n")
    rankers = [f"run:{tmp_path / 'a.run'}", "ql"]
    with serving(make_collection(), rankers, write_pairs=tmp_path / "p.jsonl") as client:
        (name, found), (_, other) = client.rank("oak leaf", **client.open("d1")).items()
        assert docnos(found) == ["d2", "d1"]
        assert "cannot score an edited text" in found["note"]
        assert other["move"]
        assert "no list for this query" in client.rank("a typed query")[name]["error"]
        assert other["rows"], "the other ranker answers"


def break_down(slates: Any) -> Any:
    raise RuntimeError("no connection with the key sk-secret-0123456789")


@pytest.mark.parametrize("keep_going", [False, True])
def test_the_failure_of_a_ranker_leaves_the_others_and_has_no_key(tmp_path, keep_going):
    class Broken:
        name, pointwise, score = "broken", True, staticmethod(break_down)

    register_secret("sk-secret-0123456789")
    rankers, options = {"broken": Broken(), "ql": "ql"}, {"write_pairs": tmp_path / "p.jsonl", "keep_going": keep_going}
    with serving(make_collection(), rankers, **options) as client:
        answer = client.rank("oak leaf")
    assert "no connection with the key ***" in answer["broken"]["error"]
    assert answer["ql"]["rows"]


def test_an_endpoint_is_ranked_on_demand_because_requests_cost(tmp_path):
    with (
        running(Server(simple)) as endpoint,
        serving(make_collection(), endpoint.url, write_pairs=tmp_path / "p") as client,
    ):
        assert '"is_live": false' in unescape(client.request("GET", f"/{client.token}/")[2])
        (found,) = client.rank("oak leaf").values()
        assert len(found["rows"]) == 4
        assert not found["searches"]


# ---- changes


def test_a_transform_gives_the_same_text_for_the_same_click(sample):
    first, again = (sample.post("transform-query", query=QUERY, name="neighb_char_swap") for _ in range(2))
    assert first == again
    assert sorted(first["query"]) == sorted(QUERY)
    assert first["query"] != QUERY
    doc = sample.open("enc-001")
    changed, once_more = (sample.post("transform-document", query=QUERY, name="split_word", **doc) for _ in range(2))
    assert changed == once_more
    assert changed["title"] == doc["title"]
    assert changed["body"].replace(" ", "") == doc["body"].replace(" ", "")


def test_the_seed_decides_about_a_transform(sample, tmp_path):
    with serving("sample", "ql", seed=3, write_pairs=tmp_path / "p.jsonl") as other:
        texts = {one.post("transform-query", query=QUERY, name="random_char_sub")["query"] for one in (sample, other)}
    assert len(texts) == 2


def test_a_recipe_improves_the_rank_and_gives_the_same_text_again(sample):
    last = docnos(sample.rank(QUERY)["bm25"])[-1]
    how = {"query": QUERY, "name": "keyword_stuffing", "ranker": "bm25", **sample.open(last)}
    found = sample.post("recipe", **how)
    assert found == sample.post("recipe", **how)
    assert found["rank_after"] == 1 < found["rank_before"]
    assert 1 <= found["trials"] <= 40
    move = sample.rank(QUERY, docno=last, title=found["title"], body=found["body"])["bm25"]["move"]
    assert (move["rank_before"], move["rank_after"]) == (found["rank_before"], found["rank_after"])


def test_a_recipe_starts_from_the_edited_text(sample):
    doc = sample.open("enc-036") | {"body": "An unrelated sentence."}
    found = sample.post("recipe", query=QUERY, name="query_line", ranker="ql", **doc)
    assert found["body"] == f"Query: {QUERY}\nAn unrelated sentence."


def test_every_change_that_is_offered_can_be_applied_or_says_why_not(sample, tmp_path):
    page = sample.request("GET", f"/{sample.token}/")[2]
    assert "trains a surrogate model first" in page
    session = sample.page._server.session
    doc = {"docno": "d2", "title": "Oaks", "body": "The oak tree is one of the old trees of the wood, and it's tall."}
    with serving(make_collection(), "ql", write_pairs=tmp_path / "p.jsonl") as client:

        def check(name: str) -> None:
            answers = [client.post("transform-document", query="oak leaf", name=name, **doc)]
            if session.changes.transforms[name].for_queries:
                answers.append(client.post("transform-query", query="how do the old oak trees grow", name=name))
            for answer in answers:
                assert "error" not in answer or "does not apply" in answer["error"]

        check_each({name: name for name in session.changes.transforms}, check)
        for name in session.changes.recipes:
            assert "error" not in client.post("recipe", query="oak leaf", name=name, ranker="ql", **doc)


def test_concurrent_requests_get_the_answers_of_single_ones(sample):
    queries = [f"{QUERY} {word}" for word in ("owl", "fog", "light", "honey", "slug", "otter")] * 2
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(sample.rank, queries))
    assert together == [sample.rank(query) for query in queries]


# ---- saved pairs


@pytest.mark.slow
def test_saved_pairs_are_read_by_probe(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with serving("sample", ["bm25"], write_pairs="my pairs.jsonl") as client:
        doc = client.open("enc-007")
        stuffed = doc | {"body": f"{QUERY} {doc['body']}"}
        saved = client.post("save", query=QUERY, expect="a", **stuffed)
        assert (saved["count"], saved["file"]) == (1, "my pairs.jsonl")
        assert saved["command"] == "shaketable probe --pairs 'my pairs.jsonl' --ranker bm25"
        assert "already in" in client.refusal("save", query=QUERY, expect="a", **stuffed)
        hostile = doc | {"body": "\u2028 line\r\nend \x1b[31m \u202e </script> ##[x]", "title": "=1+1"}
        assert client.post("save", query=QUERY, expect="same", **hostile)["count"] == 2
    kept = list(read_expectations(tmp_path / "my pairs.jsonl"))
    assert kept[0].contrast.first == Doc(doc["body"], doc["title"])
    assert kept[0].contrast.second == Doc(stuffed["body"], doc["title"])
    assert kept[1].contrast.second == Doc(hostile["body"], "=1+1")
    with pytest.raises(SystemExit) as ended:
        main(["probe", "--pairs", "my pairs.jsonl", "--ranker", "bm25"])
    assert ended.value.code == 1, "bm25 prefers the stuffed text"
    assert "2 of your own pairs differ from the expectation" in capsys.readouterr().err


def test_an_invalid_pair_or_file_is_refused_and_nothing_is_written(tmp_path):
    path = tmp_path / "p.jsonl"
    with serving(make_collection(), "ql", write_pairs=path) as client:
        doc = client.open("d1")
        assert "the two texts are the same" in client.refusal("save", query="oak", expect="a", **doc)
        assert '"expect" should be' in client.refusal("save", query="oak", expect="c", **(doc | {"body": "x"}))
        assert '"b" is empty' in client.refusal("save", query="oak", expect="a", **(doc | {"body": " "}))
        assert not path.exists()
        path.write_text('{"query": 3}\n')
        assert ":1:" in client.refusal("save", query="oak", expect="a", **(doc | {"body": "x"}))
        assert path.read_text() == '{"query": 3}\n'


# ---- safety


def test_requests_without_the_token_or_from_elsewhere_are_refused(sample):
    token, port = sample.token, sample.port
    body = json.dumps({"query": "owl"}).encode()

    def get(path: str, **headers: str) -> int:
        return sample.request("GET", path, headers=headers)[0]

    def post(**headers: str) -> int:
        return sample.request("POST", f"/{token}/api/rank", body, JSON | headers)[0]

    for path in ("/", "/x/", f"/{token[:-1]}/", f"/{token}x/", f"/?{token}"):
        assert get(path) == 403
    assert sample.request("POST", "/wrong/api/rank", body, JSON)[0] == 403
    assert get(f"/{token}/") == 200
    assert get(f"/{token}/", Host=f"localhost:{port}") == 200
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", ""):
        assert get(f"/{token}/", Host=host) == 403
    assert post() == post(Origin=f"http://127.0.0.1:{port}") == post(Origin=f"http://localhost:{port}") == 200
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{port + 1}", f"https://127.0.0.1:{port}"):
        assert post(Origin=origin) == 403
    assert get(f"/{token}/etc/passwd") == 404
    with socket.create_connection(("127.0.0.1", port), timeout=30) as raw:
        raw.sendall(f"GET /\u00e9/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        assert raw.recv(100).startswith(b"HTTP/1.0 403 ")


def test_bodies_that_are_no_request_of_the_page_get_one_sentence(sample):
    def send(body: bytes, **headers: str) -> tuple[int, str]:
        status, _, text = sample.request("POST", f"/{sample.token}/api/rank", body, JSON | headers)
        return status, json.loads(text)["error"]

    assert send(b"query=owl", **{"Content-Type": "application/x-www-form-urlencoded"})[0] == 415
    assert send(b"{")[1].startswith("request: is not JSON")
    assert send(b"\xff")[1] == "the request is not UTF-8 text"
    assert send(b"[1]")[1] == "the request is not a JSON object"
    assert send(b"[" * 100_000)[0] == 400
    assert send(b"{}")[1] == 'the field "query" of the request should be a text, not None'
    assert send(b'{"query": 3}')[0] == send(b'{"query": " "}')[0] == 400
    assert send(b"{}", **{"Content-Length": str(MAX_BODY_BYTES + 1)})[0] == 413
    assert send(b"{}", **{"Content-Length": "9" * 5000})[0] == 413
    assert send(b"{}", **{"Content-Length": "-1"})[0] == 411
    assert "longer than 10,000 characters" in sample.refusal("rank", query="x" * 10_001)
    assert "longer than 200,000" in sample.refusal("rank", query="x", docno="enc-001", title="", body="x" * 200_001)


def test_unknown_names_get_one_sentence(sample):
    doc = sample.open("enc-001")
    assert "is not a document of sample" in sample.refusal("document", docno="nothing")
    assert "did you mean rank" in sample.refusal("ranks", query="owl")
    assert "no transform is called" in sample.refusal("transform-query", query="owl", name="__import__('os')")
    assert "no ranker is called" in sample.refusal("recipe", query="owl", name="query_line", ranker="x", **doc)
    assert "trains a surrogate" in sample.refusal("recipe", query="owl", name="wsra", ranker="ql", **doc)
    assert "not a document" in sample.refusal("rank", query=QUERY, docno="x", title="", body="y")


def test_hostile_texts_are_data(sample):
    def check(text: str) -> None:
        text = text.encode("utf-8", "replace").decode()
        doc = sample.open("enc-001") | {"body": text, "title": text}
        answer = sample.post("rank", query=f"owl {text}", **doc)
        assert all("error" not in one for one in answer["rankers"])
        row = next(row for row in answer["rankers"][0]["rows"] if row["docno"] == "enc-001")
        assert "\u202e" not in row["text"] + row["title"]

    check_each({repr(text): text for text in HOSTILE}, check)


def test_the_page_escapes_texts_and_keeps_its_address_secret(tmp_path):
    trees = make_collection()
    hostile = Collection(HOSTILE[0], trees.docs, {f"q{i}": Query(text) for i, text in enumerate(HOSTILE)})
    with serving(hostile, {HOSTILE[1]: "ql"}, write_pairs=tmp_path / "p.jsonl") as client:
        status, headers, page = client.request("GET", f"/{client.token}/")
    assert status == 200
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert client.token not in page
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Frame-Options"] == "DENY"
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-eval" not in policy


def test_only_this_machine_can_connect_and_nothing_can_after_the_end(tmp_path):
    with serving(make_collection(), "ql", write_pairs=tmp_path / "p.jsonl") as client:
        assert client.page._server.socket.getsockname()[0] == "127.0.0.1"
    with pytest.raises(ConnectionRefusedError):
        client.rank("oak")


# ---- the command


@pytest.mark.slow
def test_the_command_prints_the_address_and_stops_on_ctrl_c(tmp_path, folder):
    # a background shell ignores the signal
    script = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from shaketable.cli import main"
    command = [sys.executable, "-c", f"{script}; main()", "view", "--data", str(folder)]
    started = subprocess.Popen(
        [*command, "--ranker", "ql"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    url = started.stdout.readline().strip()
    connection = HTTPConnection("127.0.0.1", urlsplit(url).port or 0, timeout=30)
    connection.request("GET", urlsplit(url).path)
    assert "Rankers on trees" in connection.getresponse().read().decode()
    connection.close()
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=30)
    assert started.returncode == 0
    assert "Ctrl-C" in err
    assert err.endswith("The page is closed.\n")
    assert "Traceback" not in out + err


def test_wrong_arguments_get_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def complaint(*words: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["view", *words])
        assert ended.value.code == 2
        return capsys.readouterr().err

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"port {port} cannot be used" in complaint("--port", str(port))
    assert "no ranker is called 'nothing'" in complaint("--ranker", "nothing")
    assert "--port" in complaint("--port", "70000")
    assert "is a folder" in complaint("--write-pairs", str(tmp_path))
    assert list(tmp_path.glob("*.jsonl")) == []

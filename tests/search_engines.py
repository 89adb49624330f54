"""Search engines on the loopback, real sockets, each with the formats and the quirks of the family it is named for."""

from __future__ import annotations

import itertools
import json
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

FILMS = {
    "f1": ("Water boats", "A boat floats on water because it displaces as much water as it weighs."),
    "f2": ("Wooden boats", "Repair a wooden boat when its planks are dry, away from the water."),
    "f3": ("Tea time", "Green tea takes time: warm the pot and wait three minutes."),
    "f4": ("Harbour", "The harbour is closed to boats without lights at night time."),
    "f5": ("Rowing", "People row a small boat on still water in the morning."),
    "f6": ("Home port", "A ship is at home in its port, where people know its captain."),
}
Answer = tuple[int, Any, dict[str, str]]
Reply = Callable[[str, str, Any, Mapping[str, str]], Answer]
"""Makes the answer to a request out of its method, its path with parameters, its body and its headers."""


def find(query: str, k: int) -> list[tuple[str, float]]:
    """Return the documents that share words with the query, by the number of words; ties by id."""
    words = set(query.lower().split())
    scores = {
        docno: sum(f"{title} {text}".lower().replace(".", "").split().count(word) for word in words)
        for docno, (title, text) in FILMS.items()
    }
    return sorted(((d, float(s)) for d, s in scores.items() if s), key=lambda row: (-row[1], row[0]))[:k]


@dataclass
class Engine:
    """A server and the requests that it received."""

    reply: Reply
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    port: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def running(reply: Reply) -> Iterator[Engine]:
    engine = Engine(reply)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16
        disable_nagle_algorithm = True

        def answer(self) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = json.loads(text) if text else None
            with engine.lock:
                engine.requests.append((self.command, self.path, body))
                engine.headers.append({name.lower(): value for name, value in self.headers.items()})
                sent = engine.headers[-1]
            status, answer, headers = engine.reply(self.command, self.path, body, sent)
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self.answer()

        def do_POST(self) -> None:
            self.answer()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    engine.port = server.server_address[1]
    try:
        yield engine
    finally:
        server.shutdown()
        server.server_close()


def elasticsearch(
    *, distribution: str = "", key: str = "", source: bool = True, sorted_by_date: bool = False, index: str = "films"
) -> Reply:
    """Elasticsearch 8 or OpenSearch 2: product header, 401 with a challenge, a window of 10,000 hits."""
    headers = {} if distribution else {"X-elastic-product": "Elasticsearch"}

    def refuse(status: int, kind: str, reason: str, **more: str) -> Answer:
        cause = {"type": kind, "reason": reason, "index": index}
        return status, {"error": {"root_cause": [cause], **cause}, "status": status}, {**headers, **more}

    def reply(method: str, path: str, body: Any, sent: Mapping[str, str]) -> Answer:
        place = urlsplit(path).path.strip("/")
        if key and sent.get("authorization") not in (f"ApiKey {key}", f"Basic {b64encode(key.encode()).decode()}"):
            reason = "missing authentication credentials for REST request"
            return refuse(401, "security_exception", reason, **{"WWW-Authenticate": 'ApiKey, Basic realm="security"'})
        if not place:
            version = {"number": "2.19.0", "distribution": distribution} if distribution else {"number": "8.17.0"}
            return 200, {"version": version, "tagline": "You Know, for Search"}, headers
        if place == "_cat/indices":
            return 200, [{"index": ".security-7"}, {"index": index}], headers
        name, _, endpoint = place.partition("/")
        if name != index:
            return refuse(404, "index_not_found_exception", f"no such index [{name}]")
        if not endpoint and method == "POST":
            reason = f"Incorrect HTTP method for uri [/{name}] and method [POST], allowed: [HEAD, GET, PUT, DELETE]"
            return 405, {"error": reason, "status": 405}, headers
        if not endpoint:
            return 200, {index: {"aliases": {}, "mappings": {}, "settings": {}}}, headers
        size = body.get("size", 10)
        if size > 10_000:
            reason = f"Result window is too large, from + size must be less than or equal to: [10000] but was [{size}]."
            return refuse(400, "illegal_argument_exception", reason)
        match = body.get("query")
        if not isinstance(match, dict):
            return refuse(400, "parsing_exception", "[query] query malformed, no start_object after query name")
        query = match["multi_match"]["query"] if "multi_match" in match else match["match"]["body"]
        found = find(query, size)
        if sorted_by_date:
            found = sorted(found)
        hits = [
            {"_index": index, "_id": d, "_score": None if sorted_by_date else s}
            | ({"_source": {"title": FILMS[d][0], "body": FILMS[d][1], "year": 1990}} if source else {})
            for d, s in found
        ]
        return 200, {"took": 1, "timed_out": False, "hits": {"total": {"value": len(hits)}, "hits": hits}}, headers

    return reply


def solr(method: str, path: str, body: Any, sent: Mapping[str, str]) -> Answer:
    """Solr 9: multi-valued fields are lists, a missing core is a page of HTML, and only listed fields are returned."""
    place, asked = urlsplit(path).path, {name: one[0] for name, one in parse_qs(urlsplit(path).query).items()}
    if place == "/solr/admin/cores":
        return 200, {"responseHeader": {"status": 0}, "status": {"films": {"name": "films"}}}, {}
    if not place.startswith("/solr/films/select"):
        page = b"<html><head><title>Error 404 Not Found</title></head><body>Searching for Solr? You must type the "
        return 404, page + b"correct path.<br/>Solr will respond.</body></html>", {"Content-Type": "text/html"}
    fields = asked.get("fl", "*").split(",")
    docs = []
    for docno, score in find(asked["q"], int(asked.get("rows", 10))):
        doc: dict[str, Any] = {
            "id": docno,
            "title_txt": [FILMS[docno][0]],
            "text_txt": [FILMS[docno][1]],
            "_version_": 1,
        }
        docs.append(doc | ({"score": score} if "score" in fields else {}))
    return 200, {"responseHeader": {"status": 0}, "response": {"numFound": len(docs), "start": 0, "docs": docs}}, {}


def own_api(method: str, path: str, body: Any, sent: Mapping[str, str]) -> Answer:
    """Answer like an unknown API: POST with its own names, GET with q and n."""
    asked = parse_qs(urlsplit(path).query)
    query, k = (body["question"]["text"], body["page_size"]) if body else (asked["q"][0], int(asked["n"][0]))
    rows = [{"key": {"doc": d}, "passage": FILMS[d][1], "relevance": s} for d, s in find(query, k)]
    return 200, {"took": 2, "data": {"items": rows}}, {}


def serve_sample(swapped_share: float = 0.0) -> Reply:
    """An engine with the documents of the sample in Anserini's format; it swaps the first two hits of some searches."""
    import shaketable as st

    sample = st.load("sample")
    ranker = st.RANKERS.build("bm25").open(sample)
    count = itertools.count()
    lock = threading.Lock()  # compiled kernels of one ranker serve one request at a time

    def reply(method: str, path: str, body: Any, sent: Mapping[str, str]) -> Answer:
        asked = parse_qs(urlsplit(path).query)
        if method != "GET" or not urlsplit(path).path.endswith("/sample/search"):
            return 404, {"error": "Expected route /v1/{index}/search or /v1/{index}/doc/{docid}"}, {}
        with lock:
            (found,) = ranker.search([asked["query"][0]], int(asked["hits"][0]))
            swaps = next(count) * swapped_share % 1 + swapped_share >= 1
        docnos = list(found)
        if swaps:
            docnos[:2] = docnos[1::-1]
        rows = [{"docid": d, "score": 1 / (1 + i), "doc": sample.docs[d].text} for i, d in enumerate(docnos)]
        return 200, {"api": "v1", "candidates": rows}, {}

    return reply

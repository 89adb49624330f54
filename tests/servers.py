"""Rerank servers on the loopback, real sockets, each with the shapes and the quirks of the family it is named for."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import exp
from typing import Any

Answer = tuple[int, Any, dict[str, str]]
Reply = Callable[[int, Any], Answer]
"""Makes the answer to the nth request out of its body, as (status, body, headers)."""


def worth(query: str, text: str) -> float:
    """Return the score of a text: shared words divided by length."""
    return len(set(query.split()) & set(text.split())) / (1 + len(text))


@dataclass
class Server:
    """The answers of a server, and the requests that it received."""

    reply: Reply
    pages: Mapping[str, Any] = field(default_factory=dict)
    """What a GET of a path is answered with."""
    paths: tuple[str, ...] = ()
    """Where there is an endpoint; none: everywhere."""
    bodies: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    port: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/rerank"

    @property
    def lists(self) -> list[Any]:
        """The requests that came after the first words with the server, whose query is about planets."""
        return [body for body in self.bodies if "planet" not in str(body.get("query", body.get("text_1")))]


@contextmanager
def running(server: Server) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # one packet for an answer: two would wait for each other
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with server.lock:
                server.bodies.append(body)
                server.headers.append({name.lower(): value for name, value in self.headers.items()})
                server.asked.append(self.path)
                nth = len(server.bodies)
            if server.paths and self.path not in server.paths:
                self.answer(404, {"detail": "Not Found"}, {})
            else:
                self.answer(*server.reply(nth, body))

        def do_GET(self) -> None:
            found = self.path in server.pages
            self.answer(200 if found else 404, server.pages.get(self.path, {"detail": "Not Found"}), {})

        def answer(self, status: int, answer: Any, headers: dict[str, str]) -> None:
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
        request_queue_size = 128
        daemon_threads = True

        def handle_error(self, *args: object) -> None:  # a client that hung up is part of the tests
            pass

    http = Quiet(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    server.port = http.server_address[1]
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()


def always(status: int, body: Any, **headers: str) -> Reply:
    return lambda nth, asked: (status, body, {name.replace("_", "-"): value for name, value in headers.items()})


def rows(*pairs: tuple[object, object]) -> dict[str, object]:
    return {"results": [{"index": index, "relevance_score": score} for index, score in pairs]}


def rank_rows(query: str, texts: list[str], name: str = "relevance_score", **more: Any) -> list[dict[str, Any]]:
    """Return a row for each text, best first."""
    found = [{"index": i, name: worth(query, text), **more} for i, text in enumerate(texts)]
    return sorted(found, key=lambda row: -row[name])


def missing(body: Any, *names: str) -> Answer | None:
    """Return the answer of a pydantic server to a missing field."""
    lacking = [
        {"type": "missing", "loc": ["body", name], "msg": "Field required", "input": body}
        for name in names
        if name not in body
    ]
    return (422, {"detail": lacking}, {}) if lacking else None


def cohere(nth: int, body: Any) -> Answer:
    """Cohere v2, without a key: the model must be named."""
    if "documents" not in body or "query" not in body:
        return 400, {"id": "x", "message": "invalid request: documents must be specified"}, {}
    if not body.get("model"):
        return 400, {"id": "x", "message": "invalid request: model is required"}, {}
    results = rank_rows(body["query"], body["documents"])[: body.get("top_n")]
    return 200, {"id": "x", "results": results, "meta": {"api_version": {"version": "2"}}}, {}


def simple(nth: int, body: Any) -> Answer:
    """Answer in Cohere's format without a model name, like llama.cpp, vLLM, and many custom servers."""
    if not all(body["documents"]) or not body["query"]:
        return 422, {"error": "`inputs` must not be empty"}, {}
    return 200, {"results": rank_rows(body["query"], body["documents"])}, {}


def tei(nth: int, body: Any) -> Answer:
    """text-embeddings-inference: `texts`, a bare list, 32 texts at most, strict about the request."""
    if "texts" not in body:
        said = b"Failed to deserialize the JSON body into the target type: missing field `texts` at line 1 column 412"
        return 422, said, {"Content-Type": "text/plain; charset=utf-8"}
    if len(body["texts"]) > 32:
        said = f"batch size {len(body['texts'])} > maximum allowed batch size 32"
        return 422, {"error": said, "error_type": "Validation"}, {}
    if not body.get("truncate") and any(len(text.split()) > 512 for text in body["texts"]):
        said = "Input validation error: `inputs` must have less than 512 tokens. Given: 534"
        return 413, {"error": said, "error_type": "Validation"}, {}
    return 200, rank_rows(body["query"], [" ".join(text.split()[:512]) for text in body["texts"]], "score"), {}


def infinity(*models: str) -> Reply:
    """Answer like infinity: the model must be listed at /models; scores are sigmoids by default."""

    def reply(nth: int, body: Any) -> Answer:
        if refusal := missing(body, "query", "documents"):
            return refusal
        name = body.get("model", "default/not-specified")
        if name not in models:
            said = f"Invalid model: Engine for model name `{name}` not found. Available model names are {list(models)}"
            return 400, {"error": {"message": said, "type": None, "param": None, "code": 400}}, {}
        results = rank_rows(body["query"], body["documents"], document=None)[: body.get("top_n")]
        if not body.get("raw_scores"):
            results = [row | {"relevance_score": 1 / (1 + exp(-row["relevance_score"]))} for row in results]
        usage = {"prompt_tokens": 10, "total_tokens": 10}
        return 200, {"object": "rerank", "results": results, "model": name, "usage": usage, "id": "infinity-1"}, {}

    return reply


def models(*names: str, rerank: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the list of models in the format of infinity and vLLM."""
    return {"data": [{"id": name, **({"capabilities": ["rerank"]} if name in rerank else {})} for name in names]}


def jina(nth: int, body: Any) -> Answer:
    if refusal := missing(body, "model", "query", "documents"):
        return refusal
    results = rank_rows(body["query"], body["documents"], document={"text": "..."})
    return 200, {"model": body["model"], "object": "list", "usage": {"total_tokens": 9}, "results": results}, {}


def vllm(nth: int, body: Any) -> Answer:
    """vLLM's /rerank: the model may be left out, and one that is not served is not found."""
    if body.get("model") not in (None, "served"):
        said = f"The model `{body['model']}` does not exist."
        return 404, {"error": {"message": said, "type": "NotFoundError", "param": None, "code": 404}}, {}
    if refusal := missing(body, "query", "documents"):
        return refusal
    results = rank_rows(body["query"], body["documents"], document={"text": "..."})
    return 200, {"id": "rerank-1", "model": "served", "usage": {"total_tokens": 56}, "results": results}, {}


def vllm_score(nth: int, body: Any) -> Answer:
    """vLLM's /score: `data`, in the order of the texts."""
    if refusal := missing(body, "text_1", "text_2"):
        return refusal
    scores = [worth(body["text_1"], text) for text in body["text_2"]]
    data = [{"index": i, "object": "score", "score": score} for i, score in enumerate(scores)]
    return 200, {"id": "score-1", "object": "list", "created": 1, "model": "served", "data": data, "usage": {}}, {}


def voyage(nth: int, body: Any) -> Answer:
    """Voyage: `data`, `top_k`, and no field that it does not know."""
    for name in body:
        if name not in ("model", "query", "documents", "top_k", "truncation", "return_documents"):
            return 400, {"detail": f"Argument '{name}' is not supported by our API."}, {}
    if "model" not in body:
        return 400, {"detail": "'model' is required. Supported models are rerank-2.5 and rerank-2.5-lite."}, {}
    data = rank_rows(body["query"], body["documents"])[: body.get("top_k")]
    return 200, {"object": "list", "data": data, "model": body["model"], "usage": {"total_tokens": 9}}, {}


def mixedbread(nth: int, body: Any) -> Answer:
    if refusal := missing(body, "model", "query", "input"):
        return refusal
    return 200, {"object": "list", "data": rank_rows(body["query"], body["input"], "score")[: body.get("top_k")]}, {}


def pinecone(nth: int, body: Any) -> Answer:
    texts = [document["text"] for document in body["documents"]]
    return 200, {"model": body["model"], "data": rank_rows(body["query"], texts, "score")[: body["top_n"]]}, {}


def elasticsearch(nth: int, body: Any) -> Answer:
    return 200, {"rerank": rank_rows(body["query"], body["input"])}, {}


def own(nth: int, body: Any) -> Answer:
    """Answer like a custom server: scores in the order of the documents, and strict validation."""
    if set(body) != {"query", "documents"}:
        return 400, {"error": "unexpected field"}, {}
    return 200, {"scores": [worth(body["query"], text) for text in body["documents"]]}, {}


def by_list(nth: int, body: Any) -> Answer:
    """Scores that sum to one in a list, so that a text's score depends on its company."""
    scores = [worth(body["query"], text) + 0.01 for text in body["documents"]]
    if len(scores) > 10:
        return 413, b"payload too large", {}
    return 200, rows(*((i, score / sum(scores)) for i, score in enumerate(scores))), {}


def by_place(nth: int, body: Any) -> Answer:
    """Answer in the input order."""
    return 200, rows(*((i, 1 - i / 100) for i in range(len(body["documents"])))), {}

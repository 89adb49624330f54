"""Servers that repeat the key they were sent, each in another part of a response and in another encoding."""

from __future__ import annotations

import gzip
import html
import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import quote, quote_plus

CANARY = "sk-Canary/7f+3Zq9=Wm2Xv8.Kp4~Tn6&Rb1_Hs5"
WINDOW_CHARS = 14
"""A part of a key of this length is a leak too, as after a cut in the wrong place."""

ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "percent": lambda key: quote(key, safe=""),
    "percent-lower": lambda key: quote(key, safe="").replace("%2B", "%2b").replace("%2F", "%2f"),
    "percent-all": lambda key: "".join(f"%{ord(char):02x}" for char in key),
    "percent-twice": lambda key: quote_plus(quote_plus(key)),
    "slashes": lambda key: key.replace("/", "\\/"),
    "unicode": lambda key: "".join(f"\\u{ord(char):04x}" for char in key),
    "unicode-some": lambda key: key.replace("+", "\\u002B").replace("&", "\\u0026"),
    "base64": lambda key: b64encode(key.encode()).decode(),
    "base64-bearer": lambda key: b64encode(f"Bearer {key}".encode()).decode(),
    "base64-user": lambda key: b64encode(f"user:{key}:".encode()).decode(),
    "base64-shifted": lambda key: b64encode(f"me:{key}".encode()).decode(),
    "base64-url": lambda key: urlsafe_b64encode(key.encode()).decode(),
    "base64-escaped": lambda key: quote(b64encode(key.encode()).decode(), safe=""),
    "hex": lambda key: key.encode().hex(),
    "hex-upper": lambda key: key.encode().hex().upper(),
    "hex-colons": lambda key: key.encode().hex(":"),
    "html": html.escape,
    "html-numbers": lambda key: "".join(f"&#{ord(char)};" for char in key),
    "upper": str.upper,
}


def respond(status: int, body: str | bytes, *headers: str) -> bytes:
    content = body.encode() if isinstance(body, str) else body
    head = [f"HTTP/1.1 {status} X", *headers, f"Content-Length: {len(content)}", "Connection: close", "", ""]
    return "\r\n".join(head).encode() + content


def rows(*pairs: tuple[str, str]) -> str:
    """Rows of JSON, with indexes and scores that are JSON already."""
    listed = ", ".join(f'{{"index": {index}, "relevance_score": {score}}}' for index, score in pairs)
    return f'{{"results": [{listed}]}}'


PLACES: dict[str, Callable[[str], bytes]] = {
    "body": lambda key: respond(400, f"the key {key} is not valid"),
    "body-cut": lambda key: respond(400, "x" * 180 + key),
    "body-of-keys": lambda key: respond(400, key * 300),
    "json": lambda key: respond(403, f'{{"error": {{"message": "no access with {key}"}}}}'),
    "failure": lambda key: respond(500, f"cannot use {key}"),
    "page": lambda key: respond(200, f"<html>{key}</html>"),
    "shape": lambda key: respond(200, f'{{"you": "{key}"}}'),
    "index": lambda key: respond(200, rows((f'"{key}"', "1"), ("1", "1"))),
    "index-nested": lambda key: respond(200, rows((f'{{"a": ["{key}"]}}', "1"))),
    "index-long": lambda key: respond(200, rows((f'"{"x" * 190}{key}"', "1"))),
    "score": lambda key: respond(200, rows(*((str(i), f'"{key[:40]}"') for i in range(5)))),
    "score-long": lambda key: respond(200, rows(*((str(i), f'["{"x" * 150}{key}"]') for i in range(5)))),
    "location": lambda key: respond(307, "", f"Location: http://127.0.0.1:9/{key}"),
    "location-within": lambda key: respond(308, "", f"Location: /doctor/failure/plain/{key}"),
    "header": lambda key: respond(200, "[]", f"X {key}"),
    "header-value": lambda key: respond(400, "no", f"X-Key: {key}"),
    "encoding": lambda key: respond(200, "[]", f"Content-Encoding: {key}"),
    "retry": lambda key: respond(429, key, f"Retry-After: {key}"),
    "status": lambda key: f"HTTP/1.1 {key} OK\r\n\r\n".encode(),
    "reason": lambda key: f"HTTP/1.1 400 {key}\r\nContent-Length: 0\r\n\r\n".encode(),
    "no-http": lambda key: f"{key}\r\n\r\n".encode(),
    "chunk": lambda key: f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{key}\r\n".encode(),
    "gzip": lambda key: respond(400, gzip.compress(f"wrong: {key}".encode()), "Content-Encoding: gzip"),
    "model-wanted": lambda key: respond(400, f"model {key} is not found"),
    "models": lambda key: respond(400, "model is required"),
    "limit": lambda key: respond(422, f"at most 2 texts with {key}"),
    "missing-field": lambda key: respond(422, f'{{"detail": [{{"loc": ["body", "texts"], "input": "{key}"}}]}}'),
}
SERVERS = [
    *((place, "plain") for place in PLACES),
    *(("body", encoding) for encoding in ENCODINGS),
    *(("index", encoding) for encoding in ("percent", "slashes", "unicode", "base64-user", "hex-upper")),
    *(("location", encoding) for encoding in ("percent", "percent-twice", "base64-url", "html")),
    *(("models", encoding) for encoding in ("percent-all", "base64", "hex")),
    *(("body-of-keys", encoding) for encoding in ("unicode", "html-numbers", "base64-bearer")),
]


def find_leaks(text: str) -> list[str]:
    """Return the parts of the canary in a text, in any of the encodings."""
    lowered = text.lower()
    found = []
    for name, encode in ENCODINGS.items():
        core = encode(CANARY).rstrip("=")
        start = {"base64-bearer": 11, "base64-user": 7, "base64-shifted": 4}.get(name, 0)
        unit = max(1, len(core) // len(CANARY))  # characters of the encoding for one of the key
        size = WINDOW_CHARS * unit
        parts = {core[i : i + size].lower() for i in range(start, len(core) - size - 2)}
        found += [part for part in parts if part in lowered]
    return found


@contextmanager
def echoing(sent: list[bytes]) -> Iterator[int]:
    """A server whose path names a place and an encoding; responses with a key are added to `sent`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            texts, query = body.get("documents", ()), body.get("query", body.get("prompt", "bark"))
            _, kind, place, encoding = self.path.split("/")[:4]
            if kind != "audit" or "bark" in query or place == "models":
                self.echo(place, encoding)
            else:
                self.wfile.write(respond(200, rows(*((str(i), str(len(text))) for i, text in enumerate(texts)))))

        def do_GET(self) -> None:
            _, _, _, encoding = self.path.split("/")[:4]
            key = ENCODINGS[encoding](CANARY).replace("\\", "\\\\")
            listed = ", ".join(f'{{"id": "{name}"}}' for name in (key, f"b-{key}", "c", "d"))
            self.send(respond(200, f'{{"data": [{listed}]}}'))

        def echo(self, place: str, encoding: str) -> None:
            key = self.headers["Authorization"].removeprefix("Bearer ")
            self.send(PLACES[place](ENCODINGS[encoding](key)))

        def send(self, response: bytes) -> None:
            sent.append(response)
            self.wfile.write(response)

        def log_message(self, *args: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *args: object) -> None:
            pass

    server = Quiet(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()

"""A hostile server, in a process of its own: the path of a request names how it is answered.

    python -m tests.rankers.http.hostile

prints the port for requests and the port that speaks broken TLS.
"""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from itertools import count, repeat

PAUSE_S = 0.15
"""Shorter than the timeout of the clients, so that only a deadline ends what drips."""
BLOCK = b" " * 65_536
OK = b"HTTP/1.1 200 OK\r\n"
JSON = OK + b"Content-Type: application/json\r\n"
CHUNKED = JSON + b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS = JSON + b"Content-Length: 1000000000000\r\n\r\n"
Parts = Iterator[bytes | float]
"""What a server sends, and the seconds that it waits."""


def drip(data: bytes) -> Parts:
    """One byte at a time."""
    for byte in data:
        yield bytes([byte])
        yield PAUSE_S


def for_ever(part: bytes) -> Parts:
    return repeat(part)


def answer(body: bytes, headers: bytes = b"") -> Parts:
    yield JSON + headers + b"Content-Length: %d\r\n\r\n" % len(body)
    yield body


def then(*parts: bytes | float | Parts) -> Parts:
    for part in parts:
        if isinstance(part, bytes | float):
            yield part
        else:
            yield from part


def send_encoded(name: bytes, body: Parts) -> Parts:
    """Yield a response with a Content-Encoding whose body lasts until the connection ends."""
    return then(JSON + b"Content-Encoding: " + name + b"\r\n\r\n", body)


def gzip_bomb(wbits: int = 31) -> Parts:
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    while True:
        yield packer.compress(bytes(1 << 22))


def empty_blocks() -> Parts:
    yield gzip.compress(b"")[:10]
    yield from for_ever(b"\x00\x00\x00\xff\xff" * 10_000)


def stack_gzip() -> bytes:
    body = bytes(50_000_000)
    for _ in range(3):
        body = gzip.compress(body, 9, mtime=0)
    return body


def rows(number: int, row: str) -> bytes:
    return f'{{"results": [{", ".join([row] * number)}]}}'.encode()


MODES: dict[str, Callable[[], Parts]] = {
    # before the response
    "silence": lambda: then(60.0),
    "late-answer": lambda: then(3.0, answer(b'{"scores": [1, 2, 3]}')),
    "continue-fast": lambda: for_ever(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "continue-slow": lambda: then(*([b"HTTP/1.1 100 Continue\r\n\r\n", PAUSE_S] * 50)),
    "early-hints": lambda: for_ever(b"HTTP/1.1 103 Early Hints\r\nLink: " + b"x" * 5000 + b"\r\n\r\n"),
    "status-drip": lambda: drip(b"HTTP/1.1 200 " + b"O" * 500),
    "status-endless": lambda: then(b"HTTP/1.1 200 ", for_ever(b"O" * 65_536)),
    "gibberish": lambda: for_ever(b"\x00\xff\r\n" * 1000),
    "gibberish-drip": lambda: drip(b"SSH-2.0-OpenSSH_9.6\r\n" * 100),
    "no-response": lambda: then(),
    # headers
    "header-drip": lambda: then(JSON + b"X: ", drip(b"x" * 500)),
    "header-name-drip": lambda: then(JSON, drip(b"x" * 500)),
    "header-folded": lambda: then(JSON + b"X: y\r\n", drip(b" y\r\n" * 500)),
    "header-endless": lambda: then(JSON + b"X: ", for_ever(BLOCK)),
    "headers-many": lambda: then(JSON, for_ever(b"X: y\r\n" * 1000)),
    "headers-slow": lambda: then(JSON, *([b"X: y\r\n", PAUSE_S] * 50)),
    "location-drip": lambda: then(b"HTTP/1.1 307 Moved\r\nLocation: /", drip(b"x" * 500)),
    "switching": lambda: then(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", for_ever(BLOCK)),
    # the body
    "body-drip": lambda: then(ENDLESS, drip(b" " * 500)),
    "body-stops": lambda: then(ENDLESS + b"[1", 60.0),
    "body-endless": lambda: then(ENDLESS, for_ever(BLOCK)),
    "body-until-close": lambda: then(b"HTTP/1.0 200 OK\r\n\r\n", for_ever(BLOCK)),
    "body-too-short": lambda: then(JSON + b"Content-Length: 100\r\n\r\n[1, 2"),
    "error-body-endless": lambda: then(b"HTTP/1.1 400 No\r\n\r\n", for_ever(BLOCK)),
    "chunks-endless": lambda: then(CHUNKED, for_ever(b"10000\r\n" + BLOCK + b"\r\n")),
    "chunks-of-one-byte": lambda: then(CHUNKED, for_ever(b"1\r\n \r\n" * 10_000)),
    "chunks-drip": lambda: then(CHUNKED, *([b"1\r\n \r\n", PAUSE_S] * 50)),
    "chunk-extension-drip": lambda: then(CHUNKED + b"1;", drip(b"x" * 500)),
    "chunk-extension-endless": lambda: then(CHUNKED + b"1;", for_ever(b"x" * 65_536)),
    "chunk-size-endless": lambda: then(CHUNKED, for_ever(b"0" * 65_536)),
    "chunk-huge": lambda: then(CHUNKED + b"ffffffffff\r\n", for_ever(BLOCK)),
    "trailers-endless": lambda: then(CHUNKED + b"2\r\n[]\r\n0\r\n", for_ever(b"X: y\r\n" * 1000)),
    "trailers-drip": lambda: then(CHUNKED + b"2\r\n[]\r\n0\r\nX: ", drip(b"x" * 500)),
    # encodings
    "gzip-bomb": lambda: send_encoded(b"gzip", gzip_bomb()),
    "deflate-bomb": lambda: send_encoded(b"deflate", gzip_bomb(15)),
    "gzip-stacked": lambda: answer(stack_gzip(), b"Content-Encoding: gzip, gzip, gzip\r\n"),
    "gzip-repeated": lambda: answer(stack_gzip(), b"Content-Encoding: gzip\r\n" * 3),
    "encoding-unknown": lambda: answer(b"x", b"Content-Encoding: br\r\n"),
    "gzip-empty-blocks": lambda: send_encoded(b"gzip", empty_blocks()),
    "gzip-name-endless": lambda: send_encoded(b"gzip", then(b"\x1f\x8b\x08\x08" + bytes(6), for_ever(b"x" * 65_536))),
    "gzip-members": lambda: send_encoded(b"gzip", for_ever(gzip.compress(b"", mtime=0) * 3000)),
    "gzip-damaged": lambda: answer(b"\x1f\x8b\x08" + b"\xff" * 500, b"Content-Encoding: gzip\r\n"),
    # JSON
    "json-lists": lambda: answer(b"[" + b"[]," * 5_000_000 + b"[]]"),
    "json-objects": lambda: answer(b"[" + b'{"":0},' * 2_000_000 + b"[]]"),
    "json-deep": lambda: answer(b"[" * 15_000_000),
    "json-deep-but-few": lambda: answer(b"[" * 400_000 + b"]" * 400_000),
    "json-wide-characters": lambda: answer(b'{"results": "' + b"x" * 15_000_000 + '😀"}'.encode()),
    "json-number": lambda: answer(b"[" + b"1" * 15_000_000 + b"]"),
    "json-rows-repeated": lambda: answer(rows(150_000, '{"index": 0, "score": 1}')),
    "json-row-of-text": lambda: answer(rows(1, json.dumps({"index": "x" * 10_000_000, "score": 1}))),
    "json-score-of-text": lambda: answer(
        f'{{"results": [{{"index": 0, "score": "{"9" * 10_000_000}"}}, {rows(2, "1")[13:-2].decode()}]}}'.encode()
    ),
    "json-scores-of-text": lambda: answer(
        json.dumps([{"index": i, "score": "9" * (10_000_000 if not i else 1)} for i in range(3)]).encode()
    ),
    # redirects and waits
    "redirect-slow": lambda: then(
        0.4, b"HTTP/1.1 307 Moved\r\nLocation: /redirect-slow?%d\r\nContent-Length: 0\r\n\r\n" % next(NUMBERS)
    ),
    "redirect-circle": lambda: then(
        b"HTTP/1.1 307 Moved\r\nLocation: /redirect-circle?%d\r\nContent-Length: 0\r\n\r\n" % next(NUMBERS)
    ),
    "wait-long": lambda: then(b"HTTP/1.1 429 Busy\r\nRetry-After: 50\r\nContent-Length: 0\r\n\r\n"),
    "wait-endless": lambda: then(
        b"HTTP/1.1 503 Busy\r\nRetry-After: " + b"9" * 5000 + b"\r\nContent-Length: 0\r\n\r\n"
    ),
}
"""What is sent after a request was read."""
UNREAD_MODES = ("request-unread", "request-read-slowly")
"""Modes of servers that do not read a request to its end."""
NUMBERS = count()


def read_head(connection: socket.socket) -> tuple[str, bytes, int]:
    """Return the path of a request, the received part of its body, and the length of the body."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (part := connection.recv(4096)):
            return "", b"", 0
        data += part
    head, _, rest = data.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return head.split()[1].decode().strip("/").partition("?")[0], rest, length


def serve_one(connection: socket.socket) -> None:
    with connection:
        try:
            mode, body, length = read_head(connection)
            if mode == "request-unread":
                time.sleep(60)
            while mode == "request-read-slowly":
                connection.recv(100)
                time.sleep(0.01)
            while len(body) < length:
                body += connection.recv(65_536)
            for part in MODES[mode]() if mode else ():
                if isinstance(part, float):
                    time.sleep(part)
                else:
                    connection.sendall(part)
        except OSError:  # the client gave up
            pass


def break_tls(connection: socket.socket) -> None:
    """Begin a TLS record and never end it."""
    with connection:
        try:
            for part in then(b"\x16\x03\x03\x40\x00", drip(b"\x02" * 500)):
                if isinstance(part, float):
                    time.sleep(part)
                else:
                    connection.sendall(part)
        except OSError:
            pass


def listen(serve: Callable[[socket.socket], None]) -> int:
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return int(listener.getsockname()[1])


if __name__ == "__main__":
    print(listen(serve_one), listen(break_tls), flush=True)
    input()  # until the test ends

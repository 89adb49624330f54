"""Real servers on the loopback that speak OpenAI's protocol and read the prompt."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = Callable[[str, dict[str, Any]], Any]
"""prompt, body -> the answer's text, or (status, JSON body)."""


@dataclass
class Served:
    """A server, what it was sent, and where it is."""

    reply: Reply
    models: tuple[str, ...] = ("tiny",)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""

    @property
    def prompts(self) -> list[str]:
        return [body["messages"][0]["content"] if "messages" in body else body["prompt"] for body in self.bodies]


@contextmanager
def serving(
    reply: Reply, models: tuple[str, ...] = ("tiny",), headers: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """A server for as long as the block runs."""
    served = Served(reply, models)
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, {"data": [{"id": name} for name in served.models]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            chat = self.path.endswith("/chat/completions")
            prompt = body["messages"][0]["content"] if chat else body["prompt"]
            with lock:
                served.bodies.append(body)
                served.headers.append({name.lower(): value for name, value in self.headers.items()})
            answer = served.reply(prompt, body)
            if isinstance(answer, tuple):
                self._send(*answer)
            elif isinstance(answer, dict):
                self._send(200, answer)
            else:
                choice = {"message": {"role": "assistant", "content": answer}} if chat else {"text": answer}
                self._send(200, {"choices": [choice]})

        def _send(self, status: int, body: Any) -> None:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *args: object) -> None:  # a client that hung up is part of the tests
            pass

    http = Quiet(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    served.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
    try:
        yield served
    finally:
        http.shutdown()
        http.server_close()


def passages(prompt: str) -> list[str]:
    """Return the numbered passages of a list-wise or set-wise prompt."""
    return [text for _, text in re.findall(r"^\[(\d+)\] (.*)$", prompt, re.MULTILINE)]


def query_of(prompt: str) -> str:
    """Return the query of any of the built-in prompts."""
    found = re.search(r"(?:Search query|Query|searched for): *(.+)|searched for \"(.+?)\"", prompt)
    assert found, prompt
    return found[1] or found[2]


def worth(query: str, text: str) -> float:
    """Shared words over length: no two of the texts here are worth the same."""
    return len(set(query.split()) & set(text.split())) / (1 + len(text))


def rank_passages(prompt: str) -> list[int]:
    """Return numbers from 1, best first, by shared words, independent of the order of the passages."""
    query, texts = query_of(prompt), passages(prompt)
    return sorted(range(1, len(texts) + 1), key=lambda i: (-worth(query, texts[i - 1]), texts[i - 1]))


def format_numbers(numbers: list[int]) -> str:
    return " > ".join(f"[{n}]" for n in numbers)


def answer_correctly(prompt: str, body: dict[str, Any]) -> str:
    """Answer each type of prompt in its format, by shared words."""
    query = query_of(prompt)
    if pair := re.search(r"^(?:Passage )?A: (.*)\n+(?:Passage )?B: (.*)$", prompt, re.MULTILINE):
        return "A" if worth(query, pair[1]) >= worth(query, pair[2]) else "B"
    numbers = rank_passages(prompt)
    return format_numbers(numbers if ">" in prompt or "List all" in prompt else numbers[:1])


def answer_input_order(prompt: str, body: dict[str, Any]) -> str:
    """Answer with the input order."""
    return format_numbers(list(range(1, len(passages(prompt)) + 1)))


def answer_malformed(prompt: str, body: dict[str, Any]) -> str:
    """Answer correctly, with a repeated and a missing number, or without numbers, depending on the first passage."""
    kind = sum(map(ord, passages(prompt)[0])) % 3
    numbers = rank_passages(prompt)
    return [format_numbers(numbers), format_numbers([numbers[0], *numbers[:-1]]), "I would rather not rank 10 texts."][
        kind
    ]


def answer_obediently(prompt: str, body: dict[str, Any]) -> str:
    """Answer by shared words, but with passages that ask for the first rank first."""
    texts = passages(prompt)
    asking = [i for i, text in enumerate(texts, 1) if "rank this passage above" in text]
    return format_numbers(asking + [n for n in rank_passages(prompt) if n not in asking])

"""An OpenAI-compatible endpoint: a prompt goes in, the answer comes out, with the first token's probabilities."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shaketable.errors import BadInput, RankerFailed
from shaketable.rankers.line import NEVER, Line, Reply, on_this_machine

TOPS = 20
"""Alternatives of the first token that a chat server is asked for; a completion server is asked for 5."""
CHAT, COMPLETION = "/chat/completions", "/completions"


@dataclass(frozen=True)
class Answer:
    """What a model wrote, and the log-probabilities of alternatives to its first token, where the server tells."""

    text: str
    tops: Mapping[str, float] = field(default_factory=dict)


def address(url: str) -> str:
    """Where prompts are sent: the URL itself if it ends like an endpoint, otherwise chat below it.

    >>> address("localhost:8080"), address("https://host/v1"), address("http://127.0.0.1:8000/v1/completions")
    ('http://localhost:8080/v1/chat/completions', 'https://host/v1/chat/completions', 'http://127.0.0.1:8000/v1/completions')
    """
    import httpx

    try:
        whole = httpx.URL(url if "://" in url else f"http://{url}")
    except httpx.InvalidURL as error:
        raise BadInput(f"llm: {url!r} is not a URL ({error})") from error
    if whole.scheme not in ("http", "https") or not whole.host:
        raise BadInput(f"llm: {url!r} is not the URL of an endpoint: write http://HOST/v1 or https://HOST/v1")
    if "://" not in url and not on_this_machine(whole.host):
        raise BadInput(f"llm: {url!r} lacks its beginning: write https://{url}, or http:// if that is what it speaks")
    if whole.userinfo:
        raise BadInput(f"llm: the URL for {whole.host} holds a password: take it out, and name the key with key_env")
    path = whole.path.rstrip("/")
    if not path.endswith(COMPLETION):
        path = f"{path or '/v1'}{CHAT}"
    return str(whole.copy_with(path=path))


def key_for(url: str, key_env: str) -> str:
    """The key in an environment variable, if it may be sent there."""
    if not key_env:
        return ""
    import httpx

    key = os.environ.get(key_env, "").strip()
    where = httpx.URL(url)
    if not key:
        raise BadInput(f"llm: key_env names the environment variable {key_env}, and there is no key in it")
    if not (key.isascii() and key.isprintable()):
        raise BadInput(f"llm: the key in {key_env} has characters that an HTTP header cannot carry")
    if where.scheme == "http" and not on_this_machine(where.host):
        raise BadInput(
            f"llm: a key over plain http to {where.host} could be read on the way: write https, or no key_env"
        )
    return key


@dataclass(eq=False)
class Client:
    """An endpoint ready to be asked. What a server does not accept, such as a seed, is left out from then on."""

    line: Line
    model: str = ""
    seed: int = 0
    key_env: str = ""
    spec: Callable[[str], str] = "llm(url=..., model={!r})".format
    """What to write for a model of the server."""
    refused: dict[str, None] = field(default_factory=dict)
    """Settings of a request that the server did not want."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _served: list[str] | None = field(default=None, repr=False)
    """The models that the server lists, once it was asked."""

    @property
    def url(self) -> str:
        return self.line.url

    def ask(self, prompt: str, tokens: int, probabilities: bool = False) -> Answer:
        """The answer to one prompt, in at most so many tokens."""
        self._name_model()
        while True:
            body = json.dumps(self._body(prompt, tokens, probabilities))  # as ASCII: a text may hold half a character
            reply = self.line.ask(body.encode(), NEVER)
            if reply.fine:
                return self._read(reply)
            if reply.status not in (400, 422) or not self._give_way(reply.text, probabilities):
                said = f"answered {reply.status}: {self.line.excerpt(reply)}"
                raise self._failed(f"{said}; {self._remedy(reply)}".rstrip("; "))

    def _body(self, prompt: str, tokens: int, probabilities: bool) -> dict[str, Any]:
        chat = self.url.endswith(CHAT)
        asked: dict[str, Any] = {"messages": [{"role": "user", "content": prompt}]} if chat else {"prompt": prompt}
        limit = "max_completion_tokens" if "max_tokens" in self.refused else "max_tokens"
        settings: dict[str, Any] = {limit: tokens, "temperature": 0, "seed": self.seed}
        if probabilities:
            settings |= {"logprobs": True, "top_logprobs": TOPS} if chat else {"logprobs": 5}
        known = {"model": self.model} if self.model else {}
        return known | asked | {name: value for name, value in settings.items() if name not in self.refused}

    def _give_way(self, message: str, probabilities: bool) -> bool:
        """Leave out the setting that a refusal names; False if it names none of those that may be left out."""
        with self._lock:
            sent = ["max_tokens", "temperature", "seed", *(["top_logprobs", "logprobs"] if probabilities else [])]
            for name in sent:
                if name not in self.refused and re.search(rf"\b{name}\b", message):
                    self.refused[name] = None
                    if name == "top_logprobs":
                        self.refused["logprobs"] = None
                    return True
        return False

    def _name_model(self) -> None:
        """Where no model is named, the one that the server has; several are a question for the user."""
        with self._lock:
            if self.model:
                return
            if self._served is None:
                self._served = self._models()
            if len(self._served) > 1:
                some = ", ".join(self._served[:8]) + (", ..." if len(self._served) > 8 else "")
                raise self._failed(
                    f"has {len(self._served)} models, {some}, so name one: write {self.spec(self._served[0])}"
                )
            self.model = self._served[0] if self._served else ""

    def _models(self) -> list[str]:
        """The models that a server lists; a server that does not tell may not ask either."""
        reply = self.line.get(self.url.removesuffix(COMPLETION).removesuffix("/chat") + "/models")
        try:
            return [str(row["id"]) for row in reply.content["data"]] if reply and reply.fine else []
        except (KeyError, TypeError):
            return []

    def _read(self, reply: Reply) -> Answer:
        try:
            choice = reply.content["choices"][0]
            text = choice["message"]["content"] if "message" in choice else choice["text"]
        except (KeyError, IndexError, TypeError) as error:
            said = self.line.excerpt(replace(reply, text=json.dumps(reply.content)))
            raise self._failed(f"gave no answer of a chat or completion: {said}") from error
        return Answer(text if isinstance(text, str) else "", first_tops(choice.get("logprobs")))

    def _remedy(self, reply: Reply) -> str:
        if reply.status in (401, 403):
            if self.line.secret:
                return f"the key in the environment variable {self.key_env} was sent, and is wrong for this server"
            return "it wants a key, and none was sent: name the environment variable that holds it with key_env"
        if 300 <= reply.status < 400:
            return f"it sends elsewhere, to {reply.headers.get('location', 'nowhere')}: if that is right, write it"
        return {
            404: "is this the address of a chat or completion endpoint (often http://HOST/v1), and the model there?",
            413: "lower window or words",
        }.get(reply.status, "")

    def _failed(self, message: str) -> RankerFailed:
        return RankerFailed(f"{self.url} {message}")


def first_tops(logprobs: Any) -> dict[str, float]:
    """token -> log-probability, of the first token and its alternatives, in either of the two shapes that servers have.

    >>> first_tops({"content": [{"token": "No", "logprob": -0.1, "top_logprobs": [{"token": "No", "logprob": -0.1}]}]})
    {'No': -0.1}
    >>> first_tops({"tokens": ["Yes"], "top_logprobs": [{"Yes": -0.5, "No": -1.0}]}), first_tops(None)
    ({'Yes': -0.5, 'No': -1.0}, {})
    """
    try:
        if content := logprobs.get("content"):
            found = {row["token"]: float(row["logprob"]) for row in content[0]["top_logprobs"]}
        else:
            found = {str(token): float(value) for token, value in logprobs["top_logprobs"][0].items()}
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):
        return {}
    return {token: value for token, value in found.items() if value == value and value <= 0}

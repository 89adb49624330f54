"""A client of an OpenAI-compatible endpoint: it sends a prompt and returns the answer with log-probabilities."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shaketable.core.errors import BadInput, RankerFailed
from shaketable.rankers.http.client import NEVER_STOP, HttpClient, is_local_host
from shaketable.rankers.http.discovery import is_model_name
from shaketable.rankers.http.reply import HttpReply

TOP_LOGPROBS = 20
"""Alternatives of the first token to request from a chat server; for a completion server it is 5."""
CHAT_PATH, COMPLETION_PATH = "/chat/completions", "/completions"


@dataclass(frozen=True)
class Completion:
    """A model's text, and the log-probabilities of alternatives to its first token if the server returns them."""

    text: str
    top_logprobs: Mapping[str, float] = field(default_factory=dict)


def resolve_endpoint_url(url: str) -> str:
    """Return the endpoint for prompts: the URL itself if it ends like an endpoint, otherwise the chat path below it.

    >>> resolve_endpoint_url("localhost:8080"), resolve_endpoint_url("https://host/v1"), resolve_endpoint_url("http://127.0.0.1:8000/v1/completions")
    ('http://localhost:8080/v1/chat/completions', 'https://host/v1/chat/completions', 'http://127.0.0.1:8000/v1/completions')
    """
    import httpx

    try:
        whole = httpx.URL(url if "://" in url else f"http://{url}")
    except httpx.InvalidURL as error:
        raise BadInput(f"llm: {url!r} is not a URL ({error})") from error
    if whole.scheme not in ("http", "https") or not whole.host:
        raise BadInput(f"llm: {url!r} is not the URL of an endpoint: write http://HOST/v1 or https://HOST/v1")
    if "://" not in url and not is_local_host(whole.host):
        raise BadInput(f"llm: {url!r} has no scheme: write https://{url} or http://{url}")
    if whole.userinfo:
        raise BadInput(f"llm: the URL for {whole.host} contains a password: remove it, and pass the key with key_env")
    path = whole.path.rstrip("/")
    if not path.endswith(COMPLETION_PATH):
        path = f"{path or '/v1'}{CHAT_PATH}"
    return str(whole.copy_with(path=path))


def read_key(url: str, key_env: str) -> str:
    """Return the key in an environment variable; refuse to send it unencrypted to another machine."""
    if not key_env:
        return ""
    import httpx

    key = os.environ.get(key_env, "").strip()
    where = httpx.URL(url)
    if not key:
        raise BadInput(f"llm: environment variable {key_env} (the API key, key_env) is not set")
    if not (key.isascii() and key.isprintable()):
        raise BadInput(f"llm: the key in {key_env} has characters that an HTTP header cannot carry")
    if where.scheme == "http" and not is_local_host(where.host):
        raise BadInput(
            f"llm: a key over plain http to {where.host} would be sent unencrypted: write https, or leave out key_env"
        )
    return key


@dataclass(eq=False)
class CompletionClient:
    """A client of a language model server. Settings that the server refuses, such as a seed, are left out."""

    http_client: HttpClient
    model: str = ""
    seed: int = 0
    key_env: str = ""
    format_spec: Callable[[str], str] = "llm(url=..., model={!r})".format
    """Formats the spec for a model of the server."""
    refused_settings: dict[str, None] = field(default_factory=dict)
    """Request settings that the server refused."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _served_models: list[str] | None = field(default=None, repr=False)
    """The models that the server lists, once requested."""

    @property
    def url(self) -> str:
        return self.http_client.url

    def complete(self, prompt: str, max_tokens: int, logprobs: bool = False) -> Completion:
        """Return the answer to one prompt."""
        self._choose_model()
        while True:
            body = json.dumps(
                self._build_body(prompt, max_tokens, logprobs)
            )  # as ASCII: a text may contain lone surrogates
            reply = self.http_client.post(body.encode(), NEVER_STOP)
            if reply.is_success:
                return self._parse_completion(reply)
            if reply.status not in (400, 422) or not self._drop_refused_setting(reply.text, logprobs):
                said = f"answered {reply.status}: {self.http_client.excerpt(reply)}"
                raise self._make_error(f"{said}; {self._suggest_remedy(reply)}".rstrip("; "))

    def _build_body(self, prompt: str, max_tokens: int, logprobs: bool) -> dict[str, Any]:
        chat = self.url.endswith(CHAT_PATH)
        asked: dict[str, Any] = {"messages": [{"role": "user", "content": prompt}]} if chat else {"prompt": prompt}
        limit = "max_completion_tokens" if "max_tokens" in self.refused_settings else "max_tokens"
        settings: dict[str, Any] = {limit: max_tokens, "temperature": 0, "seed": self.seed}
        if logprobs:
            settings |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS} if chat else {"logprobs": 5}
        known = {"model": self.model} if self.model else {}
        return known | asked | {name: value for name, value in settings.items() if name not in self.refused_settings}

    def _drop_refused_setting(self, message: str, logprobs: bool) -> bool:
        """Leave out the setting that a refusal names; return False if it names no optional setting."""
        with self._lock:
            sent = ["max_tokens", "temperature", "seed", *(["top_logprobs", "logprobs"] if logprobs else [])]
            for name in sent:
                if name not in self.refused_settings and re.search(rf"\b{name}\b", message):
                    self.refused_settings[name] = None
                    if name == "top_logprobs":
                        self.refused_settings["logprobs"] = None
                    return True
        return False

    def _choose_model(self) -> None:
        """Set the model to the only one that the server serves; raise an error if there are several."""
        with self._lock:
            if self.model:
                return
            if self._served_models is None:
                self._served_models = self._list_models()
            if len(self._served_models) > 1:
                some = ", ".join(self._served_models[:8]) + (", ..." if len(self._served_models) > 8 else "")
                raise self._make_error(
                    f"has {len(self._served_models)} models ({some}); name one: write "
                    f"{self.format_spec(self._served_models[0])}"
                )
            self.model = self._served_models[0] if self._served_models else ""

    def _list_models(self) -> list[str]:
        """Return the models that a server lists; empty if it lists none."""
        url = self.url.removesuffix(COMPLETION_PATH).removesuffix("/chat") + "/models"
        reply = self.http_client.try_get(url, time.monotonic() + self.http_client.deadline)
        try:
            names = [row["id"] for row in reply.content["data"]] if reply and reply.is_success else []
        except (KeyError, TypeError):
            return []
        return [name for name in names if is_model_name(name)]

    def _parse_completion(self, reply: HttpReply) -> Completion:
        try:
            choice = reply.content["choices"][0]
            text = choice["message"]["content"] if "message" in choice else choice["text"]
        except (KeyError, IndexError, TypeError) as error:
            said = self.http_client.excerpt(reply)
            raise self._make_error(f"answered in a format other than chat or completion: {said}") from error
        return Completion(text if isinstance(text, str) else "", parse_top_logprobs(choice.get("logprobs")))

    def _suggest_remedy(self, reply: HttpReply) -> str:
        if reply.status in (401, 403):
            if self.http_client.secret:
                return f"the key in the environment variable {self.key_env} was sent, but the server rejects it"
            return (
                "the server requires a key, and none was sent: name the environment variable that holds it with key_env"
            )
        if 300 <= reply.status < 400:
            target = reply.headers.get("location", "nowhere")
            return f"the server redirects to {target}: if texts may be sent there, write that address"
        return {
            404: "is this the address of a chat or completion endpoint (often http://HOST/v1) with this model?",
            413: "lower window or words",
        }.get(reply.status, "")

    def _make_error(self, message: str) -> RankerFailed:
        return RankerFailed(f"{self.url} {message}")


def parse_top_logprobs(logprobs: Any) -> dict[str, float]:
    """Return token -> log-probability of the first token and its alternatives, from either of the two common formats.

    >>> token = {"token": "No", "logprob": -0.1}
    >>> parse_top_logprobs({"content": [token | {"top_logprobs": [token]}]})
    {'No': -0.1}
    >>> parse_top_logprobs({"tokens": ["Yes"], "top_logprobs": [{"Yes": -0.5, "No": -1.0}]}), parse_top_logprobs(None)
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

"""An OpenAI-compatible endpoint: a prompt goes in, the answer comes out, with the first token's probabilities."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shaketable.errors import BadInput, RankerFailed
from shaketable.score.sending import refuse_in_plans

if TYPE_CHECKING:
    import httpx

LONGEST_WAIT = 60.0
"""Seconds between two tries, whatever the server asks for."""
MOST_BYTES = 8 << 20
"""Of one answer."""
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


def on_this_machine(host: str) -> bool:
    """Is it a name of the loopback?

    >>> on_this_machine("localhost"), on_this_machine("127.0.0.1"), on_this_machine("api.example.com")
    (True, True, False)
    """
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


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

    url: str
    model: str = ""
    seed: int = 0
    timeout: float = 120.0
    retries: int = 4
    backoff: float = 0.5
    key: str = field(default="", repr=False)
    refused: dict[str, None] = field(default_factory=dict)
    """Settings of a request that the server did not want."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _http: Any = field(default=None, repr=False)
    _named: bool = field(default=False, repr=False)

    def ask(self, prompt: str, tokens: int, probabilities: bool = False) -> Answer:
        """The answer to one prompt, in at most so many tokens."""
        self._name_model()
        while True:
            answer = self._post(self._body(prompt, tokens, probabilities))
            if answer.is_success:
                return self._read(answer)
            if answer.status_code not in (400, 422) or not self._give_way(answer.text, probabilities):
                raise self._failed(
                    f"answered {answer.status_code}: {self._excerpt(answer)}{_remedy(answer.status_code)}"
                )

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
            if self.model or self._named:
                return
            self._named = True
            import httpx

            place = self.url.removesuffix(COMPLETION).removesuffix("/chat") + "/models"
            try:
                answer = self._client().get(place)
                names = [str(row["id"]) for row in answer.json()["data"]] if answer.is_success else []
            except (httpx.HTTPError, ValueError, KeyError, TypeError):
                return  # a server that does not tell may not ask either
            if len(names) > 1:
                some = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
                raise RankerFailed(
                    f"{self.url} has {len(names)} models, so name one: llm(url=..., model=...) of {some}"
                )
            self.model = names[0] if names else ""

    def _client(self) -> httpx.Client:
        import httpx

        refuse_in_plans(self.url)
        if self._http is None:
            key = {"Authorization": f"Bearer {self.key}"} if self.key else {}
            headers = {"Content-Type": "application/json", **key}
            self._http = httpx.Client(headers=headers, timeout=self.timeout)
            weakref.finalize(self, self._http.close)
        client: httpx.Client = self._http
        return client

    def _post(self, body: dict[str, Any]) -> httpx.Response:
        """Ask until there is an answer, waiting twice as long after each failure that may pass by itself."""
        import httpx

        content = json.dumps(body)  # as ASCII: a text may hold half a character
        tried = 0
        while True:
            wait = self.backoff * 2**tried
            tried += 1
            try:
                answer = self._sent(content)
                if answer.status_code != 429 and answer.status_code < 500:
                    return answer
                problem = f"answered {answer.status_code}: {self._excerpt(answer)}"
                asked = answer.headers.get("retry-after", "")
                wait = float(asked) if re.fullmatch(r"\d+(\.\d+)?", asked) else wait
            except httpx.TimeoutException:
                problem = f"gave no answer within {self.timeout:g} seconds; raise timeout, or lower window or words"
            except httpx.RequestError as error:
                problem = f"cannot be reached ({error}); is the server running, and the address right?"
            if tried > self.retries:
                raise self._failed(f"{problem} (tried {tried} times)")
            time.sleep(min(wait, LONGEST_WAIT))

    def _sent(self, content: str) -> httpx.Response:
        """The answer, read piece by piece: one that never ends, by length or by time, is given up."""
        import httpx

        started = time.monotonic()
        with self._client().stream("POST", self.url, content=content) as answer:
            parts: list[bytes] = []
            for part in answer.iter_bytes():
                parts.append(part)
                if sum(map(len, parts)) > MOST_BYTES:
                    raise self._failed(f"answered with more than {MOST_BYTES >> 20} MB")
                if time.monotonic() - started > 2 * self.timeout:
                    raise httpx.ReadTimeout("the answer does not end")
            retry = {name: value for name, value in answer.headers.items() if name.lower() == "retry-after"}
            return httpx.Response(answer.status_code, headers=retry, content=b"".join(parts))

    def _read(self, answer: httpx.Response) -> Answer:
        try:
            choice = answer.json()["choices"][0]
            text = choice["message"]["content"] if "message" in choice else choice["text"]
        except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
            raise self._failed(f"gave no answer of a chat or completion: {self._excerpt(answer)}") from error
        return Answer(text if isinstance(text, str) else "", first_tops(choice.get("logprobs")))

    def _excerpt(self, answer: httpx.Response) -> str:
        """The beginning of what the server said; servers have been seen to repeat the key."""
        said = " ".join(answer.text[:2000].split())
        return repr((said.replace(self.key, "***") if self.key else said)[:200])

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


def _remedy(status: int) -> str:
    return {
        401: "; name the environment variable that holds the key with key_env",
        403: "; is the key in key_env the right one?",
        404: "; is this the address of a chat or completion endpoint (often http://HOST/v1), and the model there?",
        413: "; lower window or words",
    }.get(status, "; it sends elsewhere, so give that address" if 300 <= status < 400 else "")

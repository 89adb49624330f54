"""The line to a server: how many requests are under way, when to try again, how long to wait, and when to stop asking.

Nothing here knows what is asked. Every thread that asks goes through one `Gate`, so that what one of them learns, that
the server is busy or gone, holds for all.
"""

from __future__ import annotations

import ipaddress
import json
import re
import ssl
import time
import weakref
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cached_property
from threading import Condition, Event
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from shaketable.errors import RankerFailed
from shaketable.score.sending import refuse_in_plans

if TYPE_CHECKING:
    import httpx

LONGEST_WAIT = 120.0
"""Seconds between two tries. A server that asks for more is not waited for."""
MOST_BYTES = 64 << 20
"""Of one answer: the scores of a million documents take less."""
ENOUGH = 5
"""Requests in a row that fail for good, each after all its tries: then a server is taken to be gone."""
MOST_HOPS = 5
"""Redirects that are followed for one request."""
BUSY = (429, 503)
"""What a server says that has too much to do."""
MOVED = (301, 302, 307, 308)
NEVER = Event()
"""For who asks alone: nobody else's failure ends the trying."""


class Unreadable(Exception):
    """An answer that says it is fine and is not: a proxy's page, half of a text. The next one may be better."""


@dataclass(frozen=True)
class Reply:
    """What a server answered: `content` is the JSON of a success, None of a refusal."""

    status: int
    text: str
    headers: Mapping[str, str]
    content: Any = None

    @property
    def fine(self) -> bool:
        return 200 <= self.status < 300


@dataclass
class Gate:
    """Lets at most `most` requests through at a time, and fewer while a server says that it has too much to do.

    Each time it says so the number is halved, but once only for all that were under way together; it grows by one
    when as many requests as are allowed at a time were answered in between.
    """

    most: int
    answered: int = 0
    retried: int = 0
    broken: str = ""
    """Why nobody is let through any more."""
    _allowed: int = field(init=False)
    _under_way: int = 0
    _since: int = 0
    _halved: int = 0
    _again_at: float = 0.0
    _lost: int = 0
    _changed: Condition = field(default_factory=Condition, repr=False)

    def __post_init__(self) -> None:
        self._allowed = self.most

    def enter(self, stop: Event) -> bool:
        """Wait for a place, and for the end of a wait that the server asked for; False if nobody is let through."""
        with self._changed:
            while not self.broken and not stop.is_set():
                wait = self._again_at - time.monotonic()
                if wait <= 0 and self._under_way < self._allowed:
                    self._under_way += 1
                    return True
                self._changed.wait(min(wait, 1.0) if wait > 0 else 1.0)
            return False

    def leave(self, answered: bool) -> None:
        with self._changed:
            self._under_way -= 1
            if answered:
                self.answered += 1
                self._lost = 0
                self._since += 1
                if self._allowed < self.most and self._since >= self._allowed:
                    self._allowed, self._since = self._allowed + 1, 0
                    self._changed.notify()
            self._changed.notify()

    def busy(self, wait: float | None) -> None:
        """The server has too much to do; `wait` is for how many seconds it wants to be left alone, if it says so."""
        with self._changed:
            if self.answered >= self._halved:
                self._halved = self.answered + self._under_way
                self._allowed, self._since = max(1, self._allowed // 2), 0
            if wait is not None:
                self._again_at = max(self._again_at, time.monotonic() + wait)

    def again(self) -> None:
        with self._changed:
            self.retried += 1

    def lost(self, problem: str) -> None:
        """A request failed for good. After a few of them in a row nobody is let through any more."""
        with self._changed:
            self._lost += 1
            if self._lost >= ENOUGH and not self.broken:
                self.broken = (
                    f"is not asked any more: {self._lost} requests in a row failed, the last because it {problem}; "
                    f"{self.answered:,} requests had been answered"
                )
                self._changed.notify_all()

    @property
    def status(self) -> str:
        """What goes on, for a progress line; "" while nothing is out of the ordinary."""
        wait = self._again_at - time.monotonic()
        words = [
            "not asked any more" if self.broken else "",
            f"waiting {wait:.0f} s as the server asks" if wait > 0.5 else "",
            f"{self._allowed} at a time" if self._allowed < self.most else "",
            f"{self.retried:,} tried again" if self.retried else "",
        ]
        return ", ".join(filter(None, words))

    @property
    def told(self) -> str:
        """What it took to get the answers, for afterwards; "" if nothing was tried twice."""
        return f"requests answered: {self.answered:,}, tried again: {self.retried:,}" if self.retried else ""


@dataclass(eq=False)
class Line:
    """The line to one address; the secret goes into the headers of requests to its host, and nowhere else."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret: str = field(default="", repr=False)
    timeout: float = 30.0
    deadline: float = 300.0
    retries: int = 4
    backoff: float = 0.5
    concurrency: int = 4
    kind: str = "a rerank endpoint (often /rerank or /v1/rerank)"
    """What is looked for at the address, and what its users can lower where an answer takes too long, for errors."""
    lower: str = "concurrency or --depth"
    gate: Gate = field(init=False)
    _idle: list[httpx.HTTPTransport] = field(init=False, repr=False, default_factory=list)
    """One connection each: what keeps many looks through all of them for every request. Clients, with their cookies and
    their redirects, take twice the processor's time of what they are made of."""

    def __post_init__(self) -> None:
        self.gate = Gate(self.concurrency)
        weakref.finalize(self, _close, self._idle)

    def ask(self, content: bytes, stop: Event) -> Reply:
        """Post until there is an answer or a refusal, waiting twice as long after each failure that may pass by itself.

        While others are answered, a server that says it is busy is alive, and being asked later costs no try.
        """
        import httpx

        tried = 0
        while True:
            if not self.gate.enter(stop):
                raise RankerFailed(f"{self.url} {self.gate.broken or 'was not asked: another request has failed'}")
            before, wait, reply = self.gate.answered, self.backoff * 2**tried, None
            tried += 1
            try:
                reply = self._post(content)
                if reply.status != 429 and reply.status < 500:
                    return reply
                problem = f"answered {reply.status}: {self.excerpt(reply)}"
                remedy = "wait, or lower concurrency" if reply.status == 429 else "look at the server's log"
            except Unreadable as error:
                problem, remedy = str(error), f"is this the address of {self.kind}?"
            except httpx.TimeoutException:
                problem = f"gave no answer within {self.timeout:g} seconds"
                remedy = f"raise timeout, or lower {self.lower}"
            except httpx.RequestError as error:
                problem = f"cannot be reached ({error})"
                remedy = "is the server running, and the address right?"
            finally:
                self.gate.leave(reply is not None and reply.status != 429 and reply.status < 500)
            if reply is not None and reply.status in BUSY:
                asked = asked_to_wait(reply.headers)
                if asked is not None and asked > LONGEST_WAIT:
                    remedy = f"it asks to be left alone for {asked:,.0f} seconds: give the same command again then"
                    tried = self.retries + 1
                else:
                    self.gate.busy(asked)
                    wait = wait if asked is None else 0.0  # the gate waits, for everybody
                    if reply.status == 429 and self.gate.answered > before:
                        tried = 0
            if tried > self.retries:
                self.gate.lost(problem)
                raise RankerFailed(f"{self.url} {problem} (tried {tried} times); {remedy}")
            self.gate.again()
            if stop.wait(min(wait, LONGEST_WAIT)):
                raise RankerFailed(f"{self.url} {problem} (tried {tried} times); {remedy}")

    def get(self, url: str) -> Reply | None:
        """What an address of the same host has to say, asked once; None if it says nothing that can be read."""
        import httpx

        try:
            return self._once("GET", url, None)
        except (httpx.HTTPError, Unreadable):
            return None

    def post_to(self, url: str, content: bytes) -> Reply | None:
        """The same, of a post."""
        import httpx

        try:
            return self._once("POST", url, content)
        except (httpx.HTTPError, Unreadable):
            return None

    def excerpt(self, reply: Reply) -> str:
        """The beginning of what the server said, in one line; servers have been seen to repeat the key."""
        said = " ".join(reply.text.split())
        return repr((said.replace(self.secret, "***") if self.secret else said)[:200])

    def _post(self, content: bytes) -> Reply:
        """Post, and go where a redirect within the host leads; the next request goes there at once."""
        url = self.url
        for _ in range(MOST_HOPS):
            reply = self._once("POST", url, content)
            if reply.status not in MOVED or not (there := within(url, reply.headers.get("location", ""))):
                self.url = url
                return reply
            url = there
        return reply

    def _once(self, method: str, url: str, content: bytes | None) -> Reply:
        """The answer, read piece by piece: one that never ends, by length or by time, is given up."""
        import httpx

        refuse_in_plans(url)
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connection()
        started = time.monotonic()
        parts: list[bytes] = []
        size = 0
        headers = {"Accept-Encoding": "gzip, deflate", "User-Agent": "shaketable", **self.headers}
        patience = {"timeout": httpx.Timeout(self.timeout).as_dict()}
        try:
            request = httpx.Request(method, url, headers=headers, content=content, extensions=patience)
            answer = connection.handle_request(request)
            with closing(answer):
                for part in answer.iter_bytes():
                    parts.append(part)
                    size += len(part)
                    if size > MOST_BYTES:
                        raise Unreadable(f"answered with more than {MOST_BYTES >> 20} MB")
                    if time.monotonic() - started > self.deadline:
                        raise Unreadable(f"gave no whole answer within {self.deadline:g} seconds")
        finally:
            self._idle.append(connection)
        body = b"".join(parts)
        if not answer.is_success:
            return Reply(answer.status_code, body.decode("utf-8", "replace"), answer.headers)
        try:
            return Reply(answer.status_code, "", answer.headers, json.loads(body))
        except (ValueError, RecursionError) as error:
            reply = Reply(answer.status_code, body.decode("utf-8", "replace"), answer.headers)
            raise Unreadable(f"answered no JSON: {self.excerpt(reply)}") from error

    def _connection(self) -> httpx.HTTPTransport:
        import httpx

        limits = httpx.Limits(max_connections=1)
        return httpx.HTTPTransport(verify=self._trusted, limits=limits, proxy=proxy_for(self.url))

    @cached_property
    def _trusted(self) -> ssl.SSLContext:
        """The authorities; reading them takes longer than a request, so all connections share them."""
        import httpx

        return httpx.create_ssl_context()


def _close(connections: list[httpx.HTTPTransport]) -> None:
    for connection in connections:
        connection.close()


def model_at(model: str, url: str) -> str:
    """A model and its host, for tables; "" where no model is named.

    >>> model_at("bge-reranker", "http://localhost:8080/v1/rerank"), model_at("", "http://localhost:8080/v1/rerank")
    ('bge-reranker at localhost:8080', '')
    """
    return f"{model} at {urlsplit(url).netloc}" if model else ""


def on_this_machine(host: str) -> bool:
    """Is it a name of the loopback?

    >>> on_this_machine("localhost"), on_this_machine("127.0.0.1"), on_this_machine("api.example.com")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address, as HTTPS_PROXY, ALL_PROXY and NO_PROXY do."""
    parts = urlsplit(url)
    proxies = getproxies()
    if proxy_bypass(parts.hostname or ""):
        return None
    return proxies.get(parts.scheme) or proxies.get("all")


def within(url: str, location: str) -> str:
    """Where a redirect leads, if it stays on the host and does not give up encryption; otherwise "".

    >>> within("http://host/rerank", "/rerank/"), within("http://host/rerank", "https://host/rerank")
    ('http://host/rerank/', 'https://host/rerank')
    >>> within("https://host/rerank", "https://elsewhere/rerank"), within("https://host/rerank", "http://host/rerank")
    ('', '')
    """
    import httpx

    try:
        here = httpx.URL(url)
        there = here.join(location)
    except (httpx.InvalidURL, ValueError):
        return ""
    safe = there.scheme in ("http", "https") and not (here.scheme == "https" and there.scheme == "http")
    return str(there) if location and safe and there.host == here.host and there != here else ""


def asked_to_wait(headers: Mapping[str, str]) -> float | None:
    """The seconds of Retry-After, which may also be a date; None if it is absent or neither.

    >>> asked_to_wait({"retry-after": "7"}), asked_to_wait({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"})
    (7.0, 0.0)
    >>> asked_to_wait({}), asked_to_wait({"retry-after": "soon"})
    (None, None)
    """
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", value):
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None

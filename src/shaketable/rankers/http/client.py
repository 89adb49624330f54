"""An HTTP client that limits concurrency, retries, waits as the server asks, and stops after repeated failures.

It does not depend on the content of requests. All threads share one `ConcurrencyLimiter`, so if one of them learns that
the server is busy or down, all of them wait or stop.
"""

from __future__ import annotations

import ipaddress
import ssl
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Condition, Event
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from shaketable.core.errors import RankerFailed, truncate
from shaketable.core.redaction import redact, register_secret
from shaketable.rankers.http.reply import HttpReply, UnreadableReply, load_json, parse_retry_after
from shaketable.scoring.network_guard import check_network_allowed

if TYPE_CHECKING:
    from shaketable.rankers.http.connection import Connection

MAX_WAIT_S = 120.0
"""Maximum wait between two attempts. If a server asks for a longer wait, the request fails."""
MAX_FAILURES_IN_A_ROW = 5
"""Consecutive requests that fail after all retries before the server is considered down."""
MAX_REDIRECTS = 5
"""Maximum redirects per request."""
MAX_EXCERPT_CHARS = 200
"""Maximum characters of a response in an error message."""
BUSY_STATUSES = (429, 503)
"""The status codes of a busy server."""
REDIRECT_STATUSES = (301, 302, 307, 308)
NEVER_STOP = Event()
"""The stop event of a request that does not depend on other requests; it is never set."""


@dataclass(frozen=True)
class FailedAttempt:
    """An attempt without an answer; `status` is 0 if there was no readable response."""

    problem: str
    remedy: str
    status: int = 0
    asked_wait: float | None = None
    """The seconds that a busy server asks to wait."""


@dataclass
class ConcurrencyLimiter:
    """A limit of `max_requests` concurrent requests, which is lowered while the server is busy.

    A busy response halves the limit. Several busy responses to requests that were in flight together halve it once.
    After as many answers as the limit, the limit grows by a quarter, at least by one.
    """

    max_requests: int
    answered_count: int = 0
    retry_count: int = 0
    stop_reason: str = ""
    """The reason why no more requests are allowed."""
    _allowed: int = field(init=False)
    _active: int = 0
    _answered_since_change: int = 0
    _next_halving_at: int = 0
    _resume_at: float = 0.0
    _failures_in_a_row: int = 0
    _condition: Condition = field(default_factory=Condition, repr=False)

    def __post_init__(self) -> None:
        self._allowed = self.max_requests

    def acquire(self, stop: Event) -> bool:
        """Wait until a request is allowed, at least as long as the server asked; return False if requests stopped."""
        with self._condition:
            while not self.stop_reason and not stop.is_set():
                wait = self._resume_at - time.monotonic()
                if wait <= 0 and self._active < self._allowed:
                    self._active += 1
                    return True
                self._condition.wait(min(wait, 1.0) if wait > 0 else 1.0)
            return False

    def release(self, answered: bool) -> None:
        with self._condition:
            self._active -= 1
            if answered:
                self.answered_count += 1
                self._failures_in_a_row = 0
                self._answered_since_change += 1
                if self._allowed < self.max_requests and self._answered_since_change >= self._allowed:
                    grown = self._allowed + max(1, self._allowed // 4)
                    self._allowed, self._answered_since_change = min(grown, self.max_requests), 0
                    self._condition.notify_all()
            self._condition.notify()

    def report_busy(self, wait: float | None) -> None:
        """Lower the limit for a busy server, and pause for `wait` seconds if the server asks for a pause."""
        with self._condition:
            if self.answered_count >= self._next_halving_at:
                self._next_halving_at = self.answered_count + self._active
                self._allowed, self._answered_since_change = max(1, self._allowed // 2), 0
            if wait is not None:
                self._resume_at = max(self._resume_at, time.monotonic() + wait)

    def count_retry(self) -> None:
        with self._condition:
            self.retry_count += 1

    def count_failure(self, problem: str) -> None:
        """Count a request that failed after all its retries; after a few in a row, allow no more requests."""
        with self._condition:
            self._failures_in_a_row += 1
            if self._failures_in_a_row >= MAX_FAILURES_IN_A_ROW and not self.stop_reason:
                self.stop_reason = (
                    f"gets no more requests: {self._failures_in_a_row} requests in a row failed, the last because it "
                    f"{problem}; {self.answered_count:,} requests were answered before"
                )
                self._condition.notify_all()

    @property
    def status(self) -> str:
        """The current retries and waits, for a progress bar; "" if there are none."""
        wait = self._resume_at - time.monotonic()
        words = [
            "no more requests" if self.stop_reason else "",
            f"waiting {wait:.0f} s as the server asks" if wait > 0.5 else "",
            f"at most {self._allowed} requests at a time" if self._allowed < self.max_requests else "",
            f"{self.retry_count:,} retries" if self.retry_count else "",
        ]
        return ", ".join(filter(None, words))

    @property
    def retry_summary(self) -> str:
        """The total of retries and waits; "" if nothing was retried."""
        return f"{self.answered_count:,} requests answered, {self.retry_count:,} retries" if self.retry_count else ""


@dataclass(eq=False)
class HttpClient:
    """A client of one address; it sends the secret only in the headers of requests to this origin."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret: str = field(default="", repr=False)
    timeout: float = 30.0
    deadline: float = 300.0
    retries: int = 4
    backoff: float = 0.5
    concurrency: int = 4
    endpoint_description: str = "a rerank endpoint (often /rerank or /v1/rerank)"
    """The expected endpoint; `load_settings` are the options to lower after a timeout. Both are for error messages."""
    load_settings: str = "concurrency or --depth"
    limiter: ConcurrencyLimiter = field(init=False)
    _idle_connections: list[Connection] = field(init=False, repr=False, default_factory=list)
    """Single connections, not an httpcore pool, which would scan all its connections for every request."""

    def __post_init__(self) -> None:
        register_secret(self.secret)
        self.limiter = ConcurrencyLimiter(self.concurrency)
        weakref.finalize(self, _close_connections, self._idle_connections)

    @property
    def max_wait(self) -> float:
        """The longest wait between two attempts, in seconds."""
        return min(MAX_WAIT_S, self.deadline)

    def post(self, content: bytes, stop: Event) -> HttpReply:
        """Post to the address of this client, as `send` does; redirects change the address for later requests."""
        return self.send("POST", "", content, stop)

    def send(self, method: str, url: str, content: bytes, stop: Event) -> HttpReply:
        """Send a request until there is a success or a refusal, and return it.

        The wait doubles after each temporary failure. If the server answers other requests meanwhile, a busy response
        does not count as an attempt. Without a URL, the request goes to the address of this client.
        """
        tried = 0
        while True:
            if not self.limiter.acquire(stop):
                raise RankerFailed(
                    f"{self.url} {self.limiter.stop_reason or 'got no request, because another request failed'}"
                )
            before, wait = self.limiter.answered_count, self.backoff * 2**tried
            outcome = self._attempt_holding_slot(method, url, content)
            if isinstance(outcome, HttpReply):
                return outcome
            tried += 1
            asked = outcome.asked_wait
            if asked is not None and asked > self.max_wait:
                remedy = f"the server asks for a pause of {asked:,.0f} seconds: run the same command again after that"
                outcome, retryable = replace(outcome, remedy=remedy), False
            else:
                wait = wait if asked is None else 0.0  # the limiter makes all threads wait
                if outcome.status == 429 and self.limiter.answered_count > before:
                    tried = 0
                retryable = tried <= self.retries
            if not retryable:
                self.limiter.count_failure(outcome.problem)
            else:
                self.limiter.count_retry()
            if not retryable or stop.wait(min(wait, self.max_wait)):
                raise RankerFailed(f"{self.url} {outcome.problem} ({tried} attempts); {outcome.remedy}")

    def try_get(self, url: str, ends_at: float) -> HttpReply | None:
        """Send one GET request to an address of the same origin; return None if there is no readable response.

        `ends_at` is the deadline, by the monotonic clock.
        """
        return self._try_once("GET", url, b"", ends_at)

    def try_post(self, url: str, content: bytes, ends_at: float) -> HttpReply | None:
        """Send one POST request to an address of the same origin; return None if there is no readable response."""
        return self._try_once("POST", url, content, ends_at)

    def excerpt(self, reply: HttpReply) -> str:
        """Return the beginning of a response in one line, without the key, which some servers repeat."""
        said = " ".join(redact(reply.text, 2 * MAX_EXCERPT_CHARS).split())
        return repr(said[:MAX_EXCERPT_CHARS])

    def _attempt_holding_slot(self, method: str, url: str, content: bytes) -> HttpReply | FailedAttempt:
        """Attempt a request and release its slot; the other threads learn of a busy server before they get the slot."""
        outcome: HttpReply | FailedAttempt | None = None
        try:
            outcome = self._attempt(method, url, content)
            if isinstance(outcome, FailedAttempt) and outcome.status in BUSY_STATUSES:
                asked = outcome.asked_wait
                self.limiter.report_busy(asked if asked is not None and asked <= self.max_wait else None)
            return outcome
        finally:
            self.limiter.release(isinstance(outcome, HttpReply))

    def _attempt(self, method: str, url: str, content: bytes) -> HttpReply | FailedAttempt:
        import httpcore

        wrong_address = f"is this the address of {self.endpoint_description}?"
        try:
            reply = self._send_following_redirects(method, url, content)
        except UnreadableReply as error:
            return FailedAttempt(str(error), error.remedy or wrong_address)
        except httpcore.TimeoutException:
            problem = f"gave no answer within {self.timeout:g} seconds"
            return FailedAttempt(problem, f"raise timeout, or lower {self.load_settings}")
        except httpcore.ProtocolError as error:
            return FailedAttempt(f"gave no valid HTTP response ({truncate(str(error))})", wrong_address)
        except (httpcore.NetworkError, httpcore.ProxyError, httpcore.UnsupportedProtocol) as error:
            problem = f"cannot be reached ({truncate(str(error))})"
            return FailedAttempt(problem, "is the server running, and is the address correct?")
        if reply.is_answer:
            return reply
        remedy = "wait, or lower concurrency" if reply.status == 429 else "look at the server's log"
        asked = parse_retry_after(reply.headers) if reply.status in BUSY_STATUSES else None
        return FailedAttempt(f"answered {reply.status}: {self.excerpt(reply)}", remedy, reply.status, asked)

    def _send_following_redirects(self, method: str, address: str, content: bytes) -> HttpReply:
        """Send a request, and follow redirects within the origin; the address of this client is updated."""
        url, ends_at = address or self.url, time.monotonic() + self.deadline
        for _ in range(MAX_REDIRECTS):
            reply = self._send_once(method, url, content, ends_at)
            if reply.status not in REDIRECT_STATUSES or not (
                there := resolve_redirect(url, reply.headers.get("location", ""))
            ):
                self.url = self.url if address else url
                return reply
            url = there
        return reply

    def _try_once(self, method: str, url: str, content: bytes, ends_at: float) -> HttpReply | None:
        import httpcore

        try:
            return self._send_once(method, url, content, ends_at)
        except (
            httpcore.TimeoutException,
            httpcore.ProtocolError,
            httpcore.NetworkError,
            httpcore.ProxyError,
            httpcore.UnsupportedProtocol,
            UnreadableReply,
        ):
            return None

    def _send_once(self, method: str, url: str, content: bytes, ends_at: float) -> HttpReply:
        """Return the response, with the JSON of a success; raise an error if it cannot be read within the limits."""
        check_network_allowed(url)
        try:
            connection = self._idle_connections.pop()
        except IndexError:
            connection = self._open_connection()
        headers = {"Accept-Encoding": "gzip", "User-Agent": "shaketable", **self.headers}
        try:
            reply = connection.send(method, url, headers, content, self.timeout, self.deadline, ends_at)
        finally:
            self._idle_connections.append(connection)
        if not reply.is_success:
            return reply
        try:
            return replace(reply, content=load_json(reply.body))
        except ValueError as error:
            raise UnreadableReply(f"did not answer with JSON: {self.excerpt(reply)}") from error

    def _open_connection(self) -> Connection:
        from shaketable.rankers.http.connection import Connection

        return Connection(self._ssl_context, find_proxy(self.url))

    @cached_property
    def _ssl_context(self) -> ssl.SSLContext:
        """The certificate authorities, shared by all connections because reading them takes longer than a request."""
        import httpx

        return httpx.create_ssl_context()


def _close_connections(connections: list[Connection]) -> None:
    for connection in connections:
        connection.close()


def describe_model(model: str, url: str) -> str:
    """Return a model and its host, for tables; "" if no model is named.

    >>> describe_model("bge-reranker", "http://localhost:8080/v1/rerank"), describe_model("", "http://localhost:8080/v1/rerank")
    ('bge-reranker at localhost:8080', '')
    """
    return f"{model} at {urlsplit(url).netloc}" if model else ""


def is_local_host(host: str) -> bool:
    """Return True if the host is a loopback name or address.

    >>> is_local_host("localhost"), is_local_host("127.0.0.1"), is_local_host("api.example.com")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def find_proxy(url: str) -> str | None:
    """Return the proxy for an address from the environment variables HTTPS_PROXY, ALL_PROXY and NO_PROXY."""
    parts = urlsplit(url)
    proxies = getproxies()
    if proxy_bypass(parts.hostname or ""):
        return None
    return proxies.get(parts.scheme) or proxies.get("all")


def resolve_redirect(url: str, location: str) -> str:
    """Return the target of a redirect if it has the same origin (scheme, host and port); otherwise "".

    >>> resolve_redirect("http://host/rerank", "/rerank/"), resolve_redirect("http://host/rerank", "http://host:80/v1")
    ('http://host/rerank/', 'http://host/v1')
    >>> resolve_redirect("http://host:81/a", "http://host:82/a"), resolve_redirect("https://host/a", "http://host/a")
    ('', '')
    """
    import httpx

    try:
        here = httpx.URL(url)
        there = here.join(location)
    except (httpx.InvalidURL, ValueError):
        return ""
    same_origin = (there.scheme, there.host, there.port) == (here.scheme, here.host, here.port)
    return str(there) if location and same_origin and there != here else ""

"""An HTTP client that limits concurrency, retries, waits as the server asks, and stops after repeated failures.

It does not depend on the content of requests. All threads share one `ConcurrencyLimiter`, so if one of them learns that
the server is busy or down, all of them wait or stop.
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

from shaketable.core.errors import RankerFailed
from shaketable.scoring.network_guard import check_network_allowed

if TYPE_CHECKING:
    import httpx

MAX_WAIT_S = 120.0
"""Maximum wait between two attempts. If a server asks for a longer wait, the request fails."""
MAX_RESPONSE_BYTES = 64 << 20
"""Maximum size of one response; the scores of a million documents are smaller."""
MAX_FAILURES_IN_A_ROW = 5
"""Consecutive requests that fail after all retries before the server is considered down."""
MAX_REDIRECTS = 5
"""Maximum redirects per request."""
BUSY_STATUSES = (429, 503)
"""The status codes of a busy server."""
REDIRECT_STATUSES = (301, 302, 307, 308)
NEVER_STOP = Event()
"""The stop event of a single request, which no other request stops."""


class UnreadableReply(Exception):
    """A response with a success status but invalid content, such as a proxy's page. A retry may succeed."""


@dataclass(frozen=True)
class HttpReply:
    """A server's response: `content` is the JSON of a success, or None."""

    status: int
    text: str
    headers: Mapping[str, str]
    content: Any = None

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


@dataclass
class ConcurrencyLimiter:
    """A limit of `max_requests` concurrent requests, which is lowered while the server is busy.

    Each busy response halves the limit, but only once for all requests that were in flight together. The limit grows by
    one after as many answered requests as it allows at a time.
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
                    self._allowed, self._answered_since_change = self._allowed + 1, 0
                    self._condition.notify()
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
                    f"is not asked any more: {self._failures_in_a_row} requests in a row failed, the last because it "
                    f"{problem}; {self.answered_count:,} requests had been answered"
                )
                self._condition.notify_all()

    @property
    def status(self) -> str:
        """The current retries and waits, for a progress bar; "" if there are none."""
        wait = self._resume_at - time.monotonic()
        words = [
            "not asked any more" if self.stop_reason else "",
            f"waiting {wait:.0f} s as the server asks" if wait > 0.5 else "",
            f"{self._allowed} at a time" if self._allowed < self.max_requests else "",
            f"{self.retry_count:,} tried again" if self.retry_count else "",
        ]
        return ", ".join(filter(None, words))

    @property
    def retry_summary(self) -> str:
        """The total of retries and waits; "" if nothing was retried."""
        return (
            f"requests answered: {self.answered_count:,}, tried again: {self.retry_count:,}" if self.retry_count else ""
        )


@dataclass(eq=False)
class HttpClient:
    """A client of one address; it sends the secret only in the headers of requests to this host."""

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
    _idle_connections: list[httpx.HTTPTransport] = field(init=False, repr=False, default_factory=list)
    """One connection each: a pool would scan all its connections for every request, and httpx clients, with cookies and
    redirects, take twice the CPU time of transports."""

    def __post_init__(self) -> None:
        self.limiter = ConcurrencyLimiter(self.concurrency)
        weakref.finalize(self, _close_connections, self._idle_connections)

    def post(self, content: bytes, stop: Event) -> HttpReply:
        """Post until there is a success or a refusal, and return it. The wait doubles after each temporary failure.

        If the server answers other requests meanwhile, a busy response does not count as an attempt.
        """
        import httpx

        tried = 0
        while True:
            if not self.limiter.acquire(stop):
                raise RankerFailed(
                    f"{self.url} {self.limiter.stop_reason or 'was not asked: another request has failed'}"
                )
            before, wait, reply = self.limiter.answered_count, self.backoff * 2**tried, None
            tried += 1
            try:
                reply = self._post_following_redirects(content)
                if reply.status != 429 and reply.status < 500:
                    return reply
                problem = f"answered {reply.status}: {self.excerpt(reply)}"
                remedy = "wait, or lower concurrency" if reply.status == 429 else "look at the server's log"
            except UnreadableReply as error:
                problem, remedy = str(error), f"is this the address of {self.endpoint_description}?"
            except httpx.TimeoutException:
                problem = f"gave no answer within {self.timeout:g} seconds"
                remedy = f"raise timeout, or lower {self.load_settings}"
            except httpx.RequestError as error:
                problem = f"cannot be reached ({error})"
                remedy = "is the server running, and the address right?"
            finally:
                self.limiter.release(reply is not None and reply.status != 429 and reply.status < 500)
            if reply is not None and reply.status in BUSY_STATUSES:
                asked = parse_retry_after(reply.headers)
                if asked is not None and asked > MAX_WAIT_S:
                    remedy = f"it asks to be left alone for {asked:,.0f} seconds: give the same command again then"
                    tried = self.retries + 1
                else:
                    self.limiter.report_busy(asked)
                    wait = wait if asked is None else 0.0  # the limiter makes all threads wait
                    if reply.status == 429 and self.limiter.answered_count > before:
                        tried = 0
            if tried > self.retries:
                self.limiter.count_failure(problem)
                raise RankerFailed(f"{self.url} {problem} (tried {tried} times); {remedy}")
            self.limiter.count_retry()
            if stop.wait(min(wait, MAX_WAIT_S)):
                raise RankerFailed(f"{self.url} {problem} (tried {tried} times); {remedy}")

    def try_get(self, url: str) -> HttpReply | None:
        """Send one GET request to an address of the same host; return None if there is no readable response."""
        import httpx

        try:
            return self._send_once("GET", url, None)
        except (httpx.HTTPError, UnreadableReply):
            return None

    def try_post(self, url: str, content: bytes) -> HttpReply | None:
        """Send one POST request to an address of the same host; return None if there is no readable response."""
        import httpx

        try:
            return self._send_once("POST", url, content)
        except (httpx.HTTPError, UnreadableReply):
            return None

    def excerpt(self, reply: HttpReply) -> str:
        """Return the beginning of a response in one line, without the key, which some servers repeat."""
        said = " ".join(reply.text.split())
        return repr((said.replace(self.secret, "***") if self.secret else said)[:200])

    def _post_following_redirects(self, content: bytes) -> HttpReply:
        """Post, and follow redirects within the host; later requests go directly to the new address."""
        url = self.url
        for _ in range(MAX_REDIRECTS):
            reply = self._send_once("POST", url, content)
            if reply.status not in REDIRECT_STATUSES or not (
                there := resolve_redirect(url, reply.headers.get("location", ""))
            ):
                self.url = url
                return reply
            url = there
        return reply

    def _send_once(self, method: str, url: str, content: bytes | None) -> HttpReply:
        """Return the response, read in chunks; raise an error if it is too long or takes too long."""
        import httpx

        check_network_allowed(url)
        try:
            connection = self._idle_connections.pop()
        except IndexError:
            connection = self._open_connection()
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
                    if size > MAX_RESPONSE_BYTES:
                        raise UnreadableReply(f"answered with more than {MAX_RESPONSE_BYTES >> 20} MB")
                    if time.monotonic() - started > self.deadline:
                        raise UnreadableReply(f"gave no whole answer within {self.deadline:g} seconds")
        finally:
            self._idle_connections.append(connection)
        body = b"".join(parts)
        if not answer.is_success:
            return HttpReply(answer.status_code, body.decode("utf-8", "replace"), answer.headers)
        try:
            return HttpReply(answer.status_code, "", answer.headers, json.loads(body))
        except (ValueError, RecursionError) as error:
            reply = HttpReply(answer.status_code, body.decode("utf-8", "replace"), answer.headers)
            raise UnreadableReply(f"answered no JSON: {self.excerpt(reply)}") from error

    def _open_connection(self) -> httpx.HTTPTransport:
        import httpx

        limits = httpx.Limits(max_connections=1)
        return httpx.HTTPTransport(verify=self._ssl_context, limits=limits, proxy=find_proxy(self.url))

    @cached_property
    def _ssl_context(self) -> ssl.SSLContext:
        """The certificate authorities, shared by all connections because reading them takes longer than a request."""
        import httpx

        return httpx.create_ssl_context()


def _close_connections(connections: list[httpx.HTTPTransport]) -> None:
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
    """Return the target of a redirect if it stays on the host and keeps encryption; otherwise "".

    >>> resolve_redirect("http://host/rerank", "/rerank/"), resolve_redirect("http://host/rerank", "https://host/rerank")
    ('http://host/rerank/', 'https://host/rerank')
    >>> resolve_redirect("https://host/rerank", "https://elsewhere/rerank"), resolve_redirect("https://host/rerank", "http://host/rerank")
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


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After, which may also be a date; None if it is absent or invalid.

    >>> parse_retry_after({"retry-after": "7"}), parse_retry_after({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"})
    (7.0, 0.0)
    >>> parse_retry_after({}), parse_retry_after({"retry-after": "soon"})
    (None, None)
    """
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", value):
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None

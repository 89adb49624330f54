"""One connection to a server, with limits on the bytes and the time of each response.

All input and output of httpcore goes through a `LimitedStream`, so the limits hold in every state of the protocol: in
the TLS handshake, between informational responses, within a header, a chunk extension or the body.
"""

from __future__ import annotations

import logging
import socket
import ssl
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import httpcore
import httpx

from shaketable.core.redaction import redact, register_secret
from shaketable.rankers.http.reply import (
    MAX_HEADER_BYTES,
    MAX_RESPONSE_BYTES,
    BodyReader,
    HttpReply,
    UnreadableReply,
    describe_excess,
)

BYTES_PER_WRITE = 1 << 16
HTTPCORE_LOGGERS = ("httpcore.connection", "httpcore.http11", "httpcore.proxy", "httpcore.socks")
"""The loggers that show the headers of responses if you set the level DEBUG."""
KEEPALIVE_S = 5.0
"""Seconds after which an idle connection is opened again; many servers close theirs."""


@dataclass
class ResponseLimits:
    """The time and the bytes that the current response of a connection may still take."""

    deadline: float = 0.0
    ends_at: float = 0.0
    bytes_left: int = 0
    problem: str = ""
    """The problem if the server sends more bytes."""

    def shorten(self, timeout: float | None) -> float:
        """Return the timeout of the next operation, which ends at the deadline; raise an error after the deadline."""
        left = self.ends_at - time.monotonic()
        if left <= 0:
            raise UnreadableReply(
                f"did not complete its answer within {self.deadline:g} seconds",
                "raise deadline, or look at the server's log",
            )
        return left if timeout is None else min(timeout, left)

    def count(self, size: int) -> None:
        """Count bytes from the server; raise an error if they are too many."""
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise UnreadableReply(self.problem)


class LimitedStream(httpcore.NetworkStream):
    """A network stream that counts bytes and ends at the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, limits: ResponseLimits):
        self._stream = stream
        self._limits = limits

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            data = self._stream.read(max_bytes, self._limits.shorten(timeout))
        except httpcore.TimeoutException:
            self._limits.shorten(timeout)  # distinguish a deadline from a timeout
            raise
        self._limits.count(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write in parts, because the timeout of a write begins again whenever the server reads a little."""
        for start in range(0, len(buffer), BYTES_PER_WRITE):
            try:
                self._stream.write(buffer[start : start + BYTES_PER_WRITE], self._limits.shorten(timeout))
            except httpcore.TimeoutException:
                self._limits.shorten(timeout)
                raise

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        try:
            stream = self._stream.start_tls(ssl_context, server_hostname, self._limits.shorten(timeout))
        except httpcore.TimeoutException:
            self._limits.shorten(timeout)
            raise
        return LimitedStream(stream, self._limits)

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class LimitedBackend(httpcore.NetworkBackend):
    """A network backend that opens limited streams."""

    def __init__(self, limits: ResponseLimits):
        self._backend = httpcore.SyncBackend()
        self._limits = limits

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address of the host that accepts; the deadline holds for all addresses together."""
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(error) from error
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for *_, address in addresses:
            try:
                stream = self._backend.connect_tcp(
                    str(address[0]), port, self._limits.shorten(timeout), local_address, socket_options or ()
                )
                return LimitedStream(stream, self._limits)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        self._limits.shorten(timeout)
        raise failure


class Connection:
    """A connection that is opened when it is used, and again after the server closes it."""

    def __init__(self, ssl_context: ssl.SSLContext, proxy: str | None):
        for name in HTTPCORE_LOGGERS:
            logging.getLogger(name).addFilter(_redact_record)  # adds it once
        self._limits = ResponseLimits()
        self._pool = httpcore.ConnectionPool(
            ssl_context=ssl_context,
            proxy=_parse_proxy(proxy) if proxy else None,
            max_connections=1,
            keepalive_expiry=KEEPALIVE_S,
            network_backend=LimitedBackend(self._limits),
        )

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: bytes,
        timeout: float,
        deadline: float,
        ends_at: float,
    ) -> HttpReply:
        """Send a request and return the response, without its JSON; raise an error if it exceeds a limit.

        `timeout` is the maximum of seconds between two parts of the response; `deadline` is the maximum for all of it,
        which ends at the time `ends_at` of the monotonic clock.
        """
        limits = self._limits
        limits.deadline, limits.ends_at = deadline, ends_at
        limits.bytes_left = MAX_HEADER_BYTES
        limits.problem = f"answered with more than {MAX_HEADER_BYTES >> 10} KB of headers"
        target, host = _split_url(url)
        sent = [(b"Host", host), *((name.encode(), value.encode()) for name, value in headers.items())]
        if method == "POST":
            sent.append((b"Content-Length", str(len(content)).encode()))
        waits = {"connect": timeout, "read": timeout, "write": timeout, "pool": timeout}
        response = self._pool.handle_request(
            httpcore.Request(method, target, headers=sent, content=content, extensions={"timeout": waits})
        )
        try:
            max_bytes = MAX_RESPONSE_BYTES + len(content)
            limits.bytes_left, limits.problem = max_bytes, describe_excess(max_bytes)
            received = _join_headers(response.headers)
            reader = BodyReader(received.get("content-encoding", ""), max_bytes)
            assert isinstance(response.stream, Iterable)
            for part in response.stream:
                reader.feed(part)
                limits.shorten(None)  # many small parts may come in one read
        finally:
            response.close()
        return HttpReply(response.status, bytes(reader.body), received)

    def close(self) -> None:
        self._pool.close()


def _redact_record(record: logging.LogRecord) -> bool:
    record.msg, record.args = redact(record.getMessage()), None
    return True


def _join_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers by their names in lower case; repeated headers are joined, as HTTP defines."""
    joined: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined


@lru_cache(maxsize=64)
def _split_url(url: str) -> tuple[httpcore.URL, bytes]:
    """Return an address as httpcore needs it, and the header Host; httpx encodes international names."""
    parts = httpx.URL(url)
    target = httpcore.URL(scheme=parts.raw_scheme, host=parts.raw_host, port=parts.port, target=parts.raw_path)
    return target, parts.netloc


def _parse_proxy(url: str) -> httpcore.Proxy:
    proxy = httpx.Proxy(url)
    register_secret(proxy.auth[1] if proxy.auth else "")
    return httpcore.Proxy(_split_url(str(proxy.url))[0], auth=proxy.raw_auth)

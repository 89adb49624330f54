"""The server of a live page: HTTP on the loopback interface, for one user with a secret address.

A web page of another site can send requests to this server, and can name it by a host of its own (DNS rebinding). So
every request needs the token of the address and a Host header of this server, and a POST request needs JSON and an
Origin that is this server or absent.
"""

from __future__ import annotations

import json
import logging
import secrets
import socket
import socketserver
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from types import TracebackType
from typing import Any

from shaketable.api.viewing.requests import answer_request
from shaketable.api.viewing.session import ViewSession
from shaketable.core.errors import BadInput, ShaketableError
from shaketable.core.redaction import redact
from shaketable.files.reading import parse_json
from shaketable.report.view_page import build_view_policy, render_view_page

LOG = logging.getLogger(__name__)

HOST = "127.0.0.1"
MAX_BODY_BYTES = 2_000_000
"""The largest request; a text of `MAX_CHANGED_CHARS` characters fits in any script."""
DISCARDED_BYTES = 1 << 16
"""Bytes of a refused request that are read at a time."""
IDLE_TIMEOUT_S = 10
POLL_INTERVAL_S = 0.1
"""The time between two checks for a request to stop."""
TOKEN_BYTES = 24
JSON_TYPE, HTML_TYPE = "application/json", "text/html; charset=utf-8"
SAFETY_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""The address has the token, so other sites must not learn it, nor show the page inside theirs."""
WRONG_ADDRESS = "This address is not that of the page. Open the whole address that 'shaketable view' printed."


class ViewServer:
    """A running server of a live page; it ends with `close`, or with the process.

    Parameters
    ----------
    session
        The session that answers the requests.
    port
        The port to listen on; 0 chooses a free one.
    """

    def __init__(self, session: ViewSession, port: int = 0):
        try:
            self._server = _LoopbackServer(session, port)
        except OSError as error:
            reason = error.strerror or str(error)
            raise BadInput(f"port {port} cannot be used ({reason}); choose another one") from error
        self._thread = Thread(target=self._server.serve_forever, args=(POLL_INTERVAL_S,), name="view", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address of the page. Keep it secret: it has the token."""
        return f"http://{HOST}:{self._server.server_port}/{self._server.token}/"

    def wait(self) -> None:
        """Return when the server is closed; Ctrl-C raises KeyboardInterrupt here."""
        while self._thread.is_alive():
            self._thread.join(timeout=1.0)  # a join without a timeout ignores Ctrl-C on Windows

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> ViewServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class _LoopbackServer(ThreadingHTTPServer):
    """An HTTP server that only programs of this machine can reach."""

    def __init__(self, session: ViewSession, port: int):
        super().__init__((HOST, port), _Handler)
        self.session = session
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}
        self.engine_lock = Lock()
        """Held by the request that uses the scoring engine."""

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # that of HTTPServer looks up the host name in the network
        self.server_name, self.server_port = HOST, int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        LOG.info("A request was interrupted.", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """One request on its own connection (HTTP/1.0): it is checked, and answered with the page or with JSON."""

    server: _LoopbackServer
    timeout = IDLE_TIMEOUT_S
    server_version, sys_version = "shaketable", ""

    def do_GET(self) -> None:
        if (path := self._check_address()) is None:
            return
        if path == "":
            with self.server.engine_lock:
                page = render_view_page(self.server.session.describe())
            self._send(HTTPStatus.OK, page, HTML_TYPE)
        else:
            self._send_error(HTTPStatus.NOT_FOUND, "There is no such page.")

    def do_POST(self) -> None:
        path = self._check_address()
        if path is None or (body := self._read_body()) is None:
            return
        try:
            fields = parse_json(body.decode(), Path("request"))
            if not isinstance(fields, dict):
                raise BadInput("the request is not a JSON object")
            with self.server.engine_lock:
                answer = answer_request(self.server.session, path.removeprefix("api/"), fields)
        except ShaketableError as error:
            self._send_error(HTTPStatus.BAD_REQUEST, str(error))
        except UnicodeDecodeError:
            self._send_error(HTTPStatus.BAD_REQUEST, "the request is not UTF-8 text")
        except Exception as error:  # a fault of ours must not end the server
            LOG.info("The request %s failed.", path, exc_info=True)
            self._send_error(HTTPStatus.INTERNAL_SERVER_ERROR, f"internal error ({type(error).__name__}: {error})")
        else:
            self._send(HTTPStatus.OK, json.dumps(answer), JSON_TYPE)

    def _check_address(self) -> str | None:
        """Return the path behind the token; None if the request is refused."""
        token, _, path = self.path.partition("?")[0].removeprefix("/").partition("/")
        if self.headers.get("Host", "") not in self.server.hosts:
            self._refuse(HTTPStatus.FORBIDDEN, f"The server answers to {' and '.join(sorted(self.server.hosts))} only.")
        elif not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.FORBIDDEN, WRONG_ADDRESS)
        else:
            return path
        return None

    def _read_body(self) -> bytes | None:
        """Return the body of a request of our page; None if the request is refused."""
        origin = self.headers.get("Origin")
        length = self.headers.get("Content-Length", "")
        if origin is not None and origin not in {f"http://{host}" for host in self.server.hosts}:
            self._refuse(HTTPStatus.FORBIDDEN, "The request comes from a page of another site.")
        elif self.headers.get_content_type() != JSON_TYPE:
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"The content type should be {JSON_TYPE}.")
        elif not (length.isascii() and length.isdigit()) or "Transfer-Encoding" in self.headers:
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "The request should state its length.")
        elif len(length) > len(str(MAX_BODY_BYTES)) or int(length) > MAX_BODY_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A request has at most {MAX_BODY_BYTES:,} bytes.")
        else:
            return self.rfile.read(int(length))
        return None

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        """Answer before the body is read, then discard the body: otherwise the client may lose the answer."""
        self._send_error(status, sentence)
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_WR)
        for _ in range(MAX_BODY_BYTES // DISCARDED_BYTES):
            if not self.rfile.read1(DISCARDED_BYTES):
                break

    def _send_error(self, status: HTTPStatus, sentence: str) -> None:
        self._send(status, json.dumps({"error": sentence}), JSON_TYPE)

    def _send(self, status: HTTPStatus, text: str, content_type: str) -> None:
        content = redact(text).encode()
        self.send_response(status)
        headers = {"Content-Type": content_type, "Content-Length": str(len(content)), **SAFETY_HEADERS}
        headers |= {"Content-Security-Policy": f"{build_view_policy()}; frame-ancestors 'none'"}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the address has the token."""

"""Servers for the tests of rankers behind an endpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from shaketable.rankers.http.dialects import VENDORS
from tests.servers import Reply, Server, running


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Server]]:
    """Start a server that answers by a function; it ends with the test."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for vendor in VENDORS:
        monkeypatch.delenv(vendor.key_env, raising=False)
    with ExitStack() as stack:

        def start(reply: Reply, **more: Any) -> Server:
            return stack.enter_context(running(Server(reply, **more)))

        yield start

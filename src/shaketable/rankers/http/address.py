"""The address, the key and the client of an endpoint, shared by rerank endpoints and search engines."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shaketable.core.errors import BadInput
from shaketable.rankers.http.client import HttpClient, is_local_host
from shaketable.rankers.http.dialects import find_vendor


def documented_field(default: Any, description: str, example: str, **more: Any) -> Any:
    """Return a field with a description, which `shaketable list rankers http` shows."""
    return field(default=default, metadata={"says": description, "example": example}, **more)


def _limit_field(default: Any, description: str, example: str) -> Any:
    """Return a field that must be named, so that a subclass can put its own fields behind the URL."""
    return documented_field(default, description, example, kw_only=True)


@dataclass(frozen=True)
class EndpointSettings:
    """The settings of an endpoint that do not depend on what it serves."""

    url: str
    timeout: float = _limit_field(30.0, "Seconds to wait for the next part of an answer.", "timeout=5")
    deadline: float = _limit_field(
        300.0, "Maximum seconds for a whole answer, and for a pause that the server asks for.", "deadline=60"
    )
    retries: int = _limit_field(4, "Retries of a failed request.", "retries=10")
    backoff: float = _limit_field(0.5, "Seconds before the first retry; doubled for each further one.", "backoff=2")
    concurrency: int = _limit_field(4, "Maximum requests at a time.", "concurrency=16")
    key_env: str = _limit_field(
        "", "The environment variable that holds the API key; known services have a default.", "key_env='MY_KEY'"
    )

    @property
    def address(self) -> str:
        """The URL with its scheme: http by default, as in a browser, and https at port 443."""
        if re.match(r"[a-z][a-z0-9+.-]*://", self.url, re.IGNORECASE):
            return self.url
        return f"{'https' if re.match(r'[^/]+:443(/|$)', self.url) else 'http'}://{self.url}"

    @property
    def host(self) -> str:
        import httpx

        return httpx.URL(self.address).host

    @property
    def key_variable(self) -> str:
        """The environment variable that holds the key; "" if there is none for this host."""
        vendor = find_vendor(self.host)
        return self.key_env or (vendor.key_env if vendor else "")

    def open_client(self, headers: Mapping[str, str], **description: str) -> HttpClient:
        """Return a client with the limits of these settings; `description` has the texts of its error messages."""
        return HttpClient(
            self.address,
            headers,
            self.read_key(),
            self.timeout,
            self.deadline,
            self.retries,
            self.backoff,
            self.concurrency,
            **description,
        )

    def make_headers(self, header: str, prefix: str) -> dict[str, str]:
        """Return the headers of JSON requests, with the key after its prefix if there is one."""
        key = self.read_key()
        return {"Content-Type": "application/json", **({header: prefix + key} if key else {})}

    def read_key(self) -> str:
        """Return the key for this host. A key with a named variable must be set and must not be sent unencrypted."""
        key = os.environ.get(self.key_variable, "").strip() if self.key_variable else ""
        if self.key_env and not key:
            raise BadInput(f"{self.url}: environment variable {self.key_env} (the API key) is not set")
        if not (key.isascii() and key.isprintable()):
            raise BadInput(f"the key in {self.key_variable} has characters that an HTTP header cannot carry")
        if key and not self.address.lower().startswith("https:") and not is_local_host(self.host):
            raise BadInput(
                f"{self.url}: the key in {self.key_variable} would be sent unencrypted; "
                "write https://, or use a tunnel that ends on localhost"
            )
        return key

    def validate_address(self) -> None:
        """Raise `BadInput` if the URL or a limit of the requests is invalid."""
        import httpx

        try:
            url = httpx.URL(self.address)
        except httpx.InvalidURL as error:
            raise BadInput(f"{self.url!r} is not a URL ({error})") from error
        if url.userinfo:
            raise BadInput(
                f"the URL for {url.host} contains a password: remove it, put the key into an environment variable, and "
                "name that with key_env"
            )
        if url.scheme not in ("http", "https") or not url.host:
            raise BadInput(f"{self.url!r} is not the URL of an endpoint: write http://HOST/PATH or https://HOST/PATH")
        if self.concurrency < 1 or min(self.timeout, self.deadline) <= 0 or self.retries < 0 or self.backoff < 0:
            raise BadInput(
                f"{self.url}: timeout, deadline and concurrency must be above 0; retries and backoff at least 0"
            )

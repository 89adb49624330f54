"""Responses of servers, read within limits: a server can be faulty or hostile."""

from __future__ import annotations

import json
import re
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any

from shaketable.core.errors import quote_value

MAX_RESPONSE_BYTES = 16 << 20
"""Maximum size of a response beyond the size of its request, as sent and decompressed. The scores of 100,000 documents
are smaller; some servers repeat the request."""
MAX_HEADER_BYTES = 1 << 17
"""Maximum size of all headers of a response, with those of informational responses before it."""
MAX_JSON_VALUES = 500_000
"""Maximum values in a JSON text. An empty list takes 3 bytes as text and 80 in memory."""
COMPRESSED_ENCODINGS = ("gzip", "x-gzip", "deflate")


class UnreadableReply(Exception):
    """A response that cannot be read, such as a proxy's error page or an endless body. A retry may succeed.

    `remedy` is advice for the user; "" if the address may be wrong.
    """

    def __init__(self, problem: str, remedy: str = ""):
        super().__init__(problem)
        self.remedy = remedy


@dataclass(frozen=True)
class HttpReply:
    """A server's response: `content` is the JSON of a success, or None."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    """The headers by their names in lower case."""
    content: Any = None

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_answer(self) -> bool:
        """True for a success or a refusal; False for a failure after which a retry may succeed."""
        return self.status != 429 and self.status < 500

    @cached_property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


@dataclass
class BodyReader:
    """A buffer for the body of a response, which decompresses it and limits its size."""

    encoding: str
    """The header Content-Encoding."""
    max_bytes: int
    body: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        encoding = self.encoding.strip().lower()
        if encoding not in ("", "identity", *COMPRESSED_ENCODINGS):
            raise UnreadableReply(
                f"answered with the Content-Encoding {quote_value(encoding)}, of which only gzip is read",
                "let the server or its proxy send gzip or no encoding",
            )
        # with 32 added, zlib reads the headers of gzip and of deflate
        self._decompressor = zlib.decompressobj(32 + zlib.MAX_WBITS) if encoding in COMPRESSED_ENCODINGS else None

    def feed(self, part: bytes) -> None:
        """Add the next bytes of the response."""
        if self._decompressor is not None:
            try:
                part = self._decompressor.decompress(part, self.max_bytes - len(self.body) + 1)
            except zlib.error as error:
                raise UnreadableReply("answered with damaged compressed data", "look at the server's log") from error
        self.body += part
        if len(self.body) > self.max_bytes:
            raise UnreadableReply(describe_excess(self.max_bytes))


def describe_excess(max_bytes: int) -> str:
    """Return the problem of a response that exceeds the size limit."""
    return f"answered with more than {max_bytes >> 20} MB"


def load_json(text: str | bytes) -> Any:
    """Parse JSON; raise a ValueError if it is invalid, nested too deeply, or has more than `MAX_JSON_VALUES` values.

    >>> load_json(b'{"scores": [1, 2]}')
    {'scores': [1, 2]}
    """
    signs = (b",", b"[", b"{") if isinstance(text, bytes) else (",", "[", "{")
    if sum(map(text.count, signs)) > MAX_JSON_VALUES:  # type: ignore[arg-type]
        raise ValueError(f"more than {MAX_JSON_VALUES:,} values")
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After, which may also be a date; None if it is absent or invalid.

    >>> parse_retry_after({"retry-after": "7"}), parse_retry_after({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"})
    (7.0, 0.0)
    >>> parse_retry_after({}), parse_retry_after({"retry-after": "soon"})
    (None, None)
    """
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", value):
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None

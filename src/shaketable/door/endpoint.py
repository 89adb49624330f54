"""What an endpoint is like, before numbers are made with it."""

from __future__ import annotations

import re

from shaketable.data.doctor import Check
from shaketable.door.names import split_name
from shaketable.rankers.checkup import examine
from shaketable.rankers.remote import HTTP
from shaketable.registry import ENDPOINT, RANKERS


def is_endpoint(text: str) -> bool:
    """Does a text name an endpoint: an address, or http(...)?

    >>> is_endpoint("localhost:8080/rerank"), is_endpoint("http(url='https://h/rerank')"), is_endpoint("my-folder/x")
    (True, True, False)
    """
    return bool(re.fullmatch(rf"{ENDPOINT}|http\(.*\)", split_name(text)[1], re.DOTALL))


def examine_endpoint(text: str) -> list[Check]:
    """The dialect, latency, noise, ties, saturation and limits of an endpoint, and whether it ranks at all."""
    settings = RANKERS.build(split_name(text)[1])
    assert isinstance(settings, HTTP)
    return examine(settings)

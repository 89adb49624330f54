"""Checks of an endpoint before an audit."""

from __future__ import annotations

import re

from shaketable.api.ranker_names import split_name
from shaketable.core.registries import ENDPOINT_PATTERN, RANKERS
from shaketable.datasets.validation import ValidationCheck
from shaketable.rankers.http.diagnostics import diagnose_endpoint
from shaketable.rankers.http.reranker import HttpEndpoint


def is_endpoint(text: str) -> bool:
    """Return True if a text names an endpoint: an address, or http(...).

    >>> is_endpoint("localhost:8080/rerank"), is_endpoint("http(url='https://h/rerank')"), is_endpoint("my-folder/x")
    (True, True, False)
    """
    return bool(re.fullmatch(rf"{ENDPOINT_PATTERN}|http\(.*\)", split_name(text)[1], re.DOTALL))


def examine_endpoint(text: str) -> list[ValidationCheck]:
    """Return checks of an endpoint: dialect, latency, noise, ties, saturation, limits, and whether it ranks at all."""
    settings = RANKERS.build(split_name(text)[1])
    assert isinstance(settings, HttpEndpoint)
    return diagnose_endpoint(settings)

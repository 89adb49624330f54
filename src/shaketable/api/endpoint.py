"""Checks of an endpoint before an audit."""

from __future__ import annotations

import re

from shaketable.api.ranker_names import split_name
from shaketable.core.registries import ENDPOINT_PATTERN, RANKERS
from shaketable.datasets.validation import ValidationCheck
from shaketable.rankers.http.diagnostics import diagnose_endpoint
from shaketable.rankers.http.reranker import HttpEndpoint
from shaketable.rankers.http.search_diagnostics import diagnose_engine
from shaketable.rankers.http.searcher import SearchEndpoint


def is_endpoint(text: str) -> bool:
    """Return True if a text names an endpoint: an address, http(...), search:URL or search(...).

    >>> is_endpoint("localhost:8080/rerank"), is_endpoint("http(url='https://h/rerank')"), is_endpoint("my-folder/x")
    (True, True, False)
    >>> is_endpoint("search:http://localhost:9200/films")
    True
    """
    return bool(re.fullmatch(rf"{ENDPOINT_PATTERN}|(?:http|search)\(.*\)|search:.+", split_name(text)[1], re.DOTALL))


def examine_endpoint(text: str) -> list[ValidationCheck]:
    """Return checks of a rerank endpoint or a search engine: dialect, latency, noise, limits, and whether it ranks."""
    settings = RANKERS.build(split_name(text)[1])
    if isinstance(settings, SearchEndpoint):
        return diagnose_engine(settings)
    assert isinstance(settings, HttpEndpoint)
    return diagnose_endpoint(settings)

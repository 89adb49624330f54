"""Dialects of search engines: how each family expects a search request, and where its answer has the hits."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from shaketable.core.errors import BadInput
from shaketable.rankers.http.json_paths import get_field
from shaketable.rankers.http.reply import HttpReply

QUERY_MARK, NUMBER_MARK = "{query}", "{k}"
"""The marks in a template that a search replaces by the text of the query and by the number of hits."""


@dataclass(frozen=True)
class SearchCall:
    """One search request."""

    method: str
    url: str
    content: bytes = b""


@dataclass(frozen=True)
class SearchDialect:
    """The search API of a family of engines."""

    endpoint: str
    """The last part of the path of a search."""
    hits: str
    """The path of the hits in an answer."""
    id: str
    score: str
    document: str = ""
    """The field of a hit that holds the document, as a text or as fields; empty if the hit itself has the fields."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """The parameters of a GET request; without any, a search is a POST request."""
    body: Mapping[str, Any] = field(default_factory=dict)
    key_header: tuple[str, str] = ("Authorization", "Bearer ")
    url_pattern: str = ""
    """A pattern of URLs that belong to this dialect only."""
    base_pattern: str = ""
    """A pattern of the path of an index, to which `endpoint` is added."""

    def complete_url(self, url: str) -> str:
        """Return the URL of the searches of an index; a URL that names an index gets the path of the search API.

        >>> SEARCH_DIALECTS["elasticsearch"].complete_url("http://h:9200/films")
        'http://h:9200/films/_search'
        """
        parts = urlsplit(url)
        path = parts.path.rstrip("/")
        if self.base_pattern and re.fullmatch(self.base_pattern, path):
            path = f"{path}/{self.endpoint}"
        return urlunsplit(parts._replace(path=path))

    def build_call(self, url: str, body: Any, query: str, k: int) -> SearchCall:
        """Return the request for k hits; `body` is the user's template, or None for that of the dialect."""
        if body is None and self.parameters:
            return SearchCall("GET", add_parameters(url, fill_template(self.parameters, query, k)))
        filled = json.dumps(fill_template(self.body if body is None else body, query, k)).encode()
        if body is None and not self.body:
            return SearchCall("GET", fill_url(url, query, k))
        return SearchCall("POST", fill_url(url, query, k), filled)


_ELASTIC = SearchDialect(
    endpoint="_search",
    hits="$.hits.hits[*]",
    id="_id",
    score="_score",
    document="_source",
    body={"query": {"multi_match": {"query": QUERY_MARK, "lenient": True}}, "size": NUMBER_MARK},
    key_header=("Authorization", "ApiKey "),
    url_pattern=r"/_search/?(\?|$)",
    base_pattern=r"(?:/[^/_][^/]*)+",
)
SEARCH_DIALECTS = {
    "elasticsearch": _ELASTIC,
    "opensearch": _ELASTIC,
    "solr": SearchDialect(
        endpoint="select",
        hits="$.response.docs[*]",
        id="id",
        score="score",
        # edismax reads any text; the standard parser refuses queries with signs of its syntax
        parameters={"q": QUERY_MARK, "rows": NUMBER_MARK, "fl": "*,score", "wt": "json", "defType": "edismax"},
        url_pattern=r"/solr/",
        base_pattern=r".*/solr/[^/]+",
    ),
    "anserini": SearchDialect(
        endpoint="search",
        hits="$.candidates[*]",
        id="docid",
        score="score",
        document="doc",
        parameters={"query": QUERY_MARK, "hits": NUMBER_MARK},
        url_pattern=r"/v1/[^/]+/search/?(\?|$)",
        base_pattern=r".*/v1/[^/]+",
    ),
    "json": SearchDialect(endpoint="", hits="$.results[*]", id="id", score="score"),
}
"""The dialects by name; "json" is any other API, described by the settings of the user."""
NEEDS_TEMPLATE = "json"


def detect_search_dialect(url: str) -> str:
    """Return the dialect if the address determines it, or "".

    >>> detect_search_dialect("http://h:8983/solr/films"), detect_search_dialect("http://h:9200/films")
    ('solr', '')
    """
    if QUERY_MARK in url:
        return NEEDS_TEMPLATE
    return next((name for name, d in SEARCH_DIALECTS.items() if d.url_pattern and re.search(d.url_pattern, url)), "")


def fill_template(template: Any, query: str, k: int) -> Any:
    """Return a template with the query and the number of hits; only texts inside values are replaced.

    >>> fill_template({"q": "{query}", "size": "{k}", "page": 1}, 'a "boat"', 5)
    {'q': 'a "boat"', 'size': 5, 'page': 1}
    """
    if isinstance(template, Mapping):
        return {name: fill_template(value, query, k) for name, value in template.items()}
    if isinstance(template, list):
        return [fill_template(value, query, k) for value in template]
    if template == NUMBER_MARK:
        return k
    if isinstance(template, str):
        # the number first, so that a query that contains the mark is not changed
        return template.replace(NUMBER_MARK, str(k)).replace(QUERY_MARK, query)
    return template


def fill_url(url: str, query: str, k: int) -> str:
    """Return a URL with the query and the number of hits in place of the marks.

    >>> fill_url("http://h/find?q={query}&n={k}", "a&b", 3)
    'http://h/find?q=a%26b&n=3'
    """
    return url.replace(NUMBER_MARK, str(k)).replace(QUERY_MARK, quote(query, safe=""))


def add_parameters(url: str, parameters: Mapping[str, Any]) -> str:
    """Return a URL with more parameters; those that the URL has already are kept.

    >>> add_parameters("http://h/select?wt=json&qf=title", {"q": "a b", "wt": "xml"})
    'http://h/select?wt=json&qf=title&q=a+b'
    """
    parts = urlsplit(url)
    own = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    added = urlencode({name: value for name, value in parameters.items() if name not in own})
    return urlunsplit(parts._replace(query="&".join(filter(None, (parts.query, added)))))


def check_template(template: Any, path: str) -> None:
    """Raise `BadInput` if a template has no mark for the query, because every search would then be the same."""
    if QUERY_MARK not in json.dumps(template, ensure_ascii=False):
        raise BadInput(f'has no "{QUERY_MARK}", which each search replaces by its query', path)


def describe_partial_answer(answer: Any) -> str:
    """Return why an answer has only a part of the hits, which engines report beside a success; "" if it is whole.

    >>> describe_partial_answer({"timed_out": False, "_shards": {"total": 5, "failed": 2}})
    '2 of 5 shards failed'
    """
    if get_field(answer, "timed_out") is True:
        return "the search timed out"
    failed = get_field(answer, "_shards.failed")
    if isinstance(failed, int) and failed > 0:
        return f"{failed} of {get_field(answer, '_shards.total')} shards failed"
    return "the search was cut short" if get_field(answer, "responseHeader.partialResults") is True else ""


def recognise_engine(reply: HttpReply) -> str:
    """Return the dialect of the server that sent an answer, which may be a refusal; "" if it is unknown."""
    text = reply.text[:4000]
    if (
        "x-elastic-product" in reply.headers
        or "index_not_found_exception" in text
        or '"security_exception"' in text
        or '"tagline"' in text
        or ('"mappings"' in text and '"aliases"' in text)
    ):
        return "elasticsearch"
    if "/v1/{index}/search" in text:
        return "anserini"
    return "solr" if "responseHeader" in text or re.search(r"\bSolr\b", text) else ""


def looks_like_search_engine(url: str, reply: HttpReply | None = None) -> bool:
    """Return True if an address or an answer belongs to a search engine.

    >>> looks_like_search_engine("http://localhost:9200/films/_search"), looks_like_search_engine("http://h/rerank")
    (True, False)
    """
    return bool(detect_search_dialect(url) or (reply is not None and recognise_engine(reply)))

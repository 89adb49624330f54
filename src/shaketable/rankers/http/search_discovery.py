"""Discovery of a search engine by a few small requests: its dialect, the fields of its hits, and its stability."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from shaketable.core.errors import RankerFailed, truncate
from shaketable.core.registries import RANKERS
from shaketable.rankers.http.client import NEVER_STOP, HttpClient
from shaketable.rankers.http.dialects import DIALECTS, parse_rows
from shaketable.rankers.http.discovery import SAMPLE_QUERY, SAMPLE_TEXTS, suggest_key
from shaketable.rankers.http.hits import Hit, HitFields, parse_hits
from shaketable.rankers.http.json_paths import get_field, list_string_fields, select_rows
from shaketable.rankers.http.reply import HttpReply
from shaketable.rankers.http.search_dialects import (
    NEEDS_TEMPLATE,
    SEARCH_DIALECTS,
    SearchDialect,
    describe_partial_answer,
    detect_search_dialect,
    recognise_engine,
)

if TYPE_CHECKING:
    from shaketable.rankers.http.searcher import SearchEndpoint

SAMPLE_QUERIES = ("water", "time", "people", "new information", "home")
"""Queries of the handshake; the first that finds a document shows the fields of a hit."""
SAMPLE_HITS = 10
TITLE_FIELDS = ("title", "name", "headline")
TEXT_FIELDS = ("text", "contents", "content", "body", "passage", "segment", "abstract", "description", "summary")
MIN_TEXT_CHARS = 20
"""The mean length from which a field with another name counts as the text."""
MAX_NAMED = 8
"""Indexes or fields that a message names."""


@dataclass(frozen=True)
class SearchProfile:
    """What discovery found: the dialect, the address of searches, the fields of hits, and the answer to one query.

    `is_steady` is False if the same search returned two different lists.
    """

    dialect: str
    url: str
    hits: str
    fields: HitFields
    sample_query: str = ""
    sample: tuple[Hit, ...] = ()
    is_steady: bool = True


def discover_engine(
    settings: SearchEndpoint, http_client: HttpClient, template: Any, queries: Sequence[str]
) -> SearchProfile:
    """Detect the settings that the user leaves open; `queries` are some of the user's, if the sample finds nothing."""
    discovery = EngineDiscovery(settings, http_client, template)
    profile = discovery.find_dialect()
    query, rows = discovery.find_rows(profile, queries)
    fields = choose_fields(settings, SEARCH_DIALECTS[profile.dialect], rows, http_client.url)
    profile = replace(profile, fields=fields, sample_query=query)
    first, second = (discovery.search(profile, query, SAMPLE_HITS) for _ in range(2))
    return replace(profile, sample=tuple(first), is_steady=first == second)


@dataclass(frozen=True)
class EngineDiscovery:
    """Requests to a search engine, and the explanation of its refusals."""

    settings: SearchEndpoint
    http_client: HttpClient
    template: Any = None

    def find_dialect(self) -> SearchProfile:
        """Return the dialect and the address of searches: from the settings, from the URL, or by a request."""
        name = self.settings.dialect if self.settings.dialect != "auto" else detect_search_dialect(self.settings.url)
        if not name and self.template is not None:
            name = NEEDS_TEMPLATE
        name = name or self._ask_for_dialect()
        dialect = SEARCH_DIALECTS[name]
        self.http_client.headers = self.settings.make_engine_headers(name)
        url = dialect.complete_url(self.settings.address)
        if self.settings.dialect == "auto" and name == "elasticsearch":
            name = self._name_product()
        fields = HitFields(self.settings.id or dialect.id, (), self.settings.score or dialect.score)
        profile = SearchProfile(name, url, self.settings.hits or dialect.hits, fields)
        self.http_client.url = url
        if not _names_index(dialect, url):
            raise RankerFailed(f"{url} names no index: {self._suggest_index(name)}")
        return profile

    def find_rows(self, profile: SearchProfile, queries: Sequence[str]) -> tuple[str, list[Any]]:
        """Return a query with hits, and these hits as the server sends them."""
        tried = [*SAMPLE_QUERIES, *queries]
        for query in tried:
            if rows := self.request_rows(profile, query, SAMPLE_HITS):
                return query, rows
        raise RankerFailed(
            f"{profile.url} found no document for {len(tried)} queries, such as {tried[-1]!r}: is the index filled, "
            f"and does {profile.hits!r} hold its hits? Otherwise write {self._format_template_spec()}"
        )

    def search(self, profile: SearchProfile, query: str, k: int) -> list[Hit]:
        """Return the hits of a query, best first."""
        rows = self.request_rows(profile, query, k)
        try:
            return parse_hits(rows, SEARCH_DIALECTS[profile.dialect].document, profile.fields)
        except ValueError as error:
            raise RankerFailed(f"{profile.url}, query {query[:60]!r}: {error}") from error

    def request_rows(self, profile: SearchProfile, query: str, k: int) -> list[Any]:
        """Return the hits as the server sends them; on failure, raise an error with a remedy."""
        call = SEARCH_DIALECTS[profile.dialect].build_call(profile.url, self.template, query, k)
        reply = self.http_client.send(call.method, call.url, call.content, NEVER_STOP)
        if not reply.is_success:
            raise RankerFailed(self._explain_refusal(profile, reply, k))
        if partial := describe_partial_answer(reply.content):
            raise RankerFailed(
                f"{profile.url}, query {query[:60]!r}: answered with a part of the hits only, because {partial}; "
                "repair the index, or use --keep-going, which counts such queries as failed"
            )
        rows = select_rows(reply.content, profile.hits)
        if rows is None:
            raise RankerFailed(self._explain_missing_hits(profile, reply))
        return rows[:k]

    def _ask_for_dialect(self) -> str:
        """Return the dialect of a server whose address does not show it."""
        address = self.settings.address
        reply = self._get_page(address, "elasticsearch")  # its keys have a header of their own
        if reply.status in (401, 403) and self.http_client.secret:
            reply = self._get_page(address, NEEDS_TEMPLATE)
        if found := recognise_engine(reply):
            return found
        if reply.status in (401, 403):
            raise RankerFailed(self._format_refusal(reply, suggest_key(self.settings, self.http_client)))
        if self._is_rerank_endpoint():
            raise RankerFailed(describe_rerank_endpoint(address))
        raise RankerFailed(
            f"{address} is not known as a search engine; it answered {reply.status}: "
            f"{self.http_client.excerpt(reply)}; describe its API: write {self._format_template_spec()}"
        )

    def _get_page(self, address: str, dialect: str) -> HttpReply:
        self.http_client.headers = self.settings.make_engine_headers(dialect)
        reply = self.http_client.try_get(address, time.monotonic() + self.http_client.deadline)
        return reply or self.http_client.send("GET", address, b"", NEVER_STOP)  # explains that it cannot be reached

    def _is_rerank_endpoint(self) -> bool:
        body = json.dumps(DIALECTS["cohere"].build_request("", SAMPLE_QUERY, SAMPLE_TEXTS)).encode()
        reply = self.http_client.try_post(self.settings.address, body, time.monotonic() + self.http_client.deadline)
        return bool(reply and reply.is_success and parse_rows(reply.content))

    def _name_product(self) -> str:
        """Return opensearch or elasticsearch; both have the same search API."""
        root = urlunsplit(urlsplit(self.settings.address)._replace(path="/", query=""))
        reply = self.http_client.try_get(root, time.monotonic() + self.http_client.deadline)
        return (
            "opensearch"
            if reply and get_field(reply.content, "version.distribution") == "opensearch"
            else "elasticsearch"
        )

    def _explain_refusal(self, profile: SearchProfile, reply: HttpReply, k: int) -> str:
        if reply.status in (401, 403):
            return self._format_refusal(reply, suggest_key(self.settings, self.http_client))
        if window := re.search(r"[Rr]esult window is too large.{0,80}?\[?(\d+)\]?", reply.text):
            return self._format_refusal(reply, f"the engine refuses {k:,} hits: write --depth {window[1]}")
        if _reports_missing_index(profile.dialect, reply):
            return (
                f"{profile.url} has no such index (it answered {reply.status}): {self._suggest_index(profile.dialect)}"
            )
        if self._is_rerank_endpoint():
            return describe_rerank_endpoint(self.settings.address)
        return self._format_refusal(reply, "")

    def _format_refusal(self, reply: HttpReply, remedy: str) -> str:
        said = f"{self.http_client.url} answered {reply.status}: {self.http_client.excerpt(reply)}"
        return f"{said}; {remedy}" if remedy else said

    def _explain_missing_hits(self, profile: SearchProfile, reply: HttpReply) -> str:
        """Return a message for an answer without hits at the path; a list elsewhere in it is the suggestion."""
        if parse_rows(reply.content):
            return describe_rerank_endpoint(self.settings.address)
        other = find_list_path(reply.content)
        spec = self._format_template_spec(hits=other) if other else self._format_template_spec()
        return (
            f"{profile.url}: the path {profile.hits!r} matches nothing in the answer {self.http_client.excerpt(reply)}"
            f"; write {spec}"
        )

    def _suggest_index(self, name: str) -> str:
        """Return the indexes of the server as a suggestion, if it lists them."""
        found = self._list_indexes(name)
        if not found:
            paths = {"anserini": "/v1/INDEX", "solr": "/solr/CORE"}
            base = urlunsplit(urlsplit(self.settings.address)._replace(path=paths.get(name, "/INDEX"), query=""))
            return f"write {RANKERS.spec(replace(self.settings, url=base))} with the name of an index"
        path = f"/solr/{found[0]}" if name == "solr" else f"/{found[0]}"
        url = urlunsplit(urlsplit(self.settings.address)._replace(path=path, query=""))
        shown = ", ".join(truncate(one) for one in found[:MAX_NAMED])
        return f"the server has {shown}: write {RANKERS.spec(replace(self.settings, url=url))}"

    def _list_indexes(self, name: str) -> list[str]:
        pages = {"solr": "/solr/admin/cores?wt=json", "anserini": ""}
        page = pages.get(name, "/_cat/indices?format=json&h=index")
        if not page:
            return []
        path, _, query = page.partition("?")
        url = urlunsplit(urlsplit(self.settings.address)._replace(path=path, query=query))
        reply = self.http_client.try_get(url, time.monotonic() + self.http_client.deadline)
        if reply is None or not reply.is_success:
            return []
        if name == "solr":
            cores = get_field(reply.content, "status")
            return [core for core in cores if isinstance(core, str)] if isinstance(cores, dict) else []
        rows = reply.content if isinstance(reply.content, list) else []
        names = [row.get("index") for row in rows if isinstance(row, dict)]
        return sorted(name for name in names if isinstance(name, str) and not name.startswith("."))

    def _format_template_spec(self, hits: str = "$.results[*]") -> str:
        known = {"hits": hits, "id": self.settings.id or "id", "text": self.settings.text or "text"}
        body = {} if self.settings.body or "{query}" in self.settings.url else {"body": "template.json"}
        return RANKERS.spec(replace(self.settings, **known, **body))  # type: ignore[arg-type]


def describe_rerank_endpoint(address: str) -> str:
    """Return the error for an address that re-ranks texts in place of searching."""
    return f"{address} is a rerank endpoint, not a search engine: write {address} without 'search'"


def choose_fields(settings: SearchEndpoint, dialect: SearchDialect, rows: Sequence[Any], url: str) -> HitFields:
    """Return the fields of hits that hold id, text and score; raise an error that names the fields there are."""
    identity = settings.id or dialect.id
    spec = RANKERS.spec(replace(settings, id="FIELD"))
    if get_field(rows[0], identity) is None:
        raise RankerFailed(
            f"{url}: the hits have no field {identity!r} for the id; {_name_fields(rows[0])}: write {spec}"
        )
    score = settings.score or dialect.score
    if settings.text is None:
        return HitFields(identity, None, score)
    documents = [get_field(row, dialect.document) if dialect.document else row for row in rows]
    if settings.text:
        wanted = tuple(part.strip() for part in settings.text.split(","))
        missing = [name for name in wanted if all(get_field(one, name) is None for one in documents)]
    else:
        wanted, missing = _guess_text_fields(documents, identity), []
    if wanted and not missing:
        return HitFields(identity, wanted, score)
    if not settings.text and all(isinstance(one, str) for one in documents):
        return HitFields(identity, (), score)
    what = f"no field {missing[0]!r}" if missing else "no text"
    spec, bare = (RANKERS.spec(replace(settings, text=text)) for text in ("FIELD", None))
    raise RankerFailed(
        f"{url}: the hits have {what}; {_name_fields(documents[0])}: write {spec}, or {bare} to audit without texts"
    )


def _guess_text_fields(documents: Sequence[Any], identity: str) -> tuple[str, ...]:
    """Return the title and the text by their usual names, or the field with the longest texts."""
    texts: dict[str, list[str]] = {}
    for one in documents:
        for name, text in list_string_fields(one).items():
            texts.setdefault(name, []).append(text)
    texts.pop(identity, None)
    by_name = {name.rpartition(".")[2].lower(): name for name in reversed(texts)}
    text = next((by_name[name] for name in TEXT_FIELDS if name in by_name), "")
    if not text:
        lengths = {name: sum(map(len, some)) / len(documents) for name, some in texts.items()}
        longest = max(lengths, key=lengths.__getitem__, default="")
        text = longest if longest and lengths[longest] >= MIN_TEXT_CHARS else ""
    title = next((by_name[name] for name in TITLE_FIELDS if name in by_name), "")
    return tuple(dict.fromkeys(filter(None, (title, text)))) if text else ()


def _name_fields(row: Any) -> str:
    names = list(row)[:MAX_NAMED] if isinstance(row, dict) else []
    return f"they have {', '.join(truncate(str(name)) for name in names)}" if names else "they have no fields"


def _names_index(dialect: SearchDialect, url: str) -> bool:
    path = urlsplit(url).path.rstrip("/")
    return bool(path.strip("/")) and path != "/solr" if dialect.endpoint else True


def _reports_missing_index(name: str, reply: HttpReply) -> bool:
    if reply.status == 400:
        return "Unable to open index" in reply.text
    return reply.status == 404 and name != NEEDS_TEMPLATE


def find_list_path(answer: Any, prefix: str = "$", depth: int = 3) -> str:
    """Return the path of the first list of objects in an answer; "" if there is none.

    >>> find_list_path({"took": 1, "data": {"items": [{"id": 1}]}})
    '$.data.items[*]'
    """
    if isinstance(answer, list) and answer and isinstance(answer[0], dict):
        return f"{prefix}[*]"
    if not isinstance(answer, dict) or not depth:
        return ""
    found = (find_list_path(value, f"{prefix}.{name}", depth - 1) for name, value in answer.items())
    return next(filter(None, found), "")

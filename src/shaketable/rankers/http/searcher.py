"""Search engines over HTTP as retrievers: they search their own index and cannot score a text that is not indexed."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

from shaketable.core.documents import Collection, fingerprint
from shaketable.core.errors import BadInput, ShaketableError, UnknownName
from shaketable.core.redaction import register_secret
from shaketable.files.reading import explain_read_errors
from shaketable.rankers.http.address import EndpointSettings, documented_field
from shaketable.rankers.http.client import HttpClient
from shaketable.rankers.http.hits import HitCorpus, order_scores
from shaketable.rankers.http.json_paths import parse_path
from shaketable.rankers.http.reply import load_json
from shaketable.rankers.http.search_dialects import (
    NEEDS_TEMPLATE,
    QUERY_MARK,
    SEARCH_DIALECTS,
    check_template,
    detect_search_dialect,
)
from shaketable.rankers.http.search_discovery import EngineDiscovery, SearchProfile, discover_engine

QUERIES_OF_USER = 5
"""Queries of the collection that the handshake may try if its own queries find nothing."""


@dataclass(frozen=True)
class SearchEndpoint(EndpointSettings):
    """A search engine by the URL of its index: Elasticsearch, OpenSearch, Solr, Anserini, or any JSON API.

    Before the first search, a few small requests detect the dialect and the fields of a hit that hold the id, the text
    and the score. An API that is not known needs a template: a JSON file with "{query}" and "{k}" for POST requests, or
    these marks in the URL for GET requests, and the path of the hits.

    Documents come from the hits, so an audit needs no corpus. The order of the engine is kept, also for tied scores.
    An engine cannot score a text that is not in its index; tasks that change documents leave it out.

    The index behind a URL may change. So cached lists carry the engine's first answer, or `revision`, and are reused
    only after a few searches return the same lists.
    """

    url: str = field(metadata={"says": "The address of the index.", "example": "http://localhost:9200/films"})
    dialect: str = documented_field("auto", "The search API; auto detects it.", "dialect='solr'")
    body: str = documented_field(
        "", "A JSON file with the request; {query} and {k} stand for query and number of hits.", "body='template.json'"
    )
    hits: str = documented_field("", "The path of the hits in an answer.", "hits='$.results[*]'")
    id: str = documented_field("", "The field of a hit with the id of the document.", "id='id'")
    text: str | None = documented_field(
        "", "The field with the text, or several with commas; None: hits have no text.", "text='title,body'"
    )
    score: str = documented_field("", "The field with the score; without scores, ranks count.", "score='score'")
    revision: str = documented_field(
        "", "The version of the index; cached lists of another revision are not used.", "revision='2026-10-01'"
    )
    key_env: str = documented_field(
        "", "The environment variable that holds the API key, or user:password.", "key_env='MY_KEY'", kw_only=True
    )

    def open(self, collection: Collection) -> Any:
        """Check the settings and return the retriever, which sends its first request when it is used."""
        self.validate_address()
        if self.dialect != "auto" and self.dialect not in SEARCH_DIALECTS:
            raise UnknownName("dialect", self.dialect, ["auto", *SEARCH_DIALECTS])
        if self.hits:
            parse_path(self.hits)
        if self.dialect == NEEDS_TEMPLATE and not self.body and QUERY_MARK not in self.url:
            raise BadInput(f"{self.url}: {NEEDS_TEMPLATE} needs {QUERY_MARK} in the URL, or a body='template.json'")
        template = self._read_template()
        name = self.dialect if self.dialect != "auto" else detect_search_dialect(self.url)
        client = self.open_client(
            self.make_engine_headers(name or NEEDS_TEMPLATE),
            endpoint_description="a search engine (such as http://HOST:9200/INDEX)",
        )
        queries = [query.text for query in islice(collection.queries.values(), QUERIES_OF_USER) if query.text.strip()]
        corpus = collection.docs if isinstance(collection.docs, HitCorpus) else None
        if corpus is not None:
            corpus.add_source(self.address)
        return HttpSearcher(self.url, self, client, template, tuple(queries), corpus)

    def make_engine_headers(self, dialect: str) -> dict[str, str]:
        """Return the headers of requests; a key of the form user:password is sent as basic authentication."""
        if ":" not in (key := self.read_key()):
            return self.make_headers(*SEARCH_DIALECTS[dialect].key_header)
        encoded = b64encode(key.encode()).decode()
        register_secret(encoded)
        return {**self.make_headers("Authorization", ""), "Authorization": f"Basic {encoded}"}

    def _read_template(self) -> Any:
        if not self.body:
            return None
        path = Path(self.body)
        with explain_read_errors(path):
            text = path.read_text(encoding="utf-8")
        try:
            template = load_json(text)
        except ValueError as error:
            raise BadInput(f"is not JSON ({error})", path) from error
        check_template([template, self.url], self.body)
        return template


@dataclass(eq=False)
class HttpSearcher:
    """A search engine behind a URL. Its dialect and fields are detected on first use."""

    name: str
    settings: SearchEndpoint
    http_client: HttpClient
    template: Any = None
    queries: tuple[str, ...] = ()
    corpus: HitCorpus | None = None
    volatile: ClassVar[bool] = True
    pointwise: ClassVar[bool] = False
    chunk: ClassVar[int] = 1
    """A search is one request, and each is cached as it arrives."""
    _profile: SearchProfile | ShaketableError | None = field(default=None, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def profile(self) -> SearchProfile:
        """What discovery found; a failed discovery is not repeated."""
        with self._lock:
            if self._profile is None:
                try:
                    self._profile = discover_engine(self.settings, self.http_client, self.template, self.queries)
                except ShaketableError as error:
                    self._profile = error
            if isinstance(self._profile, ShaketableError):
                raise self._profile
            return self._profile

    @property
    def fingerprint(self) -> str:
        """A digest of the requests and of the index: its revision, or the first answer if the engine repeats it."""
        found, settings = self.profile, self.settings
        said = [(hit.docno, f"{hit.score or 0:.2g}") for hit in found.sample] if found.is_steady else []
        asked = (found.url, found.dialect, found.hits, str(found.fields), str(self.template))
        return fingerprint("search", *asked, settings.revision or str(said))

    @property
    def max_concurrency(self) -> int:
        return self.settings.concurrency

    @property
    def offline_traits(self) -> dict[str, Any]:
        """The traits known from the settings, for a plan without requests."""
        return {"pointwise": False, "chunk": 1, "fingerprint": None}

    @property
    def status(self) -> str:
        """Retries and waits, for a progress display."""
        return self.http_client.limiter.status

    @property
    def remark(self) -> str:
        """The remark on the engine for readers of the lists."""
        found = self._profile
        unsteady = isinstance(found, SearchProfile) and not found.is_steady
        return "the same search returned two different lists" if unsteady else ""

    @property
    def notice(self) -> str:
        """What was detected, and a summary of retries and waits."""
        found = self._profile
        detected = describe_profile(found) if isinstance(found, SearchProfile) else ""
        return "; ".join(filter(None, (detected, self.http_client.limiter.retry_summary)))

    def search(self, queries: Sequence[str], k: int) -> list[dict[str, float]]:
        """Return the first k hits of each query, docno -> score, in the order of the engine."""
        return [self._search_one(query, k) if query.strip() else {} for query in queries]

    def _search_one(self, query: str, k: int) -> dict[str, float]:
        profile = self.profile
        hits = EngineDiscovery(self.settings, self.http_client, self.template).search(profile, query, k)
        if self.corpus is not None and profile.fields.text is not None:
            self.corpus.add(self.settings.address, hits)
        return order_scores(hits)


def describe_profile(profile: SearchProfile) -> str:
    """Return what was detected, in words."""
    fields, document = profile.fields, SEARCH_DIALECTS[profile.dialect].document
    text = "no texts" if fields.text is None else f"texts in {' and '.join(fields.text) or document}"
    return f"detected {profile.dialect}, with ids in {fields.id}, {text} and scores in {fields.score}"

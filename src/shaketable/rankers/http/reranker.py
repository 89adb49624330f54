"""Rankers behind an HTTP rerank endpoint: one request per slate, with a limit on concurrent requests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Event, Lock
from typing import Any, ClassVar

import numpy as np

from shaketable.core.documents import Collection, Scores, Slate, fingerprint
from shaketable.core.errors import BadInput, RankerFailed, ShaketableError, UnknownName
from shaketable.core.protocols import Ranker
from shaketable.executors.base import Job, ThreadExecutor, as_completed
from shaketable.rankers.http.address import EndpointSettings, documented_field
from shaketable.rankers.http.client import NEVER_STOP, HttpClient, describe_model
from shaketable.rankers.http.dialects import DIALECTS, detect_dialect_from_url, parse_text_limit
from shaketable.rankers.http.discovery import ServerProfile, discover, make_refusal_error, parse_scores

DEFAULT_TEXTS_PER_REQUEST = 100
"""Texts per request to a server whose limit is unknown."""


@dataclass(frozen=True)
class HttpEndpoint(EndpointSettings):
    """A rerank endpoint by its URL: Cohere, Jina, infinity, vLLM, llama.cpp, TEI, Elasticsearch and others.

    Before the first list, a few small requests detect settings that you leave open (`rankers.http.discovery`): the
    dialect, the model if the server serves only one, and whether the score of a text depends on the other texts of the
    list. If it does not, lists are split at the server's limit, which is read from its error messages; otherwise a
    slate is one request.

    The model behind a URL may change. So cached scores carry the first answers of the server, or `revision`, and are
    reused only after a few requests return the same scores. Each answer is cached as it arrives. The key is sent only
    in the header of requests to this host, and never over plain http to another machine.
    """

    url: str = field(metadata={"says": "The address of the endpoint.", "example": "http://localhost:8080/rerank"})
    dialect: str = documented_field("auto", "The server's request format; auto detects it.", "dialect='tei'")
    model: str = documented_field("", "The model, if the server has several.", "model='BAAI/bge-reranker-v2-m3'")
    pointwise: bool | None = documented_field(
        None,
        "True: scores do not depend on the list, so lists may be split; None: detect this.",
        "pointwise=True",
    )
    batch: int = documented_field(0, "Maximum texts per request; 0: the server's limit.", "batch=32")
    revision: str = documented_field(
        "", "The version of the served model; cached scores of another revision are not used.", "revision='2026-10-01'"
    )

    def open(self, collection: Collection) -> Ranker:
        """Check the settings and return the ranker, which sends its first request when it is used."""
        self._validate()
        dialect = DIALECTS[self.dialect if self.dialect != "auto" else detect_dialect_from_url(self.url) or "cohere"]
        client = self.open_client(self.make_headers(*dialect.key_header) | dict(dialect.headers))
        return HttpReranker(self.display_name or self.url, self, client)

    @property
    def display_name(self) -> str:
        """The model, if one is named, and the host, so a table can tell two models at one address apart."""
        return describe_model(self.model, self.address)

    def _validate(self) -> None:
        self.validate_address()
        if self.batch < 0:
            raise BadInput(f"{self.url}: batch must be at least 0")
        if self.batch and self.pointwise is False:
            raise BadInput(f"{self.url}: batch splits lists, which pointwise=False forbids; leave out one of them")
        if self.dialect != "auto" and self.dialect not in DIALECTS:
            raise UnknownName("dialect", self.dialect, ["auto", *DIALECTS])


@dataclass(eq=False)
class HttpReranker:
    """A ranker behind an HTTP endpoint. Capabilities are detected on first use."""

    name: str
    settings: HttpEndpoint
    http_client: HttpClient
    volatile: ClassVar[bool] = True
    _profile: ServerProfile | ShaketableError | None = field(default=None, repr=False)
    _max_texts: int = 0
    """Texts per request, once known."""
    _lock: Lock = field(default_factory=Lock, repr=False)
    _threads: ThreadExecutor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._threads = ThreadExecutor(self.settings.concurrency)
        self._max_texts = self.settings.batch

    @property
    def profile(self) -> ServerProfile:
        """The detected capabilities of the server; a failed detection is not repeated."""
        with self._lock:
            if self._profile is None:
                try:
                    self._profile = discover(self.settings, self.http_client)
                except ShaketableError as error:
                    self._profile = error
            if isinstance(self._profile, ShaketableError):
                raise self._profile
            return self._profile

    @property
    def pointwise(self) -> bool:
        return self.profile.pointwise

    @property
    def fingerprint(self) -> str:
        """A digest of the requests and the served model: its revision, or its first scores with two digits each.

        Scores that vary between requests are left out.
        """
        said = "" if self.profile.noise else " ".join(f"{score:.2g}" for score in self.profile.scores)
        what = self.settings.revision or said
        return fingerprint("http", self.settings.address, self.profile.dialect, self.profile.model, what)

    @property
    def noise_floor(self) -> float:
        """The noise floor, if known. If lists are split, it includes the effect of the other texts in a list."""
        return max(self.profile.noise or 0.0, (self.profile.list_effect or 0.0) if self.profile.pointwise else 0.0)

    @property
    def max_concurrency(self) -> int:
        return self.settings.concurrency

    @property
    def chunk(self) -> int:
        """The size of one request: a slate, or a batch of pairs. Each is cached as it arrives, as it may cost money."""
        return (self._max_texts or DEFAULT_TEXTS_PER_REQUEST) if self.pointwise else 1

    @property
    def offline_traits(self) -> dict[str, Any]:
        """The traits known from the settings, for a plan without requests; most servers are pointwise."""
        apart = self.settings.pointwise is not False
        return {
            "pointwise": apart,
            "chunk": (self.settings.batch or DEFAULT_TEXTS_PER_REQUEST) if apart else 1,
            "fingerprint": None,
        }

    @property
    def status(self) -> str:
        """Retries and waits, for a progress display."""
        return self.http_client.limiter.status

    @property
    def remark(self) -> str:
        """The remark on the server for readers of the scores."""
        noise = self._profile.noise if isinstance(self._profile, ServerProfile) else None
        return f"two requests with the same list returned scores that differ by up to {noise:.2g}" if noise else ""

    @property
    def notice(self) -> str:
        """A summary of retries and waits."""
        return self.http_client.limiter.retry_summary

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        """Return one array per slate; a slate without documents costs no request."""
        profile = self.profile
        parts = [(i, part) for i, slate in enumerate(slates) for part in self._split(slate)]
        if len(parts) == 1:
            answers = [self._request_scores(profile, parts[0][1], NEVER_STOP)]
        else:
            answers = self._score_concurrently(profile, [part for _, part in parts])
        found: list[list[Scores]] = [[np.empty(0)] for _ in slates]
        for (i, _), scores in zip(parts, answers, strict=True):
            found[i].append(scores)
        return [np.concatenate(scores) if len(scores) > 1 else scores[0] for scores in found]

    def _score_concurrently(self, profile: ServerProfile, parts: Sequence[Slate]) -> list[Scores]:
        stop = Event()
        answers: list[Scores] = [np.empty(0)] * len(parts)
        jobs = ((i, Job(_request_or_stop, self, (profile, part, stop))) for i, part in enumerate(parts))
        for i, scores in as_completed(self._threads, jobs):
            answers[i] = scores
        return answers

    def _split(self, slate: Slate) -> list[Slate]:
        return split_slate(slate, self._max_texts if self.profile.pointwise else 0)

    def _request_scores(self, profile: ServerProfile, slate: Slate, stop: Event) -> Scores:
        """Return the scores of a slate; split it if it is too long for the server and the scores are pointwise."""
        parts = self._split(slate)
        if len(parts) > 1:
            return np.concatenate([self._request_scores(profile, part, stop) for part in parts])
        texts = [doc.text for doc in slate.docs]
        body = json.dumps(DIALECTS[profile.dialect].build_request(profile.model, slate.query, texts)).encode()
        try:
            reply = self.http_client.post(body, stop)
            if reply.is_success:
                return parse_scores(self.http_client, reply, slate)
            if profile.pointwise and (most := parse_text_limit(reply.status, reply.text, len(texts))):
                self._max_texts = min(most, self._max_texts or most)
                return self._request_scores(profile, slate, stop)
            raise make_refusal_error(self.settings, self.http_client, reply, profile.dialect, len(texts))
        except RankerFailed as error:
            if slate.query[:60] in str(error):
                raise
            raise type(error)(f"query {slate.query[:60]!r}: {error}") from error


def _request_or_stop(remote: HttpReranker, profile: ServerProfile, slate: Slate, stop: Event) -> Scores:
    """Send a request in a thread; on an error, stop the retries of the other threads."""
    try:
        return remote._request_scores(profile, slate, stop)
    except BaseException:
        stop.set()
        raise


def split_slate(slate: Slate, size: int) -> list[Slate]:
    """Return the slate in parts of similar length, at most `size` documents each; with 0, the whole slate.

    >>> from shaketable.core.documents import Doc
    >>> [len(part.docs) for part in split_slate(Slate("q", tuple(map(Doc, "abcdefg"))), 3)]
    [3, 2, 2]
    """
    number = -(-len(slate.docs) // (size or len(slate.docs) or 1))
    ends = [len(slate.docs) * i // number for i in range(number + 1)] if number else []
    ends = [len(slate.docs) - end for end in reversed(ends)]  # longer parts first
    return [Slate(slate.query, slate.docs[start:end]) for start, end in pairwise(ends)]

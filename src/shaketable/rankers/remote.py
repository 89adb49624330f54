"""Rankers behind an HTTP rerank endpoint: one request for each slate, as many under way at once as the user says."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Event, Lock
from typing import Any, ClassVar

import numpy as np

from shaketable.errors import BadInput, RankerFailed, ShaketableError, UnknownName
from shaketable.rankers.dialects import DIALECTS, most_texts, told_by, vendor_at
from shaketable.rankers.handshake import Met, meet, refused, scores_of
from shaketable.rankers.line import NEVER, Line, model_at, on_this_machine
from shaketable.score.executor import Job, Threads, completed
from shaketable.types import Collection, Ranker, Scores, Slate, fingerprint

PAIRS = 100
"""Texts of one request to a server whose limit is not known."""


def setting(default: Any, says: str, example: str) -> Any:
    """A field that says what it is for: `shaketable list rankers http` shows it."""
    return field(default=default, metadata={"says": says, "example": example})


@dataclass(frozen=True)
class HTTP:
    """A rerank endpoint by its URL: Cohere, Jina, infinity, vLLM, llama.cpp, TEI, Elasticsearch and others.

    What the settings leave open is found out by a few small requests before the first list is scored
    (`rankers.handshake`): the dialect, the model where the server wants one named and serves only one, and whether a
    text's score depends on the list that it stands in. Where it does not, lists are cut to the server's limit, which
    its refusals tell; otherwise a slate is one request.

    What is served behind a URL may change. So scores are kept on disk under what the server answered then, or under
    `revision`, and are used again only after a few of them were asked for once more and came out the same. Each answer
    is kept as it arrives. The key goes into the request's header, to this host alone and never over plain http to
    another machine.
    """

    url: str = field(metadata={"says": "The address of the endpoint.", "example": "http://localhost:8080/rerank"})
    dialect: str = setting("auto", "How the server wants to be asked; auto finds out.", "dialect='tei'")
    model: str = setting("", "The model, where a server has several.", "model='BAAI/bge-reranker-v2-m3'")
    pointwise: bool | None = setting(
        None,
        "Does a text's score depend on query and text alone? None finds out; True lets lists be cut.",
        "pointwise=True",
    )
    batch: int = setting(0, "The most texts of one request; 0 is what the server takes.", "batch=32")
    revision: str = setting("", "What is served; another revision is another ranker.", "revision='2026-10-01'")
    timeout: float = setting(30.0, "Seconds to wait for the next piece of an answer.", "timeout=5")
    deadline: float = setting(300.0, "Seconds that a whole answer may take.", "deadline=60")
    retries: int = setting(4, "How often a request that failed is tried again.", "retries=10")
    backoff: float = setting(0.5, "Seconds before the second try; they double with each.", "backoff=2")
    concurrency: int = setting(4, "Requests in flight at a time.", "concurrency=16")
    key_env: str = setting(
        "", "The environment variable that has the key; known services have one by default.", "key_env='MY_KEY'"
    )

    def open(self, collection: Collection) -> Ranker:
        """Check the settings; the first request is sent when something is asked of the ranker."""
        self._check()
        dialect = DIALECTS[self.dialect if self.dialect != "auto" else told_by(self.url) or "cohere"]
        key = self._key()
        header, before = dialect.key
        line = Line(
            self.address,
            {"Content-Type": "application/json", **dialect.headers, **({header: before + key} if key else {})},
            key,
            self.timeout,
            self.deadline,
            self.retries,
            self.backoff,
            self.concurrency,
        )
        return Remote(self.called or self.url, self, line)

    @property
    def called(self) -> str:
        """The model, where one is named, and the host: of two models at one address a table shows the difference."""
        return model_at(self.model, self.address)

    @property
    def address(self) -> str:
        """The URL with its scheme: http where none is written, as a browser has it, and https at port 443.

        >>> HTTP("localhost:8080/rerank").address, HTTP("api.example.org:443/rerank").address
        ('http://localhost:8080/rerank', 'https://api.example.org:443/rerank')
        """
        if re.match(r"[a-z][a-z0-9+.-]*://", self.url, re.IGNORECASE):
            return self.url
        return f"{'https' if re.match(r'[^/]+:443(/|$)', self.url) else 'http'}://{self.url}"

    @property
    def host(self) -> str:
        import httpx

        return httpx.URL(self.address).host

    @property
    def key_variable(self) -> str:
        """The environment variable that the key is looked for in; "" if there is none for this host."""
        vendor = vendor_at(self.host)
        return self.key_env or (vendor.key_env if vendor else "")

    def _key(self) -> str:
        """The key for this host; a key that was named must be there, and must not cross the network in the clear."""
        key = os.environ.get(self.key_variable, "").strip() if self.key_variable else ""
        if self.key_env and not key:
            raise BadInput(f"{self.url}: the environment variable {self.key_env} is to have the key, and has none")
        if not (key.isascii() and key.isprintable()):
            raise BadInput(f"the key in {self.key_variable} has characters that an HTTP header cannot carry")
        if key and not self.address.lower().startswith("https:") and not on_this_machine(self.host):
            raise BadInput(
                f"{self.url}: the key in {self.key_variable} would cross the network for all to read; "
                "write https://, or reach the server by a tunnel that ends on localhost"
            )
        return key

    def _check(self) -> None:
        import httpx

        try:
            url = httpx.URL(self.address)
        except httpx.InvalidURL as error:
            raise BadInput(f"{self.url!r} is not a URL ({error})") from error
        if url.userinfo:
            raise BadInput(
                f"the URL for {url.host} holds a password: take it out, put the key into an environment variable, and "
                "name that with key_env"
            )
        if url.scheme not in ("http", "https") or not url.host:
            raise BadInput(f"{self.url!r} is not the URL of an endpoint: write http://HOST/PATH or https://HOST/PATH")
        if (
            self.concurrency < 1
            or min(self.timeout, self.deadline) <= 0
            or self.retries < 0
            or self.backoff < 0
            or self.batch < 0
        ):
            raise BadInput(f"{self.url}: timeout and concurrency must be above 0, retries, backoff, batch not below")
        if self.batch and self.pointwise is False:
            raise BadInput(f"{self.url}: batch cuts lists, which pointwise=False forbids")
        if self.dialect != "auto" and self.dialect not in DIALECTS:
            raise UnknownName("dialect", self.dialect, ["auto", *DIALECTS])


@dataclass(eq=False)
class Remote:
    """An endpoint ready to be asked. What it is like is found out when that is first of interest."""

    name: str
    settings: HTTP
    line: Line
    volatile: ClassVar[bool] = True
    _met: Met | ShaketableError | None = field(default=None, repr=False)
    _most: int = 0
    """Texts of one request, once that is known."""
    _lock: Lock = field(default_factory=Lock, repr=False)
    _threads: Threads = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._threads = Threads(self.settings.concurrency)
        self._most = self.settings.batch

    @property
    def met(self) -> Met:
        """What the first words with the server brought; a server that would not talk is not asked twice."""
        with self._lock:
            if self._met is None:
                try:
                    self._met = meet(self.settings, self.line)
                except ShaketableError as error:
                    self._met = error
            if isinstance(self._met, ShaketableError):
                raise self._met
            return self._met

    @property
    def pointwise(self) -> bool:
        return self.met.pointwise

    @property
    def fingerprint(self) -> str:
        """Of what is asked, and of what is served: its revision, or what it said at first, two digits each.

        What a server said that says something else each time tells nothing.
        """
        said = "" if self.met.noise else " ".join(f"{score:.2g}" for score in self.met.scores)
        what = self.settings.revision or said
        return fingerprint("http", self.settings.address, self.met.dialect, self.met.model, what)

    @property
    def floor(self) -> float:
        """The noise floor, as far as it is known: what other texts beside a text change counts where lists are cut."""
        return max(self.met.noise or 0.0, (self.met.apart or 0.0) if self.met.pointwise else 0.0)

    @property
    def in_flight(self) -> int:
        return self.settings.concurrency

    @property
    def chunk(self) -> int:
        """One request: a slate, or a batch of pairs; each is kept as it arrives, for it may have been paid for."""
        return (self._most or PAIRS) if self.pointwise else 1

    @property
    def unasked(self) -> dict[str, Any]:
        """Its traits as far as settings tell them, for a plan that sends nothing: most servers score text by text."""
        apart = self.settings.pointwise is not False
        return {"pointwise": apart, "chunk": (self.settings.batch or PAIRS) if apart else 1, "fingerprint": None}

    @property
    def status(self) -> str:
        """Retries and waits, for whoever looks on."""
        return self.line.gate.status

    @property
    def remark(self) -> str:
        """What a reader of the scores should know of the server."""
        noise = self._met.noise if isinstance(self._met, Met) else None
        return f"scores of the same list, asked for twice, differed by up to {noise:.2g}" if noise else ""

    @property
    def notice(self) -> str:
        """What it took to get the scores."""
        return self.line.gate.told

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        """One array a slate, in order; a slate without documents costs no request."""
        met = self.met
        parts = [(i, part) for i, slate in enumerate(slates) for part in self._cut(slate)]
        if len(parts) == 1:
            answers = [self._ask(met, parts[0][1], NEVER)]
        else:
            answers = self._together(met, [part for _, part in parts])
        found: list[list[Scores]] = [[np.empty(0)] for _ in slates]
        for (i, _), scores in zip(parts, answers, strict=True):
            found[i].append(scores)
        return [np.concatenate(scores) if len(scores) > 1 else scores[0] for scores in found]

    def _together(self, met: Met, parts: Sequence[Slate]) -> list[Scores]:
        stop = Event()
        answers: list[Scores] = [np.empty(0)] * len(parts)
        jobs = ((i, Job(_asked, self, (met, part, stop))) for i, part in enumerate(parts))
        for i, scores in completed(self._threads, jobs):
            answers[i] = scores
        return answers

    def _cut(self, slate: Slate) -> list[Slate]:
        return cut(slate, self._most if self.met.pointwise else 0)

    def _ask(self, met: Met, slate: Slate, stop: Event) -> Scores:
        """The scores of a slate; one that the server finds too long is asked for in parts, where that is allowed."""
        parts = self._cut(slate)
        if len(parts) > 1:
            return np.concatenate([self._ask(met, part, stop) for part in parts])
        texts = [doc.text for doc in slate.docs]
        body = json.dumps(DIALECTS[met.dialect].request(met.model, slate.query, texts)).encode()
        try:
            reply = self.line.ask(body, stop)
            if reply.fine:
                return scores_of(self.line, reply, slate)
            if met.pointwise and (most := most_texts(reply.status, reply.text, len(texts))):
                self._most = min(most, self._most or most)
                return self._ask(met, slate, stop)
            raise refused(self.settings, self.line, reply, met.dialect, len(texts))
        except RankerFailed as error:
            if slate.query[:60] in str(error):
                raise
            raise RankerFailed(f"query {slate.query[:60]!r}: {error}") from error


def _asked(remote: Remote, met: Met, slate: Slate, stop: Event) -> Scores:
    """A request in a thread; after an error nobody wants the others' answers: let them not go on trying."""
    try:
        return remote._ask(met, slate, stop)
    except BaseException:
        stop.set()
        raise


def cut(slate: Slate, size: int) -> list[Slate]:
    """The slate in parts of about one length, of at most `size` documents; 0 means whole, and no documents no part.

    >>> from shaketable.types import Doc
    >>> [len(part.docs) for part in cut(Slate("q", tuple(map(Doc, "abcdefg"))), 3)]
    [3, 2, 2]
    """
    number = -(-len(slate.docs) // (size or len(slate.docs) or 1))
    ends = [len(slate.docs) * i // number for i in range(number + 1)] if number else []
    ends = [len(slate.docs) - end for end in reversed(ends)]  # the longer ones first
    return [Slate(slate.query, slate.docs[start:end]) for start, end in pairwise(ends)]

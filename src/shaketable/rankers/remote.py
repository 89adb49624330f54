"""Rankers behind an HTTP rerank endpoint: one request for each slate, several under way at once."""

from __future__ import annotations

import json
import os
import re
import time
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from threading import Event
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.errors import BadInput, RankerFailed, UnknownName
from shaketable.score.road import checked
from shaketable.types import Collection, Ranker, Scores, Slate, fingerprint

if TYPE_CHECKING:
    import httpx

LONGEST_WAIT = 60.0
"""Seconds between two tries, whatever back-off or the server's Retry-After ask for."""
MOST_BYTES = 64 << 20
"""Of one answer: the scores of a million documents take less."""


@dataclass(frozen=True)
class Dialect:
    """How a family of servers wants to be asked and how it answers: the names of the JSON fields."""

    documents: str = "documents"
    results: str = "results"
    """Where the list is in the answer; empty if the answer is the list."""
    score: str = "relevance_score"
    query: str = "query"
    top: str = ""
    """The field that says how many results to send back: always all of them."""
    extra: Mapping[str, object] = field(default_factory=dict)
    wrapped: bool = False
    """Each text goes as {"text": ...}."""
    key: tuple[str, str] = ("Authorization", "Bearer ")
    """The header that carries the key, and what stands before the key."""
    headers: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    """A pattern of URLs that can be of this dialect only."""

    def request(self, model: str, query: str, texts: Sequence[str]) -> dict[str, object]:
        """The body to send. Servers refuse an empty text, so a blank stands for it."""
        filled = [text or " " for text in texts]
        return {
            **({"model": model} if model else {}),
            self.query: query or " ",
            self.documents: [{"text": text} for text in filled] if self.wrapped else filled,
            **({self.top: len(texts)} if self.top else {}),
            **self.extra,
        }

    def rows(self, answer: Any) -> list[tuple[Any, Any]] | None:
        """(index, score) of each result, in the server's order; None if the answer has another shape."""
        try:
            return [(row["index"], row[self.score]) for row in (answer[self.results] if self.results else answer)]
        except (KeyError, TypeError, IndexError):
            return None


DIALECTS = {
    # Cohere, Jina, vLLM and llama.cpp
    "cohere": Dialect(top="top_n"),
    # Hugging Face text-embeddings-inference; raw scores, for the sigmoid's saturate and tie
    "tei": Dialect("texts", "", "score", extra={"raw_scores": True, "truncate": True}),
    "voyage": Dialect("documents", "data", top="top_k", address=r"voyageai\.com"),
    "mixedbread": Dialect("input", "data", "score", top="top_k", address=r"mixedbread\.\w+/"),
    "pinecone": Dialect(
        results="data",
        score="score",
        top="top_n",
        extra={"return_documents": False},
        wrapped=True,
        key=("Api-Key", ""),
        headers={"X-Pinecone-API-Version": "2025-10"},
        address=r"pinecone\.io",
    ),
    "elasticsearch": Dialect("input", "rerank", key=("Authorization", "ApiKey "), address=r"/_inference/"),
    "vllm-score": Dialect("text_2", "data", "score", query="text_1", address=r"/score/?$"),
}

REMEDIES = {
    401: "put the key into the environment variable {key_env}",
    403: "check the key in the environment variable {key_env}",
    404: "is this the address of a rerank endpoint (often /rerank or /v1/rerank)?",
    405: "is this the address of a rerank endpoint (often /rerank or /v1/rerank)?",
    413: "the list is too long for this server; lower --depth, or, if its scores do not depend on the list, "
    "set pointwise=True and batch to what it takes",
}


@dataclass(frozen=True)
class HTTP:
    """A rerank endpoint by its URL: Cohere, Jina, vLLM, llama.cpp, TEI, Elasticsearch and others.

    `dialect` "auto" goes by the URL and is "cohere" where the URL does not say; if the server turns out to speak
    another, the error names it. A slate is one request, since a server may score a text by the list it stands in. Where
    you know that it does not, `pointwise=True` promises so, and `batch` cuts slates to the server's limit.

    What is served behind a URL may change. So scores that are kept on disk are used again only after a few of them
    were asked for once more and came out the same; another `revision` is another ranker. Each answer is kept as it
    arrives. `timeout` is for each wait, `deadline` for a whole answer, which has at most `MOST_BYTES`. The key comes
    from the environment variable `key_env` and goes nowhere but into the request's header.
    """

    url: str
    dialect: str = "auto"
    model: str = ""
    pointwise: bool = False
    batch: int = 0
    revision: str = ""
    timeout: float = 30.0
    deadline: float = 300.0
    retries: int = 4
    backoff: float = 0.5
    concurrency: int = 4
    key_env: str = "SHAKETABLE_API_KEY"

    def open(self, collection: Collection) -> Ranker:
        """Check the settings and make a client; the first request is the first scoring."""
        import httpx

        self._check()
        name = self._spoken()
        dialect = DIALECTS[name]
        key = os.environ.get(self.key_env, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise BadInput(f"the key in {self.key_env} has characters that an HTTP header cannot carry")
        header, before = dialect.key
        headers = {"Content-Type": "application/json", **dialect.headers, **({header: before + key} if key else {})}
        limits = httpx.Limits(max_connections=self.concurrency)
        client = httpx.Client(headers=headers, timeout=self.timeout, limits=limits)
        ranker = Remote(
            name=f"{self.model} at {self.url}" if self.model else self.url,
            pointwise=self.pointwise,
            fingerprint=fingerprint("http", self.url, name, self.model, self.revision),
            model=self,
            dialect=dialect,
            client=client,
            key=key,
        )
        weakref.finalize(ranker, client.close)
        return ranker

    def _check(self) -> None:
        import httpx

        try:
            url = httpx.URL(self.url)
        except httpx.InvalidURL as error:
            raise BadInput(f"{self.url!r} is not a URL ({error})") from error
        if url.userinfo:
            raise BadInput(f"the URL for {url.host} holds a password: take it out, and put a key into {self.key_env}")
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
        if self.batch and not self.pointwise:
            raise BadInput(f"{self.url}: batch cuts slates, which only pointwise=True allows")

    def _spoken(self) -> str:
        if self.dialect == "auto":
            known = (name for name, d in DIALECTS.items() if d.address and re.search(d.address, self.url))
            return next(known, "cohere")
        if self.dialect not in DIALECTS:
            raise UnknownName("dialect", self.dialect, ["auto", *DIALECTS])
        return self.dialect


class Unreadable(Exception):
    """An answer that says it is fine and is not: a proxy's page, half of a text. The next one may be better."""


@dataclass(eq=False)
class Remote:
    """An endpoint ready to be asked."""

    name: str
    pointwise: bool
    fingerprint: str | None
    model: HTTP
    dialect: Dialect
    client: httpx.Client = field(repr=False)
    key: str = field(repr=False)
    volatile: ClassVar[bool] = True

    @property
    def in_flight(self) -> int:
        return self.model.concurrency

    @property
    def chunk(self) -> int:
        """One request: a slate, or a batch of pairs; each is kept as it arrives, for it may have been paid for."""
        return (self.model.batch or 100) if self.pointwise else 1

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        """One array a slate, in order; a slate without documents costs no request."""
        parts = [cut(slate, self.model.batch) for slate in slates]
        stop = Event()
        with ThreadPoolExecutor(self.model.concurrency) as pool:
            answers = pool.map(partial(self._ask, stop), [part for cuts in parts for part in cuts])
            try:
                return [np.concatenate([np.empty(0), *islice(answers, len(cuts))]) for cuts in parts]
            finally:  # after an error nobody wants the others' answers: let them not go on trying
                stop.set()

    def _ask(self, stop: Event, slate: Slate) -> Scores:
        """Ask until there is an answer, waiting twice as long after each failure that may pass by itself."""
        import httpx

        body = json.dumps(self.dialect.request(self.model.model, slate.query, [doc.text for doc in slate.docs]))
        tried = 0
        while True:
            wait = self.model.backoff * 2**tried
            tried += 1
            try:
                answer = self._post(body)
                if answer.status_code != 429 and answer.status_code < 500:
                    return self._read(slate, answer)
                problem = f"answered {answer.status_code}: {self._excerpt(answer)}"
                remedy = "wait, or lower concurrency" if answer.status_code == 429 else "look at the server's log"
                wait = asked_to_wait(answer.headers, wait)
            except Unreadable as error:
                problem, remedy = str(error), REMEDIES[404]
            except httpx.TimeoutException:
                problem = f"gave no answer within {self.model.timeout:g} seconds"
                remedy = "raise timeout, or lower concurrency or --depth"
            except httpx.RequestError as error:
                problem = f"cannot be reached ({error})"
                remedy = "is the server running, and the address right?"
            if tried > self.model.retries or stop.wait(min(wait, LONGEST_WAIT)):
                raise self._failed(slate, f"{problem} (tried {tried} times); {remedy}")

    def _post(self, body: str) -> httpx.Response:
        """The answer, read piece by piece: one that never ends, by length or by time, is given up."""
        import httpx

        started = time.monotonic()
        with self.client.stream("POST", self.model.url, content=body) as answer:
            parts: list[bytes] = []
            size = 0
            for part in answer.iter_bytes():
                parts.append(part)
                size += len(part)
                if size > MOST_BYTES:
                    raise Unreadable(f"answered with more than {MOST_BYTES >> 20} MB")
                if time.monotonic() - started > self.model.deadline:
                    raise Unreadable(f"gave no whole answer within {self.model.deadline:g} seconds")
            # what was read is plain: it must not be unpacked a second time
            headers = {
                k: v for k, v in answer.headers.items() if k.lower() not in ("content-encoding", "content-length")
            }
            return httpx.Response(answer.status_code, headers=headers, content=b"".join(parts), request=answer.request)

    def _read(self, slate: Slate, answer: httpx.Response) -> Scores:
        if not answer.is_success:
            remedy = REMEDIES.get(answer.status_code, self._other_dialect(answer.text))
            problem = f"answered {answer.status_code}: {self._excerpt(answer)}"
            raise self._failed(slate, f"{problem}; {remedy.format(key_env=self.model.key_env)}".rstrip("; "))
        try:
            content = answer.json()
        except (ValueError, RecursionError) as error:
            raise Unreadable(f"answered no JSON: {self._excerpt(answer)}") from error
        rows = self.dialect.rows(content)
        if rows is None:
            fitting = [name for name, d in DIALECTS.items() if d.rows(content)]
            remedy = f"set dialect to {fitting[0]!r}" if fitting else f"set dialect to one of {', '.join(DIALECTS)}"
            raise self._failed(slate, f"answered in another shape: {self._excerpt(answer)}; {remedy}")
        scores = {index: score for index, score in rows if isinstance(index, int)}
        wanted = range(len(slate.docs))
        if len(rows) != len(wanted) or scores.keys() != set(wanted):
            got = ", ".join(str(index) for index, _ in rows[:10]) + (", ..." if len(rows) > 10 else "")
            raise self._failed(
                slate,
                f"scored {len(rows)} texts of {len(wanted)} (indexes {got or 'none'}), each must come once; "
                "has the server a limit of its own on how many it returns?",
            )
        return checked(self.name, slate, [scores[i] for i in wanted])

    def _other_dialect(self, message: str) -> str:
        """A server that misses a field names it, which tells its dialect; serde and pydantic word it so."""
        missed = re.findall(r"""(?:missing field|"body",)\s*["`](\w+)["`]""", message)
        name = next((name for name, d in DIALECTS.items() if d.documents in missed), "")
        return f"it seems to speak another dialect: set dialect to {name!r}" if name else ""

    def _excerpt(self, answer: httpx.Response) -> str:
        """The beginning of what the server said, in one line; servers have been seen to repeat the key."""
        said = " ".join(answer.text.split())
        return repr((said.replace(self.key, "***") if self.key else said)[:200])

    def _failed(self, slate: Slate, message: str) -> RankerFailed:
        return RankerFailed(f"{self.model.url}, query {slate.query[:60]!r}: {message}")


def cut(slate: Slate, size: int) -> list[Slate]:
    """The slate in parts of at most `size` documents; 0 means whole, and no documents no part.

    >>> from shaketable.types import Doc
    >>> [len(part.docs) for part in cut(Slate("q", (Doc("a"), Doc("b"), Doc("c"))), 2)]
    [2, 1]
    """
    step = size or len(slate.docs) or 1
    return [Slate(slate.query, slate.docs[i : i + step]) for i in range(0, len(slate.docs), step)]


def asked_to_wait(headers: Mapping[str, str], otherwise: float) -> float:
    """The seconds of Retry-After; its other form, a date, is rare and counts as absent.

    >>> asked_to_wait({"retry-after": "7"}, 0.5)
    7.0
    """
    value = headers.get("retry-after", "")
    return float(value) if re.fullmatch(r"\d+(\.\d+)?", value) else otherwise

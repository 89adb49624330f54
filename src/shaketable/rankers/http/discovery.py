"""Discovery of a server's capabilities by a few small requests: its dialect, its model, and the type of its scores.

One request finds the dialect and the model. A second request, with fewer texts in another order, shows whether the
score of a text depends on the other texts of the list. If the scores differ, a third request shows whether the
difference is noise. If discovery fails, the error message contains the full spec to use instead.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shaketable.core.documents import Doc, Scores, Slate
from shaketable.core.errors import IncompleteAnswer, RankerFailed
from shaketable.core.redaction import redact
from shaketable.core.registries import RANKERS
from shaketable.rankers.http.client import NEVER_STOP, HttpClient
from shaketable.rankers.http.dialects import (
    DIALECTS,
    DIALECTS_TO_TRY,
    detect_dialect_from_answer,
    detect_dialect_from_url,
    find_vendor,
    order_scores,
    parse_missing_fields,
    parse_rows,
    parse_text_limit,
    wants_model,
)
from shaketable.rankers.http.reply import HttpReply
from shaketable.rankers.http.search_dialects import looks_like_search_engine
from shaketable.scoring.validation import validate_scores

if TYPE_CHECKING:
    from shaketable.rankers.http.reranker import HttpEndpoint

SAMPLE_QUERY = "which planet is known for its rings"
SAMPLE_TEXTS = (
    "Saturn is the planet that is known for its bright rings of ice and rock.",
    "Jupiter, the largest planet, has faint rings too, which few people know.",
    "Mercury is the smallest planet and the one that is nearest to the sun.",
    "A ring is worn on a finger, and is often made of gold or silver.",
    "Knead the dough for ten minutes and let it rise before you bake the bread.",
)
"""Sample texts, from an answer to the query to an unrelated text."""
RESENT_POSITIONS = (3, 2, 1)
"""The positions of the texts that are sent again. Without the first and the last, list-dependent scores change."""
SAME_SCORE_TOLERANCE = 1e-3
"""Maximum difference of two equal scores, as a share of the range of all scores."""
MAX_MODEL_NAME_CHARS = 200
ENDPOINT_PATHS = ("rerank", "v1/rerank", "v2/rerank", "score")
"""Common endpoint paths."""


@dataclass(frozen=True)
class ServerProfile:
    """The detected capabilities of a server.

    `list_effect` is the largest difference of a text's scores in two different lists, `noise` that in two requests with
    the same list; None means not measured.
    """

    dialect: str
    model: str
    pointwise: bool
    scores: tuple[float, ...] = ()
    list_effect: float | None = None
    noise: float | None = None


def discover(settings: HttpEndpoint, http_client: HttpClient) -> ServerProfile:
    """Detect the capabilities that the settings leave open; if there are none, send no request."""
    if settings.dialect != "auto" and settings.pointwise is not None and settings.revision:
        return ServerProfile(settings.dialect, settings.model, settings.pointwise)
    discovery = Discovery(settings, http_client)
    name, model, first = discovery.negotiate()
    found = ServerProfile(name, model, settings.pointwise is True, tuple(first.tolist()))
    if settings.pointwise is not None:
        return found
    other = discovery.request_scores(name, model, [SAMPLE_TEXTS[position] for position in RESENT_POSITIONS])
    apart = float(np.abs(other - first[list(RESENT_POSITIONS)]).max())
    near = 1e-6 * max(1.0, float(np.abs(first).max())) + SAME_SCORE_TOLERANCE * float(np.ptp(first))
    if apart <= near:
        return replace(found, pointwise=True, list_effect=apart)
    noise = float(np.abs(discovery.request_scores(name, model, SAMPLE_TEXTS) - first).max())
    return replace(found, pointwise=apart <= near + 2 * noise, list_effect=apart, noise=noise)


@dataclass(frozen=True)
class Discovery:
    """Small requests to a server that show its dialect, model and scores."""

    settings: HttpEndpoint
    http_client: HttpClient

    def negotiate(self) -> tuple[str, str, Scores]:
        """Return the dialect and the model that the server accepts, and its scores of the sample texts."""
        name = self.settings.dialect if self.settings.dialect != "auto" else detect_dialect_from_url(self.settings.url)
        order = [name] if name else list(DIALECTS_TO_TRY)
        model, problem = self.settings.model, ""
        tried: list[str] = []
        while order:
            name = order.pop(0)
            tried.append(name)
            reply = self.http_client.post(self.build_body(name, model, SAMPLE_TEXTS), NEVER_STOP)
            if reply.is_success:
                if parse_rows(reply.content) is not None:
                    better = detect_dialect_from_answer(reply.content) if self.settings.dialect == "auto" else ""
                    if better and better not in tried:
                        order.insert(0, better)
                        continue
                    return name, model, self.read_scores(reply, SAMPLE_TEXTS)
                problem = problem or f"answered in a format of no known dialect: {self.http_client.excerpt(reply)}"
                if looks_like_search_engine(self.settings.url, reply):
                    break
                continue
            if looks_like_search_engine(self.settings.url, reply):
                break
            if not model and wants_model(reply.text) and (model := self.find_only_model(name, reply)):
                order.insert(0, name)
                continue
            if reply.status in (401, 403, 404, 405) or wants_model(reply.text) or 300 <= reply.status < 400:
                raise make_refusal_error(self.settings, self.http_client, reply, name, len(SAMPLE_TEXTS))
            missed = parse_missing_fields(reply.text)
            order.sort(key=lambda other: DIALECTS[other].documents_field not in missed)
            problem = problem or f"answered {reply.status}: {self.http_client.excerpt(reply)}"
        if looks_like_search_engine(self.settings.url, reply):
            url = self.settings.url
            raise RankerFailed(f"{url} is a search engine, not a rerank endpoint: write search:{url}")
        write = RANKERS.spec(replace(self.settings, dialect="NAME"))
        raise RankerFailed(
            f"{self.http_client.url} {problem}; the dialects tried are {', '.join(tried)}; "
            f"if you know the server's dialect, write {write} with one of {', '.join(DIALECTS)}"
        )

    def request_scores(self, name: str, model: str, texts: Sequence[str], query: str = SAMPLE_QUERY) -> Scores:
        """Return the scores of some texts; on failure, raise an error with a remedy."""
        reply = self.http_client.post(self.build_body(name, model, texts, query), NEVER_STOP)
        if not reply.is_success:
            raise make_refusal_error(self.settings, self.http_client, reply, name, len(texts))
        return self.read_scores(reply, texts)

    def build_body(self, name: str, model: str, texts: Sequence[str], query: str = SAMPLE_QUERY) -> bytes:
        return json.dumps(DIALECTS[name].build_request(model, query, texts)).encode()

    def read_scores(self, reply: HttpReply, texts: Sequence[str]) -> Scores:
        return parse_scores(self.http_client, reply, Slate(SAMPLE_QUERY, tuple(map(Doc, texts))))

    def find_only_model(self, name: str, reply: HttpReply) -> str:
        """Return the only model that the server serves, for a server that requires a model.

        If there are several or none, raise an error with the spec to use.
        """
        served = list_served_models(self.http_client)
        if len(served) == 1:
            return served[0]
        raise make_refusal_error(self.settings, self.http_client, reply, name, len(SAMPLE_TEXTS), served)


def list_served_models(http_client: HttpClient) -> list[str]:
    """Return the models that a server lists at OpenAI's path; only the rerankers, if any are marked as such.

    Names that contain the key are left out.
    """
    import httpx

    here, ends_at = httpx.URL(http_client.url), time.monotonic() + http_client.deadline
    for url in dict.fromkeys(str(here.join(path)) for path in ("models", "/v1/models", "/models")):
        reply = http_client.try_get(url, ends_at)
        rows = reply.content.get("data") if reply and isinstance(reply.content, dict) else None
        if isinstance(rows, list):
            named = [row for row in rows if isinstance(row, dict) and is_model_name(row.get("id"))]
            able = [row for row in named if "rerank" in _list_capabilities(row)]
            return [row["id"] for row in able or named]
    return []


def is_model_name(name: object) -> bool:
    """Return True for a text of a usual length without an API key."""
    return isinstance(name, str) and len(name) <= MAX_MODEL_NAME_CHARS and redact(name) == name


def _list_capabilities(row: Mapping[str, Any]) -> Sequence[Any]:
    listed = row.get("capabilities")
    return listed if isinstance(listed, list) else ()


def parse_scores(http_client: HttpClient, reply: HttpReply, slate: Slate) -> Scores:
    """Return the scores of a slate in document order; raise an error that describes an invalid response."""
    where = f"{http_client.url}, query {slate.query[:60]!r}:"
    rows = parse_rows(reply.content)
    if rows is None:
        raise RankerFailed(f"{where} answered in a format of no known dialect: {http_client.excerpt(reply)}")
    try:
        return validate_scores(http_client.url, slate, order_scores(rows, len(slate.docs)))
    except ValueError as error:
        fewer = len(rows) < len(slate.docs)
        raise (IncompleteAnswer if fewer else RankerFailed)(f"{where} {error}") from error


def make_refusal_error(
    settings: HttpEndpoint,
    http_client: HttpClient,
    reply: HttpReply,
    name: str,
    sent: int,
    served: Sequence[str] | None = None,
) -> RankerFailed:
    """Return an error that explains a refusal, with the full spec to use instead if there is one."""
    said = f"{http_client.url} answered {reply.status}: {http_client.excerpt(reply)}"
    return RankerFailed(f"{said}; {_suggest_remedy(settings, http_client, reply, name, sent, served)}".rstrip("; "))


def _suggest_remedy(
    settings: HttpEndpoint,
    http_client: HttpClient,
    reply: HttpReply,
    name: str,
    sent: int,
    served: Sequence[str] | None,
) -> str:
    if reply.status in (401, 403):
        return suggest_key(settings, http_client)
    if 300 <= reply.status < 400:
        there = reply.headers.get("location", "nowhere")
        return f"the server redirects to {there}; if texts may be sent there, write that address"
    if most := parse_text_limit(reply.status, reply.text, sent):
        cut = RANKERS.spec(replace(settings, dialect=name, pointwise=True, batch=most))
        return (
            f"the server refuses lists of {sent} texts, which cannot be split, because scores depend on the "
            f"list: write --depth {most}; or, if you know that scores do not depend on the list, write {cut}"
        )
    if wants_model(reply.text):
        served = list_served_models(http_client) if served is None else served
        vendor = find_vendor(settings.host)
        model = served[0] if served else vendor.model if vendor else "MODEL"
        several = f" (it serves {', '.join(served)})" if len(served) > 1 else ""
        return f"the server requires a model{several}: write {RANKERS.spec(replace(settings, model=model))}"
    if reply.status in (404, 405):
        return _suggest_address(settings, http_client, name)
    missed = parse_missing_fields(reply.text)
    if other := next(
        (other for other in DIALECTS_TO_TRY if DIALECTS[other].documents_field in missed and other != name), ""
    ):
        return f"the server seems to use another dialect: write {RANKERS.spec(replace(settings, dialect=other))}"
    return ""


def suggest_key(settings: Any, http_client: HttpClient) -> str:
    """Return how to give the server its key, for the settings of any endpoint."""
    if http_client.secret:
        return f"the key in the environment variable {settings.key_variable} was sent, but the server rejects it"
    vendor = find_vendor(settings.host)
    variable = settings.key_variable or (vendor.key_env if vendor else "MY_KEY")
    spec = "" if settings.key_variable else f", and write {RANKERS.spec(replace(settings, key_env=variable))}"
    return f"the server requires a key, and none was sent: put the key into the environment variable {variable}{spec}"


def _suggest_address(settings: HttpEndpoint, http_client: HttpClient, name: str) -> str:
    """Return the address of a working endpoint on this host as a suggestion, if there is one."""
    import httpx

    here, ends_at = httpx.URL(http_client.url), time.monotonic() + http_client.deadline
    body = json.dumps(DIALECTS[name].build_request(settings.model, SAMPLE_QUERY, SAMPLE_TEXTS)).encode()
    for path in (*ENDPOINT_PATHS, *(f"/{path}" for path in ENDPOINT_PATHS)):
        url = str(here.join(path))
        reply: HttpReply | None = http_client.try_post(url, body, ends_at) if url != http_client.url else None
        if reply is not None and (reply.status in (400, 401, 403, 422) or _has_scores(reply)):
            return "there is no endpoint at this address; another address has one: write " + RANKERS.spec(
                replace(settings, url=url)
            )
    return "is this the address of a rerank endpoint (often /rerank or /v1/rerank)?"


def _has_scores(reply: HttpReply) -> Any:
    return reply.is_success and parse_rows(reply.content)

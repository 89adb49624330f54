"""The first words with a server: in a few small requests, how it wants to be asked and what its scores are.

One request finds the dialect, and the model that it wants; a second one, with fewer texts in another order, shows
whether a text's score depends on the list that it stands in. Only if the scores differ, a third one tells whether that
is noise. Where the server does not say enough, one message has the whole spec to write instead.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shaketable.errors import RankerFailed
from shaketable.rankers.dialects import (
    DIALECTS,
    TRIED,
    fields_missed,
    in_place,
    most_texts,
    rows_in,
    told_by,
    told_by_answer,
    vendor_at,
    wants_model,
)
from shaketable.rankers.line import NEVER, Line, Reply
from shaketable.registry import RANKERS
from shaketable.score.road import checked
from shaketable.types import Doc, Scores, Slate

if TYPE_CHECKING:
    from shaketable.rankers.remote import HTTP

QUERY = "which planet is known for its rings"
TEXTS = (
    "Saturn is the planet that is known for its bright rings of ice and rock.",
    "Jupiter, the largest planet, has faint rings too, which few people know.",
    "Mercury is the smallest planet and the one that is nearest to the sun.",
    "A ring is worn on a finger, and is often made of gold or silver.",
    "Knead the dough for ten minutes and let it rise before you bake the bread.",
)
"""From what answers the query to what has nothing to do with it."""
COMPANY = (3, 2, 1)
"""The places of the texts that are sent again. Without the first and the last, ranks and shares of a list change."""
ALIKE = 1e-3
"""Scores of a text that lie no further apart, as a share of how far all scores lie apart, are one score."""
ADDRESSES = ("rerank", "v1/rerank", "v2/rerank", "score")
"""Where servers have their endpoint."""


@dataclass(frozen=True)
class Met:
    """What is known of a server: `apart` is how far the scores of a text lay from each other in two different lists,
    `noise` how far in the same list, None where that was not asked."""

    dialect: str
    model: str
    pointwise: bool
    scores: tuple[float, ...] = ()
    apart: float | None = None
    noise: float | None = None


def meet(settings: HTTP, line: Line) -> Met:
    """Find out what the settings leave open. Nothing is asked if they leave nothing open."""
    if settings.dialect != "auto" and settings.pointwise is not None and settings.revision:
        return Met(settings.dialect, settings.model, settings.pointwise)
    talk = Talk(settings, line)
    name, model, first = talk.introduced()
    found = Met(name, model, settings.pointwise is True, tuple(first.tolist()))
    if settings.pointwise is not None:
        return found
    other = talk.scores(name, model, [TEXTS[place] for place in COMPANY])
    apart = float(np.abs(other - first[list(COMPANY)]).max())
    near = 1e-6 * max(1.0, float(np.abs(first).max())) + ALIKE * float(np.ptp(first))
    if apart <= near:
        return replace(found, pointwise=True, apart=apart)
    noise = float(np.abs(talk.scores(name, model, TEXTS) - first).max())
    return replace(found, pointwise=apart <= near + 2 * noise, apart=apart, noise=noise)


@dataclass(frozen=True)
class Talk:
    """A talk with a server by small requests."""

    settings: HTTP
    line: Line

    def introduced(self) -> tuple[str, str, Scores]:
        """The dialect and the model that the server takes, and its scores for the texts."""
        name = self.settings.dialect if self.settings.dialect != "auto" else told_by(self.settings.url)
        order = [name] if name else list(TRIED)
        model, told = self.settings.model, ""
        tried: list[str] = []
        while order:
            name = order.pop(0)
            tried.append(name)
            reply = self.line.ask(self.body(name, model, TEXTS), NEVER)
            if reply.fine:
                if rows_in(reply.content) is not None:
                    better = told_by_answer(reply.content) if self.settings.dialect == "auto" else ""
                    if better and better not in tried:
                        order.insert(0, better)
                        continue
                    return name, model, self.read(reply, TEXTS)
                told = told or f"answered in a shape that none of the dialects has: {shown(self.line, reply)}"
                continue
            if not model and wants_model(reply.text) and (model := self.only_model(name, reply)):
                order.insert(0, name)
                continue
            if reply.status in (401, 403, 404, 405) or wants_model(reply.text) or 300 <= reply.status < 400:
                raise refused(self.settings, self.line, reply, name, len(TEXTS))
            missed = fields_missed(reply.text)
            order.sort(key=lambda other: DIALECTS[other].documents not in missed)
            told = told or f"answered {reply.status}: {self.line.excerpt(reply)}"
        write = RANKERS.spec(replace(self.settings, dialect="NAME"))
        raise RankerFailed(
            f"{self.line.url} {told}; it was asked in the dialects {', '.join(tried)}; "
            f"if you know which it speaks, write {write} with one of {', '.join(DIALECTS)}"
        )

    def scores(self, name: str, model: str, texts: Sequence[str], query: str = QUERY) -> Scores:
        """The scores of some texts, or an error that says what to write."""
        reply = self.line.ask(self.body(name, model, texts, query), NEVER)
        if not reply.fine:
            raise refused(self.settings, self.line, reply, name, len(texts))
        return self.read(reply, texts)

    def body(self, name: str, model: str, texts: Sequence[str], query: str = QUERY) -> bytes:
        return json.dumps(DIALECTS[name].request(model, query, texts)).encode()

    def read(self, reply: Reply, texts: Sequence[str]) -> Scores:
        return scores_of(self.line, reply, Slate(QUERY, tuple(map(Doc, texts))))

    def only_model(self, name: str, reply: Reply) -> str:
        """The model to name where the server wants one named: the only one that it serves.

        With several of them, or none that it tells, the error has the spec to write.
        """
        served = models_served(self.line)
        if len(served) == 1:
            return served[0]
        raise refused(self.settings, self.line, reply, name, len(TEXTS), served)


def models_served(line: Line) -> list[str]:
    """The models that a server lists where OpenAI's servers do; those that it calls rerankers, if it calls any so."""
    import httpx

    here = httpx.URL(line.url)
    for url in dict.fromkeys(str(here.join(path)) for path in ("models", "/v1/models", "/models")):
        reply = line.get(url)
        rows = reply.content.get("data") if reply and isinstance(reply.content, dict) else None
        if isinstance(rows, list):
            named = [row for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]
            able = [row for row in named if "rerank" in (row.get("capabilities") or ())]
            return [row["id"] for row in able or named]
    return []


def scores_of(line: Line, reply: Reply, slate: Slate) -> Scores:
    """The scores of a slate in the order of its documents, or an error that says what is wrong with the answer."""
    where = f"{line.url}, query {slate.query[:60]!r}:"
    rows = rows_in(reply.content)
    if rows is None:
        raise RankerFailed(f"{where} answered in a shape that none of the dialects has: {shown(line, reply)}")
    try:
        return checked(line.url, slate, in_place(rows, len(slate.docs)))
    except ValueError as error:
        raise RankerFailed(f"{where} {error}") from error


def shown(line: Line, reply: Reply) -> str:
    return line.excerpt(replace(reply, text=json.dumps(reply.content)))


def refused(
    settings: HTTP, line: Line, reply: Reply, name: str, sent: int, served: Sequence[str] | None = None
) -> RankerFailed:
    """What a refusal means, and the whole spec to write instead where there is one."""
    said = f"{line.url} answered {reply.status}: {line.excerpt(reply)}"
    return RankerFailed(f"{said}; {_remedy(settings, line, reply, name, sent, served)}".rstrip("; "))


def _remedy(settings: HTTP, line: Line, reply: Reply, name: str, sent: int, served: Sequence[str] | None) -> str:
    if reply.status in (401, 403):
        return _about_the_key(settings, line)
    if 300 <= reply.status < 400:
        there = reply.headers.get("location", "nowhere")
        return f"it sends its callers to {there}; if that is where texts are to go, write that address"
    if most := most_texts(reply.status, reply.text, sent):
        cut = RANKERS.spec(replace(settings, dialect=name, pointwise=True, batch=most))
        return (
            f"it takes no lists of {sent} texts, and its scores depend on the list that a text stands in, so that "
            f"lists are not cut: write --depth {most}; or, if you know that they do not depend on it, {cut}"
        )
    if wants_model(reply.text):
        served = models_served(line) if served is None else served
        vendor = vendor_at(settings.host)
        model = served[0] if served else vendor.model if vendor else "MODEL"
        several = f" (it serves {', '.join(served)})" if len(served) > 1 else ""
        return f"it wants to be told which model{several}: write {RANKERS.spec(replace(settings, model=model))}"
    if reply.status in (404, 405):
        return _about_the_address(settings, line, name)
    missed = fields_missed(reply.text)
    if other := next((other for other in TRIED if DIALECTS[other].documents in missed and other != name), ""):
        return f"it seems to speak another dialect: write {RANKERS.spec(replace(settings, dialect=other))}"
    return ""


def _about_the_key(settings: HTTP, line: Line) -> str:
    if line.secret:
        return f"the key in the environment variable {settings.key_variable} was sent, and is wrong for this server"
    vendor = vendor_at(settings.host)
    variable = settings.key_variable or (vendor.key_env if vendor else "MY_KEY")
    spec = "" if settings.key_variable else f", and write {RANKERS.spec(replace(settings, key_env=variable))}"
    return f"it wants a key, and none was sent: put the key into the environment variable {variable}{spec}"


def _about_the_address(settings: HTTP, line: Line, name: str) -> str:
    """Where on this host an endpoint answers, if it does anywhere."""
    import httpx

    here = httpx.URL(line.url)
    body = json.dumps(DIALECTS[name].request(settings.model, QUERY, TEXTS)).encode()
    for path in (*ADDRESSES, *(f"/{path}" for path in ADDRESSES)):
        url = str(here.join(path))
        reply: Reply | None = line.post_to(url, body) if url != line.url else None
        if reply is not None and (reply.status in (400, 401, 403, 422) or _scored(reply)):
            return "there is no endpoint at this address, but there is one at another: write " + RANKERS.spec(
                replace(settings, url=url)
            )
    return "is this the address of a rerank endpoint (often /rerank or /v1/rerank)?"


def _scored(reply: Reply) -> Any:
    return reply.fine and rows_in(reply.content)

"""The doctor's visit to an endpoint: what its scores are worth, by about fifteen small requests."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from shaketable.data.corpus import MemoryCorpus
from shaketable.data.doctor import TOLERATED, Check, Severity
from shaketable.errors import RankerFailed, ShaketableError
from shaketable.rankers.dialects import most_texts
from shaketable.rankers.handshake import ALIKE, COMPANY, QUERY, TEXTS, Met, Talk
from shaketable.rankers.line import NEVER
from shaketable.rankers.remote import HTTP, Remote
from shaketable.registry import RANKERS
from shaketable.types import Collection, Scores

REPEATS = 5
MANY = 100
"""Texts of a list as long as those that are ranked by default."""
LENGTHS = (100, 300, 1000, 3000, 10_000)
"""Words of filler before a sentence that answers the query: from where on is that sentence not read any more?"""
FILLER = "the weather was mild and the road was long and nobody said much on the way".split()
NOWHERE = Collection("no documents", MemoryCorpus({}), {})
SAME = 1e-6
"""How far the scores of equal texts in one batch may lie apart, as a share of the score: the last bits depend on it."""
NEAR = 1e-4
"""How near to 0 or 1 a score is as good as there."""


def examine(settings: HTTP) -> list[Check]:
    """What the first words with a server bring, and what its scores look like when it is asked a little more."""
    ranker = settings.open(NOWHERE)
    assert isinstance(ranker, Remote)
    try:
        met = ranker.met
    except ShaketableError as error:
        return [Check("the server can be asked for scores", "error", 0, 0, (), str(error))]
    try:
        return list(_examined(Talk(settings, ranker.line), met))
    except RankerFailed as error:
        return [Check("the server goes on giving scores", "error", 0, 0, (), str(error))]


def _examined(talk: Talk, met: Met) -> Iterator[Check]:
    yield _found("dialect", met.dialect)
    yield _found("model", met.model or "none is named")
    lists, seconds = [], []
    for _ in range(REPEATS):
        started = time.perf_counter()
        lists.append(talk.scores(met.dialect, met.model, TEXTS))
        seconds.append(time.perf_counter() - started)
    times = f"{1000 * float(np.median(seconds)):.0f} ms, at most {1000 * max(seconds):.0f} ms"
    yield _found(f"latency of {REPEATS} requests of {len(TEXTS)} texts, one after the other", times)
    noise = float(np.ptp(lists, axis=0).max())
    yield _noise(noise)
    yield _company(talk, met, lists[0], noise)
    yield _order(talk, met, lists[0])
    yield from _spread(talk, met)
    yield _truncation(talk, met, noise)
    yield _longest(talk, met)


def _found(check: str, what: str) -> Check:
    return Check(check, "ok", 0, 0, (what,))


def _noise(noise: float) -> Check:
    name = f"noise floor: how far the scores of {REPEATS} equal requests differ"
    if not noise:
        return _found(name, "0")
    advice = f"a difference below {noise:.2g} means nothing; look for half precision or batches on the server"
    return Check(name, "warning", 0, 0, (f"{noise:.2g}",), advice)


def _company(talk: Talk, met: Met, scores: Scores, noise: float) -> Check:
    """Measured again, though it may be known: a user may have promised what is not so."""
    other = talk.scores(met.dialect, met.model, [TEXTS[place] for place in COMPANY])
    apart = float(np.abs(other - scores[list(COMPANY)]).max())
    name = "how far a text's score differs with the texts beside it"
    if apart <= SAME * max(1.0, float(np.abs(scores).max())) + ALIKE * float(np.ptp(scores)) + 2 * noise:
        return _found(name, f"{apart:.2g}: scores are per pair, and lists may be cut")
    advice = "scores depend on the list: lists are sent whole, and must not be longer than the server takes"
    if met.pointwise:
        advice = f"you said that scores are per pair, and they are not: write {_spec(talk, pointwise=False, batch=0)}"
    return Check(name, "error" if met.pointwise else "warning", 0, 0, (f"{apart:.2g}",), advice)


def _order(talk: Talk, met: Met, scores: Scores) -> Check:
    """A server that does nothing gives back the order that it was sent, whatever that is."""
    name = "it ranks, and does not hand back the order that it was sent"
    backwards = talk.scores(met.dialect, met.model, TEXTS[::-1])
    if not np.ptp(scores) and not np.ptp(backwards):
        return Check(name, "error", 0, 0, ("all scores are equal",), "is a model that ranks loaded on the server?")
    if (np.diff(scores) <= 0).all() and (np.diff(backwards) <= 0).all():
        given = ("texts that were sent backwards came back backwards",)
        return Check(name, "error", 0, 0, given, "nothing is re-ranked: is a model that ranks loaded on the server?")
    best = int(np.argmax(scores))
    if best == 0:
        return _found(name, f"for {QUERY!r} it prefers {TEXTS[0][:40]!r}...")
    advice = "it prefers a text that does not answer: is it a model that ranks, and are its scores not distances?"
    return Check(name, "warning", 0, 0, (f"for {QUERY!r} it prefers {TEXTS[best][:40]!r}...",), advice)


def _spread(talk: Talk, met: Met) -> Iterator[Check]:
    """Ties and saturation among twenty different texts."""
    texts = [*TEXTS, *map(" ".join, combinations(TEXTS, 2)), *(f"{text} That is all there is." for text in TEXTS)]
    scores = np.concatenate(
        [talk.scores(met.dialect, met.model, texts[i : i + 10]) for i in range(0, len(texts), 10)]
        if met.pointwise
        else [talk.scores(met.dialect, met.model, texts)]
    ).astype(np.float32)
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    tied = int((counts[places] > 1).sum())
    advice = "ties are broken by document id; ask the server for raw scores, or for more digits"
    yield Check("texts that share their score with another", _severity(tied, len(texts)), tied, len(texts), (), advice)
    shares = bool((scores >= 0).all() and (scores <= 1).all())
    full = int(((scores < NEAR) | (scores > 1 - NEAR)).sum()) if shares else 0
    seen = (f"scores from {scores.min():.3g} to {scores.max():.3g}",)
    advice = "a sigmoid has flattened them: ask the server for raw scores"
    yield Check("scores that are saturated, at 0 or 1", _severity(full, len(texts)), full, len(texts), seen, advice)


def _severity(count: int, total: int) -> Severity:
    return "warning" if count > TOLERATED * total else "ok"


def _truncation(talk: Talk, met: Met, noise: float) -> Check:
    name = "where a long text stops being read"
    read = 0
    for length in LENGTHS:
        words = " ".join(FILLER[i % len(FILLER)] for i in range(length))
        try:
            answer, none = talk.scores(met.dialect, met.model, [f"{words} {TEXTS[0]}", f"{words} {TEXTS[-1]}"])
        except RankerFailed as error:
            advice = f"longer texts are refused, not cut: {error}"
            return Check(name, "warning", 0, 0, (f"refused at {length:,} words",), advice)
        if abs(answer - none) <= noise + SAME * max(1.0, abs(answer)):
            advice = "what comes later in a text cannot matter; cut long documents into passages"
            seen = f"between {read:,} and {length:,} words" if read else f"before {length:,} words"
            return Check(name, "warning", 0, 0, (seen,), advice)
        read = length
    return _found(name, f"not within {read:,} words")


def _longest(talk: Talk, met: Met) -> Check:
    """The longest list that the server takes, of those that matter: its refusal may say it, or half is tried."""
    size, name = MANY, f"texts that it takes in one request, of {MANY}"
    while True:
        texts = [f"{TEXTS[i % len(TEXTS)]} ({i})" for i in range(size)]
        reply = talk.line.ask(talk.body(met.dialect, met.model, texts), NEVER)
        most = most_texts(reply.status, reply.text, size)
        if reply.fine or not most:
            break
        size = most
    if not reply.fine:
        advice = f"it answered {reply.status}: {talk.line.excerpt(reply)}"
        return Check(name, "warning", 0, MANY, (), advice)
    if size == MANY:
        return Check(name, "ok", size, MANY)
    if met.pointwise:
        return Check(name, "ok", size, MANY, ("longer lists are sent in parts",))
    return Check(name, "warning", size, MANY, (), f"lists are sent whole, so write --depth {size}")


def _spec(talk: Talk, **changes: object) -> str:
    return RANKERS.spec(replace(talk.settings, **changes))  # type: ignore[arg-type]

"""Diagnostics of an endpoint: checks of its scores with about fifteen small requests, then those of any ranker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from shaketable.core.documents import Collection, Scores
from shaketable.core.errors import IncompleteAnswer, RankerFailed, ShaketableError
from shaketable.core.registries import RANKERS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.datasets.validation import TOLERATED_SHARE, Severity, ValidationCheck
from shaketable.rankers.diagnosis.diagnose import Diagnosis, diagnose_ranker
from shaketable.rankers.http.client import NEVER_STOP
from shaketable.rankers.http.dialects import parse_text_limit
from shaketable.rankers.http.discovery import (
    RESENT_POSITIONS,
    SAME_SCORE_TOLERANCE,
    SAMPLE_TEXTS,
    Discovery,
    ServerProfile,
)
from shaketable.rankers.http.reranker import HttpEndpoint, HttpReranker

REPEATED_REQUESTS = 5
MAX_TEXTS_TRIED = 100
"""The length of the longest list tried: the default length of ranked lists."""
EMPTY_COLLECTION = Collection("no documents", MemoryCorpus({}), {})
RELATIVE_TOLERANCE = 1e-6
"""Maximum relative difference of the scores of equal texts in one batch; the last bits depend on the batch."""
SATURATION_MARGIN = 1e-4
"""A score within this distance of 0 or 1 counts as saturated."""


def diagnose_endpoint(settings: HttpEndpoint, *, lists: int = 0) -> Diagnosis:
    """Run discovery on a server, check its scores with a few more requests, and ask questions with known answers."""
    ranker = settings.open(EMPTY_COLLECTION)
    assert isinstance(ranker, HttpReranker)
    checks: list[ValidationCheck] = []
    try:
        for check in _run_checks(Discovery(settings, ranker.http_client), ranker.profile):
            checks.append(check)
    except ShaketableError as error:
        name = "the server returns scores for all checks" if checks else "the server returns scores"
        checks.append(ValidationCheck(name, "error", 0, 0, (), str(error)))
        if not isinstance(error, IncompleteAnswer):
            return Diagnosis(0, 0, 0, (), tuple(checks))
    try:
        found = diagnose_ranker(ranker, ranker.name, lists=lists)
    except RankerFailed as error:
        checks.append(ValidationCheck("the server answers questions", "error", 0, 0, (), str(error)))
        return Diagnosis(0, 0, 0, (), tuple(checks))
    return replace(found, checks=(*checks, *found.checks))


def _run_checks(discovery: Discovery, profile: ServerProfile) -> Iterator[ValidationCheck]:
    yield make_ok_check("dialect", profile.dialect)
    yield make_ok_check("model", profile.model or "none is named")
    lists, seconds = [], []
    for _ in range(REPEATED_REQUESTS):
        started = time.perf_counter()
        lists.append(discovery.request_scores(profile.dialect, profile.model, SAMPLE_TEXTS))
        seconds.append(time.perf_counter() - started)
    times = f"{1000 * float(np.median(seconds)):.0f} ms, at most {1000 * max(seconds):.0f} ms"
    yield make_ok_check(
        f"latency of {REPEATED_REQUESTS} requests of {len(SAMPLE_TEXTS)} texts, sent one after another", times
    )
    noise = float(np.ptp(lists, axis=0).max())
    yield _check_noise(noise)
    yield _check_list_dependence(discovery, profile, lists[0], noise)
    yield from _check_score_spread(discovery, profile)
    yield _check_list_limit(discovery, profile)


def make_ok_check(check: str, what: str) -> ValidationCheck:
    """Return a check that found no problem, with what it saw."""
    return ValidationCheck(check, "ok", 0, 0, (what,))


def _check_noise(noise: float) -> ValidationCheck:
    name = f"noise floor: the largest difference between the scores of {REPEATED_REQUESTS} equal requests"
    if not noise:
        return make_ok_check(name, "0")
    advice = f"differences below {noise:.2g} are noise; the cause may be half precision or batching on the server"
    return ValidationCheck(name, "warning", 0, 0, (f"{noise:.2g}",), advice)


def _check_list_dependence(
    discovery: Discovery, profile: ServerProfile, scores: Scores, noise: float
) -> ValidationCheck:
    """Measure the list effect, even if it is known: the user's setting may be wrong."""
    other = discovery.request_scores(
        profile.dialect, profile.model, [SAMPLE_TEXTS[place] for place in RESENT_POSITIONS]
    )
    apart = float(np.abs(other - scores[list(RESENT_POSITIONS)]).max())
    name = "the largest difference of a text's score between two lists"
    if (
        apart
        <= RELATIVE_TOLERANCE * max(1.0, float(np.abs(scores).max()))
        + SAME_SCORE_TOLERANCE * float(np.ptp(scores))
        + 2 * noise
    ):
        return make_ok_check(name, f"{apart:.2g}: scores do not depend on the list, so lists may be split")
    advice = "scores depend on the list: lists are not split, so they must not exceed the server's limit"
    if profile.pointwise:
        advice = (
            "pointwise=True is wrong, because scores depend on the list: write "
            f"{_format_spec(discovery, pointwise=False, batch=0)}"
        )
    return ValidationCheck(name, "error" if profile.pointwise else "warning", 0, 0, (f"{apart:.2g}",), advice)


def _check_score_spread(discovery: Discovery, profile: ServerProfile) -> Iterator[ValidationCheck]:
    """Check ties and saturation among twenty different texts."""
    texts = [
        *SAMPLE_TEXTS,
        *map(" ".join, combinations(SAMPLE_TEXTS, 2)),
        *(f"{text} That is all there is." for text in SAMPLE_TEXTS),
    ]
    scores = np.concatenate(
        [discovery.request_scores(profile.dialect, profile.model, texts[i : i + 10]) for i in range(0, len(texts), 10)]
        if profile.pointwise
        else [discovery.request_scores(profile.dialect, profile.model, texts)]
    ).astype(np.float32)
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    tied = int((counts[places] > 1).sum())
    advice = "ties are broken by document id; ask the server for raw scores, or for more digits"
    yield ValidationCheck(
        "texts whose score is tied with another text's", _grade_severity(tied, len(texts)), tied, len(texts), (), advice
    )
    shares = bool((scores >= 0).all() and (scores <= 1).all())
    full = int(((scores < SATURATION_MARGIN) | (scores > 1 - SATURATION_MARGIN)).sum()) if shares else 0
    seen = (f"scores from {scores.min():.3g} to {scores.max():.3g}",)
    advice = "a sigmoid has probably flattened the scores: ask the server for raw scores"
    yield ValidationCheck(
        "saturated scores, at 0 or 1", _grade_severity(full, len(texts)), full, len(texts), seen, advice
    )


def _grade_severity(count: int, total: int) -> Severity:
    return "warning" if count > TOLERATED_SHARE * total else "ok"


def _check_list_limit(discovery: Discovery, profile: ServerProfile) -> ValidationCheck:
    """Find the longest list that the server accepts, from its refusal or by halving."""
    size, name = MAX_TEXTS_TRIED, f"texts that the server accepts in one request, of {MAX_TEXTS_TRIED} sent"
    while True:
        texts = [f"{SAMPLE_TEXTS[i % len(SAMPLE_TEXTS)]} ({i})" for i in range(size)]
        reply = discovery.http_client.post(discovery.build_body(profile.dialect, profile.model, texts), NEVER_STOP)
        most = parse_text_limit(reply.status, reply.text, size)
        if reply.is_success or not most:
            break
        size = most
    if not reply.is_success:
        advice = f"the server answered {reply.status}: {discovery.http_client.excerpt(reply)}"
        return ValidationCheck(name, "warning", 0, MAX_TEXTS_TRIED, (), advice)
    if size == MAX_TEXTS_TRIED:
        return ValidationCheck(name, "ok", size, MAX_TEXTS_TRIED)
    if profile.pointwise:
        return ValidationCheck(name, "ok", size, MAX_TEXTS_TRIED, ("longer lists are sent in parts",))
    return ValidationCheck(
        name, "warning", size, MAX_TEXTS_TRIED, (), f"lists cannot be split, so write --depth {size}"
    )


def _format_spec(discovery: Discovery, **changes: object) -> str:
    return RANKERS.spec(replace(discovery.settings, **changes))  # type: ignore[arg-type]

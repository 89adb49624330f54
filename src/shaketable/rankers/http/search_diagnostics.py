"""Diagnostics of a search engine: checks of its hits with about fifteen small searches."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from shaketable.core.errors import RankerFailed, ShaketableError
from shaketable.datasets.validation import ValidationCheck
from shaketable.rankers.http.diagnostics import EMPTY_COLLECTION, REPEATED_REQUESTS, make_ok_check
from shaketable.rankers.http.hits import Hit
from shaketable.rankers.http.search_discovery import SAMPLE_QUERIES, EngineDiscovery, SearchProfile
from shaketable.rankers.http.searcher import HttpSearcher, SearchEndpoint, describe_profile

MAX_HITS_TRIED = 100
"""The longest list tried: the default length of ranked lists."""
ABSENT_WORD = "zqxjvkwpf"
"""A word of no language."""


def diagnose_engine(settings: SearchEndpoint) -> list[ValidationCheck]:
    """Run discovery on a search engine, then check its hits with a few more searches."""
    engine = settings.open(EMPTY_COLLECTION)
    assert isinstance(engine, HttpSearcher)
    try:
        profile = engine.profile
    except ShaketableError as error:
        return [ValidationCheck("the engine finds documents", "error", 0, 0, (), str(error))]
    try:
        return list(_run_checks(EngineDiscovery(settings, engine.http_client, engine.template), profile))
    except RankerFailed as error:
        return [ValidationCheck("the engine answers all searches", "error", 0, 0, (), str(error))]


def _run_checks(discovery: EngineDiscovery, profile: SearchProfile) -> Iterator[ValidationCheck]:
    yield make_ok_check("search API", describe_profile(profile).removeprefix("detected "))
    lists, seconds = [], []
    for _ in range(REPEATED_REQUESTS):
        started = time.perf_counter()
        lists.append(discovery.search(profile, profile.sample_query, len(profile.sample)))
        seconds.append(time.perf_counter() - started)
    times = f"{1000 * float(np.median(seconds)):.0f} ms, at most {1000 * max(seconds):.0f} ms"
    yield make_ok_check(f"latency of {REPEATED_REQUESTS} searches, sent one after another", times)
    yield _check_repetition(lists)
    yield _check_texts(profile)
    yield _check_scores(profile.sample)
    yield _check_query_use(discovery, profile)
    yield _check_list_length(discovery, profile)


def _check_repetition(lists: list[list[Hit]]) -> ValidationCheck:
    changed = sum([hit.docno for hit in one] != [hit.docno for hit in lists[0]] for one in lists[1:])
    advice = "the order depends on more than the query, such as replicas, updates or ties: every list has this noise"
    name = "repeated searches with another order"
    return ValidationCheck(name, "warning" if changed else "ok", changed, len(lists) - 1, (), advice)


def _check_texts(profile: SearchProfile) -> ValidationCheck:
    if profile.fields.text is None:
        return make_ok_check("hits without text", "by your setting text=None")
    empty = sum(not hit.text.strip() for hit in profile.sample)
    advice = "re-rankers see empty texts: name another field with text="
    return ValidationCheck("hits without text", "warning" if empty else "ok", empty, len(profile.sample), (), advice)


def _check_scores(hits: tuple[Hit, ...]) -> ValidationCheck:
    scores = [hit.score for hit in hits]
    known = [score for score in scores if score is not None]
    name = "scores of hits"
    if len(known) < len(scores):
        advice = "the engine gives no scores, for example because it sorts by a field: ranks count instead"
        return ValidationCheck(name, "warning", 0, 0, ("none",), advice)
    if any(a < b for a, b in pairwise(known)):
        advice = "the hits are not sorted by their scores: ranks count instead"
        return ValidationCheck(name, "warning", 0, 0, (f"from {min(known):.3g} to {max(known):.3g}",), advice)
    ties = sum(a == b for a, b in pairwise(known))
    if ties:
        advice = "hits with equal scores stay in the order of the engine"
        return ValidationCheck(f"{name}: neighbours with equal scores", "ok", ties, len(known) - 1, (), advice)
    return make_ok_check(name, f"from {min(known):.3g} to {max(known):.3g}")


def _check_query_use(discovery: EngineDiscovery, profile: SearchProfile) -> ValidationCheck:
    """Check that the list depends on the query."""
    name = "the list depends on the query"
    queries = [*SAMPLE_QUERIES, ABSENT_WORD]
    found = {tuple(hit.docno for hit in discovery.search(profile, query, 10)) for query in queries}
    if len(found) == 1:
        advice = f"{len(queries)} queries have the same list: does the request use the query ({{query}} in a template)?"
        return ValidationCheck(name, "error", 0, 0, (), advice)
    return make_ok_check(name, f"{len(queries)} queries have {len(found)} different lists")


def _check_list_length(discovery: EngineDiscovery, profile: SearchProfile) -> ValidationCheck:
    hits = discovery.search(profile, profile.sample_query, MAX_HITS_TRIED)
    name = f"hits of one search, of {MAX_HITS_TRIED} requested"
    if len(hits) == len(profile.sample) == 10:
        advice = "the engine returns no more than ten hits: if the request does not use {k}, add it to the template"
        return ValidationCheck(name, "warning", len(hits), MAX_HITS_TRIED, (), advice)
    return ValidationCheck(name, "ok", len(hits), MAX_HITS_TRIED)

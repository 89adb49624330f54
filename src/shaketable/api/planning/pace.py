"""The pace of a ranker: seconds per query-document pair, measured in a short pilot."""

from __future__ import annotations

import platform
import struct
import time
from collections.abc import Collection

from shaketable.api.dry_experiment import is_cheap_to_run
from shaketable.core.documents import Slate
from shaketable.core.protocols import can_score_texts
from shaketable.experiment import Experiment
from shaketable.scoring.traits import RankerTraits
from shaketable.scoring.uncached import Uncached
from shaketable.scoring.units import digest_texts

MIN_PAIRS, MIN_SECONDS = 8, 1.0
"""A measurement needs this many new pairs; after this many seconds, one list is enough."""
MAX_PILOT_LISTS = 5
MAX_UNCACHED_PAIRS = 16
PILOT_SEARCHES = 16
"""Searches that measure the pace of an engine."""


def list_costly_rankers(experiment: Experiment) -> list[str]:
    """Return the rankers whose work a budget limits: those that score, except for lexical ones."""
    return [name for name in experiment.live_rankers if not is_cheap_to_run(experiment.get_ranker(name))]


def measure_pace(experiment: Experiment, name: str) -> float:
    """Return the seconds that a ranker takes per pair: the stored pace, or that of a pilot.

    The pilot scores lists that the audit needs anyway. Lists that the ranker fails on fail again in the audit, which
    reports them. The pace of a ranker with a fingerprint is stored, so that an audit that is resumed or repeated has
    the same plan.
    """
    key, store = _build_key(experiment, name), experiment.engine.store
    if store is not None and key and (known := store.get([key]).get(key)):
        return float(struct.unpack("<d", known)[0])
    if can_score_texts(experiment.get_ranker(name)):
        pace = _measure_lists(experiment, name) or _measure_uncached(experiment, name)
    else:
        pace = _measure_searches(experiment, name)
    experiment.engine.discard_failures()
    if store is not None and key:
        store.put([(key, struct.pack("<d", pace))])
    return pace


def count_pairs_of_lists(experiment: Experiment, rankers: Collection[str]) -> int:
    """Return the pairs of ranking each query once; a search of an engine counts as one pair."""
    engines = sum(not can_score_texts(experiment.get_ranker(name)) for name in rankers)
    reranked = sum(map(len, experiment.candidates.values())) if engines < len(rankers) else 0
    return engines * len(experiment.queries) + (len(rankers) - engines) * reranked


def _measure_searches(experiment: Experiment, name: str) -> float:
    """Return the seconds of a search of an engine that answers several at a time."""
    pilot = {qid: experiment.texts[qid] for qid in experiment.query_order[:PILOT_SEARCHES]}
    experiment.search_uncached(name, dict(list(pilot.items())[:1]), experiment.depth)  # detects the dialect
    started = time.perf_counter()
    experiment.search_uncached(name, pilot, experiment.depth)
    return (time.perf_counter() - started) / max(len(pilot), 1)


def _build_key(experiment: Experiment, name: str) -> bytes:
    """Return the key of a stored pace, which holds for one machine; empty if the ranker has no fingerprint."""
    traits = RankerTraits.from_ranker(experiment.get_ranker(name), name)
    return digest_texts(b"pace", traits.fingerprint, platform.node()) if traits.fingerprint else b""


def _measure_lists(experiment: Experiment, name: str) -> float:
    """Return the pace of new scores of the first list, or of the next few if that is fast; 0.0 if all are cached."""
    pilot = [qid for qid in experiment.query_order if experiment.candidates.get(qid)][:MAX_PILOT_LISTS]
    pace = 0.0
    for qids in (pilot[:1], pilot[1:]):
        before = experiment.engine.usage[name].scored if name in experiment.engine.usage else 0
        started = time.perf_counter()
        experiment.rerank(name, {qid: experiment.texts[qid] for qid in qids}, experiment.candidates)
        seconds = time.perf_counter() - started
        new = experiment.engine.usage[name].scored - before if name in experiment.engine.usage else 0
        pace = seconds / new if new >= MIN_PAIRS else pace
        if seconds >= MIN_SECONDS:
            break
    return pace


def _measure_uncached(experiment: Experiment, name: str) -> float:
    """Return the pace on a few documents of the first list, whose scores are cached."""
    qid = next((qid for qid in experiment.query_order if experiment.candidates.get(qid)), "")
    docs = experiment.get_documents(list(experiment.candidates.get(qid, ()))[:MAX_UNCACHED_PAIRS])
    if not docs:
        return 0.0
    started = time.perf_counter()
    experiment.engine.score(Uncached(experiment.get_ranker(name)), [Slate(experiment.texts[qid], docs)], name)
    return (time.perf_counter() - started) / len(docs)

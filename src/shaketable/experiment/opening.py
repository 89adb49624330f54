"""What an experiment opens: documents, specs for other processes, and lists that show if a ranker is pointwise."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from shaketable.core.documents import Collection, Doc, Run, Slate, rank_docnos
from shaketable.core.errors import BadInput, ShaketableError
from shaketable.core.protocols import Model, RecordedRanker
from shaketable.core.registries import RANKERS
from shaketable.executors.base import RemoteSpec

if TYPE_CHECKING:
    from shaketable.experiment.experiment import Experiment

DRAWN_QUERIES = 6
"""The number of queries to draw lists for; some may have no candidates."""


def make_remote_spec(collection: Collection, model: Model) -> RemoteSpec | None:
    """Return the spec by which another process opens a ranker; None if it exists in this process only."""
    text = RANKERS.spec(model)
    try:
        same = bool(collection.source) and RANKERS.build(text) == model
    except ShaketableError:
        same = False
    return RemoteSpec(collection.source, text, collection.docs.fingerprint) if same else None


def make_documents_spec(collection: Collection) -> RemoteSpec | None:
    """Return the spec by which another process opens the documents; None if they exist in this process only."""
    source = collection.source
    return RemoteSpec(source, documents_fingerprint=collection.docs.fingerprint) if source else None


def make_document_fetcher(collection: Collection) -> Callable[[str], Doc]:
    """Return a function docno -> document with a cache."""

    def fetch(docno: str) -> Doc:
        try:
            return collection.docs[docno]
        except KeyError:
            raise BadInput(f"candidate {docno!r} is not a document of {collection.name}") from None

    return lru_cache(maxsize=50_000)(fetch)


def lacks_declaration(ranker: Any) -> bool:
    """Return True if a ranker scores texts and does not declare whether it is pointwise; no property is computed."""
    if inspect.getattr_static(ranker, "pointwise", None) is not None:
        return False
    return callable(getattr(ranker, "score", None)) and not isinstance(ranker, RecordedRanker)


def draw_lists(experiment: Experiment) -> list[Slate]:
    """Return the candidate lists of a few queries, in the order of the first stage."""
    every = -(-len(experiment.queries) // DRAWN_QUERIES)
    texts = dict(list(experiment.texts.items())[::every])
    candidates: Run = experiment.collection.candidates or experiment.search_first_stage(texts)
    return [
        Slate(text, experiment.get_documents(rank_docnos(candidates[qid])[: experiment.depth]))
        for qid, text in texts.items()
        if candidates.get(qid)
    ]


def find_baseline(experiment: Experiment, first_stage_name: str) -> str:
    """Return the name of the ranker that is the first stage; "" if none is, or if no ranker re-ranks its list."""
    if experiment.live_rankers and not experiment.scoring_rankers:
        return ""
    if first_stage_name in experiment.models:
        return first_stage_name
    try:
        spec = RANKERS.spec(RANKERS.build(experiment.first_stage))
    except ShaketableError:  # the task that needs the first stage raises this error
        return ""
    return next((name for name, model in experiment.models.items() if RANKERS.spec(model) == spec), "")


def take_top(scores: Mapping[str, float], depth: int) -> dict[str, float]:
    """Return the first documents of a list with their scores."""
    return {docno: scores[docno] for docno in rank_docnos(scores)[:depth]}

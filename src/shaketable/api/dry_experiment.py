"""An experiment whose rankers count requests and make up scores from query and text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from shaketable.core.documents import Collection, Scores, Slate
from shaketable.core.errors import NotApplicable, ShaketableError
from shaketable.core.home import home_folder
from shaketable.core.protocols import Model, Ranker, RecordedRanker, can_score_texts
from shaketable.core.seeding import make_item_rng
from shaketable.experiment import Experiment
from shaketable.rankers.http.hits import HitCorpus
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from shaketable.scoring.traits import RankerTraits


@dataclass
class RequestCount:
    """The number of pairs, requests and searches of a ranker."""

    pairs: int = 0
    requests: int = 0
    searches: int = 0


class ReadOnlyStore(Store):
    """A read-only score cache: a dry run never caches its made-up scores."""

    def put(self, items: Iterable[tuple[bytes, bytes]]) -> None:
        for _ in items:
            pass


MADE_UP_DOCNOS = tuple(f"hit{number}" for number in range(500))
"""The documents of an engine without judgements, in a dry run."""
TRAINING_REFUSAL = "it trains rankers, which a dry run does not"


class DryExperiment(Experiment):
    """An experiment that trains nothing."""

    def fit(self, *arguments: Any, **settings: Any) -> Any:
        raise NotApplicable(TRAINING_REFUSAL)

    run_jobs = fit


@dataclass(frozen=True, eq=False)
class DryModel:
    """A model whose ranker counts requests and makes up scores, with the traits of the real ranker."""

    model: Model
    name: str
    count: RequestCount
    find_candidates: Callable[[Sequence[str], int], list[dict[str, float]]]

    def open(self, collection: Collection) -> Ranker:
        ranker = self.model.open(collection)
        return (
            ranker if is_cheap_to_run(ranker) else make_dry_ranker(ranker, self.name, self.count, self.find_candidates)
        )


@dataclass(frozen=True, eq=False)
class DryLanguageModel(DryModel):
    """A dry model with several prompt wordings, like a language model."""

    def wordings(self) -> dict[str, Model]:
        return {key: replace(self, model=model) for key, model in self.model.wordings().items()}  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False)
class DryEncoder(DryModel):
    """A dry model with other prompts, like an encoder with prefixes."""

    def reword_prompts(self) -> dict[str, Model]:
        return {key: replace(self, model=model) for key, model in self.model.reword_prompts().items()}  # type: ignore[attr-defined]


def make_dry_model(
    model: Model,
    name: str,
    count: RequestCount,
    find_candidates: Callable[[Sequence[str], int], list[dict[str, float]]],
) -> DryModel:
    """Return a dry model with the prompts of the model, if it has any."""
    kinds = {"wordings": DryLanguageModel, "reword_prompts": DryEncoder}
    kind = next((kind for method, kind in kinds.items() if hasattr(model, method)), DryModel)
    return kind(model, name, count, find_candidates)


def is_cheap_to_run(ranker: Ranker) -> bool:
    """Return True for lexical rankers and recorded runs; a dry run uses these as they are."""
    return isinstance(ranker, RecordedRanker) or getattr(type(ranker), "family", "") == "traditional"


class _Dry:
    """A ranker that counts requests, with the traits and the class name of the real ranker."""

    def __init__(self, ranker: Ranker, count: RequestCount):
        self.ranker, self.count = ranker, count

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["ranker"], name)

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        self.count.pairs += sum(len(slate.docs) for slate in slates)
        self.count.requests += self.count_requests(slates)
        return [np.array([make_fake_score(slate.query, doc.text) for doc in slate.docs]) for slate in slates]

    def count_requests(self, slates: Sequence[Slate]) -> int:
        """Return the number of requests that a remote ranker needs for these slates; 0 for a local ranker."""
        if not self.remote:
            return 0
        if callable(own := getattr(type(self.ranker), "count_requests", None)):
            return int(own(self.ranker, slates))
        size = (self.chunk or 1) if self.pointwise else 0
        return sum(ceil(len(slate.docs) / size) if size else 1 for slate in slates if slate.docs)


def make_fake_score(query: str, text: str) -> float:
    """Return a score from 0 to 1 that depends only on query and text.

    >>> make_fake_score("oak", "an oak") == make_fake_score("oak", "an oak") != make_fake_score("oak", "an ash")
    True
    >>> 0.5 < max(make_fake_score("oak", str(number)) for number in range(20)) < 1
    True
    """
    return make_item_rng(0, "plan", query, text).random_bits() / 2**64


def make_dry_ranker(
    ranker: Ranker,
    name: str,
    count: RequestCount,
    find_candidates: Callable[[Sequence[str], int], list[dict[str, float]]],
) -> Any:
    """Return a ranker that counts requests in place of the real ranker, which receives none.

    The score cache uses the class and the fingerprint of a ranker as key, so the dry ranker copies both.
    """
    kind = type(ranker)
    unasked: Mapping[str, Any] | None = getattr(ranker, "offline_traits", None)
    remote = getattr(ranker, "volatile", False) is True or getattr(ranker, "remote", False) is True
    if unasked is None:
        try:
            known = RankerTraits.from_ranker(ranker, name)
            unasked = {
                "pointwise": known.pointwise or known.pointwise_unknown,
                "assumed_pointwise": known.pointwise_unknown,  # only its scores could show it
                "chunk": known.chunk,
                "fingerprint": known.fingerprint,
            }
        except ShaketableError:  # a combination with a remote ranker
            remote, unasked = True, {"pointwise": False, "chunk": 1, "fingerprint": None}
    traits = {
        **unasked,
        "name": name,
        "cached": getattr(ranker, "cached", True),
        "max_concurrency": int(getattr(ranker, "max_concurrency", 1)),
        "remote": remote,
        "volatile": False,  # a dry run sends nothing, so it cannot check that cached scores still hold
        "noise": 0.0,
        "noise_floor": 0.0,
    }
    if callable(getattr(kind, "search", None)):

        def search(self: _Dry, queries: Sequence[str], k: int) -> list[dict[str, float]]:
            found = find_candidates(queries, k)
            count.searches += len(queries)
            count.pairs += sum(map(len, found)) if can_score_texts(ranker) else len(queries)
            count.requests += len(queries) if remote else 0
            return found

        traits["search"] = search
        traits |= {} if can_score_texts(ranker) else {"score": None}
    named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (_Dry,), {**traits, **named})(ranker, count)


@dataclass(frozen=True, eq=False)
class OpenedModel:
    """A model of a ranker that is already open."""

    ranker: Ranker

    def open(self, collection: Collection) -> Ranker:
        return self.ranker


@dataclass(frozen=True)
class UntrainedModel:
    """A stand-in for the small neural ranker that an audit trains first: a pointwise ranker."""

    name: str
    fingerprint: None = None
    pointwise: bool = True

    def open(self, collection: Collection) -> Ranker:
        return self

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        raise NotApplicable("it is not trained yet")


def make_up_hits(query: str, pool: Sequence[str], k: int) -> dict[str, float]:
    """Return a list of at most k documents that depends on the query, in place of a search."""
    rng = make_item_rng(0, "hits", query)
    return {docno: 1 / rank for rank, docno in enumerate(rng.permutation(pool)[:k], 1)}


def make_dry_experiment(
    opened: Experiment, models: Mapping[str, Model], counts: Mapping[str, RequestCount]
) -> DryExperiment:
    """Return a copy of the experiment with rankers that count requests and a read-only score cache."""
    path = home_folder() / "scores.sqlite"
    progress = opened.engine.progress
    searching = replace(opened, models={}, engine=ScoringEngine(progress=progress))

    pool = sorted({docno for grades in opened.collection.qrels.values() for docno in grades}) or MADE_UP_DOCNOS
    hits = isinstance(opened.collection.docs, HitCorpus)
    documents = HitCorpus(made_up=True) if hits else opened.collection.docs

    def finder(queries: Sequence[str], k: int) -> list[dict[str, float]]:
        if hits:
            return [make_up_hits(query, pool, k) for query in queries]
        texts = {str(i): query for i, query in enumerate(queries)}
        found = searching.with_depth(k).search_first_stage(texts)
        return [dict(found.get(key, {})) for key in texts]

    return DryExperiment(
        replace(opened.collection, docs=documents),
        {name: make_dry_model(model, name, counts[name], finder) for name, model in models.items()},
        ScoringEngine(ReadOnlyStore(path) if path.exists() else None, progress=progress, keep_going=True),
        opened.seed,
        opened.depth,
        opened.limit,
        opened.first_stage,
        opened.split,
        opened.sample,
        opened.sizes,
    )

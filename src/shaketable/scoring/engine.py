"""The scoring engine: it turns slates into scores and queries into lists.

The engine removes duplicates, looks up cached results, cuts the rest into chunks, runs them, checks the results and
commits them. A pointwise ranker gets (query, text) pairs, which the engine splits and merges freely; any other ranker
gets whole slates; a retriever gets query texts. Chunks follow the caller's order. The engine commits each chunk when
it completes, so a second run continues where an interrupted run stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shaketable.core.documents import Doc, Scores, Slate
from shaketable.core.errors import RankerFailed
from shaketable.core.progress import ProgressFactory, no_progress, set_status
from shaketable.core.protocols import Ranker, Retriever
from shaketable.core.results import Failure
from shaketable.executors.base import Executor, Job, RemoteSpec, SerialExecutor, ThreadExecutor, as_completed
from shaketable.scoring.chunks import fit_chunk_size, split_chunks
from shaketable.scoring.store import Store
from shaketable.scoring.traits import RankerTraits
from shaketable.scoring.units import (
    FailedUnit,
    PairUnits,
    QueryUnits,
    SlateUnits,
    Unit,
    UnitResult,
    WorkUnit,
    digest_texts,
    run_request,
)
from shaketable.scoring.validation import collapse_ties

LOG = logging.getLogger(__name__)
MAX_CACHED_DIGESTS = 500_000
"""Documents whose digests are cached."""


@dataclass
class Usage:
    """The work of a ranker and its cost, in query-document pairs.

    `asked` counts all requested pairs and `scored` those left after removing duplicates and looking up; a search
    counts as many pairs as it finds. `searches` counts the queries that were searched, `seconds` is the ranker's own
    time, and `failed` counts the lists, out of `queries`, that the ranker failed on.
    """

    asked: int = 0
    scored: int = 0
    searches: int = 0
    seconds: float = 0.0
    queries: int = 0
    failed: int = 0


@dataclass
class ScoringEngine:
    """A caller of rankers with a cache of their scores: in memory for its lifetime, on disk if it has a store.

    With `keep_going`, a slate or a query that a ranker fails on becomes a `Failure` and a `None`; otherwise the engine
    raises the failure. `cache_size` limits the results in memory; the oldest are dropped first.
    """

    store: Store | None = None
    progress: ProgressFactory = no_progress
    chunk: int = 512
    cache_size: int = 2_000_000
    keep_going: bool = False
    executor: Executor = field(default_factory=SerialExecutor)
    failures: list[Failure] = field(default_factory=list)
    usage: dict[str, Usage] = field(default_factory=dict)
    changed_rankers: list[str] = field(default_factory=list)
    """Rankers whose scores differ from those that the store has of them."""
    _cache: dict[bytes, UnitResult] = field(default_factory=dict, repr=False)
    _unfingerprinted_rankers: list[Any] = field(default_factory=list, repr=False)
    _cache_validity: dict[tuple[str, ...], bool] = field(default_factory=dict, repr=False)
    """For each volatile ranker, whether its scores on disk are still valid."""
    _remarks_by_ranker: dict[tuple[str, ...], str] = field(default_factory=dict, repr=False)
    """The remarks of rankers, from this process and from workers."""
    _threads: dict[int, ThreadExecutor] = field(default_factory=dict, repr=False)
    _document_digests: dict[int, tuple[Doc, bytes]] = field(default_factory=dict, repr=False)
    """Digests by `id` of the document; the entry holds the document, so that its id is not reused."""

    def score(
        self, ranker: Ranker, slates: Sequence[Slate], name: str = "", remote_spec: RemoteSpec | None = None
    ) -> list[Scores | None]:
        """Return one array of scores for each slate, in order; None where the ranker failed and `keep_going` is set.

        `name` is the ranker's name in messages, by default its own; another process opens it by `remote_spec`.
        """
        traits = RankerTraits.from_ranker(ranker, name)
        unit_type: WorkUnit[Any] = (
            PairUnits(self._digest_document)
            if traits.pointwise and traits.cached
            else SlateUnits(self._digest_document)
        )
        values, indices_by_slate = self._run_units(
            _RankerHandle(ranker, traits, remote_spec), unit_type, slates, use_cache=traits.cached
        )
        answers = [unit_type.assemble([values[i] for i in indices]) for indices in indices_by_slate]
        return [collapse_ties(answer, traits.noise) for answer in answers] if traits.noise else answers

    def search(
        self, ranker: Retriever, queries: Sequence[str], k: int, name: str = "", remote_spec: RemoteSpec | None = None
    ) -> list[dict[str, float] | None]:
        """Return the top k documents of each query text, docno -> score, best first; None as in `score`.

        A top-k list is served from the cache if the same or a longer list was found before.
        """
        traits = RankerTraits.from_ranker(ranker, name)
        values, indices_by_query = self._run_units(
            _RankerHandle(ranker, traits, remote_spec), QueryUnits(k), queries, use_cache=True
        )
        answers = [values[i] for (i,) in indices_by_query]
        return [None if answer is None else answer.head(k, traits.noise) for answer in answers]

    def get_remark(self, ranker: Ranker) -> str:
        """Return the ranker's remark on its scores, and its notice.

        The store keeps the remark with the scores; the notice belongs to this process and is not stored.
        """
        texts = self._resolve_remark(ranker), str(getattr(ranker, "notice", "") or "")
        return "; ".join(filter(None, texts))

    def _resolve_remark(self, ranker: Ranker) -> str:
        traits = RankerTraits.from_ranker(ranker)
        names = self._build_cache_name(_RankerHandle(ranker, traits, None))
        remark = str(getattr(ranker, "remark", "") or "") or self._remarks_by_ranker.get(names, "")
        if self.store is None or traits.fingerprint is None:
            return remark
        key = digest_texts(b"remark", *names)
        if remark:
            self.store.put([(key, remark.encode())])
            return remark
        known = self.store.get([key]).get(key)
        return f"{known.decode()} (when the scores were made)" if known else ""

    def list_warnings(self) -> list[str]:
        """Return warnings about damaged cached scores, failures and changed rankers."""
        warnings = self.store.list_warnings() if self.store else []
        warnings += [
            f"{name} failed on {spent.failed:,} of {spent.queries:,} lists ({spent.failed / spent.queries:.0%}), "
            "which count as 0 in measures that use judgements, and are left out of all others"
            for name, spent in self.usage.items()
            if spent.failed
        ]
        return warnings + [
            f"{name} no longer returns its cached scores, so these are not used" for name in self.changed_rankers
        ]

    def _run_units(
        self, handle: _RankerHandle, unit_type: WorkUnit[Unit], wanted: Sequence[Any], use_cache: bool
    ) -> tuple[list[UnitResult], list[list[int]]]:
        """Return the results of all distinct units, and for each wanted item the indices of its units."""
        units, keys, indices_by_item = (
            self._deduplicate(handle, unit_type, wanted) if use_cache else _list_units_without_keys(unit_type, wanted)
        )
        spent = self.usage.setdefault(handle.traits.name, Usage())
        values: list[UnitResult] = [None] * len(units)
        on_disk = use_cache and handle.traits.fingerprint is not None and handle.traits.cached
        todo = self._look_up(handle, unit_type, units, keys, values, on_disk) if use_cache else list(range(len(units)))
        weights = [unit_type.weight(units[i]) for i in todo]
        executor = self._select_executor(handle.traits)
        size = handle.traits.chunk or self.chunk
        # a ranker that takes several chunks at a time is a server: a chunk is one request, for one query, and may cost
        # money, so the engine never makes it smaller to keep more workers busy
        served = handle.traits.max_concurrency > 1
        queries = [unit_type.query(units[i]) for i in todo] if served else None
        size = size if served else fit_chunk_size(size, sum(weights), executor.max_concurrency)
        parts = split_chunks(todo, weights, size, queries)
        jobs = ((part, handle.make_job(unit_type, [units[i] for i in part], self.keep_going)) for part in parts)
        what = f"{unit_type.verb} with {handle.traits.name}"
        finished: list[int] = []
        before = spent.seconds
        with (
            self.progress(what, sum(weights), unit_type.unit_name) as advance,
            self._explain_interruption(what, finished, todo, on_disk),
        ):
            set_status(advance, lambda: str(getattr(handle.ranker, "status", "")))
            for part, (answers, seconds, remark) in as_completed(executor, jobs):
                for i, answer in zip(part, self._record_failures(handle, units, part, unit_type, answers), strict=True):
                    values[i] = answer
                if remark:
                    self._remarks_by_ranker[self._build_cache_name(handle)] = remark
                spent.seconds += seconds
                spent.searches += len(part) if isinstance(unit_type, QueryUnits) else 0
                spent.scored += sum(unit_type.count_pairs(units[i], values[i]) for i in part)
                if use_cache:
                    self._commit(unit_type, [(keys[i], values[i]) for i in part if values[i] is not None], on_disk)
                finished += part
                advance(sum(unit_type.weight(units[i]) for i in part))
        if units:
            new, count = sum(weights), sum(map(unit_type.weight, units))
            took = f"{new:,} were computed in {spent.seconds - before:.1f} seconds"
            LOG.info(
                "%s: of %s %s, %s were cached and %s.",
                what,
                f"{count:,}",
                unit_type.unit_name,
                f"{count - new:,}",
                took,
            )
        spent.queries += len(indices_by_item)
        spent.failed += sum(any(values[i] is None for i in indices) for indices in indices_by_item)
        spent.asked += (
            sum(map(len, indices_by_item))  # pairs already
            if isinstance(unit_type, PairUnits)
            else sum(unit_type.count_pairs(units[i], values[i]) for indices in indices_by_item for i in indices)
        )
        return values, indices_by_item

    @contextmanager
    def _explain_interruption(self, what: str, finished: list[int], todo: list[int], on_disk: bool) -> Iterator[None]:
        """Add to an interruption, by the keyboard or by a ranker, how much is done and whether it is cached."""
        try:
            yield
        except KeyboardInterrupt as interrupt:
            raise KeyboardInterrupt(
                f"stopped while {what}: {self._describe_done(finished, todo, on_disk)}"
            ) from interrupt
        except RankerFailed as error:
            if not (finished and on_disk and self.store is not None):
                raise
            raise RankerFailed(f"{error}; {self._describe_done(finished, todo, on_disk)}") from error

    def _describe_done(self, finished: list[int], todo: list[int], on_disk: bool) -> str:
        if on_disk and self.store is not None:
            waiting = self.store.flush()
            kept = (
                f"{waiting:,} of them are lost, because caching failed: {'; '.join(self.store.list_warnings())}"
                if waiting
                else "they are cached: run the same command again to continue"
            )
        else:
            kept = "they are lost because the scores of this ranker are not cached"
        return f"{len(finished):,} of {len(todo):,} scores were complete; {kept}"

    def _deduplicate(
        self, handle: _RankerHandle, unit_type: WorkUnit[Unit], wanted: Sequence[Any]
    ) -> tuple[list[Unit], list[bytes], list[list[int]]]:
        seed = digest_texts(b"", *self._build_cache_name(handle))
        index: dict[bytes, int] = {}
        units: list[Unit] = []
        indices_by_item: list[list[int]] = []
        for one in wanted:
            indices = []
            for key, unit in zip(unit_type.compute_keys(seed, one), unit_type.list_units(one), strict=True):
                if (at := index.get(key)) is None:
                    at = index[key] = len(units)
                    units.append(unit)
                indices.append(at)
            indices_by_item.append(indices)
        return units, list(index), indices_by_item

    def _select_executor(self, traits: RankerTraits) -> Executor:
        """Return the engine's executor, or threads for a ranker that allows several requests at a time."""
        if traits.max_concurrency == 1:
            return self.executor
        return self._threads.setdefault(traits.max_concurrency, ThreadExecutor(traits.max_concurrency))

    def _look_up(
        self,
        handle: _RankerHandle,
        unit_type: WorkUnit[Any],
        units: list[Any],
        keys: list[bytes],
        values: list[UnitResult],
        on_disk: bool,
    ) -> list[int]:
        """Fill in the cached values that suffice, and return the indices of the other units."""
        values[:] = map(self._cache.get, keys)
        todo = [i for i, value in enumerate(values) if value is None or not unit_type.is_sufficient(value)]
        if self.store is None or not on_disk or not todo:
            return todo
        known = unit_type.decode(self.store.get([keys[i] for i in todo]))
        if known and handle.traits.volatile and not self._verify_cache(handle, unit_type, units, keys, known):
            return todo
        self._remember(known.items())
        for i in todo:
            values[i] = known.get(keys[i])
        return [i for i in todo if values[i] is None]

    def _verify_cache(
        self,
        handle: _RankerHandle,
        unit_type: WorkUnit[Any],
        units: list[Any],
        keys: list[bytes],
        known: Mapping[bytes, UnitResult],
    ) -> bool:
        """Return True if the ranker still gives the scores on disk; it scores a few units twice to find out.

        The new scores may differ from those on disk by at most twice the difference between the two calls, or twice
        the ranker's noise floor.
        """
        name = self._build_cache_name(handle)
        if name not in self._cache_validity:
            stored = [i for i, key in enumerate(keys) if key in known]
            some = [stored[j] for j in sorted({0, len(stored) // 2, len(stored) - 1})]
            once, again = (
                [
                    unit_type.as_scores(a)
                    for a in unit_type.build_request([units[i] for i in some]).run(handle.ranker, handle.traits.name)
                ]
                for _ in range(2)
            )
            kept = [unit_type.as_scores(known[keys[i]]) for i in some]
            noise = max(float(np.abs(a - b).max(initial=0)) for a, b in zip(once, again, strict=True))
            near = 1e-6 + 2 * max(noise, handle.traits.noise_floor)
            same = [
                len(a) == len(b) and np.allclose(a, b, rtol=1e-6, atol=near) for a, b in zip(once, kept, strict=True)
            ]
            self._cache_validity[name] = all(same)
            if not all(same):
                self.changed_rankers.append(handle.traits.name)
        return self._cache_validity[name]

    def _commit(self, unit_type: WorkUnit[Any], done: list[tuple[bytes, UnitResult]], on_disk: bool) -> None:
        if self.store is not None and on_disk:
            self.store.put((key, unit_type.encode(value)) for key, value in done)
        self._remember(done)

    def _remember(self, items: Iterable[tuple[bytes, UnitResult]]) -> None:
        self._cache.update(items)
        while len(self._cache) > self.cache_size:  # drop the oldest
            del self._cache[next(iter(self._cache))]

    def _record_failures(
        self, handle: _RankerHandle, units: list[Unit], part: list[int], unit_type: WorkUnit[Unit], answers: list[Any]
    ) -> Iterator[UnitResult]:
        """Yield the results of a chunk; a failed unit is recorded and yields None."""
        for i, answer in zip(part, answers, strict=True):
            if isinstance(answer, FailedUnit):
                failure = Failure(handle.traits.name, unit_type.query(units[i]), answer.reason)
                if failure not in self.failures[-1:]:  # one slate may be many units
                    self.failures.append(failure)
                yield None
            else:
                yield answer

    def _build_cache_name(self, handle: _RankerHandle) -> tuple[str, ...]:
        """Return the name of a ranker in cache keys; a ranker without a fingerprint is known only as this object.

        The class is part of the name, because two classes may compute the same fingerprint.
        """
        if (fingerprint := handle.traits.fingerprint) is not None:
            ranker_class = type(handle.ranker)
            return fingerprint, ranker_class.__module__, ranker_class.__qualname__
        for i, known in enumerate(self._unfingerprinted_rankers):
            if known is handle.ranker:
                return (f"object {i}",)
        self._unfingerprinted_rankers.append(handle.ranker)
        return (f"object {len(self._unfingerprinted_rankers) - 1}",)

    def _digest_document(self, doc: Doc) -> bytes:
        known = self._document_digests.get(id(doc))
        if known is None:
            if len(self._document_digests) >= MAX_CACHED_DIGESTS:
                self._document_digests.clear()
            known = self._document_digests[id(doc)] = (doc, digest_texts(b"", doc.title, doc.url, doc.body))
        return known[1]


def _list_units_without_keys(
    unit_type: WorkUnit[Unit], wanted: Sequence[Any]
) -> tuple[list[Unit], list[bytes], list[list[int]]]:
    """Return the units without cache keys, and the index of each."""
    units = [unit for one in wanted for unit in unit_type.list_units(one)]
    return units, [], [[i] for i in range(len(units))]


@dataclass(frozen=True)
class _RankerHandle:
    """A ranker with its traits, and the spec by which another process opens it."""

    ranker: Any
    traits: RankerTraits
    remote_spec: RemoteSpec | None

    def make_job(self, unit_type: WorkUnit[Unit], units: list[Unit], retry_parts: bool) -> Job:
        """Return the job of a chunk; a ranker that is too cheap to cache stays in this process."""
        traits, spec = self.traits, self.remote_spec
        stays = spec is None or not (traits.cached or isinstance(unit_type, QueryUnits))
        return Job(
            run_request,
            self.ranker,
            (traits.name, unit_type.build_request(units), retry_parts),
            None if stays or spec is None else replace(spec, ranker_fingerprint=traits.fingerprint or ""),
            resources=traits.resources,
            uses_all_cores=traits.uses_all_cores,
        )

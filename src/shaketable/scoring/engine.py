"""The scoring engine: it turns slates into scores and queries into lists.

The engine removes duplicates, looks up cached results, cuts the rest into chunks, runs them, checks the results and
commits them. A pointwise ranker gets (query, text) pairs, which the engine splits and merges freely; any other ranker
gets whole slates; a retriever gets query texts. Chunks follow the caller's order, except that a ranker that pads texts
gets the longest texts first. A chunk takes about two seconds by the measured speed of the ranker. The engine commits
each chunk when it completes, so a second run continues where an interrupted run stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NoReturn

from shaketable.core.documents import Doc, Scores, Slate
from shaketable.core.errors import RankerFailed
from shaketable.core.progress import ProgressFactory, no_progress, set_status
from shaketable.core.protocols import Ranker, RecordedRanker, Retriever
from shaketable.core.results import Failure
from shaketable.executors.base import Executor, Job, RemoteSpec, SerialExecutor, ThreadExecutor, as_completed
from shaketable.scoring.chunks import ChunkPace, plan_calls
from shaketable.scoring.pointwise import PointwiseDetection, PointwiseRefuted
from shaketable.scoring.revalidation import are_still_valid
from shaketable.scoring.store import Store
from shaketable.scoring.traits import RankerTraits
from shaketable.scoring.units import (
    PAIRS_UNIT,
    FailedUnit,
    PairUnits,
    QueryUnits,
    RequestSeries,
    SlateUnits,
    Unit,
    UnitResult,
    WorkUnit,
    digest_texts,
    list_units_without_keys,
    run_request,
)
from shaketable.scoring.usage import Usage
from shaketable.scoring.validation import collapse_ties
from shaketable.scoring.work_limit import WorkLimit, count_work

LOG = logging.getLogger(__name__)
UNCACHED_NOTICE = "its scores are not cached on disk, because it has no fingerprint"
MAX_CACHED_DIGESTS = 500_000
"""Documents whose digests are cached."""


@dataclass
class ScoringEngine:
    """A caller of rankers with a cache of their scores: in memory for its lifetime, on disk if it has a store.

    With `keep_going`, a slate or a query that a ranker fails on becomes a `Failure` and a `None`; otherwise the engine
    raises the failure. `chunk` is the largest number of pairs in a chunk. `cache_size` limits the results in memory;
    the oldest are dropped first.
    """

    store: Store | None = None
    progress: ProgressFactory = no_progress
    chunk: int = 4096
    cache_size: int = 2_000_000
    keep_going: bool = False
    executor: Executor = field(default_factory=SerialExecutor)
    failures: list[Failure] = field(default_factory=list)
    usage: dict[str, Usage] = field(default_factory=dict)
    changed_rankers: list[str] = field(default_factory=list)
    """Rankers whose scores differ from those that the store has of them."""
    limit: WorkLimit = field(default_factory=WorkLimit)
    """The budget of an audit; work beyond it raises `LimitReached`."""
    _cache: dict[bytes, UnitResult] = field(default_factory=dict, repr=False)
    _unfingerprinted_rankers: list[Any] = field(default_factory=list, repr=False)
    _cache_validity: dict[tuple[str, ...], bool] = field(default_factory=dict, repr=False)
    """For each volatile ranker, whether its scores on disk are still valid."""
    _remarks_by_ranker: dict[tuple[str, ...], str] = field(default_factory=dict, repr=False)
    """The remarks of rankers, from this process and from workers."""
    _pointwise: PointwiseDetection = field(default_factory=PointwiseDetection, repr=False)
    _paces: dict[tuple[str, str], ChunkPace] = field(default_factory=dict, repr=False)
    _threads: dict[int, ThreadExecutor] = field(default_factory=dict, repr=False)
    _document_digests: dict[int, tuple[Doc, bytes]] = field(default_factory=dict, repr=False)
    """Digests by `id` of the document; the entry holds the document, so that its id is not reused."""

    def score(
        self, ranker: Ranker, slates: Sequence[Slate], name: str = "", remote_spec: RemoteSpec | None = None
    ) -> list[Scores | None]:
        """Return one array of scores for each slate, in order; None where the ranker failed and `keep_going` is set.

        `name` is the ranker's name in messages, by default its own; another process opens it by `remote_spec`.
        """
        traits = self.get_traits(ranker, name)
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
        self,
        ranker: Retriever,
        queries: Sequence[str],
        k: int,
        name: str = "",
        remote_spec: RemoteSpec | None = None,
        *,
        use_cache: bool = True,
    ) -> list[dict[str, float] | None]:
        """Return the top k documents of each query text, docno -> score, best first; None as in `score`.

        A top-k list is served from the cache if the same or a longer list was found before.
        """
        handle = _RankerHandle.from_ranker(ranker, name, remote_spec)
        values, indices_by_query = self._run_units(handle, QueryUnits(k), queries, use_cache)
        answers = [values[i] for (i,) in indices_by_query]
        return [None if answer is None else answer.head(k, handle.traits.noise) for answer in answers]

    def get_traits(self, ranker: Ranker, name: str = "") -> RankerTraits:
        """Return the traits of a ranker; it is pointwise if it declares so, or if `resolve_pointwise` found so."""
        handle = _RankerHandle.from_ranker(ranker, name)
        if not handle.traits.pointwise_unknown:
            return handle.traits
        return self._pointwise.resolve_traits(handle.traits, self._build_cache_name(handle))

    def resolve_pointwise(
        self,
        ranker: Ranker,
        name: str,
        make_lists: Callable[[], Sequence[Slate]],
        remote_spec: RemoteSpec | None = None,
    ) -> None:
        """Find out whether a ranker is pointwise, if it does not declare that and no earlier run found out.

        The ranker scores a few of the lists that `make_lists` returns (`scoring.pointwise`).
        """
        handle = _RankerHandle.from_ranker(ranker, name, remote_spec)
        if handle.traits.pointwise_unknown:
            store = self.store if handle.traits.fingerprint is not None else None
            key, ask = self._build_cache_name(handle), partial(self._ask, handle)
            scored = self._pointwise.resolve(name, key, store, ask, make_lists)
            self._cache_lists(replace(handle, traits=self.get_traits(ranker, name)), scored)
            self._pointwise.store_check(key, store)  # last: after a kill, a stored check has its lists in the store

    def refute_pointwise(self, ranker: Ranker, name: str, query: str) -> NoReturn:
        """Discard the scores of a ranker that was found to be pointwise and is not, and raise `PointwiseRefuted`."""
        handle = _RankerHandle.from_ranker(ranker, name)
        store = self.store if handle.traits.fingerprint is not None else None
        check, keys = self._pointwise.refute(name, self._build_cache_name(handle), query, store)
        for key in keys:
            self._cache.pop(key, None)
        raise PointwiseRefuted(f"{name}: {check.remark}. The work starts over.")

    def _ask(self, handle: _RankerHandle, slates: Sequence[Slate]) -> list[Scores]:
        """Return the scores of slates from one call of the ranker, without the cache."""
        name, pairs = handle.traits.name, sum(len(slate.docs) for slate in slates)
        unit_type = SlateUnits(self._digest_document)
        self._take_from_limit(handle, unit_type, slates)
        job = handle.make_job(unit_type, slates, [list(range(len(slates)))], retry_parts=False)
        what = f"scoring with {name}, to see whether it is pointwise"
        with self.progress(what, pairs, PAIRS_UNIT) as advance:
            try:
                ((_, (answers, seconds, _)),) = as_completed(self._select_executor(handle.traits), [(None, job)])
            except KeyboardInterrupt as interrupt:
                raise KeyboardInterrupt(f"stopped while {what}") from interrupt
            advance(pairs)
        spent = self.usage.setdefault(name, Usage())
        spent.asked, spent.scored, spent.seconds = spent.asked + pairs, spent.scored + pairs, spent.seconds + seconds
        return list(answers)

    def _cache_lists(self, handle: _RankerHandle, scored: Sequence[tuple[Slate, Scores]]) -> None:
        """Cache the scores of whole lists by text."""
        unit_type = PairUnits(self._digest_document)
        _, keys, indices_by_slate = self._deduplicate(handle, unit_type, [slate for slate, _ in scored])
        scores = [score for _, listed in scored for score in listed.tolist()]
        indices = [i for some in indices_by_slate for i in some]
        found = [(keys[i], score) for i, score in zip(indices, scores, strict=True)]
        self._commit(handle, unit_type, found, handle.traits.fingerprint is not None)

    def _check_again(self, handle: _RankerHandle, units: Iterable[tuple[tuple[str, Doc], UnitResult]]) -> None:
        """Score some texts among others; if a score changes, the ranker is not pointwise."""
        scored = [(query, doc, score) for (query, doc), score in units if score is not None]
        check = self._pointwise.checks[self._build_cache_name(handle)]
        with suppress(RankerFailed):
            if (query := check.find_dependence(partial(self._ask, handle), scored)) is not None:
                self.refute_pointwise(handle.ranker, handle.traits.name, query)

    def get_remark(self, ranker: Ranker) -> str:
        """Return the ranker's remark on its scores, its notice, and what the engine found out about it.

        The store keeps the remark with the scores; the notice belongs to this process and is not stored.
        """
        handle = _RankerHandle.from_ranker(ranker)
        check = self._pointwise.checks.get(self._build_cache_name(handle))
        notice = str(getattr(ranker, "notice", "") or "")
        if not notice and self.store is not None and handle.traits.fingerprint is None and handle.traits.cached:
            notice = "" if isinstance(ranker, RecordedRanker) else UNCACHED_NOTICE
        return "; ".join(filter(None, (self._resolve_remark(handle), notice, check.remark if check else "")))

    def _resolve_remark(self, handle: _RankerHandle) -> str:
        names = self._build_cache_name(handle)
        remark = str(getattr(handle.ranker, "remark", "") or "") or self._remarks_by_ranker.get(names, "")
        if self.store is None or handle.traits.fingerprint is None:
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

    def discard_failures(self) -> None:
        """Forget on which lists rankers failed, because all lists are scored again."""
        self.failures.clear()
        for spent in self.usage.values():
            spent.queries = spent.failed = 0

    def _run_units(
        self, handle: _RankerHandle, unit_type: WorkUnit[Unit], wanted: Sequence[Any], use_cache: bool
    ) -> tuple[list[UnitResult], list[list[int]]]:
        """Return the results of all distinct units, and for each wanted item the indices of its units."""
        units, keys, indices_by_item = (
            self._deduplicate(handle, unit_type, wanted) if use_cache else list_units_without_keys(unit_type, wanted)
        )
        spent = self.usage.setdefault(handle.traits.name, Usage())
        values: list[UnitResult] = [None] * len(units)
        on_disk = use_cache and handle.traits.fingerprint is not None and handle.traits.cached
        self._take_from_limit(
            handle, unit_type, [u for i, u in enumerate(units) if not keys or keys[i] not in self._cache]
        )
        todo = self._look_up(handle, unit_type, units, keys, values, on_disk) if use_cache else list(range(len(units)))
        total = sum(unit_type.weight(units[i]) for i in todo)
        what = f"{unit_type.verb} with {handle.traits.name}"
        finished: list[int] = []
        before, known_failures = spent.seconds, len(self.failures)
        with (
            self.progress(what, total, unit_type.unit_name) as advance,
            self._explain_interruption(what, finished, todo, on_disk),
        ):
            set_status(advance, lambda: str(getattr(handle.ranker, "status", "")))
            for part, (answers, seconds, remark) in self._run_chunks(handle, unit_type, units, todo, values):
                queries = [unit_type.query(units[i]) for i in part]
                self._record_failures(handle.traits.name, queries, answers, known_failures)
                for i, answer in zip(part, answers, strict=True):
                    values[i] = None if isinstance(answer, FailedUnit) else answer
                if remark:
                    self._remarks_by_ranker[self._build_cache_name(handle)] = remark
                spent.seconds += seconds
                spent.searches += len(part) if isinstance(unit_type, QueryUnits) else 0
                spent.scored += sum(unit_type.count_pairs(units[i], values[i]) for i in part)
                if use_cache:
                    self._commit(
                        handle, unit_type, [(keys[i], values[i]) for i in part if values[i] is not None], on_disk
                    )
                finished += part
                self.limit.check_time(handle.traits.name)
                advance(sum(unit_type.weight(units[i]) for i in part))
        if units:
            count = sum(map(unit_type.weight, units))
            took = f"{count - total:,} were cached and {total:,} were computed in {spent.seconds - before:.1f} seconds"
            LOG.info("%s: of %s %s, %s.", what, f"{count:,}", unit_type.unit_name, took)
        spent.queries += len(indices_by_item)
        spent.failed += sum(any(values[i] is None for i in indices) for indices in indices_by_item)
        spent.asked += (
            sum(map(len, indices_by_item))  # pairs already
            if isinstance(unit_type, PairUnits)
            else sum(unit_type.count_pairs(units[i], values[i]) for indices in indices_by_item for i in indices)
        )
        return values, indices_by_item

    def _take_from_limit(self, handle: _RankerHandle, unit_type: WorkUnit[Unit], units: Sequence[Unit]) -> None:
        """Count units that are new to this engine against the limit."""
        if handle.traits.name in self.limit.rankers:
            self.limit.take(handle.traits.name, *count_work(handle.ranker, handle.traits, unit_type, units, self.chunk))

    def _run_chunks(
        self,
        handle: _RankerHandle,
        unit_type: WorkUnit[Unit],
        units: list[Unit],
        todo: list[int],
        values: list[UnitResult],
    ) -> Iterator[tuple[list[int], tuple[list[Any], float, str]]]:
        """Yield the indices of each finished chunk with its results; the caller fills in `values`."""
        traits, executor = handle.traits, self._select_executor(handle.traits)
        pace = self._paces.setdefault((traits.name, unit_type.verb), ChunkPace())
        checked = traits.detected and isinstance(unit_type, PairUnits)
        check = self._pointwise.checks[self._build_cache_name(handle)] if checked else None
        for some, due in check.split_at_checks(todo) if check else [(todo, False)]:
            calls_by_chunk = plan_calls(traits, unit_type, units, some, self.chunk, pace, executor.max_concurrency)
            jobs = (
                ([i for call in calls for i in call], handle.make_job(unit_type, units, calls, self.keep_going))
                for calls in calls_by_chunk
            )
            for part, result in as_completed(executor, jobs):
                pace.record(sum(unit_type.weight(units[i]) for i in part), result[1])
                yield part, result
            if due:
                self._check_again(handle, ((units[i], values[i]) for i in some))  # type: ignore[misc]

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
        # a list of one document has other keys than a pair, in case that the ranker turns out to be list-wise
        seed = digest_texts(b"detected" if handle.traits.detected else b"", *self._build_cache_name(handle))
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
            request = unit_type.build_request([units[i] for i in some])
            once, again = (request.run(handle.ranker, handle.traits.name) for _ in range(2))
            kept = [known[keys[i]] for i in some]
            holds = are_still_valid(unit_type, kept, once, again, handle.traits.noise_floor)
            self._cache_validity[name] = holds
            if not holds:
                self.changed_rankers.append(handle.traits.name)
        return self._cache_validity[name]

    def _commit(
        self, handle: _RankerHandle, unit_type: WorkUnit[Any], done: list[tuple[bytes, UnitResult]], on_disk: bool
    ) -> None:
        if handle.traits.detected:
            self._pointwise.checks[self._build_cache_name(handle)].keys += [key for key, _ in done]
        if self.store is not None and on_disk:
            self.store.put((key, unit_type.encode(value)) for key, value in done)
        self._remember(done)

    def _remember(self, items: Iterable[tuple[bytes, UnitResult]]) -> None:
        self._cache.update(items)
        while len(self._cache) > self.cache_size:  # drop the oldest
            del self._cache[next(iter(self._cache))]

    def _record_failures(self, name: str, queries: list[str], answers: list[Any], start: int) -> None:
        """Record the failed units of a chunk, each slate once; `start` is the number of failures before this call."""
        for query, answer in zip(queries, answers, strict=True):
            if isinstance(answer, FailedUnit):
                failure = Failure(name, query, answer.reason)
                if failure not in self.failures[start:][-1:]:
                    self.failures.append(failure)

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


@dataclass(frozen=True)
class _RankerHandle:
    """A ranker with its traits, and the spec by which another process opens it."""

    ranker: Any
    traits: RankerTraits
    remote_spec: RemoteSpec | None

    @classmethod
    def from_ranker(cls, ranker: Any, name: str = "", remote_spec: RemoteSpec | None = None) -> _RankerHandle:
        return cls(ranker, RankerTraits.from_ranker(ranker, name), remote_spec)

    def make_job(
        self, unit_type: WorkUnit[Unit], units: Sequence[Unit], calls: list[list[int]], retry_parts: bool
    ) -> Job:
        """Return the job of a chunk, by the indices of the units of each call.

        A ranker that is too cheap to cache stays in this process.
        """
        requests = [unit_type.build_request([units[i] for i in call]) for call in calls]
        traits, spec = self.traits, self.remote_spec
        stays = spec is None or not (traits.cached or isinstance(unit_type, QueryUnits))
        return Job(
            run_request,
            self.ranker,
            (traits.name, requests[0] if len(requests) == 1 else RequestSeries(requests), retry_parts),
            None if stays or spec is None else replace(spec, ranker_fingerprint=traits.fingerprint or ""),
            resources=traits.resources,
            uses_all_cores=traits.uses_all_cores,
        )

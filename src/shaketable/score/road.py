"""From slates to scores, and from queries to lists: remove duplicates, look up, cut chunks, run, check, commit.

Pointwise rankers are asked for (query, text) pairs, which may be split and merged freely; all others for whole
slates, which never are; retrievers for the lists of query texts. Chunks follow the caller's order, an executor runs
them, and each is committed when it comes back, so whatever stops the program, a second run takes up where the first
one was.
"""

from __future__ import annotations

import logging
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import groupby, islice, repeat
from typing import Any, Protocol, TypeVar

import numpy as np

from shaketable.errors import BadInput, RankerFailed, ShaketableError, users_code
from shaketable.score.executor import Executor, Here, Job, Origin, Threads, completed
from shaketable.score.store import Store
from shaketable.types import Doc, Failure, Ranker, Retriever, Scores, Slate, Watch, beside, ranking, unwatched

LOG = logging.getLogger(__name__)

Unit = TypeVar("Unit")
Answer = Any
"""What is kept for a unit: a pair's score, the scores of a slate, or a `Found` list."""

LARGEST = float(np.finfo(np.float32).max)
"""Beyond it a score is infinite to `types.ranking`, which sorts by float32."""
PAIRS = "query-document pairs"
"""What is counted while a ranker scores."""
DIGESTS = 500_000
"""Documents whose digests are remembered."""


@dataclass(frozen=True)
class Traits:
    """The optional attributes of a ranker, with the careful default for each (see `types.Ranker`)."""

    name: str
    pointwise: bool
    fingerprint: str | None
    cached: bool
    volatile: bool = False
    in_flight: int = 1
    chunk: int = 0
    noise: float = 0.0
    floor: float = 0.0
    threaded: bool = False
    needs: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, ranker: Ranker | Retriever, name: str = "") -> Traits:
        with users_code(f"ranker {name or type(ranker).__name__} cannot say what it is"):
            return cls(
                name=name or str(getattr(ranker, "name", type(ranker).__name__)),
                pointwise=getattr(ranker, "pointwise", False) is True,
                fingerprint=getattr(ranker, "fingerprint", None),
                cached=getattr(ranker, "cached", True) is not False,
                volatile=getattr(ranker, "volatile", False) is True,
                in_flight=int(getattr(ranker, "in_flight", 1)),
                chunk=int(getattr(ranker, "chunk", 0)),
                noise=float(getattr(ranker, "noise", 0.0)),
                floor=float(getattr(ranker, "floor", 0.0)),
                threaded=getattr(ranker, "threaded", False) is True,
                needs={n: float(getattr(ranker, n)) for n in ("num_cpus", "num_gpus") if hasattr(ranker, n)},
            )


@dataclass
class Spent:
    """What a ranker was asked for and what it cost, in pairs of a query and a document.

    `asked` is all that was wanted and `scored` what was left of it after removing duplicates and looking up; a search
    counts as many pairs as it finds. `searches` are queries that were searched for, `seconds` the ranker's own time,
    `failed` the queries (each as often as it was asked for with another list) that the ranker failed on, of `queries`.
    """

    asked: int = 0
    scored: int = 0
    searches: int = 0
    seconds: float = 0.0
    queries: int = 0
    failed: int = 0


@dataclass
class Road:
    """Asks rankers and remembers the answers: in memory for its lifetime, on disk where there is a store.

    With `go_on`, a slate or a query that a ranker fails on becomes a `Failure` and a `None`; otherwise the failure is
    raised. `memory` is how many answers are remembered, the oldest going first.
    """

    store: Store | None = None
    watch: Watch = unwatched
    chunk: int = 512
    memory: int = 2_000_000
    go_on: bool = False
    executor: Executor = field(default_factory=Here)
    failures: list[Failure] = field(default_factory=list)
    spent: dict[str, Spent] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    """Rankers that no longer answer as they did when their answers were kept."""
    _kept: dict[bytes, Answer] = field(default_factory=dict, repr=False)
    _unnamed: list[Any] = field(default_factory=list, repr=False)
    _trusted: dict[tuple[str, ...], bool] = field(default_factory=dict, repr=False)
    """Of volatile rankers: are the answers on disk still theirs?"""
    _said: dict[tuple[str, ...], str] = field(default_factory=dict, repr=False)
    """What rankers remarked, wherever they were asked."""
    _threads: dict[int, Threads] = field(default_factory=dict, repr=False)
    _digests: dict[int, tuple[Doc, bytes]] = field(default_factory=dict, repr=False)
    """By `id`, each with its document, which keeps the id from being given to another."""

    def score(
        self, ranker: Ranker, slates: Sequence[Slate], name: str = "", origin: Origin | None = None
    ) -> list[Scores | None]:
        """One array of scores for each slate, in order; None where the ranker failed and the caller chose to go on.

        `name` is what the reader calls the ranker, by default its own; `origin` is how another process can open it.
        """
        traits = Traits.of(ranker, name)
        way: Way[Any] = Pairs(self._digest) if traits.pointwise and traits.cached else Slates(self._digest)
        values, places = self._walk(_Asked(ranker, traits, origin), way, slates, kept=traits.cached)
        answers = [way.assemble([values[i] for i in place]) for place in places]
        return [settled(answer, traits.noise) for answer in answers] if traits.noise else answers

    def search(
        self, ranker: Retriever, queries: Sequence[str], k: int, name: str = "", origin: Origin | None = None
    ) -> list[dict[str, float] | None]:
        """The best k documents of each query text, docno -> score, best first; None as in `score`.

        A list that was found before is not searched for again, nor one that is the head of a longer list.
        """
        traits = Traits.of(ranker, name)
        values, places = self._walk(_Asked(ranker, traits, origin), Searches(k), queries, kept=True)
        answers = [values[i] for (i,) in places]
        return [None if answer is None else answer.head(k, traits.noise) for answer in answers]

    def remark(self, ranker: Ranker) -> str:
        """What a ranker says of its scores, or said when those on disk were made: they are no better for being kept.

        A notice is of this process alone, and not kept.
        """
        texts = self._remark(ranker), str(getattr(ranker, "notice", "") or "")
        return "; ".join(filter(None, texts))

    def _remark(self, ranker: Ranker) -> str:
        traits = Traits.of(ranker)
        names = self._names(_Asked(ranker, traits, None))
        said = str(getattr(ranker, "remark", "") or "") or self._said.get(names, "")
        if self.store is None or traits.fingerprint is None:
            return said
        key = digest(b"remark", *names)
        if said:
            self.store.put([(key, said.encode())])
            return said
        known = self.store.get([key]).get(key)
        return f"{known.decode()} (when the scores were made)" if known else ""

    def remarks(self) -> list[str]:
        """What a reader should know of the answers that were kept."""
        damaged = self.store.damaged if self.store else 0
        said = [f"{damaged:,} answers kept on disk were damaged; they were asked for again"] if damaged else []
        said += [
            f"{name} failed on {spent.failed:,} of {spent.queries:,} lists ({spent.failed / spent.queries:.0%}), "
            "which count 0 where there are judgements, and in no other number"
            for name, spent in self.spent.items()
            if spent.failed
        ]
        return said + [f"{name} no longer answers as it did, so nothing that was kept is used" for name in self.changed]

    def _walk(
        self, asked: _Asked, way: Way[Unit], wanted: Sequence[Any], kept: bool
    ) -> tuple[list[Answer], list[list[int]]]:
        """The answers to the distinct units of what is wanted, and the places of each one's units among them."""
        units, keys, places = self._distinct(asked, way, wanted) if kept else _as_they_are(way, wanted)
        spent = self.spent.setdefault(asked.traits.name, Spent())
        values: list[Answer] = [None] * len(units)
        on_disk = kept and asked.traits.fingerprint is not None and asked.traits.cached
        todo = self._look_up(asked, way, units, keys, values, on_disk) if kept else list(range(len(units)))
        weights = [way.weight(units[i]) for i in todo]
        executor = self._executor(asked.traits)
        size = asked.traits.chunk or self.chunk
        # who takes several chunks at a time is a server, and to a server a chunk is one request, for one query; it may
        # cost money, so it is never made smaller to keep many hands busy
        served = asked.traits.in_flight > 1
        queries = [way.query(units[i]) for i in todo] if served else None
        size = size if served else shared(size, sum(weights), executor.in_flight)
        parts = chunks(todo, weights, size, queries)
        jobs = ((part, asked.job(way, [units[i] for i in part], self.go_on)) for part in parts)
        what = f"{way.verb} with {asked.traits.name}"
        finished: list[int] = []
        before = spent.seconds
        with self.watch(what, sum(weights), way.unit) as advance, self._interrupted(what, finished, todo, on_disk):
            beside(advance, lambda: str(getattr(asked.ranker, "status", "")))
            for part, (answers, seconds, remark) in completed(executor, jobs):
                for i, answer in zip(part, self._answered(asked, units, part, way, answers), strict=True):
                    values[i] = answer
                if remark:
                    self._said[self._names(asked)] = remark
                spent.seconds += seconds
                spent.searches += len(part) if isinstance(way, Searches) else 0
                spent.scored += sum(way.pairs(units[i], values[i]) for i in part)
                if kept:
                    self._keep(way, [(keys[i], values[i]) for i in part if values[i] is not None], on_disk)
                finished += part
                advance(sum(way.weight(units[i]) for i in part))
        if units:
            new, count = sum(weights), sum(map(way.weight, units))
            took = f"{new:,} were asked for and took {spent.seconds - before:.1f} seconds"
            LOG.info("%s: of %s %s, %s were known and %s.", what, f"{count:,}", way.unit, f"{count - new:,}", took)
        spent.queries += len(places)
        spent.failed += sum(any(values[i] is None for i in place) for place in places)
        spent.asked += (
            sum(map(len, places))  # pairs already
            if isinstance(way, Pairs)
            else sum(way.pairs(units[i], values[i]) for place in places for i in place)
        )
        return values, places

    @contextmanager
    def _interrupted(self, what: str, finished: list[int], todo: list[int], on_disk: bool) -> Iterator[None]:
        """Whoever is stopped, from the keyboard or by a ranker, is told what is done, and whether that is kept."""
        try:
            yield
        except KeyboardInterrupt as interrupt:
            raise KeyboardInterrupt(f"stopped while {what}: {self._done(finished, todo, on_disk)}") from interrupt
        except RankerFailed as error:
            if not (finished and on_disk and self.store is not None):
                raise
            raise RankerFailed(f"{error}; {self._done(finished, todo, on_disk)}") from error

    def _done(self, finished: list[int], todo: list[int], on_disk: bool) -> str:
        kept = (
            "are kept: give the same command again to go on"
            if on_disk and self.store is not None
            else "are lost, for answers of this ranker are not kept"
        )
        return f"{len(finished):,} of {len(todo):,} answers had come, and {kept}"

    def _distinct(
        self, asked: _Asked, way: Way[Unit], wanted: Sequence[Any]
    ) -> tuple[list[Unit], list[bytes], list[list[int]]]:
        seed = digest(b"", *self._names(asked))
        index: dict[bytes, int] = {}
        units: list[Unit] = []
        places: list[list[int]] = []
        for one in wanted:
            place = []
            for key, unit in zip(way.keys(seed, one), way.units(one), strict=True):
                if (at := index.get(key)) is None:
                    at = index[key] = len(units)
                    units.append(unit)
                place.append(at)
            places.append(place)
        return units, list(index), places

    def _executor(self, traits: Traits) -> Executor:
        """The road's own; a ranker that waits for others is asked by several threads, as many as it says."""
        if traits.in_flight == 1:
            return self.executor
        return self._threads.setdefault(traits.in_flight, Threads(traits.in_flight))

    def _look_up(
        self, asked: _Asked, way: Way[Any], units: list[Any], keys: list[bytes], values: list[Answer], on_disk: bool
    ) -> list[int]:
        """Fill in the answers that are known and suffice; the places of the others remain."""
        values[:] = map(self._kept.get, keys)
        todo = [i for i, value in enumerate(values) if value is None or not way.suffices(value)]
        if self.store is None or not on_disk or not todo:
            return todo
        known = way.decode(self.store.get([keys[i] for i in todo]))
        if known and asked.traits.volatile and not self._trust(asked, way, units, keys, known):
            return todo
        self._remember(known.items())
        for i in todo:
            values[i] = known.get(keys[i])
        return [i for i in todo if values[i] is None]

    def _trust(
        self, asked: _Asked, way: Way[Any], units: list[Any], keys: list[bytes], known: Mapping[bytes, Answer]
    ) -> bool:
        """Does what is served behind a name still answer as it did? A few answers are asked for twice to find out.

        They may differ from those on disk by no more than twice what they differ from each other, or than the floor
        that the ranker knows of.
        """
        name = self._names(asked)
        if name not in self._trusted:
            places = [i for i, key in enumerate(keys) if key in known]
            some = [places[j] for j in sorted({0, len(places) // 2, len(places) - 1})]
            once, again = (
                [way.numbers(a) for a in way.request([units[i] for i in some]).put(asked.ranker, asked.traits.name)]
                for _ in range(2)
            )
            kept = [way.numbers(known[keys[i]]) for i in some]
            noise = max(float(np.abs(a - b).max(initial=0)) for a, b in zip(once, again, strict=True))
            near = 1e-6 + 2 * max(noise, asked.traits.floor)
            same = [
                len(a) == len(b) and np.allclose(a, b, rtol=1e-6, atol=near) for a, b in zip(once, kept, strict=True)
            ]
            self._trusted[name] = all(same)
            if not all(same):
                self.changed.append(asked.traits.name)
        return self._trusted[name]

    def _keep(self, way: Way[Any], done: list[tuple[bytes, Answer]], on_disk: bool) -> None:
        if self.store is not None and on_disk:
            self.store.put((key, way.encode(value)) for key, value in done)
        self._remember(done)

    def _remember(self, items: Iterable[tuple[bytes, Answer]]) -> None:
        self._kept.update(items)
        while len(self._kept) > self.memory:  # the oldest go first
            del self._kept[next(iter(self._kept))]

    def _answered(
        self, asked: _Asked, units: list[Unit], part: list[int], way: Way[Unit], answers: list[Any]
    ) -> Iterator[Answer]:
        """The answers of a chunk, those that failed noted and None."""
        for i, answer in zip(part, answers, strict=True):
            if isinstance(answer, Failed):
                failure = Failure(asked.traits.name, way.query(units[i]), answer.reason)
                if failure not in self.failures[-1:]:  # one slate may be many units
                    self.failures.append(failure)
                yield None
            else:
                yield answer

    def _names(self, asked: _Asked) -> tuple[str, ...]:
        """What a ranker's answers are kept under; one without a fingerprint is known only as this object.

        Two classes may well have one idea of a fingerprint, so the class is part of the name.
        """
        if (mark := asked.traits.fingerprint) is not None:
            kind = type(asked.ranker)
            return mark, kind.__module__, kind.__qualname__
        for i, known in enumerate(self._unnamed):
            if known is asked.ranker:
                return (f"object {i}",)
        self._unnamed.append(asked.ranker)
        return (f"object {len(self._unnamed) - 1}",)

    def _digest(self, doc: Doc) -> bytes:
        known = self._digests.get(id(doc))
        if known is None:
            if len(self._digests) >= DIGESTS:
                self._digests.clear()
            known = self._digests[id(doc)] = (doc, digest(b"", doc.title, doc.url, doc.body))
        return known[1]


def _as_they_are(way: Way[Unit], wanted: Sequence[Any]) -> tuple[list[Unit], list[bytes], list[list[int]]]:
    """Units that nobody remembers need no names."""
    units = [unit for one in wanted for unit in way.units(one)]
    return units, [], [[i] for i in range(len(units))]


@dataclass(frozen=True)
class _Asked:
    """Who is asked, and how."""

    ranker: Any
    traits: Traits
    origin: Origin | None

    def job(self, way: Way[Unit], units: list[Unit], one_by_one: bool) -> Job:
        """What is cheaper to score than to look up is also cheaper than to send anywhere."""
        traits, origin = self.traits, self.origin
        stays = origin is None or not (traits.cached or isinstance(way, Searches))
        return Job(
            attempt,
            self.ranker,
            (traits.name, way.request(units), one_by_one),
            None if stays or origin is None else replace(origin, ranker=traits.fingerprint or ""),
            needs=traits.needs,
            threaded=traits.threaded,
        )


@dataclass(frozen=True)
class Failed:
    """What stands where a ranker failed."""

    reason: str


class Request(Protocol):
    """What a ranker is asked for at once: put to it, and cut into smaller ones to find out which part it fails on."""

    def put(self, ranker: Any, name: str) -> list[Answer]: ...
    def parts(self) -> list[Request]: ...
    def units(self) -> int: ...


def attempt(ranker: Any, name: str, request: Request, one_by_one: bool) -> tuple[list[Any], float, str]:
    """The answers to a chunk, how long it took, and what the ranker remarks; with `one_by_one` what fails is tried
    again in its parts."""
    started = time.perf_counter()
    try:
        answers: list[Any] = request.put(ranker, name)
    except ShaketableError as error:
        if not one_by_one:
            raise
        parts = request.parts()
        answers = []
        for part in parts:
            try:
                if len(parts) == 1:
                    raise error
                answers += part.put(ranker, name)
            except ShaketableError as reason:
                answers += [Failed(str(reason))] * part.units()
    return answers, time.perf_counter() - started, str(getattr(ranker, "remark", "") or "")


def ask(ranker: Ranker, name: str, slates: list[Slate]) -> list[Scores]:
    """Call the ranker and check what comes back; whatever is wrong with it names ranker, query and text."""
    where = f" (first query {slates[0].query!r})" if slates else ""
    answers = _called(name, f"failed on {len(slates)} slates{where}", lambda: list(ranker.score(slates)))
    if len(answers) != len(slates):
        raise RankerFailed(f"ranker {name} returned {len(answers)} arrays for {len(slates)} slates")
    return [checked(name, slate, answer) for slate, answer in zip(slates, answers, strict=True)]


def retrieve(ranker: Retriever, name: str, queries: list[str], k: int) -> list[Found]:
    """Call the retriever and check what comes back."""
    where = f" (first query {queries[0]!r})" if queries else ""
    what = f"failed to search for {len(queries)} queries{where}"
    answers = _called(name, what, lambda: list(ranker.search(queries, k)))
    if len(answers) != len(queries):
        raise RankerFailed(f"ranker {name} returned {len(answers)} lists for {len(queries)} queries")
    return [_checked_list(name, query, answer, k) for query, answer in zip(queries, answers, strict=True)]


def _called(name: str, what: str, call: Callable[[], list[Any]]) -> list[Any]:
    with users_code(f"ranker {name} {what}", RankerFailed):
        return call()


def _checked_list(name: str, query: str, answer: Any, k: int) -> Found:
    if not isinstance(answer, Mapping) or not all(isinstance(docno, str) for docno in answer):
        raise RankerFailed(f"ranker {name}, query {query!r}: a list found must be a mapping of docno to score")
    scores = checked(name, Slate(query, (Doc(""),) * len(answer)), list(answer.values()))
    return Found(k, tuple(answer), scores)


def checked(name: str, slate: Slate, answer: Any) -> Scores:
    """The answer for one slate as float64, or an error that says what is wrong with it."""
    with users_code(f"ranker {name}, query {slate.query!r}: scores are not numbers", RankerFailed):
        if getattr(answer, "requires_grad", False):  # a torch tensor that numpy will not read as it is
            answer = answer.detach()
        array = np.asarray(answer)
        if np.iscomplexobj(array):
            raise ValueError("they are complex")
        scores = array.astype(np.float64)
    if scores.shape != (len(slate.docs),):
        raise RankerFailed(
            f"ranker {name}, query {slate.query!r}: scores of shape {scores.shape} for {len(slate.docs)} documents"
        )
    if not (usable := np.abs(scores) <= LARGEST).all():
        at = int(np.flatnonzero(~usable)[0])
        raise RankerFailed(
            f"ranker {name}, query {slate.query!r}: score {scores[at]} for the text {slate.docs[at].text[:60]!r}"
        )
    return scores


def settled(scores: Scores | None, noise: float) -> Any:
    """The scores of a list, or of many of one length, without differences that mean nothing: neighbours within the
    noise get one score.

    >>> settled(np.array([1.0, 2.0, 1.0000001, 0.5]), 1e-6).tolist()
    [1.0000001, 2.0, 1.0000001, 0.5]

    Neighbours in the order of scores are one if they lie no further apart than `noise` times the score, or times 1
    where it is smaller. They get the highest of their scores, so that docnos decide, as they do wherever scores tie.
    """
    if scores is None or scores.shape[-1] < 2:
        return scores
    order = np.argsort(-scores, axis=-1, kind="stable")
    ranked = np.take_along_axis(scores, order, axis=-1)
    apart = ranked[..., :-1] - ranked[..., 1:] > noise * np.maximum(1.0, np.abs(ranked[..., :-1]))
    first = np.zeros(scores.shape, dtype=np.intp)  # where in the order the group of each begins
    first[..., 1:] = np.maximum.accumulate(np.where(apart, np.arange(1, scores.shape[-1]), 0), axis=-1)
    same = np.empty_like(scores)
    np.put_along_axis(same, order, np.take_along_axis(ranked, first, axis=-1), axis=-1)
    return same


def chunks(items: list[int], weights: list[int], size: int, groups: Sequence[str] | None = None) -> Iterator[list[int]]:
    """Cut in order, each part at most `size` heavy; an item heavier than that stands alone.

    >>> list(chunks([0, 1, 2, 3], [2, 2, 9, 1], size=4))
    [[0, 1], [2], [3]]

    With groups, one for each item, no part has items of two of them.

    >>> list(chunks([0, 1, 2, 3], [1, 1, 1, 1], size=4, groups=["a", "b", "b", "b"]))
    [[0], [1, 2, 3]]
    """
    part: list[int] = []
    total = 0
    last: str | None = None
    for item, weight, group in zip(items, weights, groups or repeat(None, len(items)), strict=True):
        if part and (total + weight > size or group != last):
            yield part
            part, total = [], 0
        part.append(item)
        total += weight
        last = group
    if part:
        yield part


def shared(size: int, total: int, hands: int) -> int:
    """The size of chunks, made smaller where there is too little for each of several hands to have a few of them.

    >>> shared(512, 600, 1), shared(512, 600, 2), shared(512, 1_000_000, 64)
    (512, 75, 512)
    """
    return size if hands == 1 else max(1, min(size, -(-total // (4 * hands))))


class Way(Protocol[Unit]):
    """What is asked for at a time, how it is named, how it is put to a ranker, and how answers are kept."""

    @property
    def verb(self) -> str: ...
    @property
    def unit(self) -> str: ...
    def units(self, wanted: Any) -> list[Unit]: ...
    def keys(self, seed: bytes, wanted: Any) -> list[bytes]: ...
    def weight(self, unit: Unit) -> int: ...
    def pairs(self, unit: Unit, answer: Answer) -> int: ...
    def query(self, unit: Unit) -> str: ...
    def request(self, units: list[Unit]) -> Request: ...
    def suffices(self, answer: Answer) -> bool: ...
    def numbers(self, answer: Answer) -> Scores: ...
    def encode(self, answer: Answer) -> bytes: ...
    def decode(self, kept: Mapping[bytes, bytes]) -> dict[bytes, Answer]: ...
    def assemble(self, answers: list[Answer]) -> Any: ...


@dataclass(frozen=True)
class Pairs:
    """The units of a pointwise ranker: (query, document), grouped by query for the asking."""

    digest_of: Callable[[Doc], bytes]
    _queries: dict[tuple[bytes, str], bytes] = field(default_factory=dict, repr=False)
    verb = "scoring"
    unit = PAIRS

    def units(self, wanted: Slate) -> list[tuple[str, Doc]]:
        return [(wanted.query, doc) for doc in wanted.docs]

    def keys(self, seed: bytes, wanted: Slate) -> list[bytes]:
        asked, digest_of = (seed, wanted.query), self.digest_of
        if (query := self._queries.get(asked)) is None:  # many slates may have one query
            query = self._queries[asked] = digest(*asked)
        return [blake2b(query + digest_of(doc), digest_size=16).digest() for doc in wanted.docs]

    def weight(self, unit: tuple[str, Doc]) -> int:
        return 1

    def pairs(self, unit: tuple[str, Doc], answer: Answer) -> int:
        return 1

    def query(self, unit: tuple[str, Doc]) -> str:
        return unit[0]

    def request(self, units: list[tuple[str, Doc]]) -> Request:
        slates = [Slate(query, tuple(doc for _, doc in pairs)) for query, pairs in groupby(units, key=lambda u: u[0])]
        return SlateRequest(slates, apart=True)

    def suffices(self, answer: Answer) -> bool:
        return True

    def numbers(self, answer: Answer) -> Scores:
        return np.array([answer])

    def encode(self, answer: Answer) -> bytes:
        return struct.pack("<d", answer)

    def decode(self, kept: Mapping[bytes, bytes]) -> dict[bytes, Answer]:
        return dict(zip(kept, struct.unpack(f"<{len(kept)}d", b"".join(kept.values())), strict=True))

    def assemble(self, answers: list[Answer]) -> Scores | None:
        return None if None in answers else np.array(answers, dtype=np.float64)


@dataclass(frozen=True)
class Slates:
    """The units of every other ranker: whole slates, never split."""

    digest_of: Callable[[Doc], bytes]
    verb = "scoring"
    unit = PAIRS

    def units(self, wanted: Slate) -> list[Slate]:
        return [wanted]

    def keys(self, seed: bytes, wanted: Slate) -> list[bytes]:
        name = blake2b(digest(seed, wanted.query), digest_size=16)
        for doc in wanted.docs:
            name.update(self.digest_of(doc))
        return [name.digest()]

    def weight(self, unit: Slate) -> int:
        return len(unit.docs)

    def pairs(self, unit: Slate, answer: Answer) -> int:
        return len(unit.docs)

    def query(self, unit: Slate) -> str:
        return unit.query

    def request(self, units: list[Slate]) -> Request:
        return SlateRequest(units, apart=False)

    def suffices(self, answer: Answer) -> bool:
        return True

    def numbers(self, answer: Answer) -> Scores:
        scores: Scores = answer
        return scores

    def encode(self, answer: Answer) -> bytes:
        value: bytes = answer.astype("<f8").tobytes()
        return value

    def decode(self, kept: Mapping[bytes, bytes]) -> dict[bytes, Answer]:
        return {key: np.frombuffer(value, dtype="<f8") for key, value in kept.items()}

    def assemble(self, answers: list[Answer]) -> Scores | None:
        scores: Scores | None = answers[0]
        return scores


@dataclass(frozen=True)
class SlateRequest:
    """Slates to score; `apart` hands back a score for each pair instead of an array for each slate."""

    slates: list[Slate]
    apart: bool

    def put(self, ranker: Any, name: str) -> list[Answer]:
        answers = ask(ranker, name, self.slates)
        return [score for scores in answers for score in scores.tolist()] if self.apart else list(answers)

    def parts(self) -> list[Request]:
        return [SlateRequest([slate], self.apart) for slate in self.slates]

    def units(self) -> int:
        return sum(len(slate.docs) for slate in self.slates) if self.apart else len(self.slates)


@dataclass(frozen=True)
class Found:
    """A list that a search for `k` documents found, best first."""

    k: int
    docnos: tuple[str, ...]
    scores: Scores

    def head(self, k: int, noise: float = 0.0) -> dict[str, float]:
        if not noise:
            return dict(islice(zip(self.docnos, self.scores.tolist(), strict=True), k))
        scores = dict(zip(self.docnos[:k], settled(self.scores[:k], noise).tolist(), strict=True))
        return {docno: scores[docno] for docno in ranking(scores)}


@dataclass(frozen=True)
class Searches:
    """The units of a retriever: query texts. A list that was found for a larger k has this one at its head."""

    k: int
    verb = "searching"
    unit = "queries"

    def __post_init__(self) -> None:
        if self.k < 1:
            raise BadInput(f"a search for the best {self.k} documents finds nothing; ask for 1 or more")

    def units(self, wanted: str) -> list[str]:
        return [wanted]

    def keys(self, seed: bytes, wanted: str) -> list[bytes]:
        return [digest(seed, "search", wanted)]

    def weight(self, unit: str) -> int:
        return 1

    def pairs(self, unit: str, answer: Answer) -> int:
        return 0 if answer is None else len(answer.docnos[: self.k])

    def query(self, unit: str) -> str:
        return unit

    def request(self, units: list[str]) -> Request:
        return SearchRequest(units, self.k)

    def suffices(self, answer: Answer) -> bool:
        return bool(answer.k >= self.k or len(answer.docnos) < answer.k)

    def numbers(self, answer: Answer) -> Scores:
        scores: Scores = answer.scores
        return scores

    def encode(self, answer: Answer) -> bytes:
        docnos = "\0".join(answer.docnos).encode("utf-8", "surrogatepass")
        head = struct.pack("<qq", answer.k, len(answer.docnos))
        return bytes(head + answer.scores.astype("<f8").tobytes() + docnos)

    def decode(self, kept: Mapping[bytes, bytes]) -> dict[bytes, Answer]:
        """Lists that are long enough."""
        found = {key: self._list(value) for key, value in kept.items()}
        return {key: answer for key, answer in found.items() if self.suffices(answer)}

    def _list(self, value: bytes) -> Found:
        k, count = struct.unpack_from("<qq", value)
        scores = np.frombuffer(value, dtype="<f8", count=count, offset=16)
        docnos = value[16 + 8 * count :].decode("utf-8", "surrogatepass").split("\0") if count else []
        return Found(k, tuple(docnos), scores)

    def assemble(self, answers: list[Answer]) -> Answer:
        return answers[0]


@dataclass(frozen=True)
class SearchRequest:
    """Query texts to search for."""

    queries: list[str]
    k: int

    def put(self, ranker: Any, name: str) -> list[Answer]:
        return list(retrieve(ranker, name, self.queries, self.k))

    def parts(self) -> list[Request]:
        return [SearchRequest([query], self.k) for query in self.queries]

    def units(self) -> int:
        return len(self.queries)


def digest(seed: bytes, *texts: str) -> bytes:
    """The name of some content: the texts with their lengths, so that no two lists of texts read the same."""
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    sizes = ",".join([str(len(part)) for part in parts]).encode()
    return blake2b(b"\0".join([seed, sizes, *parts]), digest_size=16).digest()

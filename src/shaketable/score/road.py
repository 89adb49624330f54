"""From slates to scores: remove duplicates, look up, cut chunks, run, check, commit.

Pointwise rankers are asked for (query, text) pairs, which may be split and merged freely; all others for whole
slates, which never are. Chunks follow the caller's order and each is committed when it is done, so whatever stops the
program, a second run takes up where the first one was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from typing import Any, Protocol, TypeVar

import numpy as np

from shaketable.errors import RankerFailed, ShaketableError
from shaketable.score.store import Store, Value
from shaketable.types import Doc, Failure, Ranker, Scores, Slate

Watch = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Opens a progress display for (what, how many) and hands back what advances it."""

Unit = TypeVar("Unit")

LARGEST = float(np.finfo(np.float32).max)
"""Beyond it a score is infinite to `types.ranking`, which sorts by float32."""


def unwatched(what: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    """Progress that nobody looks at."""
    return nullcontext(lambda done: None)


@dataclass(frozen=True)
class Traits:
    """The optional attributes of a ranker, with the careful default for each (see `types.Ranker`)."""

    name: str
    pointwise: bool
    fingerprint: str | None
    cached: bool

    @classmethod
    def of(cls, ranker: Ranker) -> Traits:
        return cls(
            name=str(getattr(ranker, "name", type(ranker).__name__)),
            pointwise=getattr(ranker, "pointwise", False) is True,
            fingerprint=getattr(ranker, "fingerprint", None),
            cached=getattr(ranker, "cached", True) is not False,
        )


@dataclass
class Spent:
    """What scoring cost: asked for, left after removing duplicates and lookups, and the ranker's own time."""

    asked: int = 0
    scored: int = 0
    seconds: float = 0.0


@dataclass
class Road:
    """Asks rankers for scores and remembers the answers: in memory for its lifetime, on disk where there is a store.

    With `go_on`, a slate that a ranker fails on becomes a `Failure` and a `None`; otherwise the failure is raised.
    """

    store: Store | None = None
    watch: Watch = unwatched
    chunk: int = 512
    memory: int = 2_000_000
    go_on: bool = False
    failures: list[Failure] = field(default_factory=list)
    spent: dict[str, Spent] = field(default_factory=dict)
    _kept: dict[bytes, Value] = field(default_factory=dict, repr=False)
    _unnamed: list[Ranker] = field(default_factory=list, repr=False)

    def score(self, ranker: Ranker, slates: Sequence[Slate]) -> list[Scores | None]:
        """One array of scores for each slate, in order; None where the ranker failed and the caller chose to go on."""
        traits = Traits.of(ranker)
        if not traits.cached:
            return self._walk(ranker, traits, Slates(), list(slates), None)
        if traits.pointwise:
            return self._distinct(ranker, traits, Pairs(), slates)
        return self._distinct(ranker, traits, Slates(), slates)

    def _distinct(self, ranker: Ranker, traits: Traits, way: Way[Unit], slates: Sequence[Slate]) -> list[Scores | None]:
        seed = digest(b"", self._name_for(ranker, traits))
        index: dict[bytes, int] = {}
        units: list[Unit] = []
        places: list[list[int]] = []
        for slate in slates:
            place = []
            for key, unit in zip(way.keys(seed, slate), way.units(slate), strict=True):
                if (at := index.get(key)) is None:
                    at = index[key] = len(units)
                    units.append(unit)
                place.append(at)
            places.append(place)
        values = self._walk(ranker, traits, way, units, list(index))
        self._spent(traits).asked += sum(map(len, places)) - len(units)
        return [way.assemble([values[i] for i in place]) for place in places]

    def _walk(
        self, ranker: Ranker, traits: Traits, way: Way[Unit], units: list[Unit], keys: list[bytes] | None
    ) -> list[Any]:
        """Values of distinct units: those known, then the others chunk by chunk; without keys nothing is kept."""
        spent = self._spent(traits)
        spent.asked += len(units)
        values: list[Any] = [None] * len(units)
        on_disk = traits.fingerprint is not None
        todo = list(range(len(units))) if keys is None else self._look_up(keys, values, on_disk)
        weights = [way.weight(units[i]) for i in todo]
        with self.watch(f"scoring with {traits.name}", sum(weights)) as advance:
            for part in chunks(todo, weights, self.chunk):
                started = time.perf_counter()
                answers = self._ask(ranker, traits, way, [units[i] for i in part])
                spent.seconds += time.perf_counter() - started
                spent.scored += len(part)
                for i, answer in zip(part, answers, strict=True):
                    values[i] = answer
                if keys is not None:
                    self._keep([(keys[i], values[i]) for i in part if values[i] is not None], on_disk)
                advance(sum(way.weight(units[i]) for i in part))
        return values

    def _look_up(self, keys: list[bytes], values: list[Any], on_disk: bool) -> list[int]:
        """Fill in the values that are known; the places that are not remain."""
        todo = []
        for i, key in enumerate(keys):
            if (value := self._kept.get(key)) is None:
                todo.append(i)
            else:
                values[i] = value
        if self.store is None or not on_disk or not todo:
            return todo
        found = self.store.get([keys[i] for i in todo])
        self._remember(found.items())
        for i in todo:
            values[i] = found.get(keys[i])
        return [i for i in todo if values[i] is None]

    def _keep(self, done: list[tuple[bytes, Value]], on_disk: bool) -> None:
        if self.store is not None and on_disk:
            self.store.put(done)
        self._remember(done)

    def _remember(self, items: Any) -> None:
        self._kept.update(items)
        while len(self._kept) > self.memory:  # the oldest go first
            del self._kept[next(iter(self._kept))]

    def _ask(self, ranker: Ranker, traits: Traits, way: Way[Unit], units: list[Unit]) -> list[Any]:
        """One chunk; where going on is allowed, one that fails is asked again slate by slate to find the culprit."""
        slates = way.slates(units)
        try:
            return way.split(ask(ranker, traits.name, slates))
        except ShaketableError as error:
            if not self.go_on:
                raise
            answers: list[Any] = []
            for slate in slates:
                try:
                    if len(slates) == 1:
                        raise error
                    answers += way.split(ask(ranker, traits.name, [slate]))
                except ShaketableError as reason:
                    self.failures.append(Failure(traits.name, slate.query, str(reason)))
                    answers += [None] * way.count(slate)
            return answers

    def _name_for(self, ranker: Ranker, traits: Traits) -> str:
        """What a ranker's scores are kept under; one without a fingerprint is known only as this object."""
        if traits.fingerprint is not None:
            return traits.fingerprint
        for i, known in enumerate(self._unnamed):
            if known is ranker:
                return f"object {i}"
        self._unnamed.append(ranker)
        return f"object {len(self._unnamed) - 1}"

    def _spent(self, traits: Traits) -> Spent:
        return self.spent.setdefault(traits.name, Spent())


def ask(ranker: Ranker, name: str, slates: list[Slate]) -> list[Scores]:
    """Call the ranker and check what comes back; whatever is wrong with it names ranker, query and text."""
    try:
        answers = list(ranker.score(slates))
    except ShaketableError:
        raise
    except Exception as error:
        where = f" (first query {slates[0].query!r})" if slates else ""
        raise RankerFailed(f"ranker {name} failed on {len(slates)} slates{where}: {error!r}") from error
    if len(answers) != len(slates):
        raise RankerFailed(f"ranker {name} returned {len(answers)} arrays for {len(slates)} slates")
    return [checked(name, slate, answer) for slate, answer in zip(slates, answers, strict=True)]


def checked(name: str, slate: Slate, answer: Any) -> Scores:
    """The answer for one slate as float64, or an error that says what is wrong with it."""
    try:
        scores = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RankerFailed(f"ranker {name}, query {slate.query!r}: scores are not numbers ({error})") from error
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


def chunks(items: list[int], weights: list[int], size: int) -> Iterator[list[int]]:
    """Cut in order, each part at most `size` heavy; an item heavier than that stands alone.

    >>> list(chunks([0, 1, 2, 3], [2, 2, 9, 1], size=4))
    [[0, 1], [2], [3]]
    """
    part: list[int] = []
    total = 0
    for item, weight in zip(items, weights, strict=True):
        if part and total + weight > size:
            yield part
            part, total = [], 0
        part.append(item)
        total += weight
    if part:
        yield part


class Way(Protocol[Unit]):
    """What is asked for at a time, how it is named, and how it becomes slates and back."""

    def units(self, slate: Slate) -> list[Unit]: ...
    def keys(self, seed: bytes, slate: Slate) -> list[bytes]: ...
    def weight(self, unit: Unit) -> int: ...
    def slates(self, units: list[Unit]) -> list[Slate]: ...
    def count(self, slate: Slate) -> int: ...
    def split(self, answers: list[Scores]) -> list[Any]: ...
    def assemble(self, values: list[Any]) -> Scores | None: ...


@dataclass
class Pairs:
    """The units of a pointwise ranker: (query, document), grouped by query for the asking."""

    _names: dict[int, bytes] = field(default_factory=dict)
    """Digests of documents by `id`: a document stands in many slates, and the caller keeps all of them alive."""

    def units(self, slate: Slate) -> list[tuple[str, Doc]]:
        return [(slate.query, doc) for doc in slate.docs]

    def keys(self, seed: bytes, slate: Slate) -> list[bytes]:
        query = digest(seed, slate.query)
        return [blake2b(query + self._name(doc), digest_size=16).digest() for doc in slate.docs]

    def _name(self, doc: Doc) -> bytes:
        name = self._names.get(id(doc))
        if name is None:
            name = self._names[id(doc)] = digest(b"", doc.title, doc.url, doc.body)
        return name

    def weight(self, unit: tuple[str, Doc]) -> int:
        return 1

    def slates(self, units: list[tuple[str, Doc]]) -> list[Slate]:
        return [Slate(query, tuple(doc for _, doc in pairs)) for query, pairs in groupby(units, key=lambda u: u[0])]

    def count(self, slate: Slate) -> int:
        return len(slate.docs)

    def split(self, answers: list[Scores]) -> list[Any]:
        return [score for scores in answers for score in scores.tolist()]

    def assemble(self, values: list[Any]) -> Scores | None:
        return None if None in values else np.array(values, dtype=np.float64)


class Slates:
    """The units of every other ranker: whole slates, never split."""

    def units(self, slate: Slate) -> list[Slate]:
        return [slate]

    def keys(self, seed: bytes, slate: Slate) -> list[bytes]:
        return [digest(seed, slate.query, *(part for d in slate.docs for part in (d.title, d.url, d.body)))]

    def weight(self, unit: Slate) -> int:
        return len(unit.docs)

    def slates(self, units: list[Slate]) -> list[Slate]:
        return units

    def count(self, slate: Slate) -> int:
        return 1

    def split(self, answers: list[Scores]) -> list[Any]:
        return answers

    def assemble(self, values: list[Any]) -> Scores | None:
        scores: Scores | None = values[0]
        return scores


def digest(seed: bytes, *texts: str) -> bytes:
    """The name of some content: the texts with their lengths, so that no two lists of texts read the same."""
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    sizes = ",".join([str(len(part)) for part in parts]).encode()
    return blake2b(b"\0".join([seed, sizes, *parts]), digest_size=16).digest()

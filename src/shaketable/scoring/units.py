"""The units of work of a scoring engine (pairs, slates, queries), and the requests that carry them to a ranker."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from typing import Any, Protocol, TypeVar

import numpy as np

from shaketable.core.documents import Doc, Scores, Slate
from shaketable.core.errors import BadInput, ShaketableError
from shaketable.scoring.validation import FoundList, call_ranker, call_retriever

Unit = TypeVar("Unit")
UnitResult = Any
"""The cached value of a unit: the score of a pair, the scores of a slate, or a `FoundList`."""
PAIRS_UNIT = "query-document pairs"
"""The unit of a progress bar while a ranker scores."""


@dataclass(frozen=True)
class FailedUnit:
    """The result of a unit that the ranker failed on."""

    reason: str


class RankerRequest(Protocol):
    """A request for one call of a ranker; it splits into smaller ones, to find the part that the ranker fails on."""

    def run(self, ranker: Any, name: str) -> list[UnitResult]: ...
    def split(self) -> list[RankerRequest]: ...
    def count_units(self) -> int: ...


def run_request(ranker: Any, name: str, request: RankerRequest, retry_parts: bool) -> tuple[list[Any], float, str]:
    """Return the results of a chunk, its duration in seconds and the ranker's remark.

    With `retry_parts`, a request that fails is retried in its parts.
    """
    started = time.perf_counter()
    try:
        answers: list[Any] = request.run(ranker, name)
    except ShaketableError as error:
        if not retry_parts:
            raise
        parts = request.split()
        answers = []
        for part in parts:
            try:
                if len(parts) == 1:
                    raise error
                answers += part.run(ranker, name)
            except ShaketableError as reason:
                answers += [FailedUnit(str(reason))] * part.count_units()
    return answers, time.perf_counter() - started, str(getattr(ranker, "remark", "") or "")


class WorkUnit(Protocol[Unit]):
    """A type of work units: their cache keys, the requests that carry them, and the encoding of their results."""

    @property
    def verb(self) -> str: ...
    @property
    def unit_name(self) -> str: ...
    def list_units(self, wanted: Any) -> list[Unit]: ...
    def compute_keys(self, seed: bytes, wanted: Any) -> list[bytes]: ...
    def weight(self, unit: Unit) -> int: ...
    def count_pairs(self, unit: Unit, answer: UnitResult) -> int: ...
    def query(self, unit: Unit) -> str: ...
    def build_request(self, units: list[Unit]) -> RankerRequest: ...
    def is_sufficient(self, answer: UnitResult) -> bool: ...
    def as_scores(self, answer: UnitResult) -> Scores: ...
    def has_same_documents(self, answers: Sequence[UnitResult], stored: Sequence[UnitResult]) -> bool: ...
    def encode(self, answer: UnitResult) -> bytes: ...
    def decode(self, stored: Mapping[bytes, bytes]) -> dict[bytes, UnitResult]: ...
    def assemble(self, answers: list[UnitResult]) -> Any: ...


@dataclass(frozen=True)
class PairUnits:
    """The units of a pointwise ranker: (query, document), grouped by query in a request."""

    digest_document: Callable[[Doc], bytes]
    _query_digests: dict[tuple[bytes, str], bytes] = field(default_factory=dict, repr=False)
    verb = "scoring"
    unit_name = PAIRS_UNIT

    def list_units(self, wanted: Slate) -> list[tuple[str, Doc]]:
        return [(wanted.query, doc) for doc in wanted.docs]

    def compute_keys(self, seed: bytes, wanted: Slate) -> list[bytes]:
        asked, digest_of = (seed, wanted.query), self.digest_document
        if (query := self._query_digests.get(asked)) is None:  # many slates may have one query
            query = self._query_digests[asked] = digest_texts(*asked)
        return [blake2b(query + digest_of(doc), digest_size=16).digest() for doc in wanted.docs]

    def weight(self, unit: tuple[str, Doc]) -> int:
        return 1

    def count_pairs(self, unit: tuple[str, Doc], answer: UnitResult) -> int:
        return 1

    def query(self, unit: tuple[str, Doc]) -> str:
        return unit[0]

    def build_request(self, units: list[tuple[str, Doc]]) -> RankerRequest:
        slates = [Slate(query, tuple(doc for _, doc in pairs)) for query, pairs in groupby(units, key=lambda u: u[0])]
        return SlateRequest(slates, per_pair=True)

    def is_sufficient(self, answer: UnitResult) -> bool:
        return True

    def as_scores(self, answer: UnitResult) -> Scores:
        return np.array([answer])

    def has_same_documents(self, answers: Sequence[UnitResult], stored: Sequence[UnitResult]) -> bool:
        return True

    def encode(self, answer: UnitResult) -> bytes:
        return struct.pack("<d", answer)

    def decode(self, stored: Mapping[bytes, bytes]) -> dict[bytes, UnitResult]:
        return dict(zip(stored, struct.unpack(f"<{len(stored)}d", b"".join(stored.values())), strict=True))

    def assemble(self, answers: list[UnitResult]) -> Scores | None:
        return None if None in answers else np.array(answers, dtype=np.float64)


@dataclass(frozen=True)
class SlateUnits:
    """The units of every other ranker: whole slates, never split."""

    digest_document: Callable[[Doc], bytes]
    verb = "scoring"
    unit_name = PAIRS_UNIT

    def list_units(self, wanted: Slate) -> list[Slate]:
        return [wanted]

    def compute_keys(self, seed: bytes, wanted: Slate) -> list[bytes]:
        name = blake2b(digest_texts(seed, wanted.query), digest_size=16)
        for doc in wanted.docs:
            name.update(self.digest_document(doc))
        return [name.digest()]

    def weight(self, unit: Slate) -> int:
        return len(unit.docs)

    def count_pairs(self, unit: Slate, answer: UnitResult) -> int:
        return len(unit.docs)

    def query(self, unit: Slate) -> str:
        return unit.query

    def build_request(self, units: list[Slate]) -> RankerRequest:
        return SlateRequest(units, per_pair=False)

    def is_sufficient(self, answer: UnitResult) -> bool:
        return True

    def as_scores(self, answer: UnitResult) -> Scores:
        scores: Scores = answer
        return scores

    def has_same_documents(self, answers: Sequence[UnitResult], stored: Sequence[UnitResult]) -> bool:
        return True

    def encode(self, answer: UnitResult) -> bytes:
        value: bytes = answer.astype("<f8").tobytes()
        return value

    def decode(self, stored: Mapping[bytes, bytes]) -> dict[bytes, UnitResult]:
        return {key: np.frombuffer(value, dtype="<f8") for key, value in stored.items()}

    def assemble(self, answers: list[UnitResult]) -> Scores | None:
        scores: Scores | None = answers[0]
        return scores


@dataclass(frozen=True)
class SlateRequest:
    """Slates to score; with `per_pair`, the result is a score for each pair instead of an array for each slate."""

    slates: list[Slate]
    per_pair: bool

    def run(self, ranker: Any, name: str) -> list[UnitResult]:
        answers = call_ranker(ranker, name, self.slates)
        return [score for scores in answers for score in scores.tolist()] if self.per_pair else list(answers)

    def split(self) -> list[RankerRequest]:
        return [SlateRequest([slate], self.per_pair) for slate in self.slates]

    def count_units(self) -> int:
        return sum(len(slate.docs) for slate in self.slates) if self.per_pair else len(self.slates)


@dataclass(frozen=True)
class RequestSeries:
    """Requests for one call each, so that the batches of a ranker do not depend on the size of a chunk."""

    requests: list[RankerRequest]

    def run(self, ranker: Any, name: str) -> list[UnitResult]:
        return [answer for request in self.requests for answer in request.run(ranker, name)]

    def split(self) -> list[RankerRequest]:
        return [part for request in self.requests for part in request.split()]

    def count_units(self) -> int:
        return sum(request.count_units() for request in self.requests)


@dataclass(frozen=True)
class QueryUnits:
    """The units of a retriever: query texts. A list that was found for a larger k serves a smaller one."""

    k: int
    verb = "searching"
    unit_name = "queries"

    def __post_init__(self) -> None:
        if self.k < 1:
            raise BadInput(f"a search needs k of 1 or more; it is {self.k}")

    def list_units(self, wanted: str) -> list[str]:
        return [wanted]

    def compute_keys(self, seed: bytes, wanted: str) -> list[bytes]:
        return [digest_texts(seed, "search", wanted)]

    def weight(self, unit: str) -> int:
        return 1

    def count_pairs(self, unit: str, answer: UnitResult) -> int:
        return 0 if answer is None else len(answer.docnos[: self.k])

    def query(self, unit: str) -> str:
        return unit

    def build_request(self, units: list[str]) -> RankerRequest:
        return SearchRequest(units, self.k)

    def is_sufficient(self, answer: UnitResult) -> bool:
        return bool(answer.k >= self.k or len(answer.docnos) < answer.k)

    def as_scores(self, answer: UnitResult) -> Scores:
        """Return the scores of the first k documents; a stored list may be longer."""
        scores: Scores = answer.scores[: self.k]
        return scores

    def has_same_documents(self, answers: Sequence[UnitResult], stored: Sequence[UnitResult]) -> bool:
        return [one.docnos[: self.k] for one in answers] == [one.docnos[: self.k] for one in stored]

    def encode(self, answer: UnitResult) -> bytes:
        docnos = "\0".join(answer.docnos).encode("utf-8", "surrogatepass")
        head = struct.pack("<qq", answer.k, len(answer.docnos))
        return bytes(head + answer.scores.astype("<f8").tobytes() + docnos)

    def decode(self, stored: Mapping[bytes, bytes]) -> dict[bytes, UnitResult]:
        """Return the lists that are long enough."""
        found = {key: self._decode_list(value) for key, value in stored.items()}
        return {key: answer for key, answer in found.items() if self.is_sufficient(answer)}

    def _decode_list(self, value: bytes) -> FoundList:
        k, count = struct.unpack_from("<qq", value)
        scores = np.frombuffer(value, dtype="<f8", count=count, offset=16)
        docnos = value[16 + 8 * count :].decode("utf-8", "surrogatepass").split("\0") if count else []
        return FoundList(k, tuple(docnos), scores)

    def assemble(self, answers: list[UnitResult]) -> UnitResult:
        return answers[0]


@dataclass(frozen=True)
class SearchRequest:
    """Query texts to search for."""

    queries: list[str]
    k: int

    def run(self, ranker: Any, name: str) -> list[UnitResult]:
        return list(call_retriever(ranker, name, self.queries, self.k))

    def split(self) -> list[RankerRequest]:
        return [SearchRequest([query], self.k) for query in self.queries]

    def count_units(self) -> int:
        return len(self.queries)


def digest_texts(seed: bytes, *texts: str) -> bytes:
    """Return a digest of texts with their lengths, so that different lists of texts have different digests."""
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    sizes = ",".join([str(len(part)) for part in parts]).encode()
    return blake2b(b"\0".join([seed, sizes, *parts]), digest_size=16).digest()


def list_units_without_keys(
    unit_type: WorkUnit[Unit], wanted: Sequence[Any]
) -> tuple[list[Unit], list[bytes], list[list[int]]]:
    """Return the units without cache keys, and the index of each."""
    units = [unit for one in wanted for unit in unit_type.list_units(one)]
    return units, [], [[i] for i in range(len(units))]

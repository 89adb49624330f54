"""The shipped contracts let good things pass, and catch each broken law by its own sentence."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from shaketable.core.documents import Collection, Doc, Query, Slate, rank_docnos
from shaketable.core.registry import Registry
from shaketable.testing import check_measure, check_model, check_ranker, check_registry, check_retriever
from tests.toys import Normalised, Overlap, Vectors, slates


def worth(query: str, text: str) -> float:
    return len(set(query.split()) & set(text.split())) / (1 + len(text))


def by_text(slate: Slate) -> np.ndarray:
    return np.array([worth(slate.query, doc.text) for doc in slate.docs])


def by_place(slate: Slate) -> np.ndarray:
    """Score by position, which is allowed unless the ranker declares to be pointwise."""
    return by_text(slate) + 1 / (1 + np.arange(len(slate.docs)))


@dataclass
class Toy:
    """A ranker that obeys every law except those that a test breaks."""

    score: Callable[[Sequence[Slate]], Any] = lambda slates: [by_text(slate) for slate in slates]
    name: Any = "toy"
    pointwise: Any = False
    fingerprint: Any = None


@pytest.mark.parametrize("given", [None, slates()], ids=["shipped", "own"])
@pytest.mark.parametrize(
    "ranker",
    [Overlap(), Normalised(), Vectors(), Toy(), Toy(pointwise=True), Toy(lambda slates: [by_place(s) for s in slates])],
)
def test_good_rankers_pass(ranker, given):
    check_ranker(ranker, given)


def one_by_one(score: Callable[[Slate], Any]) -> Callable[[Sequence[Slate]], Any]:
    return lambda slates: [score(slate) for slate in slates]


def fails(score: Callable[[Slate], bool]) -> Callable[[Sequence[Slate]], Any]:
    def score_or_fail(slate: Slate) -> Any:
        if score(slate):
            raise ZeroDivisionError
        return by_text(slate)

    return one_by_one(score_or_fail)


def drifting() -> Callable[[Sequence[Slate]], Any]:
    calls: list[int] = []

    def score(slates: Sequence[Slate]) -> Any:
        calls.append(1)
        return [by_text(slate) + 1e-3 * len(calls) for slate in slates]

    return score


def reversing(slates: Any) -> Any:
    scores = [by_text(slate) for slate in slates]
    slates.reverse()
    return scores


def over_all(slates: Sequence[Slate]) -> Any:
    best = max((by_text(slate).max(initial=0) for slate in slates), default=1) or 1
    return [by_text(slate) / best for slate in slates]


BROKEN_RANKERS = {
    "name must be a text": Toy(name=None),
    "pointwise must be True, False or absent": Toy(pointwise="yes"),
    "fingerprint must be a text or absent": Toy(fingerprint=7),
    "slates must be scored, score raised ZeroDivisionError": Toy(fails(lambda slate: True)),
    "score must not change the slates it is given": Toy(reversing),
    "no slates must give no arrays": Toy(lambda slates: [by_text(s) for s in slates] or [np.zeros(0)]),
    "a slate without documents must give an empty array": Toy(fails(lambda slate: not slate.docs)),
    "a slate of one document must give one score": Toy(
        one_by_one(lambda slate: by_text(slate).squeeze() if len(slate.docs) == 1 else by_text(slate))
    ),
    "an empty text must be scored like any other": Toy(fails(lambda slate: any(not doc.text for doc in slate.docs))),
    "an empty query must be scored like any other": Toy(fails(lambda slate: not slate.query)),
    "each slate must give one finite score for each document": Toy(
        one_by_one(lambda slate: by_text(slate) / (len(slate.docs) != 2 or len(slate.query) < 9 or np.nan))
    ),
    "the same call must give the same scores": Toy(drifting()),
    "the order of slates must not matter": Toy(lambda slates: [by_text(s) + i for i, s in enumerate(slates)]),
    "a slate's scores must not depend on the other slates": Toy(over_all),
    "the scores of a pointwise ranker must not depend on the order of documents": Toy(
        one_by_one(by_place), pointwise=True
    ),
    "a pointwise ranker must score a document alone as in its list": Toy(
        one_by_one(lambda slate: by_text(slate) / (by_text(slate).max(initial=0) or 1)), pointwise=True
    ),
    "a pointwise ranker must score a document in a longer list as before": Toy(
        one_by_one(lambda slate: by_text(slate) + (len(slate.docs) > 4)), pointwise=True
    ),
}


@pytest.mark.parametrize("law", BROKEN_RANKERS)
def test_each_law_of_rankers_is_checked(law):
    with pytest.raises(AssertionError, match=law):
        check_ranker(BROKEN_RANKERS[law])


def test_differences_below_the_noise_are_none():
    calls: list[int] = []

    def score(slates: Sequence[Slate]) -> Any:
        calls.append(1)
        return [by_text(slate) + 1e-8 * len(calls) for slate in slates]

    check_ranker(Toy(score))


DOCS = {f"d{i}": Doc(f"{letter} {'boat ' * (i % 3)}tree") for i, letter in enumerate("abcdefghijkl")}
QUERIES = {"1": Query("boat tree"), "2": Query("a b c"), "3": Query("nothing")}


class Docs(dict[str, Doc]):
    fingerprint = "docs 1"


COLLECTION = Collection("toys", Docs(DOCS), QUERIES)


def find(query: str, k: int) -> dict[str, float]:
    found = {docno: score for docno, doc in DOCS.items() if (score := worth(query, doc.text)) > 0}
    return {docno: found[docno] for docno in rank_docnos(found)[:k]}


@dataclass
class Finder:
    """A retriever that obeys every law except those that a test breaks."""

    search: Callable[[Sequence[str], int], Any] = lambda queries, k: [find(query, k) for query in queries]


def test_a_good_retriever_passes():
    check_retriever(Finder(), ["boat tree", "a b c", "nothing"])


def refuse_empty(queries: Sequence[str], k: int) -> Any:
    return [find(query, k) if query else {}["empty"] for query in queries]


BROKEN_FINDERS = {
    "no queries must give no lists": lambda queries, k: [find(query, k) for query in queries] or [{}],
    "an empty query must give a list": refuse_empty,
    "search must give k documents at most": lambda queries, k: [find(query, k + 1) for query in queries],
    "docnos must be texts": lambda queries, k: [{1: 0.5} for query in queries],
    "scores must be finite": lambda queries, k: [{"a": float("nan")} for query in queries],
    "documents must come best first": lambda queries, k: [dict(reversed(find(query, k).items())) for query in queries],
    "the top 3 must be the first 3 of the top 10": lambda queries, k: [
        {docno: score / k for docno, score in find(query, k).items()} for query in queries
    ],
    "a query must give the same list alone and among other queries": lambda queries, k: [
        {docno: score / len(queries) for docno, score in find(query, k).items()} for query in queries
    ],
}


@pytest.mark.parametrize("law", BROKEN_FINDERS)
def test_each_law_of_retrievers_is_checked(law):
    with pytest.raises(AssertionError, match=law):
        check_retriever(Finder(BROKEN_FINDERS[law]), ["boat tree", "a b c", "nothing"])


@dataclass(frozen=True)
class Good:
    """A model."""

    rate: float = 1.0

    def open(self, collection: Collection) -> Any:
        return Overlap(fingerprint=f"good {self.rate} {collection.docs.fingerprint}")


@dataclass(frozen=True)
class Searching(Good):
    """A model of a ranker that searches, badly."""

    def open(self, collection: Collection) -> Any:
        ranker = Overlap()
        ranker.search = lambda queries, k: [dict(reversed(find(query, k).items())) for query in queries]
        return ranker


@dataclass
class Loose:
    """A model that is not frozen."""

    def open(self, collection: Collection) -> Any:
        return Overlap()


@dataclass(frozen=True)
class Renamed(Good):
    """A model whose ranker has another fingerprint each time."""

    opened: list[int] = field(default_factory=list, compare=False)

    def open(self, collection: Collection) -> Any:
        self.opened.append(1)
        return Overlap(fingerprint=str(len(self.opened)))


@dataclass(frozen=True)
class Shifting(Good):
    """A model whose ranker scores otherwise each time."""

    opened: list[int] = field(default_factory=list, compare=False)

    def open(self, collection: Collection) -> Any:
        self.opened.append(1)
        shift = len(self.opened)
        return Toy(one_by_one(lambda slate: by_text(slate) + shift))


@dataclass(frozen=True)
class Broken(Good):
    """A model of no ranker."""

    def open(self, collection: Collection) -> Any:
        return Toy(name="")


def test_a_good_model_passes():
    check_model(Good(), COLLECTION)


@pytest.mark.parametrize(
    ("model", "law"),
    [
        (Loose(), "Loose must be a frozen dataclass"),
        (Renamed(), "opened twice on one collection, it must have the same fingerprint"),
        (Shifting(), "opened twice, it must give the same scores"),
        (Broken(), "name must be a text"),
        (Searching(), "documents must come best first"),
    ],
)
def test_each_law_of_models_is_checked(model, law):
    with pytest.raises(AssertionError, match=law):
        check_model(model, COLLECTION)


@dataclass(frozen=True)
class Change:
    """A measure of two lists whose function a test sets."""

    between: Callable[[Sequence[str], Sequence[str]], float] = lambda before, after: float(before[0] != after[0])


@dataclass(frozen=True)
class Spread:
    """A measure of values whose function a test sets."""

    over: Callable[[Any], float] = lambda values: float(np.var(values))


def shared_places(before: Sequence[str], after: Sequence[str]) -> float:
    return sum(a == b for a, b in zip(before, after, strict=True)) / len(before)


@pytest.mark.parametrize("measure", [Change(), Change(shared_places), Spread(), Spread(lambda v: float(np.mean(v)))])
def test_good_measures_pass(measure):
    check_measure(measure)


def append_to_input(before: list[str], after: list[str]) -> float:
    same = before == after
    before.append("z")
    return float(same)


BROKEN_MEASURES = {
    "no change must always give": Change(lambda before, after: float(before[0] == "a")),
    "values must lie within -1 and 1": Change(lambda before, after: 5.0 * (before != after)),
    "cannot both be changes": Change(lambda before, after: (before > after) - (before < after)),
    "a reversed list must not count as unchanged": Change(lambda before, after: 1.0),
    "it must not change its arguments": Change(append_to_input),
    "must be finite": Change(lambda before, after: float("nan")),
    "must return a number for .*, it raised ZeroDivisionError": Spread(lambda values: 1 / 0),
    "the order of values must not matter": Spread(lambda values: values[0]),
    "must have a method between": "text",
}


@pytest.mark.parametrize("law", BROKEN_MEASURES)
def test_each_law_of_measures_is_checked(law):
    with pytest.raises(AssertionError, match=law):
        check_measure(BROKEN_MEASURES[law])


def test_a_measure_must_say_the_same_twice():
    calls: list[int] = []
    with pytest.raises(AssertionError, match="must be the same twice"):
        check_measure(Spread(lambda values: calls.append(1) or len(calls)))


@dataclass
class Thawed:
    """Not frozen."""


@dataclass(frozen=True)
class Silent:
    size: int = 1


@dataclass(frozen=True)
class Verbose:
    __doc__ = (
        "It says of itself rather more than the table of a listing could ever have room for, and goes on"
        + " and on" * 5
    )


@dataclass(frozen=True)
class Forgetful:
    """Made again, it is another."""

    size: int = field(default=1, compare=False)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return 0


@dataclass(frozen=True)
class Unreadable:
    """Its text cannot be read: the default is not what the field becomes."""

    size: Any = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", object())


@dataclass(frozen=True)
class Needy:
    """It cannot be made without an argument, so its text is not tried."""

    path: str


def catalogue(*names: str, **shorthands: str) -> Registry:
    return Registry("toy", {name.lower(): f"{__name__}:{name}" for name in names}, shorthands)


def test_a_good_catalogue_passes():
    check_registry(catalogue("Good", "Needy", x="needy"))


@pytest.mark.parametrize(
    ("rows", "law"),
    [
        (catalogue("Good", "Absent"), "toy absent: .*:Absent must be importable"),
        (Registry("toy", {"lost": "shaketable.nowhere:Lost"}), "toy lost: .* must be importable"),
        (catalogue("Thawed"), "toy thawed: Thawed must be a frozen dataclass"),
        (catalogue("Silent"), "toy silent: the class must have a docstring"),
        (catalogue("Verbose"), "toy verbose: the docstring's first line must have 120 characters at most"),
        (catalogue("Forgetful"), "toy forgetful: its text 'forgetful' must build an equal object"),
        (catalogue("Unreadable"), "toy unreadable: its text .* must be readable"),
        (catalogue("Good", x="bad"), "toy: the shorthand 'x' must stand for a row, not 'bad'"),
    ],
)
def test_each_law_of_catalogues_is_checked(rows, law):
    with pytest.raises(AssertionError, match=law):
        check_registry(rows)


def test_laws_hold_with_assertions_switched_off_and_without_pytest():
    script = (
        "import sys\nfrom types import SimpleNamespace\nfrom shaketable.testing import check_ranker\n"
        "try: check_ranker(SimpleNamespace(name='toy', score=lambda slates: []))\n"
        "except AssertionError as error: print(error)\n"
        "assert False\nprint('pytest' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-O", "-c", script], capture_output=True, text=True, check=True)
    law = "a slate without documents must give an empty array: ranker toy returned 0 arrays for 1 slates"
    assert done.stdout.splitlines() == [law, "False"]

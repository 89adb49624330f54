"""Rankers that are Python objects of the user's: imported by name, and adapted by the methods they have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from shaketable.errors import BadInput, RankerFailed, users_code
from shaketable.objects import located
from shaketable.score.road import checked
from shaketable.types import Collection, Ranker, Scores, Slate

Score: TypeAlias = Callable[[Sequence[Slate]], Sequence[Scores]]


@dataclass(frozen=True)
class Python:
    """Your own Python object, written MODULE:OBJECT or MODULE:CLASS(k=2): a ranker, a class, a function and more.

    The module is looked for in the current folder, then among what is installed. `SHAPES` are what it may be: a
    sentence-transformers CrossEncoder and a PyTerrier transformer among them.
    """

    target: str

    def open(self, collection: Collection) -> Ranker:
        """Import the object and adapt it."""
        return adapt(located(self.target), collection, self.target)


def adapt(thing: Any, collection: Collection, name: str = "") -> Ranker:
    """A ranker out of what a user has: the first of `SHAPES` that fits, a model to open, or a class to make one from.

    >>> from shaketable.types import Doc
    >>> def shorter(query, texts):
    ...     return [-len(text) for text in texts]
    >>> adapt(shorter, collection=None).score([Slate("q", (Doc("long"), Doc("it")))])
    [array([-4., -2.])]

    A function, or whatever else is asked for a list at a time, is pointwise only if its attribute `pointwise` is True;
    what is asked for pairs is pointwise by its shape. An object without a `name` is known by the given one, and as a
    ranker only.
    """
    name = name or getattr(thing, "__name__", type(thing).__name__)
    if inspect.isclass(thing):
        with users_code(f"{name}: a class must be usable without arguments, or name an instance of it instead"):
            thing = thing()
    if isinstance(thing, Ranker) and isinstance(thing.name, str) and takes(thing.score, 1):
        return thing
    if callable(getattr(thing, "open", None)) and not hasattr(thing, "score"):
        with users_code(f"ranker {name} cannot be opened"):
            opened: Ranker = thing.open(collection)
        return opened
    for shape in SHAPES:
        method = getattr(thing, shape.method, None) if shape.method else thing
        if callable(method) and takes(method, shape.parameters):
            return Adapted(
                name,
                shape.scorer(name, method),
                pointwise=getattr(thing, "pointwise", shape.pointwise) is True,
                fingerprint=_own(thing),
                cached=getattr(thing, "cached", True) is not False,
                noise=getattr(thing, "noise", 0.0),
            )
    accepted = ", ".join(shape.reads for shape in SHAPES)
    raise BadInput(f"{name} is {type(thing).__name__}, not a ranker; it may have {accepted}, or open(collection)")


def _own(thing: Any) -> str | None:
    """What the thing says its scores depend on, and whose word that is: two classes may well say the same."""
    if (said := getattr(thing, "fingerprint", None)) is None:
        return None
    kind = thing if inspect.isroutine(thing) else type(thing)
    return f"{kind.__module__}:{kind.__qualname__} {said}"


@dataclass
class Adapted:
    """A ranker made of somebody else's object."""

    name: str
    score: Score
    pointwise: bool = False
    fingerprint: str | None = None
    cached: bool = True
    noise: float = 0.0


@dataclass(frozen=True)
class Shape:
    """A method that gives scores ("" is the thing itself): how it is called, and how slates become its arguments."""

    method: str
    parameters: int
    reads: str
    scorer: Callable[[str, Callable[..., Any]], Score]
    pointwise: bool = False


def takes(function: Callable[..., Any], number: int) -> bool:
    """Can it be called with this many positional arguments? One that does not say is believed to."""
    try:
        inspect.signature(function).bind(*[None] * number)
    except TypeError:
        return False
    except ValueError:  # made in C, without a signature
        return True
    return True


def by_slates(name: str, method: Callable[..., Any]) -> Score:
    return method


def by_list(name: str, method: Callable[..., Any]) -> Score:
    """f(query, texts), one list at a time; a list without texts is not shown to it."""

    def score(slates: Sequence[Slate]) -> list[Scores]:
        return [
            checked(name, slate, method(slate.query, [doc.text for doc in slate.docs]) if slate.docs else [])
            for slate in slates
        ]

    return score


def by_pairs(name: str, method: Callable[..., Any]) -> Score:
    """f([(query, text), ...]), all slates in one call: it cannot know where one ends, so it must score pairs."""

    def score(slates: Sequence[Slate]) -> list[Scores]:
        pairs = [(slate.query, doc.text) for slate in slates for doc in slate.docs]
        found = method(pairs) if pairs else []
        scores = np.asarray(found if hasattr(found, "__array__") else list(found), dtype=np.float64)
        if scores.shape != (len(pairs),):
            raise RankerFailed(f"ranker {name} returned scores of shape {scores.shape} for {len(pairs)} pairs")
        return np.split(scores, np.cumsum([len(slate.docs) for slate in slates])[:-1]) if slates else []

    return score


def by_results(name: str, method: Callable[..., Any]) -> Score:
    """rank(query, texts) as in the library rerankers: results in any order, their `doc_id` the place in the list."""

    def score(slates: Sequence[Slate]) -> list[Scores]:
        return [ranked(slate) for slate in slates]

    def ranked(slate: Slate) -> Scores:
        results: Iterable[Any] = method(slate.query, [doc.text for doc in slate.docs]) if slate.docs else []
        return in_place(name, slate, {int(result.doc_id): result.score for result in results})

    return score


def by_frame(name: str, method: Callable[..., Any]) -> Score:
    """transform(frame) as in PyTerrier: a row for each text in, a `score` for each row out, in any order."""

    def score(slates: Sequence[Slate]) -> list[Scores]:
        import pandas as pd

        rows = [
            (str(q), slate.query, str(place), doc.text)
            for q, slate in enumerate(slates)
            for place, doc in enumerate(slate.docs)
        ]
        found: list[dict[int, Any]] = [{} for _ in slates]
        if rows:
            frame = method(pd.DataFrame(rows, columns=["qid", "query", "docno", "text"]))
            for q, d, value in zip(frame["qid"], frame["docno"], frame["score"], strict=True):
                found[int(q)][int(d)] = value
        return [in_place(name, slate, scores) for slate, scores in zip(slates, found, strict=True)]

    return score


def in_place(name: str, slate: Slate, scores: dict[int, Any]) -> Scores:
    """Scores by place in the list as an array; each text must have one."""
    if scores.keys() != set(range(len(slate.docs))):
        raise RankerFailed(f"ranker {name}, query {slate.query!r}: scored {len(scores)} of {len(slate.docs)} texts")
    return checked(name, slate, [scores[i] for i in range(len(slate.docs))])


SHAPES = (
    Shape("score", 1, "score(slates)", by_slates),
    Shape("predict", 1, "predict(pairs of query and text)", by_pairs, pointwise=True),
    Shape("score_iter", 1, "score_iter(pairs of query and text)", by_pairs, pointwise=True),
    Shape("transform", 1, "transform(frame with qid, query, docno, text)", by_frame),
    Shape("rank", 2, "rank(query, texts)", by_results),
    Shape("", 2, "be a function f(query, texts)", by_list),
)
